"""Usage from several sides at once, for one page: by period and model, by project, tool, session and kind of token."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

import msgspec

from pollux.library.config import UsageError
from pollux.library.filters import Announce, parse_filter, sessions_of_project
from pollux.library.usage import UsageQuery
from pollux.model import Usage
from pollux.reports import usage, usage_sql
from pollux.reports.periods import start_of_day
from pollux.reports.usage import UsageRow
from pollux.reports.usage_split import (
    CostBreakdown,
    PeriodUsage,
    by_period_and_model,
    cost_breakdown,
    models_by_cost,
)
from pollux.views.tools import title_of_label

if TYPE_CHECKING:
    from pollux.library.config import Config
    from pollux.library.remembered import RememberedResults
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices
    from pollux.reports.usage_sql import CallSum, QuarterSum

ROWS, MANY_ROWS = 7, 100
"""Rows of a list on the page, and of one that the user asked for in full."""


class UsageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of some model calls; all parts are sums of the same calls."""

    by: str
    """`day`, `week` or `month`."""
    timezone: str
    """Its name."""
    zone: tzinfo | None
    """The zone of the days; None for the system's own."""
    table: str
    """Name and version of the price table."""
    date: str
    since: datetime | None
    """The first moment of the period; None if it has no limit."""
    until: datetime | None
    now: datetime
    billed: Usage
    active: Usage
    periods: tuple[PeriodUsage, ...]
    models: tuple[UsageRow, ...]
    projects: tuple[UsageRow, ...]
    sessions: tuple[UsageRow, ...]
    """The most expensive ones."""
    n_sessions: int
    tools: tuple[UsageRow, ...]
    """The most expensive ones."""
    n_tools: int
    order: tuple[str | None, ...]
    """All models of the history, the one that has cost most first; it decides about colours."""
    unpriced: dict[str | None, Usage]
    breakdown: CostBreakdown
    project_names: dict[str, str]
    """All projects, for a list to choose from."""


SPANS = {"7d": 7, "30d": 30, "90d": 90, "1y": 365, "all": None}
"""Periods to choose from: whole days up to today, or all."""
STEPS = ("day", "week", "month")


def summary_query(
    *,
    last: str | None = None,
    since: str | None = None,
    until: str | None = None,
    by: str | None = None,
    project: str | None = None,
    model: str | None = None,
    config: Config,
) -> UsageQuery:
    """Return the query for what a user typed; the last 30 days by default. Raises `UsageError`."""
    step = by or "day"
    if step not in STEPS:
        raise UsageError(f"'{step}' is no step: use {', '.join(STEPS[:-1])} or {STEPS[-1]}.")
    now, zone = config.clock(), config.zone()[0]
    if last is None and not since and not until:
        last = "30d"
    if last not in SPANS:
        wanted = parse_filter(project=project, since=since, until=until, last=last, model=model, now=now, zone=zone)
        return UsageQuery(by=step, filter=wanted)
    if since:
        raise UsageError("since and last both set the start: use only one.")
    n_days = SPANS[last]
    start = start_of_day(now - timedelta(days=n_days - 1), zone) if n_days else None
    wanted = parse_filter(project=project, until=until, model=model, now=now, zone=zone)
    return UsageQuery(by=step, filter=msgspec.structs.replace(wanted, since=start))


def all_quarters(snapshot: Snapshot, prices: Prices, remembered: RememberedResults) -> list[QuarterSum]:
    """Return the sums of all calls by quarter and model, without those of homes that are not selected."""

    def make() -> list[QuarterSum]:
        database = snapshot.database
        if snapshot.ids is not None:
            return _quarters([part for part in usage_sql.call_sums(database) if part.session_id in snapshot.ids])
        if snapshot.is_archived:
            return usage_sql.cached_quarter_sums(database, prices.version)
        return usage_sql.quarter_sums(database)

    return remembered.get(snapshot, prices, "quarters", make)


def _quarters(parts: list[CallSum]) -> list[QuarterSum]:
    fields = usage_sql.QuarterSum._fields
    return [usage_sql.QuarterSum._make(getattr(part, field) for field in fields) for part in parts]


def usage_summary(
    snapshot: Snapshot,
    query: UsageQuery,
    prices: Prices,
    remembered: RememberedResults,
    announce: Announce,
    *,
    n_rows: int,
) -> UsageSummary:
    """Return the usage of the calls that match the filter of a query, by its period."""
    now = snapshot.config.clock()
    today = now.astimezone(snapshot.config.zone()[0]).date()
    key = ("summary", query, n_rows, today)
    return remembered.get(
        snapshot, prices, key, lambda: _summary(snapshot, query, prices, remembered, announce, n_rows)
    )


def _summary(
    snapshot: Snapshot,
    query: UsageQuery,
    prices: Prices,
    remembered: RememberedResults,
    announce: Announce,
    n_rows: int,
) -> UsageSummary:
    from pollux.library.listing import project_names  # noqa: PLC0415  imports this package

    wanted, database = query.filter, snapshot.database
    ids = sessions_of_project(snapshot, wanted.project, announce)
    zone, zone_name = snapshot.config.zone()
    order = models_by_cost(all_quarters(snapshot, prices, remembered))
    parts = [
        part
        for part in usage_sql.recent_call_sums(database, wanted.since, wanted.until)
        if _fits(part, ids, wanted.model)
    ]
    roots = usage_sql.session_roots(database.execute(usage_sql.SESSIONS)) if parts else {}
    sessions = sorted(usage.call_rows("session", parts, roots=roots), key=_dearest)
    tools = sorted(_tool_rows(snapshot, query, ids), key=_dearest)
    billed, active = usage.billed_and_active(parts)
    return UsageSummary(
        by=query.by,
        timezone=zone_name,
        zone=zone,
        table=prices.table,
        date=prices.date,
        since=wanted.since,
        until=wanted.until,
        now=snapshot.config.clock(),
        billed=billed,
        active=active,
        periods=by_period_and_model(query.by, parts, order, zone),
        models=usage.time_rows("model", parts),
        projects=usage.call_rows("project", parts, projects=snapshot.projects() if parts else {}),
        sessions=tuple(sessions[:n_rows]),
        n_sessions=len(sessions),
        tools=tuple(tools[:n_rows]),
        n_tools=len(tools),
        order=order,
        unpriced=usage.unpriced_models(parts),
        breakdown=cost_breakdown(database, prices, ids, wanted.since, wanted.until, wanted.model),
        project_names=project_names(snapshot),
    )


def _tool_rows(snapshot: Snapshot, query: UsageQuery, ids: Collection[str] | None) -> list[UsageRow]:
    wanted = query.filter
    parts = usage_sql.recent_tool_sums(snapshot.database, wanted.since, wanted.until)
    rows = usage.tool_rows(part for part in parts if _fits(part, ids, wanted.model))
    return [msgspec.structs.replace(row, name=title_of_label(row.name)) for row in rows]


def _fits(part: usage_sql.CallSum | usage_sql.ToolSum, ids: Collection[str] | None, model: str | None) -> bool:
    return (ids is None or part.session_id in ids) and (model is None or model.lower() in (part.model or "").lower())


def _dearest(row: UsageRow) -> tuple[int, int, str]:
    return -row.billed.cost.nanousd, -row.billed.tokens.total, row.name.casefold()
