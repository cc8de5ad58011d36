"""`pollux show`: print a session."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.cli.options import options_from, reference_from_argument, transcript_options

if TYPE_CHECKING:
    from pollux.library.transcript import Transcript


@click.command()
@click.argument("session", metavar="[SESSION]", default="latest", shell_complete=session_ids)
@transcript_options
@output.pager_option
@options()
def command(
    scope: Context, session: str, *, detail: str | None, branches: str | None, thoughts: bool | None, pager: bool
) -> None:
    """Print a session: the newest, or the one that SESSION names by ID, beginning of an ID, @2 or file.

    \b
      pollux show
      pollux show a82545c4 --detail full
      pollux show @3 --branches all
      pollux show ./session-2026-01-27T15-21-a82545c4.json
    """
    from pollux.views.contracts import stream_json

    chosen = options_from(detail, branches, thoughts=thoughts)
    with scope.library.transcript(reference_from_argument(scope, session), chosen, scope.wanted) as transcript:
        problems = transcript.session.problems
        if scope.as_json:
            output.write(stream_json(transcript.row, transcript.messages(), transcript.session.children))
            scope.finish(asked=problems)
        _print(transcript, pager=pager)
        if transcript.n_imported:
            output.note(
                f"{transcript.n_imported} of these messages come from an imported archive and were not read on this "
                f"machine; `pollux raw {transcript.session.id} --path` lists the files."
            )
        scope.finish(asked=problems)


def _print(transcript: Transcript, *, pager: bool) -> None:
    from pollux.render.terminal.transcript import render_header, render_transcript

    usage = (transcript.row.usage, transcript.row.own_usage)
    with output.paged(pager=pager) as console:
        console.print(render_header(transcript.session, transcript.family, *usage, encoding=console.encoding))
        for renderable in render_transcript(transcript.blocks(), encoding=console.encoding):
            console.print(renderable)
