"""The overview: sessions, recent usage, and what the client is going to delete."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from datetime import date, datetime, timedelta, tzinfo

import msgspec

from pollux.model import Usage
from pollux.reports import sessions
from pollux.reports.periods import QUARTER_US, local, start_of_day
from pollux.reports.sessions import SessionQuery
from pollux.text.times import from_microseconds, microseconds

_DAYS = 14


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of the overview."""

    n_sessions: int
    n_subagents: int
    n_projects: int
    n_prompts: int
    usage: Usage
    first: datetime | None
    days: tuple[tuple[date, int], ...]
    """Tokens of the last days, oldest first."""
    days_nanousd: int
    """Cost of these days, without calls that have no price."""
    n_deleted: int
    """Sessions that the client has deleted and the archive has."""
    due: int = 0
    """Sessions that the client deletes at its next start."""
    soon: int = 0
    """Sessions that it deletes within a week."""
    n_problems: int = 0
    n_files: int = 0
    """Session files in the homes."""
    n_unarchived: int = 0
    """Session files of which the archive lacks something."""


def overview(
    database: sqlite3.Connection,
    ids: Collection[str] | None,
    *,
    now: datetime,
    zone: tzinfo | None = None,
    n_projects: int | None = None,
    usage: Usage | None = None,
) -> Overview:
    """Return the overview of a scope; the caller fills in deletions and problems, which are not in the facts.

    `n_projects` is the number of its projects and `usage` that of all its calls, if they are known.
    """
    where, values = SessionQuery(ids).where()
    numbers = "count(*), coalesce(sum(n_user), 0), min(started_us), coalesce(sum(is_deleted), 0)"
    index = "INDEXED BY listed_sessions" if ids is None else ""  # which has all of these columns
    n_sessions, n_prompts, first_us, n_deleted = database.execute(
        f"SELECT {numbers} FROM sessions {index} WHERE {where}",  # noqa: S608  ours
        values,
    ).fetchone()
    every, all_values = SessionQuery(ids, subagents=True, empty=True).where()
    (n_subagents,) = database.execute(
        f"SELECT count(*) FROM sessions WHERE kind = 'subagent' AND {every}",  # noqa: S608  ours
        all_values,
    ).fetchone()
    days, days_nanousd = _days(database, ids, now, zone)
    return Overview(
        n_sessions=n_sessions,
        n_subagents=n_subagents,
        n_projects=count_projects(database, ids) if n_projects is None else n_projects,
        n_prompts=n_prompts,
        usage=sessions.total_usage(database, ids) if usage is None else usage,
        first=from_microseconds(first_us),
        days=days,
        days_nanousd=days_nanousd,
        n_deleted=n_deleted,
    )


def count_projects(database: sqlite3.Connection, ids: Collection[str] | None) -> int:
    """Return the number of projects of a scope; folders with the same path count once."""
    return len({project.key for project in sessions.projects(database, SessionQuery(ids))})


def _days(
    database: sqlite3.Connection, ids: Collection[str] | None, now: datetime, zone: tzinfo | None
) -> tuple[tuple[tuple[date, int], ...], int]:
    """Return the tokens of each of the last days, and what they cost together."""
    today = now.astimezone(zone).date()
    days = {today - timedelta(days=back): 0 for back in reversed(range(_DAYS))}
    start = start_of_day(now - timedelta(days=_DAYS), zone)
    days_nanousd = 0
    where, values = SessionQuery(ids, subagents=True, empty=True).where()
    start_us = microseconds(start)
    rows = database.execute(
        f"""
        SELECT at_us - at_us % {QUARTER_US}, sum(tok_total), sum(coalesce(cost_nanousd, 0)) FROM model_calls
        WHERE owner_session_id IS NULL AND at_us >= ?
            AND session_id IN (SELECT session_id FROM sessions WHERE last_used_us >= ? AND {where})
        GROUP BY 1
        """,  # noqa: S608  ours; the sessions by an index, not all calls
        [start_us, start_us, *values],
    )
    for quarter_us, tokens, nanousd in rows:
        at = from_microseconds(quarter_us)
        day = local(at, zone).date() if at else None
        if day in days:
            days[day] += tokens
            days_nanousd += nanousd
    return tuple(days.items()), days_nanousd
