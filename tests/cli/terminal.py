"""Runs a command as a process of its own on a pseudo-terminal."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals exist only on Unix")

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def on_terminal(home: Path, *args: str, columns: int = 80, lines: int = 2000, **environment: str) -> tuple[int, str]:
    """Run a command; return its exit status and everything that it wrote to the terminal."""
    settings = {
        "POLLUX_HOME": str(home),
        "POLLUX_ARCHIVE": str(home / "archive.db"),
        "COLUMNS": str(columns),
        "LINES": str(lines),
        "PAGER": "cat",
        "TERM": "xterm-256color",
    }
    pid, terminal = pty.fork()
    if pid == 0:
        words = [sys.executable, "-m", "pollux", *args]
        os.execve(sys.executable, words, {**os.environ, **settings, **environment})  # noqa: S606
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
