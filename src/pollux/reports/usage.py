"""Tokens and money, added up: by time, session, project, model or tool.

Billed is all that was ever recorded, kept is what is still part of the conversation; the difference is the price of
what was rewound, rolled back, compressed or replaced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import msgspec

from pollux.model import Problem, Project, Tokens
from pollux.reports import periods
from pollux.reports.usage_sql import Part, TimePart, ToolPart

REPORTS = (*periods.PERIODS, "session", "project", "model", "tool")
BY_TIME = frozenset({*periods.PERIODS, "model"})
"""Those that ask nothing of the sessions."""
_NO_TOKENS = Tokens()
_NUMBERS = slice(-10, -1)
"""All kinds of rows end with the same numbers, and with the time of the last call."""
_NOTHING = (0,) * 9


class Sums(msgspec.Struct, frozen=True):
    """Model calls, added up."""

    calls: int = 0
    tokens: Tokens = _NO_TOKENS
    priced_nanousd: int = 0
    """Of those that have a price."""
    unpriced_calls: int = 0
    unpriced_tokens: Tokens = _NO_TOKENS
    inconsistent: int = 0
    """Calls whose total is not the sum that the API defines; all numbers are as recorded."""

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.priced_nanousd + other.priced_nanousd,
            self.unpriced_calls + other.unpriced_calls,
            self.unpriced_tokens + other.unpriced_tokens,
            self.inconsistent + other.inconsistent,
        )

    @property
    def cost_nanousd(self) -> int | None:
        """What is known of the cost; nothing, where no call has a price."""
        return None if self.calls and self.calls == self.unpriced_calls else self.priced_nanousd


class Asked(msgspec.Struct, frozen=True):
    """Tool calls, by what came of them."""

    calls: int
    success: int
    error: int
    cancelled: int

    @property
    def unfinished(self) -> int:
        """Those of which no end was ever recorded."""
        return self.calls - self.success - self.error - self.cancelled


class Row(msgspec.Struct, frozen=True):
    """One line of a report."""

    key: str | None
    name: str
    """For people: the title of a session, the folder's name of a project."""
    billed: Sums
    kept: Sums
    last_us: int | None = None
    asked: Asked | None = None
    """Only of a tool."""


class Report(msgspec.Struct, frozen=True):
    """What was used, and what it cost."""

    by: str
    timezone: str
    table: str
    date: str
    rows: tuple[Row, ...]
    billed: Sums
    kept: Sums
    unpriced: dict[str | None, Sums] = {}
    """By model."""
    problems: tuple[Problem, ...] = ()


def billed_and_kept(members: Iterable[Part | TimePart | ToolPart]) -> tuple[Sums, Sums]:
    """Add up all, and what is still part of the conversations."""
    found: tuple[list[Any], ...] = ([], [], [], [])
    for one in members:
        found[one.is_kept + 2 * one.is_priced].append(one[_NUMBERS])
    kept = _sums(found[3], found[1])
    lost = _sums(found[2], found[0])
    return kept + lost, kept


def sums(found: Iterable[Part | TimePart | ToolPart]) -> Sums:
    """Add up."""
    priced: list[Any] = []
    unpriced: list[Any] = []
    for one in found:
        (priced if one.is_priced else unpriced).append(one[_NUMBERS])
    return _sums(priced, unpriced)


def _sums(priced: list[Any], unpriced: list[Any]) -> Sums:
    calls, *counts, cost, inconsistent = map(sum, zip(*priced, strict=True)) if priced else _NOTHING
    n_unpriced, *others, _, more = map(sum, zip(*unpriced, strict=True)) if unpriced else _NOTHING
    tokens = Tokens(*others)
    return Sums(calls + n_unpriced, Tokens(*counts) + tokens, cost, n_unpriced, tokens, inconsistent + more)


