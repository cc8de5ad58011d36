"""The orders of a list of sessions: by time and prompts in one statement, by cost and tokens with their subagents."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping

from pollux.reports.sessions import SessionQuery, page

NEWEST = "newest"
_STATEMENTS: Mapping[str, str] = {
    NEWEST: "last_used_us DESC, session_id",
    "oldest": "last_used_us IS NULL, last_used_us, session_id",
    "begun": "started_us DESC, session_id",
    "prompts": "n_user DESC, last_used_us DESC, session_id",
}
"""Orders by columns of `sessions`; sessions without a time come last."""
_SUMS: Mapping[str, str] = {"cost": "cost_nanousd", "tokens": "tok_total"}
"""Orders by sums of a session and its subagents: the column of `session_usage`."""
ORDERS = (*_STATEMENTS, *_SUMS)
"""All orders; the first is the default. Largest amounts come first."""
_ANCESTORS = """
    WITH RECURSIVE above(id, member) AS (
        SELECT parent_session_id, session_id FROM sessions
        WHERE parent_session_id IS NOT NULL AND root_session_id <> session_id
        UNION
        SELECT parent.parent_session_id, member FROM above JOIN sessions AS parent ON parent.session_id = above.id
        WHERE parent.parent_session_id IS NOT NULL AND parent.root_session_id <> parent.session_id
    )
    SELECT id, member FROM above
"""
"""Each subagent with its parent, the parent of that, and so on; members of a cycle are no subagents."""


def is_sum(order: str) -> bool:
    """Return whether an order needs the sums of all sessions, which a long-running process should keep."""
    return order in _SUMS


def page_in_order(
    database: sqlite3.Connection, query: SessionQuery, order: str, *, limit: int | None = None, offset: int = 0
) -> list[str]:
    """Return the IDs of the sessions that match a query, in an order by columns."""
    where, values = query.where()
    rows = database.execute(
        f"SELECT session_id FROM sessions WHERE {where} ORDER BY {_STATEMENTS[order]} LIMIT ? OFFSET ?",  # noqa: S608  ours
        [*values, -1 if limit is None else limit, offset],
    )
    return [row[0] for row in rows]


def ids_by_sum(
    database: sqlite3.Connection, query: SessionQuery, order: str, scope: Collection[str] | None
) -> tuple[str, ...]:
    """Return the IDs of all sessions that match a query by the sums of their families; of equal ones, the last used."""
    column = _SUMS[order]
    own = dict(database.execute(f"SELECT session_id, sum({column}) FROM session_usage GROUP BY session_id"))  # noqa: S608
    sums = dict(own)
    for session_id, member in database.execute(_ANCESTORS):
        if scope is None or member in scope:
            sums[session_id] = sums.get(session_id, 0) + own.get(member, 0)
    return tuple(sorted(page(database, query), key=lambda session_id: -sums.get(session_id, 0)))
