"""`pollux raw`: a session's file as it is."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.meant import in_file, meant, named_file
from pollux.cli.scope import Scope, options


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
    from pollux.errors import UnreadableFileError
    from pollux.formats.source import Source

    if only_path:
        _print_paths(scope, wanted)
        return
    path = _path(scope, wanted, number)
    try:
        with Source(path) as source:
            if not source.size:
                output.words(f"{path} is empty.")
            if line is None:
                output.write(source.blocks())
                return
            found = [one.data for one in source.lines() if one.number == line]
    except OSError as error:
        if error.filename is None:  # not the file, but where it goes to
            raise
        raise UnreadableFileError(path, error.strerror) from None
    if not found:
        raise click.ClickException(f"{path} has no line {line}.")
    output.write([*found, b"\n"])


def _print_paths(scope: Scope, wanted: str) -> None:
    file = named_file(wanted)
    session = in_file(file)[0] if file else meant(scope, wanted)[0]
    output.write(os.fsencode(ref.path) + f"\t{ref.role}\t{ref.format}\n".encode() for ref in session.files)


def _path(scope: Scope, wanted: str, number: int | None) -> Path:
    """Return the file meant: one that was named is printed whatever it holds."""
    if file := named_file(wanted):
        files: Sequence[Path] = [file]
        main = file
    else:
        group = meant(scope, wanted)[1]
        files = [one.reading.path for one in group.files]
        main = group.main.reading.path
    if number is not None and number > len(files):
        raise click.UsageError(f"--file {number}: this has {len(files)} in all; `pollux raw --path` lists them.")
    return files[number - 1] if number else main
