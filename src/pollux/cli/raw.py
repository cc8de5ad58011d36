"""`pollux raw`: a session's file as it is."""

from __future__ import annotations

import click

from pollux.cli import output
from pollux.cli.meant import meant
from pollux.cli.scope import Scope, options
from pollux.terminal.text import clean


@click.command()
@click.argument("wanted", metavar="ID|FILE", default="latest")
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
    session, group, _ = meant(scope, wanted)
    if only_path:
        for ref in session.files:
            click.echo(f"{ref.path}\t{ref.role}\t{ref.format}")
        return
    if number is not None and number > len(group.files):
        raise click.UsageError(f"--file {number}: this session has {len(group.files)} file(s).")
    placed = group.files[number - 1] if number else group.main
    source = placed.reading.source
    pieces = (one.data + b"\n" for one in source.lines() if one.number == line) if line else source.blocks()
    if output.is_terminal():
        pieces = (clean(piece.decode("utf-8", "replace")).encode() for piece in pieces)
    output.write(pieces)
