"""`pollux raw`: a session's file as it is."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os

import click

from pollux.cli import output
from pollux.cli.arguments import reference_from_argument
from pollux.cli.complete import session_ids
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
    from pollux.library.raw import line_of

    if only_path and (number or line):
        raise click.UsageError("--path lists all files of a session: leave --file and --line out.")
    reference = reference_from_argument(scope, wanted)
    if only_path:
        files = scope.library.files(reference, scope.wanted)
        output.write(os.fsencode(file.path) + f"\t{file.role}\t{file.format}\n".encode() for file in files)
        return
    if not isinstance(reference, str) and not os.path.lexists(reference):
        scope.note_freshness()  # only the archive may have it
    with scope.library.raw(reference, number, scope.wanted) as source:
        if not source.size:
            output.words(f"{source.path} is empty.")
        output.write(source.blocks() if line is None else line_of(source, line))
