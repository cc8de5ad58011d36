"""`pollux raw`: a session's file as it is."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.library.select import in_file, meant, named_file

if TYPE_CHECKING:
    from pollux.formats.source import Line, LongLine, Source


@click.command()
@click.argument("wanted", metavar="[ID|FILE]", default="latest", shell_complete=session_ids)
@options(json=False)
@click.option("--path", "only_path", is_flag=True, help="Only say where the files are.")
@click.option("--file", "number", type=click.IntRange(min=1), help="Not the main file, but the n-th of `--path`.")
@click.option("--line", type=click.IntRange(min=1), help="Only this line, as problems name them.")
def command(scope: Scope, wanted: str, *, only_path: bool, number: int | None, line: int | None) -> None:
    """Print a session's file, byte for byte; on a terminal without control characters.

    \b
      pollux raw latest | jq .
      pollux raw a82545c4 --line 17
      pollux raw a82545c4 --path
    """
    if only_path:
        if number or line:
            raise click.UsageError("--path lists all files of a session: leave --file and --line out.")
        _print_paths(scope, wanted)
        return
    source = _source(scope, wanted, number)
    if not source.size:
        output.words(f"{source.path} is empty.")
    if line is None:
        output.write(source.blocks())
        return
    found = [one for one in source.lines() if one.number == line]
    if not found:
        raise click.ClickException(f"{source.path} has no line {line}.")
    output.write(_bytes(found))


def _bytes(lines: Iterable[Line | LongLine]) -> Iterator[bytes]:
    from pollux.formats.source import LongLine

    for one in lines:
        if isinstance(one, LongLine):
            yield from one.source.blocks(*one.span)
        else:
            yield one.data
    yield b"\n"


def _print_paths(scope: Scope, wanted: str) -> None:
    from pollux.errors import FailedSessionError

    file = named_file(wanted)
    try:
        session = in_file(file)[0] if file else meant(scope, wanted)[0]
    except FailedSessionError as error:
        output.write(os.fsencode(path) + b"\tunreadable\tunreadable\n" for path in error.files)
        return
    output.write(os.fsencode(ref.path) + f"\t{ref.role}\t{ref.format}\n".encode() for ref in session.files)


def _source(scope: Scope, wanted: str, number: int | None) -> Source:
    """Open the file meant: one that was named is printed whatever it holds, from the archive if it is deleted."""
    from pollux.errors import FailedSessionError

    if file := named_file(wanted):
        main = _opened(file) if os.path.lexists(file) else _archived(scope, file)
        files: Sequence[Source] = [main]
    else:
        try:
            group = meant(scope, wanted)[1]
            files = [one.reading.original for one in group.files]
            main = group.main.reading.original
        except FailedSessionError as error:
            files = [_opened(path) if os.path.lexists(path) else _archived(scope, path) for path in error.files]
            main = files[0]
    if number is not None and number > len(files):
        raise click.UsageError(f"--file {number}: this has {len(files)} in all; `pollux raw --path` lists them.")
    return files[number - 1] if number else main


def _archived(scope: Scope, file: Path) -> Source:
    """Open the newest version of a file that is in the archive only."""
    from pollux.archive.files import file_at
    from pollux.archive.readings import source_of

    if scope.archive_path and scope.archive is None:
        scope.history()
    found = file_at(scope.archive.database, file.absolute()) if scope.archive else None
    return source_of(scope.archive.database, found.version_id) if scope.archive and found else _opened(file)


def _opened(file: Path) -> Source:
    from pollux.errors import UnreadableFileError
    from pollux.formats.source import Source

    try:
        return Source(file)
    except OSError as error:
        raise UnreadableFileError(file, error.strerror) from None
