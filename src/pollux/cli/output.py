"""Standard output for data and screens, standard error for notes and progress, and a pager on a terminal."""
# ruff: noqa: PLC0415  what draws is imported when something is drawn

from __future__ import annotations

import codecs
import functools
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    import subprocess

    from pollux.model import Problem
    from pollux.render.terminal.screen import Bar, Console, Renderable

LIST_PROBLEMS = "`pollux doctor` lists them all."
NOTHING_HERE = "No sessions here. `pollux doctor` lists the folders that were searched; `pollux demo` shows examples."

_N_PROBLEMS = 5
"""Problems that are printed before the others are only counted."""
_NARROWEST = 20
_PIPE_COLUMNS = 100
"""Columns of a transcript or an overview that goes into a pipe or a file."""
_SECONDS_WITHOUT_BAR = 0.5
_LESS_WITH_HEADER = 600
"""The first version of less that can keep a header in sight."""
_Function = TypeVar("_Function", bound=Callable[..., Any])

pager_option = click.option("--pager/--no-pager", default=True, help="Show what is longer than the screen in a pager.")
_HEADER = click.option("--header/--no-header", default=True, help="Print column names first, in a pipe and in CSV.")


def limit_option(help_: str, *names: str) -> Callable[[_Function], _Function]:
    """Return an option `-n` that limits the rows of a list."""
    return click.option(*(names or ("--limit",)), "-n", type=click.IntRange(min=1), metavar="N", help=help_)


class TableOptions(NamedTuple):
    """How a command prints its table."""

    pager: bool
    header: bool


link_option = click.option("--link", is_flag=True, help="Add addresses in the running viewer: links on a terminal.")


def table_options(function: _Function) -> _Function:
    """Add `--no-pager` and `--no-header` to a command, which receives them as one `table`."""

    @functools.wraps(function)
    def wrapped(*, pager: bool, header: bool, **others: Any) -> object:  # noqa: ANN401  click's
        return function(table=TableOptions(pager, header), **others)

    return pager_option(_HEADER(wrapped))  # type: ignore[return-value]


def now() -> datetime:
    """Return the current time; every command uses this clock."""
    return datetime.now(UTC)


def with_program_name(text: str) -> str:
    """Return a text whose hints, such as `pollux ls`, name the program as the user has called it."""
    from pollux.library.config import program_name

    name = program_name()
    return text if name == "pollux" else re.sub(r"`pollux (?!demo\b)", f"`{name} ", text)


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def can_prompt() -> bool:
    """Return whether the user can be asked something; after `<&-` there is not even a stream."""
    return sys.stdin is not None and sys.stdin.isatty()


def width() -> int:
    """Return how many columns the terminal has."""
    import shutil

    return max(_NARROWEST, shutil.get_terminal_size().columns)


def encoding() -> str:
    """Return the encoding of standard output."""
    return sys.stdout.encoding or "utf-8"


def console(*, columns: int | None = None) -> Console:
    """Return a console for standard output; as wide as the terminal, or without line breaks in a pipe."""
    from pollux.render.terminal.screen import Console

    made = Console(soft_wrap=not is_terminal() and columns is None, width=columns)
    if is_terminal() and made.width < _NARROWEST:  # `COLUMNS=0`, which some shells leave behind
        made.width = width()
    return made


def print_screen(parts: Iterable[Renderable], *, pager: bool = True, has_header: bool = False) -> None:
    """Print something for people, through a pager if it is longer than the terminal.

    Args:
        parts: what to print, one below the other.
        pager: whether a pager may be used.
        has_header: whether the first line names the columns, so that the pager keeps it in sight.

    """
    import io
    import shutil

    from pollux.render.terminal.layout import Safe
    from pollux.render.terminal.screen import Console, edited

    screen = Console(
        file=io.StringIO(),
        width=width() if is_terminal() else _PIPE_COLUMNS,
        force_terminal=True if sys.stdout.isatty() else None,  # None leaves it to FORCE_COLOR
    )
    for part in parts:
        screen.print(Safe(edited(part, with_program_name), encoding()), soft_wrap=not is_terminal())
    assert isinstance(screen.file, io.StringIO)
    text = screen.file.getvalue()
    is_long = text.count("\n") >= shutil.get_terminal_size().lines
    command = _table_pager(has_header=has_header) if is_terminal() and pager and is_long else []
    if not command:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    with _pager_input(command) as stream:
        stream.write(text)


def print_table(
    rows: Sized, screen: Callable[[], Iterable[Renderable]], lines: Callable[[], Iterable[str]], table: TableOptions
) -> None:
    """Print rows for people on a terminal, with a header that stays in sight, or for other programs in a pipe."""
    if not is_terminal():
        print_lines(lines())
    elif len(rows):
        print_screen(screen(), pager=table.pager, has_header=True)


def can_search_in_pager(*, pager: bool) -> bool:
    """Return whether output goes to a pager that can begin at a place in it."""
    command = _pager() if pager and is_terminal() else []
    return bool(command) and Path(command[0]).stem == "less" and _less_version(command[0]) > 0


