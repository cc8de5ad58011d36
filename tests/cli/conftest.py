"""The command line, ready to run."""

from __future__ import annotations

import pytest
from tests.cli.running import Runner


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(monkeypatch, capsys)
