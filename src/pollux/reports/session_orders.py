"""The orders of a list of sessions: by time and prompts in one statement, by cost and tokens with their subagents."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from heapq import merge
from itertools import islice
from math import inf

import msgspec

from pollux.archive.schema import has_other_prices
from pollux.reports.sessions import SessionQuery

NEWEST = "newest"
_STATEMENTS: Mapping[str, str] = {
    NEWEST: "last_used_us DESC, session_id",
    "oldest": "last_used_us IS NULL, last_used_us, session_id",
    "begun": "started_us DESC, session_id",
    "prompts": "n_user DESC, last_used_us DESC, session_id",
}
"""Orders by columns of `sessions`; sessions without a time come last."""
_SUMS: Mapping[str, str] = {"cost": "cost_nanousd", "tokens": "tok_total"}
"""Orders by sums of a session and its subagents: the column of `session_usage` and `session_spans`."""
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
    """Return whether an order is one by sums of a session and its subagents."""
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


def family_sums(database: sqlite3.Connection, order: str, scope: Collection[str] | None) -> Mapping[str, int]:
    """Return the sums of the sessions that have subagents, with these."""
    pairs = [row for row in database.execute(_ANCESTORS) if scope is None or row[1] in scope]
    if not pairs:
        return {}
    ids = {session_id for pair in pairs for session_id in pair}
    own = {row[0]: row[1] for row in _own_sums(database, SessionQuery(ids, subagents=True, empty=True), order)}
    sums: dict[str, int] = {}
    for session_id, member in pairs:
        sums[session_id] = sums.get(session_id, own.get(session_id, 0)) + own.get(member, 0)
    return sums


def page_by_sum(
    database: sqlite3.Connection,
    query: SessionQuery,
    order: str,
    families: Mapping[str, int],
    *,
    limit: int | None = None,
    offset: int = 0,
) -> list[str]:
    """Return the IDs of the sessions that match a query by the sums of their families; of equal ones, the last used.

    An index has the sessions in the order of their own sums, of which only those before the end of the page are read.
    The few with subagents, whose sums are `families`, are merged with them.
    """
    if query.ids is not None or has_other_prices(database):
        rows = _own_sums(database, query, order)
        places = sorted(_place(families.get(row[0], row[1]), row) for row in rows)
    else:
        own = (_place(row[1], row) for row in _ordered_sums(database, query, order) if row[0] not in families)
        among = msgspec.structs.replace(query, ids=families.keys())
        merged = merge(own, sorted(_place(families[row[0]], row) for row in _own_sums(database, among, order)))
        places = list(islice(merged, None if limit is None else offset + limit))
    return [session_id for *_, session_id in places[offset : None if limit is None else offset + limit]]


_Sum = tuple[str, int, int | None]
"""The ID of a session, the sum of its own calls, and when it was last used."""


def _place(total: int, row: _Sum) -> tuple[int, float, str]:
    """Return what sessions are sorted by."""
    session_id, _, last_used_us = row
    return -total, inf if last_used_us is None else -last_used_us, session_id


def _own_sums(database: sqlite3.Connection, query: SessionQuery, order: str) -> Iterator[_Sum]:
    """Yield the sessions that match a query with their own sums, in no order."""
    where, values = query.where()
    total = f"(SELECT sum({_SUMS[order]}) FROM session_usage WHERE session_usage.session_id = sessions.session_id)"  # noqa: S608
    yield from database.execute(
        f"SELECT session_id, coalesce({total}, 0), last_used_us FROM sessions WHERE {where}",  # noqa: S608  ours
        values,
    )


def _ordered_sums(database: sqlite3.Connection, query: SessionQuery, order: str) -> Iterator[_Sum]:
    """Yield the sessions that match a query with their own sums, the largest first; sessions without calls have 0."""
    where, values = query.where()
    total = f"own.{_SUMS[order]}"
    rest = "last_used_us DESC, session_id"
    for sign in ("> 0", "", "< 0"):
        if sign:
            tables, is_here = "session_spans AS own CROSS JOIN sessions USING (session_id)", f"{total} {sign}"
        else:
            tables, is_here = "sessions LEFT JOIN session_spans AS own USING (session_id)", f"coalesce({total}, 0) = 0"
        yield from database.execute(
            f"SELECT session_id, coalesce({total}, 0), last_used_us FROM {tables} WHERE {is_here} AND {where}"  # noqa: S608
            f" ORDER BY {f'{total} DESC, ' if sign else ''}{rest}",
            values,
        )
