"""Runs the command line in this process, as a pipe or as a terminal of some width, and captures its output."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pollux import __version__
from pollux.__main__ import main
from pollux.cli import output
from pollux.cli.demo import HOME as DEMO

EXPECTED = Path(__file__).parents[1] / "data" / "cli"
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
"""A moment after the last session of the demo."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401  whatever was printed
        return json.loads(self.out)


class Runner:
    """Starts commands on the demo, unless another home is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.setattr(output, "now", lambda: NOW)
        monkeypatch.setenv("POLLUX_HOME", str(DEMO))
        monkeypatch.setenv("PAGER", "cat")

    def __call__(self, *args: str, columns: int | None = None, home: Path | None = None) -> Result:
        """Run one command, on a terminal if it has columns, else in a pipe."""
        if home:
            self._monkeypatch.setenv("POLLUX_HOME", str(home))
        self._monkeypatch.setattr(output, "is_terminal", lambda: columns is not None)
        self._monkeypatch.setattr(output, "_pager", list)
        self._monkeypatch.setenv("COLUMNS", str(columns or 80))
        self._monkeypatch.setattr(sys, "argv", ["pollux", *args])
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        assert "Traceback" not in said.err
        return Result(ended.value.code, said.out, said.err)


def same(name: str, text: str) -> None:
    """Compare a text with its stored sample, or store it; paths and versions are normalised."""
    text = text.replace(str(DEMO), "DEMO").replace(f'"pollux": "{__version__}"', '"pollux": "VERSION"')
    text = re.sub(r" +$", "", text, flags=re.MULTILINE)
    file = EXPECTED / name
    if "POLLUX_REWRITE" in os.environ:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8", newline="\n")
    assert text == file.read_text("utf-8"), f"{file} differs: look at it, and rewrite it with POLLUX_REWRITE=1"


def pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
