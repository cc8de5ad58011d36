"""`pollux raw`: print the files of a session byte for byte."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os

import click

from pollux.cli import output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.cli.options import reference_from_argument


@click.command()
@click.argument("session", metavar="[SESSION]", default="latest", shell_complete=session_ids)
@click.option("--path", "only_path", is_flag=True, help="Print the paths, roles and formats of all files instead.")
@click.option("--file", "number", type=click.IntRange(min=1), help="Print file N of --path instead of the main file.")
@click.option("--line", type=click.IntRange(min=1), help="Print only line N, as named by a problem.")
@options(json=False)
def command(scope: Context, session: str, *, only_path: bool, number: int | None, line: int | None) -> None:
    """Print the main file of a session byte for byte; control characters are escaped on a terminal.

    \b
      pollux raw latest | jq .
      pollux raw a82545c4 --line 17
      pollux raw a82545c4 --path
    """
    from pollux.library.raw import line_of

    if only_path and (number or line):
        raise click.UsageError("--path lists all files of a session and cannot be combined with --file or --line.")
    reference = reference_from_argument(scope, session)
    if only_path:
        files = scope.library.files(reference, scope.wanted)
        output.write(os.fsencode(file.path) + f"\t{file.role}\t{file.format}\n".encode() for file in files)
        return
    if not isinstance(reference, str) and not os.path.lexists(reference):
        scope.note_freshness()  # the file may still be in the archive
    with scope.library.raw(reference, number, scope.wanted) as source:
        if not source.size:
            output.note(f"{source.path} is empty.")
        output.write(source.blocks() if line is None else line_of(source, line))
