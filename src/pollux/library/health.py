"""Everything on the health page of the viewer, from one snapshot.

Nothing here loads all sessions: the page must open quickly in an archive of 100,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.archive import seals
from pollux.errors import PolluxError
from pollux.formats.prompts import LoggedPrompt
from pollux.library.dashboard import ExpiringSession, expiring_sessions
from pollux.library.doctor import logged_prompts
from pollux.library.status import stored_forecast
from pollux.library.verified import LastVerification, last_verification
from pollux.model import Problem
from pollux.reports import sessions
from pollux.reports.doctor import logged_without_session
from pollux.reports.freshness import Freshness
from pollux.reports.health import deleted_sessions, files_changed_after, known_sessions, last_change
from pollux.reports.sessions import SessionRow
from pollux.reports.status import SOON
from pollux.sessions.retention import CLIENT
from pollux.text.times import parse_time

if TYPE_CHECKING:
    from pollux.library.freshness import Reporter
    from pollux.library.remembered import RememberedResults
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices


class SealState(msgspec.Struct, frozen=True):
    """The newest seal of an archive; its signature was not checked."""

    n_seals: int
    at: datetime | None
    """None if it cannot be read."""
    n_newer_files: int
    """Files that have changed since."""


class LostSession(msgspec.Struct, frozen=True):
    """A session of which only the prompts in the client's log remain."""

    id: str
    prompts: tuple[str, ...]
    last: datetime | None


class HealthReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether everything is safe, and what is not."""

    now: datetime
    client: str
    """The release of the client whose rules are applied."""
    expiring: tuple[ExpiringSession, ...]
    """The sessions that the client deletes first."""
    n_next: int
    """Sessions that it deletes at its next start."""
    n_soon: int
    """Sessions that it deletes later, but within a week."""
    n_later: int
    """Sessions that it deletes still later."""
    n_unarchived: int
    """Session files on the disk that the archive does not have completely."""
    deleted: tuple[SessionRow, ...]
    """The last used sessions that the client has deleted and the archive still has."""
    n_deleted: int
    lost: tuple[LostSession, ...]
    problems: tuple[Problem, ...]
    archive: Path | None
    n_bytes: int
    """Size of the archive's file."""
    last_change: datetime | None
    """When the archive last saw a change."""
    freshness: Freshness
    seal: SealState | None
    verified: LastVerification | None


def health_report(
    snapshot: Snapshot,
    prices: Prices,
    remembered: RememberedResults,
    report: Reporter,
    *,
    n_expiring: int,
    n_deleted: int,
) -> HealthReport:
    """Return the health of the homes and of the archive.

    Args:
        snapshot: what is read.
        prices: part of the state for which results are remembered.
        remembered: results of earlier calls.
        report: shows progress.
        n_expiring: the most sessions in `expiring`.
        n_deleted: the most sessions in `deleted`.

    """
    config, database = snapshot.config, snapshot.database
    now = config.clock()
    forecast = stored_forecast(snapshot, now, report)
    ids, total = deleted_sessions(database, snapshot.ids, limit=n_deleted)
    archive = config.archive if snapshot.is_archived else None
    return HealthReport(
        now=now,
        client=CLIENT,
        expiring=expiring_sessions(snapshot, forecast, n_expiring),
        n_next=forecast.n_listed(None, now),
        n_soon=forecast.n_listed(now, now + SOON),
        n_later=forecast.n_listed(now + SOON, None),
        n_unarchived=forecast.n_unarchived,
        deleted=sessions.rows(database, snapshot.sessions.load(ids), snapshot.ids),
        n_deleted=total,
        lost=remembered.get(snapshot, prices, "lost", lambda: _lost(snapshot)),
        problems=tuple(snapshot.problems()),
        archive=archive,
        n_bytes=_size(archive),
        last_change=snapshot.once("last change", lambda: last_change(database)) if archive else None,
        freshness=snapshot.freshness,
        seal=_seal(snapshot) if archive else None,
        verified=last_verification(config) if archive else None,
    )


def _lost(snapshot: Snapshot) -> tuple[LostSession, ...]:
    prompts, _ = logged_prompts(snapshot.scan)
    if not prompts:
        return ()
    session_ids = known_sessions(snapshot.database, {prompt.session_id for prompt in prompts})
    by_id = logged_without_session(prompts, session_ids, snapshot.located.files)
    return tuple(_lost_session(session_id, own) for session_id, own in by_id.items())


def _lost_session(session_id: str, prompts: Sequence[LoggedPrompt]) -> LostSession:
    times = [prompt.at for prompt in prompts if prompt.at]
    return LostSession(session_id, tuple(prompt.text for prompt in prompts), max(times, default=None))


def _size(archive: Path | None) -> int:
    try:
        return archive.stat().st_size if archive else 0
    except OSError:
        return 0


def _seal(snapshot: Snapshot) -> SealState | None:
    stored = seals.seals(snapshot.database)
    if not stored:
        return None
    from pollux.proofs.seal import seal_from  # noqa: PLC0415  cryptography loads slowly

    try:
        at = parse_time(seal_from(stored[-1][1])[0].at)
    except PolluxError:
        at = None
    n_newer = files_changed_after(snapshot.database, at) if at else 0
    return SealState(len(stored), at, n_newer)
