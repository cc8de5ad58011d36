"""Report what the client will delete and what is archived, and build the overview."""
# ruff: noqa: PLC0415  imported when the question is asked

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.library.expiry import deletion_times, folder_policies, forecast
from pollux.library.freshness import Reporter
from pollux.library.stored_forecast import DueSession, StoredForecast, packed_forecast
from pollux.reports.filters import Filter
from pollux.reports.freshness import FreshnessState
from pollux.reports.status import SOON, deletion_word
from pollux.text.escape import escape_surrogates

if TYPE_CHECKING:
    from datetime import datetime

    from pollux.library.filters import Announce
    from pollux.library.snapshot import Snapshot
    from pollux.model import Session, Usage
    from pollux.reports.freshness import Freshness
    from pollux.reports.overview import Overview
    from pollux.reports.sessions import SessionRow
    from pollux.reports.status import StatusReport


class OverviewReport(msgspec.Struct, frozen=True):
    """Totals, the newest sessions, and what the client will delete soon."""

    overview: Overview
    newest: tuple[SessionRow, ...]
    deletions: dict[str, str]
    """A label (`due`, `2d left`) for each of the newest sessions that the client will delete soon."""
    homes: tuple[Path, ...]
    freshness: Freshness
    hint: str = ""
    project_names: Mapping[str, str] = {}
    """The names of the projects with the names of these sessions' projects, by their keys."""


def status_report(snapshot: Snapshot, wanted: Filter, report: Reporter, announce: Announce) -> StatusReport:
    """Return when the client will delete each session that matches a filter."""
    from pollux.library.select import session_query
    from pollux.reports.sessions import page
    from pollux.reports.status import StatusReport, status_rows
    from pollux.sessions.reader import sort_sessions

    now = snapshot.config.clock()
    made = forecast(snapshot, now, report)
    query = session_query(snapshot, msgspec.structs.replace(wanted, subagents=True, empty=True), announce)
    sessions = snapshot.sessions.load(page(snapshot.database, query))
    rows = status_rows(
        sort_sessions([*sessions, *_only_on_disk(snapshot, sessions)]), made.deletions, made.archived, now=now
    )
    return StatusReport(
        tuple(rows),
        tuple(made.policies),
        tuple(dict.fromkeys([*snapshot.freshness.problems, *snapshot.sessions.problems()])),
        snapshot.config.archive if snapshot.is_archived else None,
        now,
    )


def overview_report(
    snapshot: Snapshot, report: Reporter, *, n_newest: int = 8, usage: Usage | None = None
) -> OverviewReport:
    """Return the overview of all sessions; `usage` is that of all calls, if it is known."""
    from pollux.library import select
    from pollux.reports import sessions
    from pollux.reports.overview import overview
    from pollux.reports.sessions import SessionQuery

    config, database = snapshot.config, snapshot.database
    now = config.clock()
    forecasted = stored_forecast(snapshot, now, report)
    n_due = forecasted.n_until(now)
    n_projects = forecasted.n_projects if snapshot.ids is None else None
    zone = config.zone()[0]
    look = snapshot.once(
        ("overview", now.astimezone(zone).date()),
        lambda: overview(database, snapshot.ids, now=now, zone=zone, n_projects=n_projects, usage=usage),
    )
    ids = sessions.page(database, SessionQuery(snapshot.ids), limit=n_newest)
    newest = snapshot.sessions.load(ids, with_calls=False)
    return OverviewReport(
        msgspec.structs.replace(
            look,
            due=n_due,
            soon=forecasted.n_until(now + SOON) - n_due,
            n_problems=len(snapshot.problems()),
            n_files=snapshot.n_files,
            n_unarchived=forecasted.n_unarchived,
        ),
        sessions.rows(database, newest, snapshot.ids),
        _deletion_words(forecasted.among(ids).values(), now),
        tuple(home.root for home in snapshot.scan.homes),
        snapshot.freshness,
        "" if look.n_sessions else select.nothing_here(snapshot),
    )


