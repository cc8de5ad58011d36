"""The reports on usage as SQL, and their rows.

In the common subset of SQLite, DuckDB and Spark SQL: parameters are `?`, nothing is divided, and sums are of whole
numbers. Each returns sums per quarter of an hour (UTC) and key; `usage.py` does the rest, the same for all engines.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import NamedTuple

from pollux.archive.schema import NO_TIME
from pollux.reports import cache
from pollux.text.times import microseconds

_SUMS = """
    count(*) AS calls, sum(tok_input) AS input, sum(tok_cached) AS cached, sum(tok_output) AS output,
    sum(tok_thoughts) AS thoughts, sum(tok_tool) AS tool, sum(tok_total) AS total,
    sum(coalesce(cost_nanousd, 0)) AS cost_nanousd,
    sum(CASE WHEN tok_consistent = 0 THEN 1 ELSE 0 END) AS inconsistent, max(at_us) AS last_us
FROM model_calls
WHERE copy_of IS NULL AND ((at_us >= ? AND at_us < ?) OR (at_us IS NULL AND ? = 1))
"""
"""Model calls, each once: what an import only repeats has an owner, and is counted there."""
_KEYS = """
    model, CASE WHEN fate = 'active' THEN 1 ELSE 0 END AS is_kept,
    CASE WHEN cost_nanousd IS NULL THEN 0 ELSE 1 END AS is_priced,
"""
_GROUPS = """
    model, CASE WHEN fate = 'active' THEN 1 ELSE 0 END, CASE WHEN cost_nanousd IS NULL THEN 0 ELSE 1 END,
    at_us - at_us % 900000000
"""

TIMES = f"SELECT at_us - at_us % 900000000 AS quarter_us, {_KEYS} {_SUMS} GROUP BY {_GROUPS}"
"""Model calls by time and model alone, whatever session they belong to."""
_CHANGED_TIMES = f"""
SELECT at_us - at_us % 900000000 AS quarter_us, {_KEYS} {_SUMS}
AND coalesce(at_us - at_us % 900000000, {NO_TIME}) IN (SELECT quarter_us FROM changed_quarters)
GROUP BY {_GROUPS}
"""  # noqa: S608
"""The same, of what has changed since it was last kept."""

CALLS = f"""
SELECT
    c.quarter_us, c.session_id, s.title, s.project_hash, p.path, p.slug, p.how_known, p.proven,
    c.model, c.is_kept, c.is_priced, c.calls, c.input, c.cached, c.output, c.thoughts, c.tool, c.total, c.cost_nanousd,
    c.inconsistent, c.last_us
FROM (
    SELECT at_us - at_us % 900000000 AS quarter_us, session_id, {_KEYS} {_SUMS} GROUP BY session_id, {_GROUPS}
) c
JOIN sessions s ON s.session_id = c.session_id
LEFT JOIN projects p ON p.project_hash = s.project_hash
"""  # noqa: S608
"""The same by session, with what is known of it."""

SESSIONS = "SELECT session_id, root_session_id, title FROM sessions"
"""All sessions: the root of one that has calls may have none."""

TOOLS = """
SELECT
    t.at_us - t.at_us % 900000000 AS quarter_us, t.session_id, t.label, t.model,
    CASE WHEN t.fate = 'active' THEN 1 ELSE 0 END AS is_kept,
    CASE WHEN m.tok_total IS NOT NULL AND m.cost_nanousd IS NULL THEN 0 ELSE 1 END AS is_priced,
    sum(t.asked) AS asked, sum(t.success) AS success, sum(t.error) AS error, sum(t.cancelled) AS cancelled,
    count(m.tok_total) AS calls, sum(coalesce(m.tok_input, 0)) AS input, sum(coalesce(m.tok_cached, 0)) AS cached,
    sum(coalesce(m.tok_output, 0)) AS output, sum(coalesce(m.tok_thoughts, 0)) AS thoughts,
    sum(coalesce(m.tok_tool, 0)) AS tool, sum(coalesce(m.tok_total, 0)) AS total,
    sum(coalesce(m.cost_nanousd, 0)) AS cost_nanousd,
    sum(CASE WHEN m.tok_consistent = 0 THEN 1 ELSE 0 END) AS inconsistent, max(t.at_us) AS last_us
