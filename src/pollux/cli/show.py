"""`pollux show`: read a session."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.arguments import reference_from_argument
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.cli.transcript_options import options_from, transcript_options

if TYPE_CHECKING:
    from pollux.library.transcript import Transcript


@click.command()
@click.argument("wanted", metavar="[ID|FILE]", default="latest", shell_complete=session_ids)
@options()
@transcript_options
@click.option("--pager/--no-pager", default=True, help="Scroll on a terminal.")
def command(
    scope: Scope, wanted: str, *, detail: str | None, branches: str | None, thoughts: bool | None, pager: bool
) -> None:
    """Read a session: the newest, unless an id, the beginning of one, @2 or a file is given.

    \b
      pollux show
      pollux show a82545c4 --detail full
      pollux show @3 --branches all
      pollux show ./session-2026-01-27T15-21-a82545c4.json
    """
    from pollux.views.contracts import stream_json

    shown = options_from(detail, branches, thoughts=thoughts)
    with scope.library.transcript(reference_from_argument(scope, wanted), shown, scope.wanted) as transcript:
        problems = transcript.session.problems
        if scope.as_json:
            output.write(stream_json(transcript.row, transcript.messages(), transcript.session.children))
            click.get_current_context().exit(1 if problems else 0)
        _print(transcript, pager=pager)
        if transcript.n_imported:
            output.words(
                f"Messages from an imported archive, not read on this machine: {transcript.n_imported} of these; "
                f"`pollux raw {transcript.session.id} --path` lists the files."
            )
        click.get_current_context().exit(output.say_problems(problems))


def _print(transcript: Transcript, *, pager: bool) -> None:
    from pollux.render.terminal.transcript import header
    from pollux.render.terminal.transcript import transcript as rendered

    usage = (transcript.row.usage, transcript.row.own_usage)
    with output.paged(wanted=pager) as console:
        console.print(header(transcript.session, transcript.family, *usage, encoding=console.encoding))
        for renderable in rendered(transcript.blocks(), encoding=console.encoding):
            console.print(renderable)