def soon_deleted(snapshot: Snapshot, report: Reporter, of: Collection[str] | None = None) -> dict[str, str]:
    """Return a label (`due`, `2d left`) for each session that the client will delete within a week, or for some."""
    now = snapshot.config.clock()
    if of is None:
        return _deletion_words(stored_forecast(snapshot, now, report).until(now + SOON), now)
    stored = current_forecast(snapshot)
    if stored is not None:
        return _deletion_words(stored.among(of).values(), now)

    def make() -> tuple[DueSession, ...]:
        made = forecast(snapshot, now, report, by_path=False, of_folders=_folders_of(snapshot, of))
        fates = deletion_times(snapshot, made, of)
        return tuple(DueSession(session_id, fate.due, str(fate.reason)) for session_id, fate in fates.items())

    minute = now.replace(second=0, microsecond=0)  # as of all sessions
    return _deletion_words(snapshot.once(("forecast of", _rules_key(snapshot), minute, tuple(of)), make), now)


def _folders_of(snapshot: Snapshot, ids: Collection[str]) -> set[Path]:
    """Return the project folders that have files of some sessions."""
    places = {str(folder.path): folder.path for folder in snapshot.scan.folders}
    parents: set[Path] = set()
    for session in snapshot.sessions.load(ids, with_calls=False):
        parents.update(parent for ref in session.files for parent in ref.path.parents)
    return {places[str(parent)] for parent in parents if str(parent) in places}


def _deletion_words(due: Iterable[DueSession], now: datetime) -> dict[str, str]:
    words = {}
    for session in due:
        if word := deletion_word(session.due, now):
            words[session.id] = word
    return words


def current_forecast(snapshot: Snapshot) -> StoredForecast | None:
    """Return the forecast that the archive stores; None if something has changed since, or if there is none."""
    from pollux.archive import schema
    from pollux.reports.status import load_forecast

    key = _rules_key(snapshot)
    if not key:
        return None
    stored = snapshot.once(("forecast", key), lambda: load_forecast(snapshot.database, StoredForecast))
    is_same = stored and (stored.generation, stored.key) == (schema.generation(snapshot.database), key)
    return stored if stored and is_same and stored.n_projects is not None else None  # older releases did not count them


def _rules_key(snapshot: Snapshot) -> str:
    """Return the rules of all folders as a text; empty if the archive may lack something, so that it cannot answer."""
    freshness = snapshot.freshness
    if not snapshot.is_archived or freshness.state != FreshnessState.CURRENT or freshness.is_locked:
        return ""
    policies = folder_policies(snapshot)
    rules = [(str(rule.folder), rule.policy.max_age, rule.policy.max_count, rule.policy.off) for rule in policies]
    return repr((snapshot.config.machine, rules))


def stored_forecast(snapshot: Snapshot, now: datetime, report: Reporter) -> StoredForecast:
    """Return when the client deletes each session; the archive stores the answer until something changes."""
    from pollux.archive import schema
    from pollux.reports.overview import count_projects

    stored = current_forecast(snapshot)
    if stored is not None:
        return stored
    key, policies = _rules_key(snapshot), folder_policies(snapshot)

    def make() -> StoredForecast:
        made = forecast(snapshot, now, report, policies, by_path=False)
        fates = deletion_times(snapshot, made)
        unarchived = [escape_surrogates(str(path)) for path, is_archived in made.archived.items() if not is_archived]
        generation = schema.generation(snapshot.database) if key else 0
        result = packed_forecast(snapshot, fates, unarchived, generation, key)
        if key and made.is_stable:
            _store(snapshot, msgspec.structs.replace(result, n_projects=count_projects(snapshot.database, None)))
        return result

    if not key:
        return make()
    minute = now.replace(second=0, microsecond=0)  # a running session is always due at a time from now
    return snapshot.once(("forecast of a minute", key, minute), make)


def _store(snapshot: Snapshot, result: StoredForecast) -> None:
    """Store a forecast for the next start; not where another process is writing."""
    from pollux.archive import store
    from pollux.reports.status import store_forecast

    if snapshot.config.archive is not None and len(result.listed) >= _WORTH_STORING:
        with store.open_archive(snapshot.config.archive) as archive:
            if archive.is_writable:
                store_forecast(archive.database, result)


_WORTH_STORING = 1000
"""Sessions; a forecast for fewer takes no longer than to read it."""


def _only_on_disk(snapshot: Snapshot, known: list[Session]) -> list[Session]:
    """Return the sessions on the disk that are not yet in the archive."""
    from pollux.sessions.reader import history

    if snapshot.freshness.state != FreshnessState.BEHIND or snapshot.freshness.is_filling:
        return []
    ids = {session.id for session in known}
    return [session for session in history(snapshot.config.homes).sessions if session.id not in ids]
