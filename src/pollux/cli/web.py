"""`pollux web`: read the history in a browser."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.context import Context, options
from pollux.cli.signals import ended_by_signals

if TYPE_CHECKING:
    from pollux.web.server import TabOpener

port_option = click.option(
    "--port", type=click.IntRange(1, 65535), metavar="N", help="Port to listen on.  [default: 2990, or a free one]"
)
open_option = click.option(
    "--open/--no-open", "opens", default=True, help="Open a tab in your browser, or only print the address."
)


@click.command()
@port_option
@open_option
@options(json=False, filters=None, timezone=True, prices=True)
def command(scope: Context, *, port: int | None, opens: bool) -> None:
    """Read, search and count your sessions in a browser, until you press Ctrl-C.

    Only this computer can connect, and only a browser that is signed in: the command opens one, and prints an address
    that signs in another, once and within five minutes. If the viewer is running already, the command opens another
    tab of it. The pages load nothing from the network and change nothing.

    \b
      pollux web
      pollux web --no-open --port 8000
      pollux demo web                   on sample sessions
      ssh -t -L 2990:127.0.0.1:2990 HOST pollux web --no-open --port 2990
    """
    from pollux.web.server import serve

    with ended_by_signals():
        serve(scope.library.config, tab_opener(opens=opens), port)


def tab_opener(*, opens: bool, path: str = "") -> TabOpener:
    """Return how to open the first page of the viewer, or another one."""
    from pollux.web.browser import open_in_browser
    from pollux.web.server import TabOpener

    return TabOpener(_note_address, open_in_browser if opens else None, sys.stderr.isatty(), path)


def _note_address(sentence: str) -> None:
    """Print a sentence; an address in it is not broken into lines."""
    from pollux.text.escape import make_visible

    click.echo(make_visible(output.with_program_name(sentence)), err=True)
