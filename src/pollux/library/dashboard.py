"""Everything on the first page of the viewer, from one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.library.expiry import folder_policies
from pollux.library.filters import sessions_of_project
from pollux.library.projects import project_list
from pollux.library.status import StoredForecast, overview_report, stored_forecast
from pollux.library.usage_summary import all_days
from pollux.model import Usage
from pollux.reports import sessions
from pollux.reports.filters import ALL
from pollux.reports.freshness import Freshness
from pollux.reports.overview import Overview
from pollux.reports.periods import start_of_day
from pollux.reports.projects import ProjectRow
from pollux.reports.recent_calls import CallTokens, DailyUse, active_days, continued_sessions, newest_calls
from pollux.reports.sessions import SessionRow
from pollux.reports.usage_split import PeriodUsage, by_period_and_model, models_by_cost
from pollux.sessions.client_settings import span_words
from pollux.sessions.retention import CLIENT
from pollux.text.escape import escape_surrogates
from pollux.text.times import microseconds

if TYPE_CHECKING:
    from pollux.library.filters import Announce
    from pollux.library.freshness import Reporter
    from pollux.library.remembered import RememberedResults
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices
    from pollux.reports.status import FolderPolicy

_NEWEST, _EXPIRING = 9, 6
DRAWN_CALLS = 11
"""Model calls of a session that a list draws."""
_YEAR = timedelta(weeks=53)


class ExpiringSession(msgspec.Struct, frozen=True):
    """A session that the client will delete."""

    session: SessionRow
    due: datetime
    reason: str
    """A value of `DeletionReason`."""
    limit: str
    """How long sessions of its folder stay unused, in words; empty if that is not why."""
    is_archived: bool


class Dashboard(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of the first page."""

    now: datetime
    """In the zone of the days."""
    overview: Overview
    active: Usage
    """The part of the usage whose messages are still part of their conversations."""
    newest: tuple[SessionRow, ...]
    calls: Mapping[str, tuple[CallTokens, ...]]
    """The newest model calls of these sessions."""
    projects: tuple[ProjectRow, ...]
    days: tuple[PeriodUsage, ...]
    """Of the last 53 weeks, those with calls."""
    continued: frozenset[tuple[date, date]]
    """First and last day of sessions that were continued on another day."""
    order: tuple[str | None, ...]
    """All models of the history, the one that has cost most first; it decides about colours."""
    expiring: tuple[ExpiringSession, ...]
    """The first of those that the client deletes within a week."""
    n_tomorrow: int
    """Sessions that it deletes today or tomorrow, but not at its next start."""
    client: str
    """The release of the client whose rules are applied."""
    homes: tuple[Path, ...]
    freshness: Freshness
    hint: str
    """A sentence if there are no sessions."""


def dashboard(
    snapshot: Snapshot, prices: Prices, remembered: RememberedResults, report: Reporter, announce: Announce
) -> Dashboard:
    """Return the first page's numbers."""
    config, database = snapshot.config, snapshot.database
    zone = config.zone()[0]
    general = overview_report(snapshot, report, n_newest=_NEWEST)
    now = config.clock()  # after the forecast, whose "now" is when sessions are due at the next start
    start = start_of_day(now - _YEAR, zone)
    order, days = remembered.get(snapshot, prices, ("days", start), lambda: _days(snapshot, prices, start, zone))
    projects = remembered.get(
        snapshot, prices, "projects", lambda: project_list(snapshot, ALL, announce, scan=False).rows
    )
    continued = remembered.get(
        snapshot, prices, ("continued", start), lambda: continued_sessions(database, snapshot.ids, start, zone)
    )
    forecast = stored_forecast(snapshot, now, report)
    day_after_tomorrow = start_of_day(now + timedelta(days=2), zone)
    return Dashboard(
        now=now.astimezone(zone),
        overview=general.overview,
        active=remembered.get(
            snapshot, prices, "active", lambda: sessions.total_usage(database, snapshot.ids, only_active=True)
        ),
        newest=general.newest,
        calls=newest_calls(database, [row.id for row in general.newest], DRAWN_CALLS, snapshot.ids),
        projects=projects,
        days=days,
        continued=continued,
        order=order,
        expiring=expiring_sessions(snapshot, forecast, general.deletions, _EXPIRING),
        n_tomorrow=sum(now < due < day_after_tomorrow for due in forecast.times.values()),
        client=CLIENT,
        homes=general.homes,
        freshness=general.freshness,
        hint=general.hint,
    )


def activity(
    snapshot: Snapshot, project: str, prices: Prices, remembered: RememberedResults, announce: Announce
) -> DailyUse:
    """Return when the sessions of a project were used within the last 53 weeks. Raises `ProjectNotFoundError`."""
    zone = snapshot.config.zone()[0]
    now = snapshot.config.clock()
    start = start_of_day(now - _YEAR, zone)
    ids = sessions_of_project(snapshot, project, announce)

    def make() -> DailyUse:
        days = active_days(snapshot.database, ids, start, zone)
        continued = continued_sessions(snapshot.database, ids, start, zone)
        return DailyUse(days, continued, now.astimezone(zone).date())

    return remembered.get(snapshot, prices, ("activity", project, start), make)


def _days(
    snapshot: Snapshot, prices: Prices, start: datetime, zone: tzinfo | None
) -> tuple[tuple[str | None, ...], tuple[PeriodUsage, ...]]:
    """Return all models in their order, and the days since a start."""
    sums = all_days(snapshot, prices)
    order = models_by_cost(sums)
    start_us = microseconds(start) or 0
    recent = [part for part in sums if part.quarter_us is not None and part.quarter_us >= start_us]
    return order, by_period_and_model("day", recent, order, zone)


def expiring_sessions(
    snapshot: Snapshot, forecast: StoredForecast, soon: Iterable[str], n_most: int
) -> tuple[ExpiringSession, ...]:
    """Return the sessions that are deleted first; of those deleted at the same start, the last used ones."""
    ids = sessions.among(snapshot.database, soon, sessions.SessionQuery(snapshot.ids))
    now = snapshot.config.clock()
    ids.sort(key=lambda session_id: max(forecast.times[session_id], now))  # stable: the last used first
    loaded = snapshot.sessions.load(ids[:n_most], with_calls=False)
    rows = sessions.rows(snapshot.database, loaded, snapshot.ids)
    policies = folder_policies(snapshot) if rows else []
    unarchived = frozenset(forecast.unarchived)
    expiring = []
    for row in rows:
        reason = forecast.reasons[row.id]
        limit = _limit(row, policies) if reason == "age" else ""
        places = {escape_surrogates(str(ref.path)) for ref in row.files}
        is_archived = snapshot.is_archived and places.isdisjoint(unarchived)
        expiring.append(ExpiringSession(row, forecast.times[row.id], reason, limit, is_archived))
    return tuple(expiring)


def _limit(row: SessionRow, policies: Iterable[FolderPolicy]) -> str:
    for policy in policies:
        if policy.policy.max_age and any(ref.path.is_relative_to(policy.folder) for ref in row.files):
            return span_words(policy.policy.max_age)
    return ""
