"""The SQL of usage reports, and their rows.

The SQL is in the common subset of SQLite, DuckDB and Spark SQL: parameters are `?`, nothing is divided, and only
integers are summed. Each query returns sums per quarter of an hour (UTC) and key; `usage.py` does the rest, the same
for all engines.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from pollux.text.times import microseconds

_SUMS = """
    count(*) AS calls, sum(tok_input) AS input, sum(tok_cached) AS cached, sum(tok_output) AS output,
    sum(tok_thoughts) AS thoughts, sum(tok_tool) AS tool, sum(tok_total) AS total,
    sum(coalesce(cost_nanousd, 0)) AS cost_nanousd,
    sum(CASE WHEN tok_consistent = 0 THEN 1 ELSE 0 END) AS inconsistent, max(at_us) AS last_us
FROM model_calls
WHERE owner_session_id IS NULL AND ((at_us >= ? AND at_us < ?) OR (at_us IS NULL AND ? = 1))
"""
"""Each model call once: calls with an `owner_session_id` are counted in that session."""
_KEYS = """
    model, CASE WHEN fate = 'active' THEN 1 ELSE 0 END AS is_active,
    CASE WHEN cost_nanousd IS NULL THEN 0 ELSE 1 END AS is_priced,
"""
_GROUPS = """
    model, CASE WHEN fate = 'active' THEN 1 ELSE 0 END, CASE WHEN cost_nanousd IS NULL THEN 0 ELSE 1 END,
    at_us - at_us % 900000000
"""

TIMES = f"SELECT at_us - at_us % 900000000 AS quarter_us, {_KEYS} {_SUMS} GROUP BY {_GROUPS}"
"""Model calls by time and model, of all sessions together."""
CALLS = f"""
SELECT
    c.quarter_us, c.session_id, s.title, s.project_hash, p.path, p.slug, p.source, p.proven,
    c.model, c.is_active, c.is_priced, c.calls, c.input, c.cached, c.output, c.thoughts, c.tool, c.total,
    c.cost_nanousd, c.inconsistent, c.last_us
FROM (
    SELECT at_us - at_us % 900000000 AS quarter_us, session_id, {_KEYS} {_SUMS} GROUP BY session_id, {_GROUPS}
) c
JOIN sessions s ON s.session_id = c.session_id
LEFT JOIN projects p ON p.project_hash = s.project_hash
"""  # noqa: S608
"""Model calls by time, model and session, with the session's title and project."""

SESSIONS = "SELECT session_id, root_session_id, title FROM sessions"
"""All sessions, since the root of a session with calls may have none itself."""

TOOLS = """
SELECT
    t.at_us - t.at_us % 900000000 AS quarter_us, t.session_id, t.label, t.model,
    CASE WHEN t.fate = 'active' THEN 1 ELSE 0 END AS is_active,
    CASE WHEN m.tok_total IS NOT NULL AND m.cost_nanousd IS NULL THEN 0 ELSE 1 END AS is_priced,
    sum(t.requested) AS requested, sum(t.success) AS success, sum(t.error) AS error, sum(t.cancelled) AS cancelled,
    count(m.tok_total) AS calls, sum(coalesce(m.tok_input, 0)) AS input, sum(coalesce(m.tok_cached, 0)) AS cached,
    sum(coalesce(m.tok_output, 0)) AS output, sum(coalesce(m.tok_thoughts, 0)) AS thoughts,
    sum(coalesce(m.tok_tool, 0)) AS tool, sum(coalesce(m.tok_total, 0)) AS total,
    sum(coalesce(m.cost_nanousd, 0)) AS cost_nanousd,
    sum(CASE WHEN m.tok_consistent = 0 THEN 1 ELSE 0 END) AS inconsistent, max(t.at_us) AS last_us
FROM (
    SELECT
        c.session_id, c.message_id, c.label, c.fate, o.model, min(coalesce(c.at_us, o.at_us)) AS at_us,
        count(*) AS requested,
        sum(CASE WHEN c.status = 'success' THEN 1 ELSE 0 END) AS success,
        sum(CASE WHEN c.status = 'error' THEN 1 ELSE 0 END) AS error,
        sum(CASE WHEN c.status = 'cancelled' THEN 1 ELSE 0 END) AS cancelled
    FROM tool_calls c
    JOIN messages o ON o.session_id = c.session_id AND o.message_id = c.message_id AND o.is_own = 1
    GROUP BY c.session_id, c.message_id, c.label, c.fate, o.model
) t
LEFT JOIN model_calls m ON m.session_id = t.session_id AND m.message_id = t.message_id AND m.owner_session_id IS NULL
WHERE (t.at_us >= ? AND t.at_us < ?) OR (t.at_us IS NULL AND ? = 1)
GROUP BY
    t.at_us - t.at_us % 900000000, t.session_id, t.label, t.model,
    CASE WHEN t.fate = 'active' THEN 1 ELSE 0 END,
    CASE WHEN m.tok_total IS NOT NULL AND m.cost_nanousd IS NULL THEN 0 ELSE 1 END
"""
"""Tool calls by label, with the model calls that requested them, each counted once per label."""

