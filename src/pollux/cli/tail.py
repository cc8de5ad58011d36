"""`pollux tail`: follow a running session in the terminal."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.arguments import reference_from_argument
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.cli.signals import until_stopped
from pollux.cli.transcript_options import options_from, transcript_options

if TYPE_CHECKING:
    from pollux.library.follow import Following

_TITLE = 60
"""Characters of a title."""


@click.command()
@click.argument("wanted", metavar="[ID|FILE]", default="latest", shell_complete=session_ids)
@options()
@transcript_options
@click.option(
    "--blocks",
    "-n",
    "count",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Begin with so many of the last prompts, answers and tool calls.",
)
def command(
    scope: Scope, wanted: str, *, detail: str | None, branches: str | None, thoughts: bool | None, count: int
) -> None:
    """Follow a running session and its subagents until Ctrl-C: the newest, unless another is named.

    Prompts, answers and tool calls are shown as soon as Gemini CLI has written them; a line tells what was rewound or
    compressed. Where there is no session yet, one is waited for. With --json, every message is an object on a line of
    its own, and comes again when it has changed.

    \b
      pollux tail
      pollux tail --project . -n 3
      pollux tail a82545c4 --detail full
      pollux tail --json | jq -r .text
    """
    from pollux.render.terminal.transcript import transcript

    with until_stopped():
        reference = reference_from_argument(scope, wanted)
        following = scope.library.follow(reference, scope.wanted, output.words, wait=True)
        _say_what(following)
        if scope.as_json:
            for message in following.messages(count):
                output.print_json(message)
            return
        shown = options_from(detail, branches, thoughts=thoughts)
        with output.paged(wanted=False) as console:
            for renderable in transcript(following.blocks(shown, count), encoding=console.encoding):
                console.print(renderable)


def _say_what(following: Following) -> None:
    from pollux.views.session_text import title

    session = following.session
    words = f'Following {following.short_id} in {session.project.name}: "{title(session, _TITLE)}"'
    output.words(f"{words} Ctrl-C ends it.")
