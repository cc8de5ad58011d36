"""Count prompts, answers, tool calls, files and programs."""
# ruff: noqa: PLC0415  imported when the question is asked

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from pollux.library.config import UsageError
from pollux.library.filters import Announce, ignore_note, sessions_of_project
from pollux.reports.filters import Filter

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.reports.stats import Statistics, StatsTable

TABLES = ("tool", "model", "project", "session", "day", "week", "month", "filetype", "program")
"""What statistics can be grouped by."""
_SCREEN_NAMES = {"calls": "tool_calls", "failed": "error", "active": "active_seconds"}
"""The columns that have another name on screens."""


class StatsQuery(msgspec.Struct, frozen=True):
    """What to count."""

    by: str | None = None
    """One of `TABLES` for one whole table, None for all in brief."""
    filter: Filter = Filter()
    with_tables: bool = True
    """Whether the answer in brief has tables, and not only totals."""
    sort: str | None = None
    """The column by which one table is sorted, or `name`; None for its own order."""
    top: int | None = None
    """How many rows of one table to return."""


def stats_report(snapshot: Snapshot, query: StatsQuery, announce: Announce = ignore_note) -> Statistics:
    """Count what happened in the sessions asked for."""
    from pollux.reports.stats import SECTIONS, USUAL, statistics
    from pollux.reports.stats_sql import EVERYTHING, read

    _check_sort(query)
    wanted = query.filter
    ids = sessions_of_project(snapshot, wanted.project, announce)
    needs = SECTIONS[query.by].needs if query.by else EVERYTHING
    parts = read(snapshot.database, wanted.since, wanted.until, needs=needs, only=ids, model=wanted.model)
    problems = snapshot.problems(ids)
    problems.sort(key=lambda problem: (problem.file or "", problem.line or 0, problem.code))
    zone, zone_name = snapshot.config.zone()
    made = statistics(
        parts,
        snapshot.projects(),
        query.by,
        others=USUAL if query.with_tables else (),
        zone=zone,
        timezone=zone_name,
        problems=tuple(problems),
    )
    return _sorted(_with_tool_names(made), query)


def _with_tool_names(statistics: Statistics) -> Statistics:
    """Return statistics whose rows have the tool names of transcripts."""
    from pollux.views.tools import title_of_label

    def renamed(section: StatsTable) -> StatsTable:
        if section.by != "tool":
            return section
        return replace(section, rows=tuple(replace(row, name=title_of_label(row.name)) for row in section.rows))

    return replace(statistics, sections=tuple(map(renamed, statistics.sections)))


def _check_sort(query: StatsQuery) -> None:
    from pollux.reports.stats import SECTIONS

    if query.by and query.sort:
        columns = ("name", *SECTIONS[query.by].columns)
        if _SCREEN_NAMES.get(query.sort, query.sort) not in columns:
            raise UsageError(f"No column '{query.sort}' in the table by {query.by}; it has {', '.join(columns)}.")


def _sorted(statistics: Statistics, query: StatsQuery) -> Statistics:
    """Return one table sorted as the query asks for, and only as many rows; more than one as they are."""
    if not query.by or not (query.sort or query.top):
        return statistics
    (section,) = statistics.sections
    rows = list(section.rows)
    if query.sort == "name":
        rows.sort(key=lambda row: row.name.casefold())
    elif query.sort:
        column = section.columns.index(_SCREEN_NAMES.get(query.sort, query.sort))
        rows.sort(key=lambda row: (-row.numbers[column], row.name.casefold()))
    return replace(statistics, sections=(replace(section, rows=tuple(rows[: query.top])),))
