"""`pollux show`: print a session."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.cli.options import message_from_argument, options_from, transcript_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pollux.library.transcript import Transcript
    from pollux.views.transcript import Block

_N_BEFORE = 3
"""Messages before the one that the user named."""


@click.command()
@click.argument("session", metavar="[SESSION]", default="latest", shell_complete=session_ids)
@transcript_options
@output.pager_option
@options()
def command(
    scope: Context, session: str, *, detail: str | None, branches: str | None, thoughts: bool | None, pager: bool
) -> None:
    """Print a session: the newest, or the one that SESSION names by ID, beginning of an ID, @2 or file.

    SESSION#MESSAGE begins at a message, which is printed in full after a few messages before it. MESSAGE is a number
    that `pollux search` prints, a message ID, or the beginning of one.

    \b
      pollux show
      pollux show a82545c4 --detail full
      pollux show a82545c4#12
      pollux show @3 --branches all
      pollux show ./session-2026-01-27T15-21-a82545c4.json
    """
    from pollux.views.contracts import stream_json

    chosen = options_from(detail, branches, thoughts=thoughts)
    with scope.library.transcript(message_from_argument(scope, session), chosen, scope.wanted) as transcript:
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
    from pollux.render.terminal.transcript import place_text, render_header, render_place, render_transcript
    from pollux.text.numbers import plural

    usage = (transcript.row.usage, transcript.row.own_usage)
    place = transcript.place
    at = "" if place is None else place_text(place, transcript.n_messages)
    with output.paged(pager=pager, at=at) as console:

        def print_blocks(blocks: Iterable[Block], *, has_gap: bool = False) -> None:
            for number, renderable in enumerate(render_transcript(blocks, encoding=console.encoding)):
                if has_gap and not number:
                    console.print()
                console.print(renderable)

        console.print(render_header(transcript.session, transcript.family, *usage, encoding=console.encoding))
        if place is None:
            print_blocks(transcript.blocks())
            return
        start = 0 if output.can_search_in_pager(pager=pager) else transcript.start_before(_N_BEFORE)
        if start:
            earlier = f"{plural(start, 'earlier message')}: `pollux show {transcript.row.short_id}` prints all."
            console.print(output.with_program_name(earlier), style="dim")
        print_blocks(transcript.blocks(start, place), has_gap=bool(start))
        message = next(transcript.messages(place, place + 1))
        console.print(render_place(message, at, encoding=console.encoding))
        print_blocks(transcript.named_blocks())
        print_blocks(transcript.blocks(place + 1), has_gap=True)