FROM (
    SELECT
        c.session_id, c.message_id, c.label, c.fate, o.model, min(coalesce(c.at_us, o.at_us)) AS at_us,
        count(*) AS asked,
        sum(CASE WHEN c.status = 'success' THEN 1 ELSE 0 END) AS success,
        sum(CASE WHEN c.status = 'error' THEN 1 ELSE 0 END) AS error,
        sum(CASE WHEN c.status = 'cancelled' THEN 1 ELSE 0 END) AS cancelled
    FROM tool_calls c
    JOIN messages o ON o.session_id = c.session_id AND o.message_id = c.message_id AND o.is_own = 1
    GROUP BY c.session_id, c.message_id, c.label, c.fate, o.model
) t
LEFT JOIN model_calls m ON m.session_id = t.session_id AND m.message_id = t.message_id AND m.copy_of IS NULL
WHERE (t.at_us >= ? AND t.at_us < ?) OR (t.at_us IS NULL AND ? = 1)
GROUP BY
    t.at_us - t.at_us % 900000000, t.session_id, t.label, t.model,
    CASE WHEN t.fate = 'active' THEN 1 ELSE 0 END,
    CASE WHEN m.tok_total IS NOT NULL AND m.cost_nanousd IS NULL THEN 0 ELSE 1 END
"""
"""Tool calls by label, with the model calls that asked for them: each once a label, however often it asked for it."""

_EVER = 1 << 62


class Part(NamedTuple):
    """One row of `CALLS`."""

    quarter_us: int | None
    session_id: str
    title: str
    project_hash: str | None
    path: str | None
    slug: str | None
    how_known: str | None
    proven: int | None
    model: str | None
    is_kept: int
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


class TimePart(NamedTuple):
    """One row of `TIMES`."""

    quarter_us: int | None
    model: str | None
    is_kept: int
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


class ToolPart(NamedTuple):
    """One row of `TOOLS`."""

    quarter_us: int | None
    session_id: str
    label: str
    model: str | None
    is_kept: int
    is_priced: int
    asked: int
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


def parts(database: sqlite3.Connection, since: datetime | None = None, until: datetime | None = None) -> list[Part]:
    """Run the report on model calls; a call belongs where its own time says."""
    return [Part._make(row) for row in database.execute(CALLS, _window(since, until))]


def session_roots(rows: Iterable[tuple[str, str, str]]) -> dict[str, tuple[str, str]]:
    """Return the ID and the title of the root of each session, of the rows of `SESSIONS`."""
    rows = list(rows)
    titles = {session_id: title for session_id, _, title in rows}
    return {session_id: (root_id, titles[root_id]) for session_id, root_id, _ in rows}


def time_parts(
    database: sqlite3.Connection, since: datetime | None = None, until: datetime | None = None
) -> list[TimePart]:
    """Run the report on model calls that asks for no session."""
    return [TimePart._make(row) for row in database.execute(TIMES, _window(since, until))]


def update_time_parts(database: sqlite3.Connection, prices: str) -> None:
    """Store the sums of `kept_time_parts`, unless they are up to date."""
    if not cache.is_current(database, f"{prices} {TIMES}"):
        kept_time_parts(database, prices)


def kept_time_parts(database: sqlite3.Connection, prices: str) -> list[TimePart]:
    """Return what the same report comes to on all calls of an archive, so priced; only changes are added up."""

    def run(query: str) -> list[TimePart]:
        return [TimePart._make(row) for row in database.execute(query, _window(None, None))]

    return cache.kept(database, f"{prices} {TIMES}", TimePart, partial(run, TIMES), partial(run, _CHANGED_TIMES))


def tool_parts(
    database: sqlite3.Connection, since: datetime | None = None, until: datetime | None = None
) -> list[ToolPart]:
    """Run the report on tool calls."""
    return [ToolPart._make(row) for row in database.execute(TOOLS, _window(since, until))]


def _window(since: datetime | None, until: datetime | None) -> tuple[int, int, int]:
    start, end = microseconds(since), microseconds(until)
    return -_EVER if start is None else start, _EVER if end is None else end, int(since is None and until is None)
