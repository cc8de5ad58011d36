"""`pollux tree`: a session's files and subagents."""

from __future__ import annotations

from datetime import UTC, datetime

import click
from rich.text import Text
from rich.tree import Tree

from pollux.cli import output
from pollux.cli.meant import is_file
from pollux.cli.scope import Scope, options
from pollux.errors import NoSuchSessionError
from pollux.model import Session
from pollux.terminal.text import ago, count, line
from pollux.views.listing import calls_of, session_row, total


@click.command()
@click.argument("wanted", metavar="ID", default="latest")
@options()
def command(scope: Scope, wanted: str) -> None:
    """Show a session with its files, and its subagents with the calls that started them.

    \b
      pollux tree latest
      pollux tree a82545c4 --json
    """
    if is_file(wanted):
        raise click.UsageError("`tree` needs a session's id: a file alone has no subagents; try `pollux ls`.")
    found = scope.history()
    by_id = {one.id: one for one in found.sessions}
    session = scope.session(found, wanted)
    while session.parent and session.parent in by_id:
        session = by_id[session.parent]
    if session.id not in by_id:
        raise NoSuchSessionError(wanted, len(by_id))
    if scope.as_json:
        output.print_json({"schema": "pollux.tree/1", "tree": _json(session, by_id)})
    else:
        output.console().print(_branch(session, by_id, Tree(_label(session, by_id), guide_style="dim")))


def _json(session: Session, by_id: dict[str, Session]) -> dict[str, object]:
    children = [_json(by_id[child], by_id) for child in session.children if child in by_id]
    return {**session_row(session, by_id), "call": session.parent_call, "children": children}


def _branch(session: Session, by_id: dict[str, Session], tree: Tree) -> Tree:
    for ref in session.files:
        tree.add(Text.assemble((f"{ref.role:<10} ", "dim"), (line(str(ref.path), 400), "dim")))
    for child in session.children:
        if child in by_id:
            _branch(by_id[child], by_id, tree.add(_label(by_id[child], by_id)))
    return tree


def _label(session: Session, by_id: dict[str, Session]) -> Text:
    at = session.ended or session.started
    tokens = count(total(calls_of(session, by_id)).total)
    facts = [f"{session.tool_calls} tool calls", f"{tokens} tokens", ago(at, datetime.now(UTC)) if at else ""]
    how = f"started by {session.parent_call}" if session.parent_call else ""
    return Text.assemble(
        (session.id[:8], "cyan"),
        " ",
        (line(session.title or "(no prompt)", 60), "bold"),
        ("  " + ", ".join(fact for fact in (*facts, line(how, 60)) if fact), "dim"),
    )
