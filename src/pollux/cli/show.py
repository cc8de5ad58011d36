"""`pollux show`: read a session."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.cli.transcript_options import transcript_options
from pollux.library.select import meant

if TYPE_CHECKING:
    from pollux.model import Message, Session
    from pollux.sessions.grouping import Group
    from pollux.views.transcript import Options


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
    from pollux.views.transcript import Branches, Detail, Options

    session, group, by_id = meant(scope, wanted)
    if scope.as_json:
        output.write(_json(session, group.messages(), by_id))
        status = 1 if session.problems else 0
    else:
        chosen = Options(Detail(detail or "normal"), Branches(branches or "active"), thoughts, session.project.path)
        _print(session, group, chosen, pager=pager)
        if group.n_imported:
            output.words(
                f"Messages from an imported archive, not read on this machine: {group.n_imported} of these; "
                f"`pollux raw {session.id} --path` lists the files."
            )
        status = output.say_problems(session.problems)
    click.get_current_context().exit(status)


def _print(session: Session, group: Group, chosen: Options, *, pager: bool) -> None:
    from pollux.render.terminal.transcript import header, transcript
    from pollux.views.transcript import blocks

    with output.paged(wanted=pager) as console:
        console.print(header(session, encoding=console.encoding))
        for renderable in transcript(blocks(group.messages(shortened=True), chosen), encoding=console.encoding):
            console.print(renderable)


def _json(session: Session, messages: Iterable[Message], by_id: dict[str, Session]) -> Iterator[bytes]:
    """Write the object piece by piece: a huge session never stands whole in memory."""
    from pollux.cli.usage import price_table
    from pollux.text import json_text
    from pollux.views.contracts import SESSION, message_row, session_row

    yield (
        b'{"schema":'
        + json_text.encode(SESSION)
        + b',"session":'
        + json_text.encode(session_row(session, by_id, price_table()))
    )
    yield b',"timeline":['
    for number, message in enumerate(messages):
        yield (b"," if number else b"") + json_text.encode(message_row(message))
    yield b'],"children":' + json_text.encode(session.children) + b"}\n"
