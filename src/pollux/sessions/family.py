"""A session with its subagents, however deep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pollux.model import Json, Session
from pollux.prices import Prices
from pollux.views.contracts import session_row

TREE = "pollux.tree/1"


def root(session: Session, by_id: Mapping[str, Session]) -> Session:
    """Return the session that started this one, or the one that started that."""
    seen = {session.id}
    while session.parent and session.parent in by_id and session.parent not in seen:
        session = by_id[session.parent]
        seen.add(session.id)
    return session


def children(session: Session, by_id: Mapping[str, Session]) -> Iterator[Session]:
    """Yield the subagents that a session started itself."""
    return (by_id[child] for child in session.children if child in by_id and child != session.id)


def tree_json(session: Session, by_id: Mapping[str, Session], prices: Prices) -> dict[str, Json]:
    """Tell all about a session and those below it."""
    below = [tree_json(child, by_id, prices) for child in children(session, by_id)]
    return {**session_row(session, by_id, prices), "call": session.parent_call, "children": below}
