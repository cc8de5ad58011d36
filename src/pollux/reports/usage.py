"""Sum tokens and money by time, session, project, model or tool.

*Billed* is every recorded model call; *active* are the calls whose messages are still part of their conversation. The
difference is the cost of messages that were rewound, rolled back, compressed or replaced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import msgspec

from pollux.model import Cost, Problem, Project, Tokens, Usage
from pollux.reports import periods
from pollux.reports.usage_days import DaySum
from pollux.reports.usage_sql import CallSum, QuarterSum, ToolSum

TimedSum = CallSum | QuarterSum | DaySum
"""A row with a quarter of an hour, or the first one of a day."""

REPORTS = (*periods.PERIODS, "session", "project", "model", "tool")
BY_TIME = frozenset({*periods.PERIODS, "model"})
"""Reports that need no columns of `sessions`."""
_NUMBERS = slice(-10, -1)
"""The nine sums in a row of any kind; the time of the last call follows them."""
_ZEROS = (0,) * 9


class ToolOutcomes(msgspec.Struct, frozen=True):
    """Tool calls by status."""

    calls: int
    success: int
    error: int
    cancelled: int

    @property
    def no_result(self) -> int:
        """Calls whose end was never recorded."""
        return self.calls - self.success - self.error - self.cancelled


class UsageRow(msgspec.Struct, frozen=True):
    """One row of a usage report."""

    key: str | None
    name: str
    """For display: the title of a session, the folder name of a project."""
    billed: Usage
    active: Usage
    last_us: int | None = None
    outcomes: ToolOutcomes | None = None
    """Only in a report by tool."""


class UsageReport(msgspec.Struct, frozen=True):
    """Usage and its cost, by one key."""

    by: str
    timezone: str
    table: str
    date: str
    rows: tuple[UsageRow, ...]
    billed: Usage
    active: Usage
    unpriced: dict[str | None, Usage] = {}
    """By model."""
    problems: tuple[Problem, ...] = ()
    n_hidden: int = 0
    """Rows that are in the totals, but not among the rows because only the largest were asked for."""


def billed_and_active(members: Iterable[TimedSum | ToolSum]) -> tuple[Usage, Usage]:
    """Return the usage of all calls, and of those whose messages are active."""
    numbers: tuple[list[Any], ...] = ([], [], [], [])
    for member in members:
        numbers[member.is_active + 2 * member.is_priced].append(member[_NUMBERS])
    active = _sum(numbers[3], numbers[1])
    dropped = _sum(numbers[2], numbers[0])
    return active + dropped, active


def total(members: Iterable[TimedSum | ToolSum]) -> Usage:
    """Return the usage of all calls."""
    return billed_and_active(members)[0]


def _sum(priced: list[Any], unpriced: list[Any]) -> Usage:
    calls, *counts, nanousd, inconsistent = map(sum, zip(*priced, strict=True)) if priced else _ZEROS
    n_unpriced, *other_counts, _, also_inconsistent = map(sum, zip(*unpriced, strict=True)) if unpriced else _ZEROS
    tokens = Tokens(*other_counts)
    cost = Cost(nanousd, n_unpriced, tokens)
    return Usage(calls + n_unpriced, Tokens(*counts) + tokens, cost, inconsistent + also_inconsistent)


def call_rows(
    by: str,
    calls: Iterable[CallSum],
    *,
    zone: tzinfo | None = None,
    projects: Mapping[str, Project] | None = None,
    roots: Mapping[str, tuple[str, str]] | None = None,
) -> tuple[UsageRow, ...]:
    """Return the rows of any report but `tool`.

    Args:
        by: one of `REPORTS`.
        calls: rows of `usage_sql.CALLS`.
        zone: the time zone of hours, days, weeks and months; the system's own if None.
        projects: by session, where more is known than its row says.
        roots: by session, the ID and title of the session that its calls are added to; itself where missing.

    """
    if by in BY_TIME:
        return time_rows(by, calls, zone=zone)
    groups: dict[str | None, list[CallSum]] = defaultdict(list)
    names: dict[str | None, str] = {}
    for call, key, name in _keyed(by, calls, projects or {}, roots or {}):
        groups[key].append(call)
        names[key] = name
    rows = [_row(key, names[key], members) for key, members in groups.items()]
    return tuple(sorted(rows, key=_newest_first if by == "session" else _largest_first))


def time_rows(by: str, calls: Iterable[TimedSum], *, zone: tzinfo | None = None) -> tuple[UsageRow, ...]:
    """Return the rows of a report by a period of time or by model, all that `usage_sql.TIMES` has columns for."""
    if by in periods.PERIODS:
        folded = periods.fold(by, ((call.quarter_us, call) for call in calls), zone)
        return tuple(_row(key, key or "no time", members) for key, members in folded.items())
    groups: dict[str | None, list[TimedSum]] = defaultdict(list)
    for call in calls:
        groups[call.model].append(call)
    rows = [_row(model, model or "no model", members) for model, members in groups.items()]
    return tuple(sorted(rows, key=_largest_first))


def tool_rows(calls: Iterable[ToolSum]) -> tuple[UsageRow, ...]:
    """Return the rows of a report by tool, the most used tool first."""
    groups: dict[str, list[ToolSum]] = defaultdict(list)
    for call in calls:
        groups[call.label].append(call)
    rows = [_tool_row(label, members) for label, members in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.outcomes.calls if row.outcomes else 0, row.name)))


def unpriced_models(calls: Iterable[TimedSum]) -> dict[str | None, Usage]:
    """Return the usage of models without a price, the one with most tokens first."""
    groups: dict[str | None, list[TimedSum]] = defaultdict(list)
    for call in calls:
        if not call.is_priced:
            groups[call.model].append(call)
    totals = {model: total(members) for model, members in groups.items()}
    return dict(sorted(totals.items(), key=lambda item: (-item[1].tokens.total, item[0] or "")))


def _keyed(
    by: str, calls: Iterable[CallSum], projects: Mapping[str, Project], roots: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[CallSum, str | None, str]]:
    for call in calls:
        if by == "project":
            project = projects.get(call.session_id) or project_of(call)
            yield call, project.key or None, project.name
        else:
            yield call, *roots.get(call.session_id, (call.session_id, call.title))


def project_of(call: CallSum) -> Project:
    """Return the project of a row, as far as its columns say."""
    return Project(call.project_hash, call.slug, call.path, call.source, bool(call.proven))


def _row(
    key: str | None, name: str, members: Sequence[TimedSum | ToolSum], outcomes: ToolOutcomes | None = None
) -> UsageRow:
    last_us = max((member.last_us for member in members if member.last_us is not None), default=None)
    return UsageRow(key, name, *billed_and_active(members), last_us, outcomes)


def _tool_row(label: str, members: Sequence[ToolSum]) -> UsageRow:
    outcomes = ToolOutcomes(
        sum(member.requested for member in members),
        sum(member.success for member in members),
        sum(member.error for member in members),
        sum(member.cancelled for member in members),
    )
    return _row(label, label, members, outcomes)


def _newest_first(row: UsageRow) -> tuple[int, str]:
    return -(row.last_us or 0), row.key or ""


def _largest_first(row: UsageRow) -> tuple[int, int, str]:
    return -row.billed.cost.nanousd, -row.billed.tokens.total, row.key or ""
