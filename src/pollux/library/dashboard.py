"""Everything on the first page of the viewer, from one snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pollux.library.expiry import folder_policies
from pollux.library.filters import sessions_of_project
from pollux.library.projects import project_list
from pollux.library.status import overview_report, stored_forecast
from pollux.library.stored_forecast import StoredForecast
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
from pollux.reports.status import SOON
from pollux.reports.usage import billed_and_active
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
    from pollux.sessions.client_settings import RetentionPolicy

_NEWEST, _EXPIRING = 9, 6
DRAWN_CALLS = 11
"""Model calls of a session that a list draws."""
_YEAR = timedelta(weeks=53)
_MOMENT = timedelta(microseconds=1)


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
    start = start_of_day(config.clock() - _YEAR, zone)
    used = remembered.get(snapshot, prices, ("days", start), lambda: _days(snapshot, prices, start, zone))
    general = overview_report(snapshot, report, n_newest=_NEWEST, usage=used.billed)
    now = config.clock()  # after the forecast, whose "now" is when sessions are due at the next start
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
        active=used.active,
        newest=general.newest,
        calls=newest_calls(database, [row.id for row in general.newest], DRAWN_CALLS, snapshot.ids),
        projects=projects,
        days=used.days,
        continued=continued,
        order=used.order,
        expiring=expiring_sessions(snapshot, forecast, _EXPIRING, SOON),
        n_tomorrow=max(0, forecast.n_until(day_after_tomorrow - _MOMENT) - forecast.n_until(now)),
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


class _Use(NamedTuple):
    """All calls, and those of the last year by day."""

    billed: Usage
    active: Usage
    order: tuple[str | None, ...]
    days: tuple[PeriodUsage, ...]


def _days(snapshot: Snapshot, prices: Prices, start: datetime, zone: tzinfo | None) -> _Use:
    """Return all models in their order, and the days since a start."""
    sums = all_days(snapshot, prices)
    order = models_by_cost(sums)
    start_us = microseconds(start) or 0
    recent = [part for part in sums if part.quarter_us is not None and part.quarter_us >= start_us]
    return _Use(*billed_and_active(sums), order, by_period_and_model("day", recent, order, zone))


def expiring_sessions(
    snapshot: Snapshot, forecast: StoredForecast, n_most: int, span: timedelta | None = None
) -> tuple[ExpiringSession, ...]:
    """Return the sessions that are deleted first, or within a span; of those deleted at once, the last used ones."""
    now = snapshot.config.clock()
    due = {entry.id: entry for entry in forecast.first(snapshot, now, n_most, *([now + span] if span else []))}
    loaded = snapshot.sessions.load([*due], with_calls=False)
    rows = sessions.rows(snapshot.database, loaded, snapshot.ids)
    policies = {policy.folder: policy.policy for policy in folder_policies(snapshot)} if rows else {}
    unarchived = frozenset(forecast.unarchived)
    expiring = []
    for row in rows:
        entry = due[row.id]
        limit = _limit(row, policies) if entry.reason == "age" else ""
        places = {escape_surrogates(str(ref.path)) for ref in row.files}
        is_archived = snapshot.is_archived and places.isdisjoint(unarchived)
        expiring.append(ExpiringSession(row, entry.due, entry.reason, limit, is_archived))
    return tuple(expiring)


def _limit(row: SessionRow, policies: Mapping[Path, RetentionPolicy]) -> str:
    folders = {folder for ref in row.files for folder in ref.path.parents}
    for folder in sorted(folders & policies.keys()):
        if max_age := policies[folder].max_age:
            return span_words(max_age)
    return ""
