"""What the client will delete, what the archive has of it, and the first look at everything."""
# ruff: noqa: PLC0415  imported when the question is asked

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.library.expiry import deletion_times, folder_policies, forecast
from pollux.library.freshness import Reporter
from pollux.reports.filters import Filter
from pollux.reports.freshness import Source

if TYPE_CHECKING:
    from pollux.library.filters import Announce
    from pollux.library.snapshot import Snapshot
    from pollux.model import Session
    from pollux.reports.freshness import Freshness
    from pollux.reports.overview import Overview
    from pollux.reports.sessions import SessionRow
    from pollux.reports.status import StatusReport


class OverviewReport(msgspec.Struct, frozen=True):
    """What a first look shows."""

    overview: Overview
    newest: tuple[SessionRow, ...]
    deletions: dict[str, str]
    """When the client deletes a session, in a word, for those that it deletes soon."""
    homes: tuple[Path, ...]
    freshness: Freshness
    hint: str = ""


def status_report(snapshot: Snapshot, wanted: Filter, report: Reporter, announce: Announce) -> StatusReport:
    """Return when the client deletes each session that a filter chooses."""
    from pollux.library.select import session_query
    from pollux.reports.sessions import page
    from pollux.reports.status import StatusReport, status_rows
    from pollux.sessions.reader import in_order

    now = snapshot.config.clock()
    made = forecast(snapshot, now, report)
    query = session_query(snapshot, msgspec.structs.replace(wanted, subagents=True, empty=True), announce)
    sessions = snapshot.sessions.load(page(snapshot.database, query))
    rows = status_rows(
        in_order([*sessions, *_only_on_disk(snapshot, sessions)]), made.deletions, made.archived, now=now
    )
    return StatusReport(
        tuple(rows),
        tuple(made.policies),
        tuple(dict.fromkeys([*snapshot.freshness.problems, *snapshot.sessions.problems()])),
        snapshot.config.archive if snapshot.is_archived else None,
        now,
    )


def overview_report(snapshot: Snapshot, report: Reporter, *, n_newest: int = 8) -> OverviewReport:
    """Return what there is, what is new, and what the client is going to delete."""
    from pollux.library import select
    from pollux.reports import sessions
    from pollux.reports.overview import overview
    from pollux.reports.sessions import SessionQuery

    config, database = snapshot.config, snapshot.database
    now = config.clock()
    deletions = soon_deleted(snapshot, report)
    n_due = sum(word == "due" for word in deletions.values())
    look = overview(database, snapshot.ids, now=now, zone=config.zone()[0])
    newest = snapshot.sessions.load(sessions.page(database, SessionQuery(snapshot.ids), limit=n_newest))
    return OverviewReport(
        msgspec.structs.replace(look, due=n_due, soon=len(deletions) - n_due, n_problems=len(snapshot.problems())),
        sessions.rows(database, newest, snapshot.ids),
        deletions,
        tuple(home.root for home in snapshot.located.homes),
        snapshot.freshness,
        "" if look.n_sessions else select.nothing_here(snapshot),
    )


def soon_deleted(snapshot: Snapshot, report: Reporter) -> dict[str, str]:
    """Return in a word when the client deletes each session that it deletes within a week."""
    from pollux.reports.status import deletion_word

    now = snapshot.config.clock()
    words = {}
    for session_id, due in _deletion_times(snapshot, now, report).items():
        if word := deletion_word(due, now):
            words[session_id] = word
    return words


def _deletion_times(snapshot: Snapshot, now: datetime, report: Reporter) -> dict[str, datetime]:
    """Return when the client deletes each session; the archive stores the answer until something changes."""
    from pollux.archive import schema
    from pollux.reports import cache

    policies = folder_policies(snapshot)
    is_current = (
        snapshot.is_archived and snapshot.freshness.state == Source.CURRENT and not snapshot.freshness.is_locked
    )
    key = ""
    if is_current:
        rules = [(str(rule.folder), rule.policy.max_age, rule.policy.max_count, rule.policy.off) for rule in policies]
        key = repr((snapshot.config.machine, rules))
        stored = cache.load_value(snapshot.database, _STORED, _StoredTimes)
        if stored and (stored.generation, stored.key) == (schema.generation(snapshot.database), key):
            return stored.times
    made = forecast(snapshot, now, report, policies)
    times = {session_id: fate.due for session_id, fate in deletion_times(snapshot, made).items()}
    if is_current and made.is_stable:
        _store_times(snapshot, _StoredTimes(schema.generation(snapshot.database), key, times))
    return times


_STORED = "deletions"


class _StoredTimes(msgspec.Struct):
    generation: int
    key: str
    times: dict[str, datetime]


def _store_times(snapshot: Snapshot, times: _StoredTimes) -> None:
    """Store the times for the next start; not where another process is writing."""
    from pollux.archive import store
    from pollux.reports import cache

    if snapshot.config.archive is not None and len(times.times) >= _WORTH_STORING:
        with store.opened(snapshot.config.archive) as archive:
            if archive.is_writable:
                cache.store_value(archive.database, _STORED, times)


_WORTH_STORING = 1000
"""Sessions; a forecast for fewer takes no longer than to read it."""


def _only_on_disk(snapshot: Snapshot, known: list[Session]) -> list[Session]:
    """Return the sessions that an archive which cannot be written has never seen."""
    from pollux.sessions.reader import history

    if snapshot.freshness.state != Source.BEHIND:
        return []
    ids = {session.id for session in known}
    return [session for session in history(snapshot.config.homes).sessions if session.id not in ids]
