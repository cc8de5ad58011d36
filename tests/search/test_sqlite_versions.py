"""The same queries have the same hits, scores and snippets on the SQLite of Python and on a newer one.

Runs where `pysqlite3` is installed, which contains its own SQLite: `make test-sqlite` installs it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(importlib.util.find_spec("pysqlite3") is None, reason="`make test-sqlite` installs pysqlite3")
def test_newer_sqlite_gives_the_same_answers(tmp_path: Path) -> None:
    own = answers_of(tmp_path / "own")
    newer = answers_of(tmp_path / "newer", "pysqlite3")
    assert own["sqlite"] != newer["sqlite"]
    assert own["hits"] == newer["hits"]
    assert sum(map(len, own["hits"].values())) > len(own["hits"])


def answers_of(folder: Path, *modules: str) -> Any:  # noqa: ANN401  as decoded
    folder.mkdir()
    command = [sys.executable, "-m", "tests.search.answers", str(folder), *modules]
    ended = subprocess.run(command, check=True, capture_output=True, cwd=_ROOT, env={**os.environ, "TZ": "UTC"})
    return json.loads(ended.stdout)
