"""A session's files and subagents as a tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rich.text import Text
from rich.tree import Tree

from pollux.model import Session
from pollux.render.terminal.tables import counted
from pollux.render.terminal.text import line
from pollux.sessions.family import SessionTree
from pollux.text.numbers import ago, count
from pollux.views.contracts import calls_of, total
from pollux.views.session_text import title

_LONG = re.compile(r"(?<![^/\\])([0-9a-f]{8})(?:[0-9a-f]{56}|-[0-9a-f-]{27})(?=[/\\])")
"""A folder named by a project's hash or a session's id."""


def draw_tree(tree: SessionTree, *, now: datetime, tops: Sequence[Path] = ()) -> Tree:
    """Return a session with its files and subagents; files below one of `tops` are named from there."""
    by_id = tree.by_id()
    return _branch(tree, by_id, Tree(_label(tree.session, by_id, now), guide_style="dim"), now, tops)


def _branch(branch: SessionTree, by_id: Mapping[str, Session], tree: Tree, now: datetime, tops: Sequence[Path]) -> Tree:
    session = branch.session
    for ref in session.files:
        role = f"{ref.role:<5} " if len(session.files) > 1 else ""
        tree.add(Text.assemble((role, "dim"), line(_named(ref.path, tops), 1000)))
    for child in branch.children:
        _branch(child, by_id, tree.add(_label(child.session, by_id, now)), now, tops)
    return tree


def _label(session: Session, by_id: Mapping[str, Session], now: datetime) -> Text:
    at = session.last_used
    tokens = count(total(calls_of(session, by_id)).total)
    facts = [counted(session.tool_calls, "tool call"), f"{tokens} tokens", ago(at, now) if at else ""]
    how = f"started by {session.parent_call}" if session.parent_call else ""
    return Text.assemble(
        (line(session.id, 8, ellipsis=""), "cyan"),
        " ",
        (line(title(session), 60), "bold"),
        ("\n" + ", ".join(fact for fact in (*facts, line(how, 60)) if fact), "dim"),
    )


def _named(path: Path, tops: Sequence[Path]) -> str:
    """Name a file from its top, with eight digits for a folder's hash or id."""
    for top in tops:
        if path.is_relative_to(top):
            return _LONG.sub(r"\1…", str(path.relative_to(top)))
    return str(path)
