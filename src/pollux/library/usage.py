"""Add up tokens and cost by time, session, project, model or tool."""
# ruff: noqa: PLC0415  imported when the question is asked

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from pollux.library.filters import Announce, ignore_note, sessions_of_project
from pollux.reports.filters import Filter

if TYPE_CHECKING:
    from datetime import tzinfo

    from pollux.library.config import Config
    from pollux.library.freshness import Reporter
    from pollux.library.snapshot import Snapshot
    from pollux.model import Problem, Project, Usage
    from pollux.prices import Prices
    from pollux.reports.usage import TimedSum, UsageReport, UsageRow
    from pollux.reports.usage_sql import ToolSum

GROUPS = ("hour", "day", "week", "month", "session", "project", "model", "tool")
"""What usage can be grouped by."""
SORTS = ("cost", "tokens", "input", "output", "calls", "name")
"""What the rows of a report can be sorted by."""
_NOT_COUNTED = "split-by-newer-node"
"""The code of a problem that does not affect sums: only the client loses these lines."""


class UsageQuery(msgspec.Struct, frozen=True):
    """Which model calls to add up, and how to group them."""

    by: str = "day"
    filter: Filter = Filter()
    separate_subagents: bool = False
    """By session: list subagents separately, not merged into the session that started them."""
    sort: str | None = None
    """One of `SORTS`; None for the order of the report: time, or the newest or largest first."""
    top: int | None = None
    """How many rows to return: the largest by `sort`, or by cost if that is None."""

    @property
    def needs_sessions(self) -> bool:
        """Whether the result depends on the session of a call."""
        from pollux.reports.usage import BY_TIME

        return self.by not in BY_TIME or self.filter.project is not None


class Today(msgspec.Struct, frozen=True):
    """The usage of the current day."""

    project: str
    """The name of the current project; empty if all are counted."""
    billed: Usage
    active: Usage


def usage_report(
    snapshot: Snapshot, query: UsageQuery, prices: Prices, announce: Announce = ignore_note
) -> UsageReport:
    """Add up the model calls in a snapshot."""
    from pollux.reports import usage

    ids = sessions_of_project(snapshot, query.filter.project, announce)
    zone, zone_name = snapshot.config.zone()
    calls, rows = _calls(snapshot, query, prices, ids, zone)
    if query.by == "tool":
        rows = _tools(snapshot, query, ids)
    made = usage.UsageReport(
        query.by,
        zone_name,
        prices.table,
        prices.date,
        rows,
        *usage.billed_and_active(calls),
        usage.unpriced_models(calls),
        problems_that_count(snapshot.problems(ids)),
    )
    return _sorted(made, query)


def quick_report(config: Config, query: UsageQuery, prices: Prices, report: Reporter) -> UsageReport:
    """Add up the model calls in all session files by time or model, reading as little of them as possible."""
    from pollux.archive.pricing import priced
    from pollux.library import project_memory
    from pollux.reports import usage
    from pollux.reports.usage_quick import counts, sum_by_time

    wanted = query.filter
    add_up = partial(sum_by_time, since=wanted.since, until=wanted.until)
    memory = project_memory.with_current_folder(config)
    with report("reading") as progress:
        counted = counts(config.homes, partial(priced, prices), add_up, memory=memory, progress=progress)
    zone, zone_name = config.zone()
    calls = [call for call in counted.sums if _has_model(call, wanted.model)]
    made = usage.UsageReport(
        query.by,
        zone_name,
        prices.table,
        prices.date,
        usage.time_rows(query.by, calls, zone=zone),
        *usage.billed_and_active(calls),
        usage.unpriced_models(calls),
        problems_that_count(counted.problems),
    )
    return _sorted(made, query)


