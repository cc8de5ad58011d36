"""`pollux tree`: a session's files and subagents."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.library.select import in_file, in_history, named_file

if TYPE_CHECKING:
    from pollux.model import Session
    from pollux.sessions.reader import History


@click.command()
@click.argument("wanted", metavar="[ID|FILE]", default="latest", shell_complete=session_ids)
@options()
def command(scope: Scope, wanted: str) -> None:
    """Show a session with its files, and its subagents with the calls that started them.

    \b
      pollux tree latest
      pollux tree a82545c4 --json
    """
    from pollux.cli.usage import price_table
    from pollux.sessions.family import TREE, root, tree_json

    found = scope.history()
    by_id = {one.id: one for one in found.sessions}
    file = named_file(wanted)
    session = root(_owner(found, file) if file else in_history(scope, found, wanted), by_id)
    if scope.as_json:
        output.print_json({"schema": TREE, "tree": tree_json(session, by_id, price_table())})
    else:
        _print(found, session, by_id)


def _owner(found: History, file: Path) -> Session:
    """Return the session that a file is part of; a file from elsewhere holds its own."""
    real = file.resolve()
    for one in found.sessions:
        if any(ref.path.resolve() == real for ref in one.files):
            return one
    return in_file(file)[0]


def _print(found: History, session: Session, by_id: dict[str, Session]) -> None:
    from pollux.render.terminal.tree import session_tree

    if output.is_terminal():
        tops = [home.tmp for home in found.located.homes]
        output.console().print(session_tree(session, by_id, now=output.now(), tops=tops))
    else:
        output.console(columns=_ENDLESS).print(session_tree(session, by_id, now=output.now()))


_ENDLESS = 10_000
"""Columns of a pipe: a path in it is never broken."""
