"""Tokens and money by time, session, project, model or tool."""
# ruff: noqa: PLC0415  imported when the question is asked

from __future__ import annotations

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
    from pollux.model import Problem
    from pollux.prices import Prices
    from pollux.reports.usage import Report, Row
    from pollux.reports.usage_sql import Part, TimePart, ToolPart

GROUPS = ("hour", "day", "week", "month", "session", "project", "model", "tool")
"""What usage can be added up by."""
_NOT_COUNTED = "split-by-newer-node"
"""The code of a problem with lines that only the client loses: they are counted."""


class UsageQuery(msgspec.Struct, frozen=True):
    """Which model calls to add up, and by what."""

    by: str = "day"
    filter: Filter = Filter()
    separate_subagents: bool = False
    """By session: list subagents by themselves instead of with the session that started them."""

    @property
    def needs_sessions(self) -> bool:
        """Whether the answer depends on which session a call belongs to."""
        from pollux.reports.usage import BY_TIME

        return self.by not in BY_TIME or self.filter.project is not None


def usage_report(snapshot: Snapshot, query: UsageQuery, prices: Prices, announce: Announce = ignore_note) -> Report:
    """Add up the model calls of the facts."""
    from pollux.reports import usage

    ids = sessions_of_project(snapshot, query.filter.project, announce)
    zone, zone_name = snapshot.config.zone()
    calls, rows = _calls(snapshot, query, prices, ids, zone)
    if query.by == "tool":
        rows = _tools(snapshot, query, ids)
    return usage.Report(
        query.by,
        zone_name,
        prices.table,
        prices.date,
        rows,
        *usage.billed_and_kept(calls),
        usage.unpriced_models(calls),
        problems_that_count(snapshot.problems(ids)),
    )


def quick_report(config: Config, query: UsageQuery, prices: Prices, report: Reporter) -> Report:
    """Add up the model calls in all session files by time or model, and read no more of them than that takes."""
    from pollux.archive.pricing import priced
    from pollux.library import project_memory
    from pollux.reports import usage
    from pollux.reports.usage_quick import counts, sum_by_time

    wanted = query.filter
    add_up = partial(sum_by_time, since=wanted.since, until=wanted.until)
    memory = project_memory.with_current_folder(config)
    with report("reading") as progress:
        found = counts(config.homes, partial(priced, prices), add_up, memory=memory, progress=progress)
    zone, zone_name = config.zone()
    calls = [call for call in found.sums if _has_model(call, wanted.model)]
    return usage.Report(
        query.by,
        zone_name,
        prices.table,
        prices.date,
        usage.time_rows(query.by, calls, zone=zone),
        *usage.billed_and_kept(calls),
        usage.unpriced_models(calls),
        problems_that_count(found.problems),
    )


def problems_that_count(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems that may change a sum, in the order of files and lines."""
    relevant = (problem for problem in problems if problem.code != _NOT_COUNTED)
    return tuple(sorted(relevant, key=lambda problem: (problem.file or "", problem.line or 0, problem.code)))


def _calls(
    snapshot: Snapshot, query: UsageQuery, prices: Prices, ids: Collection[str] | None, zone: tzinfo | None
) -> tuple[Sequence[Part | TimePart], tuple[Row, ...]]:
    """Return the sums of the model calls asked for, and the rows they make; sessions are read only if they matter."""
    from pollux.reports import usage, usage_sql

    wanted, database = query.filter, snapshot.database
    if query.by in usage.BY_TIME and ids is None:
        if snapshot.is_archived and not (wanted.since or wanted.until):
            sums = usage_sql.kept_time_parts(database, prices.version)
        else:
            sums = usage_sql.time_parts(database, wanted.since, wanted.until)
        timed = [part for part in sums if _has_model(part, wanted.model)]
        return timed, usage.time_rows(query.by, timed, zone=zone)
    parts = [
        part
        for part in usage_sql.parts(database, wanted.since, wanted.until)
        if (ids is None or part.session_id in ids) and _has_model(part, wanted.model)
    ]
    if query.by == "tool":
        return parts, ()
    projects = snapshot.projects() if query.by == "project" or wanted.project else {}
    roots = {} if query.separate_subagents else usage_sql.session_roots(database.execute(usage_sql.SESSIONS))
    rows = usage.call_rows(query.by, parts, zone=zone, projects=projects, roots=roots)
    return parts, rows


def _tools(snapshot: Snapshot, query: UsageQuery, ids: Collection[str] | None) -> tuple[Row, ...]:
    from pollux.reports import usage, usage_sql

    wanted = query.filter
    parts = [
        part
        for part in usage_sql.tool_parts(snapshot.database, wanted.since, wanted.until)
        if (ids is None or part.session_id in ids) and _has_model(part, wanted.model)
    ]
    return usage.tool_rows(parts)


def _has_model(part: Part | TimePart | ToolPart, model: str | None) -> bool:
    return model is None or model.lower() in (part.model or "").lower()
