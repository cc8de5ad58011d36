"""What the overview draws: the newest calls of some sessions, and sessions that lasted several days."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, tzinfo

import msgspec

from pollux.archive.load_sessions import AMONG, ids_as_json
from pollux.reports.periods import local
from pollux.reports.sessions import SessionQuery, families
from pollux.text.times import from_microseconds, microseconds

_LONGER_THAN_US = 3_600_000_000
"""A session that continued on another day lasted at least an hour, or it only went past midnight."""


class CallTokens(msgspec.Struct, frozen=True):
    """The input of one model call."""

    fresh: int
    cached: int
    is_dropped: bool


def newest_calls(
    database: sqlite3.Connection, ids: Sequence[str], limit: int, scope: Collection[str] | None = None
) -> Mapping[str, tuple[CallTokens, ...]]:
    """Return the newest calls of each session and its subagents, the oldest first."""
    members = families(database, ids, scope)
    root_of = {member: root for root, family in members.items() for member in family}
    rows = database.execute(
        f"""
        SELECT session_id, max(tok_input - tok_cached, 0) + tok_tool, tok_cached, fate <> 'active' FROM model_calls
        WHERE owner_session_id IS NULL AND {AMONG} ORDER BY at_us, session_id, message_id
        """,  # noqa: S608  ours
        (ids_as_json(root_of),),
    )
    calls: dict[str, list[CallTokens]] = defaultdict(list)
    for session_id, fresh, cached, is_dropped in rows:
        calls[root_of[session_id]].append(CallTokens(fresh, cached, bool(is_dropped)))
    return {root: tuple(found[-limit:]) for root, found in calls.items()}


def continued_sessions(
    database: sqlite3.Connection, scope: Collection[str] | None, since: datetime, zone: tzinfo | None
) -> frozenset[tuple[date, date]]:
    """Return the first and the last day of each session since a time that was continued on another day."""
    where, values = SessionQuery(scope).where()
    rows = database.execute(
        f"SELECT started_us, ended_us FROM sessions WHERE {where}"  # noqa: S608  ours
        " AND last_used_us >= ? AND ended_us - started_us > ?",
        [*values, microseconds(since), _LONGER_THAN_US],
    )
    pairs = set()
    for started_us, ended_us in rows:
        started, ended = from_microseconds(started_us), from_microseconds(ended_us)
        if started and ended:
            first, last = local(started, zone).date(), local(ended, zone).date()
            if first != last:
                pairs.add((first, last))
    return frozenset(pairs)
