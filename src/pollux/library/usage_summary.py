"""Usage from several sides at once, for one page: by period and model, by project, tool, session and kind of token."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

import msgspec

from pollux.archive.load_sessions import AMONG, ids_as_json
from pollux.library.config import UsageError
from pollux.library.filters import Announce, parse_filter, sessions_of_project
from pollux.library.usage import UsageQuery
from pollux.model import Usage
from pollux.reports import usage
from pollux.reports.periods import start_of_day
from pollux.reports.usage import UsageRow
from pollux.reports.usage_days import Days, DaySum, day_sums, sums_of_sessions
from pollux.reports.usage_split import (
    CostBreakdown,
    PeriodUsage,
    by_period_and_model,
    cost_breakdown,
    models_by_cost,
)
from pollux.reports.usage_windows import SessionSums, UsageWindow, dearest, tools_in_window
from pollux.text.times import microseconds
from pollux.views.tools import title_of_label

if TYPE_CHECKING:
    from pollux.library.config import Config
    from pollux.library.remembered import RememberedResults
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices

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


def all_days(snapshot: Snapshot, prices: Prices) -> list[DaySum]:
    """Return the sums of all calls by day and model."""
    database = snapshot.database
    if snapshot.ids is None and snapshot.is_archived:
        return day_sums(database, Days(prices, *snapshot.config.zone()))
    which = ("1", ()) if snapshot.ids is None else (AMONG, (ids_as_json(snapshot.ids),))
    return sums_of_sessions(database, prices, which, (None, None))


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
    return remembered.get(snapshot, prices, key, lambda: _summary(snapshot, query, prices, announce, n_rows))


def _summary(
    snapshot: Snapshot,
    query: UsageQuery,
    prices: Prices,
    announce: Announce,
    n_rows: int,
) -> UsageSummary:
    from pollux.library.listing import project_names  # noqa: PLC0415  imports this package

    wanted, database = query.filter, snapshot.database
    ids = sessions_of_project(snapshot, wanted.project, announce)
    window = UsageWindow(wanted.since, wanted.until, wanted.model, ids)
    zone, zone_name = snapshot.config.zone()
    order, days = _days(snapshot, prices, window)
    sums = SessionSums(database, window)
    sessions, n_sessions = sums.largest(n_rows)
    tools = sorted(_named_tools(tools_in_window(database, window)), key=dearest)
    billed, active = usage.billed_and_active(days)
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
        periods=by_period_and_model(query.by, days, order, zone),
        models=usage.time_rows("model", days),
        projects=sums.by_project(snapshot.known_projects()) if days else (),
        sessions=tuple(sessions),
        n_sessions=n_sessions,
        tools=tuple(tools[:n_rows]),
        n_tools=len(tools),
        order=order,
        unpriced=usage.unpriced_models(days),
        breakdown=cost_breakdown(days, prices),
        project_names=project_names(snapshot),
    )


def _days(snapshot: Snapshot, prices: Prices, window: UsageWindow) -> tuple[tuple[str | None, ...], list[DaySum]]:
    """Return all models in their order, and the sums of the calls in a window by day or by quarter of an hour."""
    every = all_days(snapshot, prices)
    order = models_by_cost(every)
    zone = snapshot.config.zone()[0]
    bounds = [bound for bound in (window.since, window.until) if bound]
    if window.ids is not None or any(start_of_day(bound, zone) != bound for bound in bounds):
        span = (window.since, window.until)
        return order, sums_of_sessions(snapshot.database, prices, window.of_sessions(), span, window.model)
    start, end = microseconds(window.since), microseconds(window.until)
    days = []
    for part in every:
        is_inside = not bounds or (
            part.quarter_us is not None
            and (start is None or part.quarter_us >= start)
            and (end is None or part.quarter_us < end)
        )
        if is_inside and (window.model is None or window.model.lower() in (part.model or "").lower()):
            days.append(part)
    return order, days


def _named_tools(rows: Iterable[UsageRow]) -> list[UsageRow]:
    return [msgspec.structs.replace(row, name=title_of_label(row.name)) for row in rows]
