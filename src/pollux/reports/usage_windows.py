"""The usage of sessions, projects and tools within a window of time, mostly from sums that are stored by session.

The sums of a session whose calls are all within the window are those of `session_usage` and `session_tools`. Only the
other sessions, usually a few at the edges, are added up again from their calls.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec

from pollux.archive.dependents import CALL_SUMS, tool_sums
from pollux.archive.load_sessions import AMONG, ids_as_json
from pollux.archive.schema import TABLES, TOOL_SUMS, has_other_prices
from pollux.model import Usage
from pollux.reports.projects import KnownProjects
from pollux.reports.sessions import usage_of_sums
from pollux.reports.usage import UsageRow, tool_rows
from pollux.reports.usage_sql import ToolSum
from pollux.text.times import microseconds

_COLUMNS = TABLES["session_usage"].names[2:]
_NAMES = ", ".join(_COLUMNS)
_TOTALS = ", ".join(f"sum({name})" for name in _COLUMNS)
_ROOTS = """
    WITH roots(member, root_id) AS MATERIALIZED (
        SELECT session_id, root_session_id FROM sessions WHERE parent_session_id IS NOT NULL
    )
"""
"""The root of each session that has a parent; others are their own roots."""
_ROOT = "coalesce(roots.root_id, parts.session_id)"
_NOTHING = ids_as_json(())
_TOOL_NUMBERS = TOOL_SUMS[3:16]


class UsageWindow(msgspec.Struct, frozen=True):
    """Which model calls to add up."""

    since: datetime | None = None
    until: datetime | None = None
    model: str | None = None
    """A part of the name, in any case."""
    ids: Collection[str] | None = None
    """Their sessions; None for all."""

    def sessions(self) -> tuple[str, list[object]]:
        """Return a condition on `sessions`, and its values, that all sessions with such calls meet."""
        conditions, values = ["1"], list[object]()
        if self.ids is not None:
            conditions.append(AMONG)
            values.append(ids_as_json(self.ids))
        if self.since:
            conditions.append("last_used_us >= ?")
            values.append(microseconds(self.since))
        return " AND ".join(conditions), values

    def of_sessions(self) -> tuple[str, list[object]]:
        """Return the same for a table with the IDs of sessions."""
        which, values = self.sessions()
        return "1" if which == "1" else f"session_id IN (SELECT session_id FROM sessions WHERE {which})", values  # noqa: S608

    def edges(self) -> tuple[list[str], list[object]]:
        """Return conditions, and their values, of which one is true for sums with calls at other times."""
        conditions, values = list[str](), list[object]()
        if self.since:
            conditions.append("first_us < ?")
            values.append(microseconds(self.since))
        if self.until:
            conditions.append("last_us >= ?")
            values.append(microseconds(self.until))
        return [*conditions, "n_timeless > 0"] if conditions else [], values

    def calls(self, time: str = "at_us", model: str = "model") -> tuple[str, list[object]]:
        """Return a condition on calls of any sessions, given the expressions of their time and model."""
        conditions, values = ["1"], list[object]()
        if self.since:
            conditions.append(f"{time} >= ?")
            values.append(microseconds(self.since))
        if self.until:
            conditions.append(f"{time} < ?")
            values.append(microseconds(self.until))
        if self.model is not None:
            conditions.append(f"instr(lower(coalesce({model}, '')), ?)")
            values.append(self.model.lower())
        return " AND ".join(conditions), values


class SessionSums:
    """The sums of the sessions with calls in a window, by session or by project."""

    def __init__(self, database: sqlite3.Connection, window: UsageWindow) -> None:
        """Find the sessions that have other calls, too."""
        self._database = database
        self._values = list[object]()
        of_window, values = window.of_sessions()
        inside, inside_values = window.calls()
        crossing = ids_as_json(_with_other_calls(database, window))
        again, again_values = AMONG, list[object]([crossing])
        if window.model is not None:  # the stored sums are those of all models
            stored, again, again_values = "0", of_window, values
        else:
            stored = f"{of_window} AND NOT {AMONG}"
            self._values += [*values, crossing]
        self._parts = f"SELECT session_id, is_active, {_NAMES} FROM session_usage WHERE {stored}"  # noqa: S608  ours
        if window.model is not None or crossing != _NOTHING:
            self._values += [*again_values, *inside_values]
            self._parts += f"""
                UNION ALL SELECT * FROM (
                    SELECT {CALL_SUMS} FROM model_calls WHERE owner_session_id IS NULL AND {again} AND {inside}
                    GROUP BY session_id, fate = 'active'
                )
            """  # noqa: S608  ours

    def largest(self, n_rows: int) -> tuple[list[UsageRow], int]:
        """Return the most expensive sessions, each with its subagents, and the number of all."""
        ordered = self._database.execute(
            f"""
            {_ROOTS} SELECT {_ROOT}, sum(cost_nanousd), sum(tok_total), count(*) OVER ()
            FROM ({self._parts}) AS parts LEFT JOIN roots ON member = parts.session_id
            GROUP BY 1 HAVING sum(calls) ORDER BY 2 DESC, 3 DESC
            """,  # noqa: S608  ours
            self._values,
        )
        sizes: list[tuple[str, int, int]] = []
        n_all = 0
        for root_id, nanousd, n_tokens, number in ordered:
            n_all = number
            if len(sizes) >= n_rows and (nanousd, n_tokens) != sizes[-1][1:]:
                break  # of equal ones, names decide
            sizes.append((root_id, nanousd, n_tokens))
        rows = self._rows_of([root_id for root_id, *_ in sizes])
        return sorted(rows, key=dearest)[:n_rows], n_all

    def _rows_of(self, roots: Collection[str]) -> list[UsageRow]:
        ids = ids_as_json(roots)
        rows = self._database.execute(
            f"""
            {_ROOTS}, chosen(id, title) AS MATERIALIZED (SELECT session_id, title FROM sessions WHERE {AMONG})
            SELECT id, title, is_active, {_TOTALS}
            FROM ({self._parts}) AS parts LEFT JOIN roots ON member = parts.session_id
            JOIN chosen ON id = {_ROOT} GROUP BY 1, 2, 3
            """,  # noqa: S608  ours
            [ids, *self._values],
        )
        made: dict[str, UsageRow] = {}
        for root_id, title, is_active, *sums in rows:
            made[root_id] = _with(made.get(root_id, UsageRow(root_id, title, Usage(), Usage())), sums, is_active)
        return [*made.values()]

    def by_project(self, known: KnownProjects) -> tuple[UsageRow, ...]:
        """Return a row for each project, the most expensive first."""
        rows = self._database.execute(
            f"""
            SELECT project_hash, CASE WHEN project_hash IS NULL THEN session_id END, is_active, {_TOTALS}
            FROM ({self._parts}) AS parts CROSS JOIN sessions INDEXED BY places_of_sessions USING (session_id)
            GROUP BY 1, 2, 3
            """,  # noqa: S608  ours
            self._values,
        )
        made: dict[str, UsageRow] = {}
        for project_hash, session_id, is_active, *sums in rows:
            project = known.of(project_hash, session_id)
            row = made.get(project.key, UsageRow(project.key or None, project.name, Usage(), Usage()))
            made[project.key] = _with(row, sums, is_active)
        return tuple(sorted(made.values(), key=lambda row: (*_size(row), row.key or "")))


def _with_other_calls(database: sqlite3.Connection, window: UsageWindow) -> list[str]:
    """Return the sessions that have calls at other times than those of the window."""
    edges, edge_values = window.edges()
    if not edges:
        return []
    of_window, values = window.of_sessions()
    rows = database.execute(
        f"SELECT session_id FROM session_spans WHERE {of_window} AND ({' OR '.join(edges)})",  # noqa: S608  ours
        [*values, *edge_values],
    )
    return [row[0] for row in rows]


def tools_in_window(database: sqlite3.Connection, window: UsageWindow) -> tuple[UsageRow, ...]:
    """Return a row for each tool, by the label that its sums are stored with."""
    of_window, values = window.of_sessions()
    crossing = ids_as_json(_with_other_tool_calls(database, window))
    inside, inside_values = UsageWindow(model=window.model).calls()
    numbers = ", ".join(f"sum({name})" for name in _TOOL_NUMBERS)
    rows: list[Any] = database.execute(
        f"""
        SELECT label, model, is_active, is_priced, {numbers}, max(last_us) FROM session_tools
        WHERE {of_window} AND {inside} AND NOT {AMONG} GROUP BY 1, 2, 3, 4
        """,  # noqa: S608  ours
        [*values, *inside_values, crossing],
    ).fetchall()
    if crossing != _NOTHING:
        inside, inside_values = window.calls("t.at_us", "t.model")
        again = database.execute(tool_sums(f"c.{AMONG}", inside), [crossing, *inside_values])
        rows += [[*row[1:18], row[19]] for row in again]
    return tool_rows(ToolSum(None, "", *row) for row in rows)


def _with_other_tool_calls(database: sqlite3.Connection, window: UsageWindow) -> list[str]:
    """Return the sessions whose stored sums of tools are not those of the window."""
    if has_other_prices(database):
        edges = ["1"]  # the stored sums have other prices than this connection sees
        edge_values = list[object]()
    else:
        edges, edge_values = window.edges()
    if not edges:
        return []
    of_window, values = window.of_sessions()
    rows = database.execute(
        f"SELECT session_id FROM session_tools WHERE {of_window} AND ({' OR '.join(edges)})",  # noqa: S608  ours
        [*values, *edge_values],
    )
    return [*{row[0]: None for row in rows}]  # with DISTINCT, SQLite would read the sums of all sessions in their order


def dearest(row: UsageRow) -> tuple[int, int, str]:
    """Return the key by which rows are sorted: the most expensive first, then those with most tokens, then names."""
    return *_size(row), row.name.casefold()


def _size(row: UsageRow) -> tuple[int, int]:
    return -row.billed.cost.nanousd, -row.billed.tokens.total


def _with(row: UsageRow, sums: list[int], is_active: int) -> UsageRow:
    """Return a row with some sums added."""
    more = usage_of_sums(sums)
    return msgspec.structs.replace(row, billed=row.billed + more, active=row.active + more if is_active else row.active)
