"""`pollux open`: show a session in a browser."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.cli.signals import ended_by_signals
from pollux.cli.web import open_option, port_option, tab_opener


@click.command()
@click.argument("session", metavar="[SESSION]", default="latest", shell_complete=session_ids)
@port_option
@open_option
@options(json=False, filters=None)
def command(scope: Context, session: str, *, port: int | None, opens: bool) -> None:
    """Show a session in a browser: the newest, or the one that SESSION names by ID, beginning of an ID or @2.

    SESSION#MESSAGE opens the session at a message: a number that `pollux search` prints, a message ID, or the beginning
    of one. If the viewer is not running, the command starts it, and it runs until you press Ctrl-C.

    \b
      pollux open
      pollux open a82545c4#12
    """
    from pollux.web.server import serve

    scope.note_freshness()
    with scope.library.transcript(session) as transcript:
        path = f"s/{transcript.session.id}"
        if transcript.place is not None:
            path += f"/{transcript.place + 1}"
    with ended_by_signals():
        serve(scope.library.config, tab_opener(opens=opens, path=path), port)
