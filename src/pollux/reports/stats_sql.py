"""The SQL of statistics, and its rows: counts per quarter of an hour (UTC), session and key.

The SQL is in the common subset of SQLite, DuckDB and Spark SQL: parameters are `?`, nothing is divided. Dropped
messages are counted too, but each message only in the session that first recorded it, not where it was loaded again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from pollux.text.times import microseconds

_EVER = 1 << 62
_WINDOW = "((at_us >= ? AND at_us < ?) OR (at_us IS NULL AND ? = 1))"

SESSIONS = "SELECT session_id, kind, root_session_id, title, started_us, ended_us FROM sessions"

MESSAGES = f"""
SELECT
    at_us - at_us % 900000000 AS quarter_us, session_id, model,
    sum(CASE WHEN origin = 'human' THEN 1 ELSE 0 END) AS prompts,
    sum(CASE WHEN kind = 'gemini' THEN 1 ELSE 0 END) AS answers,
    sum(CASE WHEN kind = 'error' THEN 1 ELSE 0 END) AS errors,
    sum(CASE WHEN session_kind = 'main' AND pause_us < 900000000 THEN pause_us ELSE 0 END) AS active_us
FROM (
    SELECT
        m.at_us, m.session_id, m.model, m.origin, m.kind, s.kind AS session_kind,
        m.at_us - lag(m.at_us) OVER (PARTITION BY m.session_id ORDER BY m.at_us, m.message_id) AS pause_us
    FROM messages m
    JOIN sessions s ON s.session_id = m.session_id
    WHERE m.is_own = 1 AND m.origin <> 'session_context'
) m
WHERE {_WINDOW}
GROUP BY at_us - at_us % 900000000, session_id, model
"""  # noqa: S608  only our own words

_CALLED = """(
    SELECT
        t.session_id, t.message_id, t.idx, t.label, t.status, t.exit_code, m.model, coalesce(t.at_us, m.at_us) AS at_us
    FROM tool_calls t
    JOIN messages m ON m.session_id = t.session_id AND m.message_id = t.message_id
    WHERE m.is_own = 1
)"""

TOOLS = f"""
SELECT
    at_us - at_us % 900000000 AS quarter_us, session_id, model, label, count(*) AS calls,
    sum(CASE WHEN status = 'success' THEN 1 ELSE 0 END) AS success,
    sum(CASE WHEN status = 'error' THEN 1 ELSE 0 END) AS error,
    sum(CASE WHEN status = 'cancelled' THEN 1 ELSE 0 END) AS cancelled,
    sum(CASE WHEN exit_code <> 0 THEN 1 ELSE 0 END) AS nonzero_exit
FROM {_CALLED} t
WHERE {_WINDOW}
GROUP BY at_us - at_us % 900000000, session_id, model, label
"""  # noqa: S608

CALLS = f"""
SELECT
    at_us - at_us % 900000000 AS quarter_us, session_id, model, count(*) AS calls, sum(tok_total) AS tokens
FROM model_calls
WHERE owner_session_id IS NULL AND {_WINDOW}
GROUP BY at_us - at_us % 900000000, session_id, model
"""  # noqa: S608

TOUCHES = f"""
SELECT
    t.session_id, f.path, f.op, count(*) AS touches, sum(coalesce(f.lines_added, 0)) AS added,
    sum(coalesce(f.lines_removed, 0)) AS removed
FROM {_CALLED} t
JOIN file_touches f ON f.session_id = t.session_id AND f.message_id = t.message_id AND f.idx = t.idx
WHERE t.status = 'success' AND {_WINDOW}
GROUP BY t.session_id, f.path, f.op
"""  # noqa: S608

PROGRAMS = f"""
SELECT t.session_id, s.program, count(*) AS runs
FROM {_CALLED} t
JOIN shell_commands s ON s.session_id = t.session_id AND s.message_id = t.message_id AND s.idx = t.idx
WHERE {_WINDOW}
GROUP BY t.session_id, s.program
"""  # noqa: S608


class SessionFact(NamedTuple):
    """A row of `SESSIONS`."""

    session_id: str
    kind: str
    root_id: str
    title: str
    started_us: int | None
    ended_us: int | None


class MessageCount(NamedTuple):
    """A row of `MESSAGES`."""

    quarter_us: int | None
    session_id: str
    model: str | None
    prompts: int
    answers: int
    errors: int
    active_us: int
    """Time since the previous message, unless that is 15 minutes or more; 0 for subagents, whose time is part of that
    of the session that started them."""


class ToolCount(NamedTuple):
    """A row of `TOOLS`."""

    quarter_us: int | None
    session_id: str
    model: str | None
    label: str
    calls: int
    success: int
    error: int
    cancelled: int
    nonzero_exit: int
    """Shell commands with an exit code other than 0; the client counts them as success."""


class CallCount(NamedTuple):
    """A row of `CALLS`."""

    quarter_us: int | None
    session_id: str
    model: str | None
    calls: int
    tokens: int


class TouchCount(NamedTuple):
    """A row of `TOUCHES`."""

    session_id: str
    path: str
    op: str
    touches: int
    added: int
    removed: int


class ProgramCount(NamedTuple):
    """A row of `PROGRAMS`."""

    session_id: str
    program: str
    runs: int


@dataclass(frozen=True, slots=True)
class StatsCounts:
    """The rows that statistics are computed from; empty if they were not requested."""

    sessions: Mapping[str, SessionFact]
    messages: Sequence[MessageCount] = ()
    tools: Sequence[ToolCount] = ()
    calls: Sequence[CallCount] = ()
    touches: Sequence[TouchCount] = ()
    programs: Sequence[ProgramCount] = ()


WORK = frozenset({"messages", "tools", "calls"})
EVERYTHING = WORK | {"touches", "programs"}


def read(
    database: sqlite3.Connection,
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    needs: Collection[str] = EVERYTHING,
    only: Collection[str] | None = None,
    model: str | None = None,
) -> StatsCounts:
    """Return the counts of a window of time.

    Args:
        database: with the fact tables.
        since: the start.
        until: the end, exclusive.
        needs: the names of the fields to fill.
        only: the IDs of the sessions to count, or None for all.
        model: only count sessions in which a model with this text in its name answered.

    """
    start, end = microseconds(since), microseconds(until)
    window = (-_EVER if start is None else start, _EVER if end is None else end, int(start is None and end is None))
    if model is not None:
        answered = _sessions_of_model(database, model, window)
        only = answered if only is None else answered.intersection(only)

    def rows(name: str, sql: str, kind: type[_Count]) -> list[_Count]:
        counts = map(kind._make, database.execute(sql, window) if name in needs else ())
        return [count for count in counts if only is None or count.session_id in only]

    return StatsCounts(
        {row[0]: SessionFact._make(row) for row in database.execute(SESSIONS)},
        rows("messages", MESSAGES, MessageCount),
        rows("tools", TOOLS, ToolCount),
        rows("calls", CALLS, CallCount),
        rows("touches", TOUCHES, TouchCount),
        rows("programs", PROGRAMS, ProgramCount),
    )


_Count = TypeVar("_Count", MessageCount, ToolCount, CallCount, TouchCount, ProgramCount)


def _sessions_of_model(database: sqlite3.Connection, model: str, window: tuple[int, ...]) -> set[str]:
    rows = database.execute(f"SELECT DISTINCT session_id, model FROM messages WHERE {_WINDOW}", window)  # noqa: S608
    return {session_id for session_id, name in rows if model.lower() in (name or "").lower()}
