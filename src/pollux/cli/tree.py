"""`pollux tree`: print the files and subagents of a session."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli import output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.cli.options import path_from_argument

_PIPE_COLUMNS = 10_000
"""Enough that no path is broken."""


@click.command()
@click.argument("session", metavar="[SESSION]", default="latest", shell_complete=session_ids)
@output.pager_option
@options()
def command(scope: Context, session: str, *, pager: bool) -> None:
    """Print the files of a session, and its subagents with the tool calls that started them.

    \b
      pollux tree latest
      pollux tree a82545c4 --json
    """
    from pollux.render.terminal.sessions import draw_tree
    from pollux.views.contracts.sessions import TreeDocument

    path = path_from_argument(session)
    scope.note_freshness()
    tree = scope.library.tree(path or session, scope.wanted)
    if scope.as_json:
        output.print_json(TreeDocument(tree, scope.library.prices))
    elif output.is_terminal():
        tops = [home.tmp for home in scope.library.config.homes]
        output.print_screen([draw_tree(tree, now=output.now(), tops=tops)], pager=pager)
    else:
        output.console(columns=_PIPE_COLUMNS).print(draw_tree(tree, now=output.now()))