_EVER = 1 << 62


class CallSum(NamedTuple):
    """A row of `CALLS`."""

    quarter_us: int | None
    session_id: str
    title: str
    project_hash: str | None
    path: str | None
    slug: str | None
    source: str | None
    proven: int | None
    model: str | None
    is_active: int
    is_priced: int
    calls: int
    input: int
    cached: int
    output: int
    thoughts: int
    tool: int
    total: int
    cost_nanousd: int
    inconsistent: int
    last_us: int | None


class QuarterSum(NamedTuple):
    """A row of `TIMES`."""

    quarter_us: int | None
    model: str | None
    is_active: int
    is_priced: int
    calls: int
    input: int
    cached: int
    output: int
    thoughts: int
    tool: int
    total: int
    cost_nanousd: int
    inconsistent: int
    last_us: int | None


class ToolSum(NamedTuple):
    """A row of `TOOLS`."""

    quarter_us: int | None
    session_id: str
    label: str
    model: str | None
    is_active: int
    is_priced: int
    requested: int
    success: int
    error: int
    cancelled: int
    calls: int
    input: int
    cached: int
    output: int
    thoughts: int
    tool: int
    total: int
    cost_nanousd: int
    inconsistent: int
    last_us: int | None


def call_sums(
    database: sqlite3.Connection, since: datetime | None = None, until: datetime | None = None
) -> list[CallSum]:
    """Return the rows of `CALLS`, of calls within a window of time."""
    return [CallSum._make(row) for row in database.execute(CALLS, _window(since, until))]


def session_roots(rows: Iterable[tuple[str, str, str]]) -> dict[str, tuple[str, str]]:
    """Return the ID and the title of the root of each session, from the rows of `SESSIONS`."""
    rows = list(rows)
    titles = {session_id: title for session_id, _, title in rows}
    return {session_id: (root_id, titles[root_id]) for session_id, root_id, _ in rows}


def quarter_sums(
    database: sqlite3.Connection, since: datetime | None = None, until: datetime | None = None
) -> list[QuarterSum]:
    """Return the rows of `TIMES`, of calls within a window of time."""
    return [QuarterSum._make(row) for row in database.execute(TIMES, _window(since, until))]


def tool_sums(
    database: sqlite3.Connection, since: datetime | None = None, until: datetime | None = None
) -> list[ToolSum]:
    """Return the rows of `TOOLS`, of calls within a window of time."""
    return [ToolSum._make(row) for row in database.execute(TOOLS, _window(since, until))]


def _window(since: datetime | None, until: datetime | None) -> tuple[int, int, int]:
    start, end = microseconds(since), microseconds(until)
    return -_EVER if start is None else start, _EVER if end is None else end, int(since is None and until is None)
