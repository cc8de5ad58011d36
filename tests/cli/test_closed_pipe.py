"""A reader may close the pipe at any time: every command then ends silently with status 0, as `rg` does."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a closed pipe is another thing there")

LONG = (
    *("ls", "ls --json", "ls --all", "show latest", "show latest --detail full", "show latest --json", "raw latest"),
    *("usage", "usage --by session", "usage --json", "stats", "stats --by tool", "stats --json", "audit latest"),
    *("audit latest --json", "tree latest", "projects", "doctor", "doctor --json", "status", "status --json"),
    *("statusline", "record create latest", "export --all -f events", "export --all -f calls", "export latest -f html"),
    *("export latest -f markdown", "export latest -f json", "export latest -f calls-csv", "export latest -f vac-cbor"),
    *("tail latest", "tail latest --json", "export latest -f events --follow", ""),
)


def ended(*args: str, n_read: int = 0, together: bool = False) -> tuple[int, str]:
    """Run a command into a pipe that is closed after some bytes; return its status and its messages."""
    reading, writing = os.pipe()
    if not n_read:
        os.close(reading)  # before anything can be written
    with subprocess.Popen(
        [sys.executable, "-m", "pollux", *args],
        stdout=writing,
        stderr=writing if together else subprocess.PIPE,
    ) as process:
        os.close(writing)
        if n_read:
            os.read(reading, n_read)
            os.close(reading)
        words = process.stderr.read().decode() if process.stderr else ""
        return process.wait(60), words


@pytest.mark.parametrize("line", LONG)
def test_closed_pipe_is_not_an_error(line: str) -> None:
    status, words = ended("demo", *line.split())
    assert status == 0
    assert "rror" not in words
    assert "pipe" not in words
    assert ended("demo", *line.split(), together=True) == (0, "")


@pytest.mark.parametrize("args", [("--help",), ("--version",), ("export", "--help"), ("completion", "bash")])
def test_help_into_a_closed_pipe_is_not_an_error(args: tuple[str, ...]) -> None:
    assert ended(*args) == (0, "")


def test_command_ends_when_its_reader_stops() -> None:
    """The output is larger than the buffer of a pipe, so the command is still writing when the pipe is closed."""
    assert ended("demo", "export", "--all", "-f", "jsonl", n_read=1) == (0, "")


@pytest.mark.parametrize(("args", "status"), [(("nosuch",), 2), (("show", "nosuch", "--no-archive"), 1)])
def test_error_into_a_closed_pipe_keeps_its_status(args: tuple[str, ...], status: int) -> None:
    assert ended(*args, together=True) == (status, "")
