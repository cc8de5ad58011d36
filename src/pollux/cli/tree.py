"""`pollux tree`: a session's files and subagents."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli import output
from pollux.cli.arguments import path_from_argument
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options

_ENDLESS = 10_000
"""Columns of a pipe: a path in it is never broken."""


@click.command()
@click.argument("wanted", metavar="[ID|FILE]", default="latest", shell_complete=session_ids)
@options()
def command(scope: Scope, wanted: str) -> None:
    """Show a session with its files, and its subagents with the calls that started them.

    \b
      pollux tree latest
      pollux tree a82545c4 --json
    """
    from pollux.render.terminal.tree import draw_tree
    from pollux.views.contracts.sessions import TreeDocument

    path = path_from_argument(wanted)
    scope.note_freshness()
    tree = scope.library.tree(path or wanted, scope.wanted)
    if scope.as_json:
        output.print_json(TreeDocument(tree, scope.library.prices))
    elif output.is_terminal():
        tops = [home.tmp for home in scope.library.config.homes]
        output.console().print(draw_tree(tree, now=output.now(), tops=tops))
    else:
        output.console(columns=_ENDLESS).print(draw_tree(tree, now=output.now()))
