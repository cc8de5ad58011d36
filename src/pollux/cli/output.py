"""Where words and data go: stdout is data, stderr is words, and a pager only on a terminal."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

import click
from rich.console import Console

from pollux import jsontext
from pollux.model import Problem
from pollux.terminal.text import clean

_SHOWN = 5


def is_terminal() -> bool:
    """Tell whether a person looks at stdout."""
    return sys.stdout.isatty()


def console() -> Console:
    """Return a console for data; as wide as the terminal, or as long as the lines are."""
    return Console(highlight=False, soft_wrap=not is_terminal())


def print_json(value: object) -> None:
    """Print one JSON object."""
    write([jsontext.encode(value), b"\n"])


def write(pieces: Iterable[bytes]) -> None:
    """Write bytes to stdout."""
    stream = sys.stdout.buffer
    for piece in pieces:
        stream.write(piece)
    stream.flush()


def words(text: str) -> None:
    """Say something that is not data."""
    click.echo(clean(text), err=True)


def say_problems(problems: Iterable[Problem], *, hint: str = "`pollux doctor` lists them all.") -> int:
    """Name the first few problems on stderr; return the exit status they make."""
    found = list(problems)
    for problem in found[:_SHOWN]:
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        words(f"{place}: {problem.message}" if place else problem.message)
    if len(found) > _SHOWN:
        words(f"… and {len(found) - _SHOWN} more problems; {hint}")
    return 1 if found else 0


@contextmanager
def paged(*, wanted: bool) -> Iterator[Console]:
    """Give a console that writes into a pager where there is a terminal, and straight out where there is none."""
    command = shlex.split(os.environ.get("PAGER") or "less")
    if not wanted or not is_terminal() or not command or not shutil.which(command[0]):
        yield console()
        return
    width = shutil.get_terminal_size().columns
    environment = {"LESS": "-RFX", **os.environ}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8") as pager:  # noqa: S603  the user's own pager
        assert pager.stdin is not None
        try:
            yield _console_for(pager.stdin, width)
        except BrokenPipeError:
            pass  # the reader has seen enough
        finally:
            with suppress(BrokenPipeError):
                pager.stdin.close()
            _wait(pager)


def _console_for(stream: IO[str], width: int) -> Console:
    return Console(file=stream, width=width, force_terminal="NO_COLOR" not in os.environ, highlight=False)


def _wait(pager: subprocess.Popen[str]) -> None:
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:  # Ctrl-C belongs to the pager
            continue
        return
