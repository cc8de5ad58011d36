"""`pollux tail`: follow a running session."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.cli.options import options_from, reference_from_argument, transcript_options
from pollux.cli.signals import until_stopped

if TYPE_CHECKING:
    from pollux.library.follow import FollowedSession

_TITLE = 60
"""Characters of a title."""


@click.command()
@click.argument("session", metavar="[SESSION]", default="latest", shell_complete=session_ids)
@transcript_options
@click.option(
    "--blocks",
    "-n",
    "count",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    metavar="N",
    help="Print the last N prompts, answers and tool calls first.",
)
@options()
def command(
    scope: Context, session: str, *, detail: str | None, branches: str | None, thoughts: bool | None, count: int
) -> None:
    """Follow a running session and its subagents until Ctrl-C: the newest, or the one that SESSION names.

    Prompts, answers and tool calls appear as soon as Gemini CLI writes them, and a line reports what is rewound or
    compressed. If there is no session yet, the command waits for one. With --json, every message is a JSON object on
    its own line, which is printed again when it changes.

    \b
      pollux tail
      pollux tail --project . -n 3
      pollux tail a82545c4 --detail full
      pollux tail --json | jq -r .text
    """
    from pollux.render.terminal.transcript import render_transcript

    with until_stopped():
        reference = reference_from_argument(scope, session)
        following = scope.library.follow(reference, scope.wanted, output.note, wait=True)
        _announce(following)
        if scope.as_json:
            for message in following.messages(count):
                output.print_json(message)
            return
        chosen = options_from(detail, branches, thoughts=thoughts)
        with output.paged(pager=False) as console:
            for renderable in render_transcript(following.blocks(chosen, count), encoding=console.encoding):
                console.print(renderable)


def _announce(following: FollowedSession) -> None:
    from pollux.views.session_text import title

    session = following.session
    name = f'{following.short_id} in {session.project.name}: "{title(session, _TITLE)}"'
    output.note(f"Following {name}. Press Ctrl-C to stop.")
