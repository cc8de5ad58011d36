"""What lists draw: the newest calls of some sessions, days with calls, and sessions that lasted several days."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, tzinfo

import msgspec

from pollux.reports.periods import local
from pollux.reports.sessions import SessionQuery, families
from pollux.text.times import from_microseconds, microseconds

_LONGER_THAN_US = 3_600_000_000
"""A session that continued on another day lasted at least an hour, or it only went past midnight."""


_NEWEST_CALLS = """
    SELECT at_us, session_id, message_id, max(tok_input - tok_cached, 0) + tok_tool, tok_cached, fate <> 'active'
    FROM model_calls WHERE owner_session_id IS NULL AND session_id = ? ORDER BY at_us DESC, message_id DESC LIMIT ?
"""


class CallTokens(msgspec.Struct, frozen=True):
    """The input of one model call."""

    fresh: int
    cached: int
    is_dropped: bool


class ActiveDay(msgspec.Struct, frozen=True):
    """A day on which sessions called models."""

    day: date
    n_tokens: int
    nanousd: int | None
    """The cost of the calls that have a price; None if none has one."""


class DailyUse(msgspec.Struct, frozen=True):
    """When some sessions were used."""

    days: tuple[ActiveDay, ...]
    """Those with calls, the earliest first."""
    continued: frozenset[tuple[date, date]]
    """First and last day of sessions that were continued on another day."""
    today: date


def newest_calls(
    database: sqlite3.Connection, ids: Sequence[str], limit: int, scope: Collection[str] | None = None
) -> Mapping[str, tuple[CallTokens, ...]]:
    """Return the newest calls of each session and its subagents, the oldest first."""
    members = families(database, ids, scope)
    root_of = {member: root for root, family in members.items() for member in family}
    rows: list[tuple[int | None, str, str, int, int, int]] = []
    for member in root_of:  # a sort that keeps a few rows is ten times faster than numbering all calls
        rows += database.execute(_NEWEST_CALLS, (member, limit))
    calls: dict[str, list[CallTokens]] = defaultdict(list)
    for _, session_id, _, fresh, cached, is_dropped in sorted(rows, key=_by_time):
        calls[root_of[session_id]].append(CallTokens(fresh, cached, bool(is_dropped)))
    return {root: tuple(newest_last[-limit:]) for root, newest_last in calls.items()}


def _by_time(row: tuple[int | None, str, str, int, int, int]) -> tuple[bool, int, str, str]:
    at_us, session_id, message_id, *_ = row
    return at_us is not None, at_us or 0, session_id, message_id


def active_days(
    database: sqlite3.Connection, ids: Collection[str] | None, since: datetime, zone: tzinfo | None
) -> tuple[ActiveDay, ...]:
    """Return the days since a time on which some sessions called models, the earliest first."""
    where, values = SessionQuery(ids, subagents=True, empty=True).where()
    start_us = microseconds(since)
    rows = database.execute(
        f"""
        SELECT at_us - at_us % 900000000, sum(tok_total), sum(cost_nanousd) FROM model_calls
        WHERE owner_session_id IS NULL AND at_us >= ?
            AND session_id IN (SELECT session_id FROM sessions WHERE last_used_us >= ? AND {where})
        GROUP BY 1
        """,  # noqa: S608  ours
        [start_us, start_us, *values],
    )
    days: dict[date, ActiveDay] = {}
    for quarter_us, n_tokens, nanousd in rows:
        at = from_microseconds(quarter_us)
        if at is None:
            continue
        day = local(at, zone).date()
        before = days.get(day, ActiveDay(day, 0, None))
        costs = [cost for cost in (before.nanousd, nanousd) if cost is not None]
        days[day] = ActiveDay(day, before.n_tokens + n_tokens, sum(costs) if costs else None)
    return tuple(days[day] for day in sorted(days))


def continued_sessions(
    database: sqlite3.Connection, scope: Collection[str] | None, since: datetime, zone: tzinfo | None
) -> frozenset[tuple[date, date]]:
    """Return the first and the last day of each session since a time that was continued on another day."""
    where, values = SessionQuery(scope).where()
    rows = database.execute(
        f"SELECT started_us, ended_us FROM sessions WHERE {where}"  # noqa: S608  ours
        f" AND last_used_us >= ? AND ended_us - started_us > {_LONGER_THAN_US}",  # as the index says
        [*values, microseconds(since)],
    )
    pairs = set()
    for started_us, ended_us in rows:
        started, ended = from_microseconds(started_us), from_microseconds(ended_us)
        if started and ended:
            first, last = local(started, zone).date(), local(ended, zone).date()
            if first != last:
                pairs.add((first, last))
    return frozenset(pairs)