def problems_that_count(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems that may change a sum, ordered by file and line."""
    relevant = (problem for problem in problems if problem.code != _NOT_COUNTED)
    return tuple(sorted(relevant, key=lambda problem: (problem.file or "", problem.line or 0, problem.code)))


def _calls(
    snapshot: Snapshot, query: UsageQuery, prices: Prices, ids: Collection[str] | None, zone: tzinfo | None
) -> tuple[Sequence[TimedSum], tuple[UsageRow, ...]]:
    """Return the sums of the selected model calls, and their rows; sessions are read only if needed."""
    from pollux.reports import usage, usage_sql
    from pollux.reports.usage_days import Days, day_sums

    wanted, database = query.filter, snapshot.database
    if query.by in usage.BY_TIME and ids is None:
        if snapshot.is_archived and query.by != "hour" and not (wanted.since or wanted.until):
            sums: Sequence[TimedSum] = day_sums(database, Days(prices, *snapshot.config.zone()))
        else:
            sums = usage_sql.quarter_sums(database, wanted.since, wanted.until)
        timed = [part for part in sums if _has_model(part, wanted.model)]
        return timed, usage.time_rows(query.by, timed, zone=zone)
    parts = [
        part
        for part in usage_sql.call_sums(database, wanted.since, wanted.until)
        if (ids is None or part.session_id in ids) and _has_model(part, wanted.model)
    ]
    if query.by == "tool":
        return parts, ()
    projects = snapshot.projects() if query.by == "project" or wanted.project else {}
    roots = {} if query.separate_subagents else usage_sql.session_roots(database.execute(usage_sql.SESSIONS))
    rows = usage.call_rows(query.by, parts, zone=zone, projects=projects, roots=roots)
    return parts, rows


def _tools(snapshot: Snapshot, query: UsageQuery, ids: Collection[str] | None) -> tuple[UsageRow, ...]:
    """Return a row per tool, under the name that transcripts show."""
    from pollux.reports import usage, usage_sql
    from pollux.views.tools import title_of_label

    wanted = query.filter
    parts = [
        part
        for part in usage_sql.tool_sums(snapshot.database, wanted.since, wanted.until)
        if (ids is None or part.session_id in ids) and _has_model(part, wanted.model)
    ]
    rows = usage.tool_rows(parts)
    return tuple(msgspec.structs.replace(row, name=title_of_label(row.name)) for row in rows)


def _has_model(part: TimedSum | ToolSum, model: str | None) -> bool:
    return model is None or model.lower() in (part.model or "").lower()


def _sorted(report: UsageReport, query: UsageQuery) -> UsageReport:
    """Return a report with its rows in the order that the query asks for, and only as many."""
    sort = query.sort or (("calls" if query.by == "tool" else "cost") if query.top else None)
    if sort is None:
        return report

    def key(row: UsageRow) -> tuple[int, str]:
        tokens = row.billed.tokens
        numbers = {
            "cost": row.billed.cost.nanousd,
            "tokens": tokens.total,
            "input": tokens.input,
            "output": tokens.output,
            "calls": row.outcomes.calls if row.outcomes else row.billed.calls,
            "name": 0,
        }
        return -numbers[sort], row.name.casefold()

    rows = sorted(report.rows, key=key)[: query.top]
    return msgspec.structs.replace(report, rows=tuple(rows), n_hidden=len(report.rows) - len(rows))


def used_today(snapshot: Snapshot, *, everywhere: bool) -> Today:
    """Return today's usage of the current folder's project, or of all projects."""
    from pollux.reports import usage, usage_sql
    from pollux.reports.periods import start_of_day

    config = snapshot.config
    start = start_of_day(config.clock(), config.zone()[0])
    parts = usage_sql.call_sums(snapshot.database, start)
    if everywhere:
        return Today("", *usage.billed_and_active(parts))
    projects = _current_projects(snapshot.projects(), config)
    name = next((project.name for project in projects.values() if project.path), config.cwd.name)
    return Today(name, *usage.billed_and_active(part for part in parts if part.session_id in projects))


def _current_projects(projects: dict[str, Project], config: Config) -> dict[str, Project]:
    """Return the entries of the current folder's project, even if only its hash is known."""
    from pollux.sessions.projects import search
    from pollux.sessions.projects.paths import project_hash, spellings

    matching = set(search.find(tuple(dict.fromkeys(projects.values())), ".", config.cwd, config.user_home))
    digests = {project_hash(spelling) for spelling in spellings(os.path.realpath(config.cwd))}
    return {
        session_id: project
        for session_id, project in projects.items()
        if project in matching or project.hash in digests
    }
