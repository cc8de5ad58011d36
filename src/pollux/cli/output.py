"""Where words and data go: stdout is data, stderr is words, and a pager only on a terminal."""
# ruff: noqa: PLC0415  what draws is imported when something is drawn

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

if TYPE_CHECKING:
    import subprocess

    from pollux.model import Problem
    from pollux.render.terminal.console import Console

NOTHING_HERE = "No sessions here. `pollux doctor` says where was looked; `pollux demo` shows invented ones."

NOTHING_FITS = "No session fits these options; `pollux ls` without them lists what there is."

_SHOWN = 5
_NARROWEST = 20


def now() -> datetime:
    """Tell the time: the one clock of all commands."""
    return datetime.now(UTC)


_PROSE = 100
"""Columns of a transcript that goes into a pipe or a file."""


def is_terminal() -> bool:
    """Tell whether a person looks at stdout."""
    return sys.stdout.isatty()


def is_anybody_there() -> bool:
    """Tell whether a person can be asked something; after `<&-` there is not even a stream."""
    return sys.stdin is not None and sys.stdin.isatty()


def width() -> int:
    """Tell how many columns the terminal has."""
    import shutil

    return max(_NARROWEST, shutil.get_terminal_size().columns)


def console(*, columns: int | None = None) -> Console:
    """Return a console for data; as wide as the terminal, or as long as the lines are."""
    from pollux.render.terminal.console import Console

    made = Console(highlight=False, soft_wrap=not is_terminal() and columns is None, width=columns)
    if is_terminal() and made.width < _NARROWEST:  # `COLUMNS=0`, which some shells leave behind
        made.width = width()
    return made


def print_json(value: object) -> None:
    """Print the document of a value that has a JSON contract."""
    from pollux.text.encode import encode
    from pollux.views.contracts import to_json

    write([encode(to_json(value)), b"\n"])


def write(pieces: Iterable[bytes]) -> None:
    """Write bytes to stdout: as they are into a pipe or a file, harmless to a terminal."""
    stream = sys.stdout.buffer
    for piece in _harmless(pieces) if is_terminal() else pieces:
        stream.write(piece)
    stream.flush()


def words(text: str) -> None:
    """Say something that is not data."""
    from pollux.text.escape import clean

    text = clean(text)
    if sys.stderr.isatty():
        import textwrap

        lines = text.split("\n")
        text = "\n".join(textwrap.fill(line, width(), break_long_words=False, break_on_hyphens=False) for line in lines)
    click.echo(text, err=True)


def say_problems(problems: Iterable[Problem], *, hint: str = "`pollux doctor` lists them all.") -> int:
    """Name the first few problems on stderr; return the exit status they make."""
    found = list(dict.fromkeys(problems))
    for problem in found[:_SHOWN]:
        file = short(problem.file) if problem.file else None
        place = f"{file}:{problem.line}" if problem.line else file
        words(f"{place}: {problem.message}" if place else problem.message)
    if len(found) > _SHOWN:
        words(f"… and {len(found) - _SHOWN} more problems; {hint}")
    return 1 if found else 0


def short(path: str | Path) -> str:
    """Write the user's own folder as `~`."""
    try:
        inner = Path(path).relative_to(Path.home())
    except ValueError:
        return str(path)
    return str(Path("~") / inner)


@contextmanager
def paged(*, wanted: bool) -> Iterator[Console]:
    """Give a console that writes into a pager where there is a terminal, and straight out where there is none."""
    command = _pager() if wanted and is_terminal() else []
    if not command:
        yield console(columns=None if is_terminal() else _PROSE)
        return
    import subprocess

    environment = {"LESS": "-RFX", **os.environ}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8") as pager:  # noqa: S603  the user's own pager
        assert pager.stdin is not None
        try:
            yield _console_for(pager.stdin, width())
        except BrokenPipeError:
            pass  # the reader has seen enough
        finally:
            with suppress(BrokenPipeError):
                pager.stdin.close()
            _wait(pager)


def _harmless(pieces: Iterable[bytes]) -> Iterator[bytes]:
    from pollux.text.escape import safe

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield safe(decoder.decode(piece)).encode()
    yield safe(decoder.decode(b"", final=True)).encode()


def _pager() -> list[str]:
    import shlex
    import shutil

    try:
        command = shlex.split(os.environ.get("PAGER") or "less")
    except ValueError:  # a quotation mark that nobody closed
        return []
    return command if command and shutil.which(command[0]) else []


def _console_for(stream: IO[str], width: int) -> Console:
    from pollux.render.terminal.console import Console

    return Console(file=stream, width=width, force_terminal="NO_COLOR" not in os.environ, highlight=False)


def _wait(pager: subprocess.Popen[str]) -> None:
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:  # Ctrl-C belongs to the pager
            continue
        return
