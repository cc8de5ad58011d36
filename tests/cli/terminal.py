"""Runs a command as a process of its own, on a pseudo-terminal or in a pipe.

`POLLUX_TEST_SOURCE` names another checkout to run instead of this one, to see that a test fails there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals exist only on Unix")

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
TREE = Path(os.environ.get("POLLUX_TEST_SOURCE") or Path(__file__).parents[2])
"""The checkout whose command is run."""


def _environment(home: Path, **settings: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(TREE / "src"),
        "POLLUX_HOME": str(home),
        "POLLUX_ARCHIVE": str(home / "archive.db"),
        "COLUMNS": "80",
        "TERM": "xterm-256color",
        **settings,
    }


def in_pipe(home: Path, *args: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose output is not a terminal."""
    words = [sys.executable, "-m", "pollux", *args]
    environment = _environment(home, **settings)
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def on_terminal(home: Path, *args: str, columns: int = 80, lines: int = 2000, **settings: str) -> tuple[int, str]:
    """Run a command; return its exit status and everything that it wrote to the terminal."""
    screen = {"COLUMNS": str(columns), "LINES": str(lines), "PAGER": "cat"}
    environment = _environment(home, **{**screen, **settings})
    pid, terminal = pty.fork()
    if pid == 0:
        words = [sys.executable, "-m", "pollux", *args]
        os.execve(sys.executable, words, environment)  # noqa: S606
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # how Linux reports the end
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, b"".join(pieces).decode().replace("\r\n", "\n")