def call_rows(
    by: str,
    found: Iterable[Part],
    *,
    zone: tzinfo | None = None,
    projects: Mapping[str, Project] | None = None,
    roots: Mapping[str, tuple[str, str]] | None = None,
) -> tuple[Row, ...]:
    """Put model calls together.

    Args:
        by: one of `REPORTS`, but not `tool`.
        found: what the report returned.
        zone: whose hours, days, weeks and months; the system's own if there is none.
        projects: of each session, where more is known than the report could tell.
        roots: of each session, the ID and the title of the one that its calls are added to; else its own.

    """
    if by in BY_TIME:
        return time_rows(by, found, zone=zone)
    groups: dict[str | None, list[Part]] = defaultdict(list)
    names: dict[str | None, str] = {}
    for one, key, name in _keyed(by, found, projects or {}, roots or {}):
        groups[key].append(one)
        names[key] = name
    rows = [_row(key, names[key], members) for key, members in groups.items()]
    return tuple(sorted(rows, key=_newest_first if by == "session" else _largest_first))


def time_rows(by: str, found: Iterable[Part | TimePart], *, zone: tzinfo | None = None) -> tuple[Row, ...]:
    """Put model calls together by a period of time or by model, which is all that `TIMES` knows."""
    if by in periods.PERIODS:
        folded = periods.fold(by, ((one.quarter_us, one) for one in found), zone)
        return tuple(_row(key, key or "no time", members) for key, members in folded.items())
    groups: dict[str | None, list[Part | TimePart]] = defaultdict(list)
    for one in found:
        groups[one.model].append(one)
    rows = [_row(model, model or "no model", members) for model, members in groups.items()]
    return tuple(sorted(rows, key=_largest_first))


def tool_rows(found: Iterable[ToolPart]) -> tuple[Row, ...]:
    """Put tool calls together by the tool's label, the one most asked for first."""
    groups: dict[str, list[ToolPart]] = defaultdict(list)
    for one in found:
        groups[one.label].append(one)
    rows = [_tool_row(label, members) for label, members in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-row.asked.calls if row.asked else 0, row.name)))


def unpriced_models(found: Iterable[Part | TimePart]) -> dict[str | None, Sums]:
    """Add up the calls that have no price, by model, the one with most tokens first."""
    groups: dict[str | None, list[Part | TimePart]] = defaultdict(list)
    for one in found:
        if not one.is_priced:
            groups[one.model].append(one)
    totals = {model: sums(members) for model, members in groups.items()}
    return dict(sorted(totals.items(), key=lambda item: (-item[1].tokens.total, item[0] or "")))


def _keyed(
    by: str, found: Iterable[Part], projects: Mapping[str, Project], roots: Mapping[str, tuple[str, str]]
) -> Iterable[tuple[Part, str | None, str]]:
    """Tell each part's key and its name."""
    if by == "project":
        known = ((one, projects.get(one.session_id) or project_of(one)) for one in found)
        return ((one, project.key or None, project.name) for one, project in known)
    return ((one, *roots.get(one.session_id, (one.session_id, one.title))) for one in found)


def project_of(part: Part) -> Project:
    """Tell what the report knows of a project."""
    return Project(part.project_hash, part.slug, part.path, part.how_known, bool(part.proven))


def _row(key: str | None, name: str, members: Sequence[Part | TimePart]) -> Row:
    last = max((one.last_us for one in members if one.last_us is not None), default=None)
    return Row(key, name, *billed_and_kept(members), last)


def _tool_row(label: str, members: Sequence[ToolPart]) -> Row:
    asked = Asked(
        sum(one.asked for one in members),
        sum(one.success for one in members),
        sum(one.error for one in members),
        sum(one.cancelled for one in members),
    )
    last = max((one.last_us for one in members if one.last_us is not None), default=None)
    return Row(label, label, *billed_and_kept(members), last, asked)


def _newest_first(row: Row) -> tuple[int, str]:
    return -(row.last_us or 0), row.key or ""


def _largest_first(row: Row) -> tuple[int, int, str]:
    return -row.billed.priced_nanousd, -row.billed.tokens.total, row.key or ""