@contextmanager
def paged(*, pager: bool, at: str = "") -> Iterator[Console]:
    """Yield a console that writes to a pager on a terminal, and straight to standard output otherwise.

    Args:
        pager: whether a pager may be used.
        at: a text at which the pager begins, if it can; the reader can still go back from there.

    """
    command = _pager() if pager and is_terminal() else []
    if at and can_search_in_pager(pager=pager):
        command = [*command, f"+/{re.escape(at)}"]
    if not command:
        yield console(columns=None if is_terminal() else _PIPE_COLUMNS)
        return
    from pollux.render.terminal.screen import Console

    with _pager_input(command) as stream:
        yield Console(file=stream, width=width(), force_terminal=True)


def print_json(value: object) -> None:
    """Print the JSON document of a value."""
    from pollux.text.encode import encode
    from pollux.views.contracts import to_json

    write([encode(to_json(value)), b"\n"])


def print_lines(lines: Iterable[str]) -> None:
    """Print lines for other programs."""
    write(line.encode("utf-8", "replace") for line in lines)


def write(pieces: Iterable[bytes]) -> None:
    """Write bytes to standard output: unchanged to a pipe or a file, without control characters to a terminal."""
    stream = sys.stdout.buffer
    for piece in _without_controls(pieces) if is_terminal() else pieces:
        stream.write(piece)
    stream.flush()


def note(text: str) -> None:
    """Print a note to standard error."""
    from pollux.text.escape import make_visible

    text = make_visible(with_program_name(text))
    if sys.stderr.isatty():
        import textwrap

        lines = text.split("\n")
        text = "\n".join(textwrap.fill(line, width(), break_long_words=False, break_on_hyphens=False) for line in lines)
    click.echo(text, err=True)


def announce(sentence: str) -> None:
    """Print a note if standard error is a terminal."""
    if _is_watched():
        note(sentence)


LIST_PROBLEMS = "`pollux doctor` lists them all."


def print_problems(problems: Iterable[Problem], *, hint: str = LIST_PROBLEMS) -> None:
    """Print the first few problems to standard error."""
    distinct = list(dict.fromkeys(problems))
    for problem in distinct[:_N_PROBLEMS]:
        file = short(problem.file) if problem.file else None
        place = f"{file}:{problem.line}" if problem.line else file
        note(f"{place}: {problem.message}" if place else problem.message)
    if len(distinct) > _N_PROBLEMS:
        note(f"… and {len(distinct) - _N_PROBLEMS} more problems; {hint}")


def count_problems(problems: Iterable[Problem]) -> None:
    """Print to standard error how many files have problems."""
    n_files = len({problem.file for problem in problems})
    if n_files:
        note(f"{n_files} file{'s' * (n_files != 1)} with problems; `pollux doctor` lists them.")


def short(path: str | Path) -> str:
    """Return a path with `~` for the user's own folder."""
    try:
        inner = Path(path).relative_to(Path.home())
    except ValueError:
        return str(path)
    return str(Path("~") / inner)


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes what is done and the total, and draws a bar once that has taken half a second."""
    if not _is_watched():
        yield lambda _done, _total: None
        return
    bar: Bar | None = None
    began = time.monotonic()

    def update(done: int, total: int) -> None:
        nonlocal bar
        if bar is None and time.monotonic() - began > _SECONDS_WITHOUT_BAR:
            from pollux.render.terminal.screen import Bar

            bar = Bar(label, total)
        if bar is not None:
            bar.update(done, total)

    try:
        yield update
    finally:
        if bar is not None:
            bar.stop()


def _is_watched() -> bool:
    return sys.stderr.isatty()


def _without_controls(pieces: Iterable[bytes]) -> Iterator[bytes]:
    from pollux.text.escape import escape_controls

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield escape_controls(decoder.decode(piece)).encode()
    yield escape_controls(decoder.decode(b"", final=True)).encode()


def _pager() -> list[str]:
    """Return the command of the user's pager; empty if there is none."""
    import shlex
    import shutil

    try:
        command = shlex.split(os.environ.get("PAGER") or "less")
    except ValueError:  # an unclosed quotation mark
        return []
    return command if command and shutil.which(command[0]) else []


def _table_pager(*, has_header: bool) -> list[str]:
    """Return the pager for a table: less does not wrap its lines and, where it can, keeps the header in sight."""
    command = _pager()
    if not command or Path(command[0]).stem != "less":
        return command
    command = [*command, "-S"]
    return [*command, "--header=1"] if has_header and _less_version(command[0]) >= _LESS_WITH_HEADER else command


def _less_version(less: str) -> int:
    import subprocess

    try:
        answer = subprocess.run([less, "--version"], capture_output=True, timeout=5, check=False)  # noqa: S603  the user's own
    except (OSError, subprocess.TimeoutExpired):
        return 0
    version = re.match(rb"less (\d+)", answer.stdout)
    return int(version[1]) if version else 0  # the less of BusyBox does not know the option


@contextmanager
def _pager_input(command: Sequence[str]) -> Iterator[IO[str]]:
    """Yield a stream that a pager reads, and wait until the user leaves the pager."""
    import subprocess

    environment = {"LESS": "-RFX", **os.environ}
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8") as pager:  # noqa: S603  the user's own
        assert pager.stdin is not None
        try:
            yield pager.stdin
        except BrokenPipeError:
            pass  # the user has left the pager
        finally:
            with suppress(BrokenPipeError):
                pager.stdin.close()
            _wait(pager)


def _wait(pager: subprocess.Popen[str]) -> None:
    while True:
        try:
            pager.wait()
        except KeyboardInterrupt:  # Ctrl-C is a command of the pager
            continue
        return
