"""Which sessions the client will delete, when and why, and whether they are archived."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import msgspec

from pollux.archive import schema
from pollux.archive.load_sessions import AMONG, ids_as_json
from pollux.model import FileRef, Problem, Role, Session
from pollux.sessions.client_settings import RetentionPolicy
from pollux.sessions.family import find_roots, with_subagents
from pollux.sessions.locate import ProjectFolder, SessionFile
from pollux.sessions.retention import CLIENT, CleanupTraits, Deletion
from pollux.text.escape import escape_surrogates

_UNREADABLE = frozenset({"unreadable-file", "unreadable-folder"})
SOON = timedelta(days=7)
_FORECAST = "deletions"
"""The name of the stored forecast in the table `reports`."""
_Forecast = TypeVar("_Forecast")

_decode_traits = msgspec.msgpack.Decoder(CleanupTraits).decode


class DeletionTime(StrEnum):
    """When the client deletes a session."""

    NEXT = "next"
    """At its next start in the project."""
    SOON = "soon"
    LATER = "later"
    NEVER = "never"
    DELETED = "deleted"
    """It has deleted the session, which is archived."""


@dataclass(frozen=True, slots=True)
class ArchivedState:
    """The newest archived version of a file that still exists."""

    version_id: int
    size: int
    mtime_ns: int
    cleanup_traits: CleanupTraits | None
    """What the client's clean-up reads from it, if the facts are current and it is not a subagent's file."""

    def is_complete(self, file: SessionFile) -> bool:
        """Return whether the archive has all bytes of the file."""
        return (self.size, self.mtime_ns) == (file.size, file.mtime_ns)


@dataclass(frozen=True, slots=True)
class StatusRow:
    """When one session will be deleted, and whether it is archived."""

    session: Session
    deletion_time: DeletionTime
    deletion: Deletion | None
    is_archived: bool
    """Whether all bytes of its files, and of its subagents' files, are in the archive."""
    deleted_files: tuple[Path, ...] = ()
    remaining_files: tuple[Path, ...] = ()

    @property
    def is_at_risk(self) -> bool:
        """Whether messages may soon be lost; a stub has none."""
        return (
            self.deletion_time in (DeletionTime.NEXT, DeletionTime.SOON)
            and not self.is_archived
            and not self.session.is_stub
        )


@dataclass(frozen=True, slots=True)
class FolderPolicy:
    """The client's retention policy for one project folder."""

    folder: Path
    project: str | None
    policy: RetentionPolicy


class StatusReport(msgspec.Struct, frozen=True):
    """When the client deletes each session, and whether it is archived."""

    rows: tuple[StatusRow, ...]
    """In order of deletion."""
    policies: tuple[FolderPolicy, ...]
    problems: tuple[Problem, ...]
    archive: Path | None
    now: datetime
    client: str = CLIENT
    """The release of the client whose rules are applied."""

    @property
    def unreadable(self) -> set[str | None]:
        """Files and folders that cannot be read, and so may not be archived."""
        return {problem.file for problem in self.problems if problem.code in _UNREADABLE}

    @property
    def is_at_risk(self) -> bool:
        """Whether data may be lost: a session will soon be deleted and is not archived, or a file is unreadable."""
        return bool(self.unreadable) or any(row.is_at_risk for row in self.rows)


def archived_files(
    database: sqlite3.Connection, machine: str, folder: ProjectFolder | None = None
) -> dict[tuple[str, str], ArchivedState]:
    """Return the archived state of the existing session files of a machine, or of a folder there, by home and path."""
    place, values = "", list[str]()
    if folder is not None:
        name = escape_surrogates(folder.name)
        place = "AND files.home = ? AND files.path > ? AND files.path < ?"
        values = [escape_surrogates(str(folder.home.root)), f"tmp/{name}/", f"tmp/{name}0"]
    has_readings = schema.are_current(database)
    traits = (
        "CASE WHEN readings.n_bytes = versions.archived_bytes THEN readings.cleanup_traits END"
        if has_readings
        else "NULL"
    )
    join = "LEFT JOIN readings ON readings.version_id = versions.id" if has_readings else ""
    rows = database.execute(
        f"""
        SELECT files.home, files.path, versions.id, versions.archived_bytes, files.mtime_ns, {traits}
        FROM files JOIN versions ON versions.id = files.version_id {join}
        WHERE files.machine = ? AND files.path LIKE 'tmp/%/chats/%' AND files.size = versions.archived_bytes
            AND files.deleted_us IS NULL AND files.forgotten_us IS NULL {place}
        """,  # noqa: S608  ours
        [machine, *values],
    )
    return {
        (home, path): ArchivedState(version_id, size, mtime_ns, _decode_traits(packed) if packed else None)
        for home, path, version_id, size, mtime_ns, packed in rows
    }


def archive_key(file: SessionFile) -> tuple[str, str]:
    """Return home and path of a file as they are stored in the archive."""
    name = file.place.rpartition(os.sep)[2]  # creating thousands of Path objects would take most of the time
    inner = (file.parent, name) if file.parent else (name,)
    return str(file.home.root), "/".join(("tmp", file.folder, "chats", *inner))


def status_rows(
    sessions: Sequence[Session], fates: Mapping[Path, Deletion], live: Mapping[Path, bool], *, now: datetime
) -> list[StatusRow]:
    """Return a row for each session with its subagents, in order of deletion.

    Args:
        sessions: the sessions on disk, and those that only the archive has.
        fates: the deletions by file.
        live: the files on disk, and whether each is archived.
        now: the time of the client's next start.

    """
    by_id = {session.id: session for session in sessions}
    roots = find_roots({session.id: session.parent for session in sessions})
    rows = []
    for session in sessions:
        if roots[session.id] == session.id:
            refs = [ref for member in with_subagents(session, by_id) for ref in member.files]
            row = _row(session, refs, fates, live, now)
            if row:
                rows.append(row)
    return sorted(rows, key=_soonest_first)


def first_deletions(
    database: sqlite3.Connection, deletions: Mapping[tuple[str, str], Deletion], ids: Collection[str] | None = None
) -> dict[str, Deletion]:
    """Return the earliest deletion of each session with messages whose files the client will delete.

    Args:
        database: an archive, or fact tables in memory.
        deletions: by home and path of a file.
        ids: the sessions to look at, or None for all.

    """
    among, values = ("1", ()) if ids is None else (f"sessions.{AMONG}", (ids_as_json(ids),))
    rows = database.execute(
        f"""
        SELECT sessions.session_id, files.home, files.path
        FROM sessions JOIN session_files ON session_files.session_id = sessions.session_id
        JOIN versions ON versions.id = session_files.file_version_id JOIN files ON files.id = versions.file_id
        WHERE sessions.root_session_id = sessions.session_id AND NOT sessions.is_stub
            AND session_files.role <> 'stub' AND files.deleted_us IS NULL AND {among}
        """,  # noqa: S608  ours
        values,
    )
    times: dict[str, Deletion] = {}
    for session_id, home, path in rows:
        fate = deletions.get((home, path))
        if fate and (session_id not in times or fate.due < times[session_id].due):
            times[session_id] = fate
    return times


def deletion_word(due: datetime, now: datetime) -> str | None:
    """Return a short text on when a session will be deleted, or None if that is more than a week away."""
    if due <= now:
        return "due"
    return f"{max(1, days_left(due, now))}d left" if due <= now + SOON else None


def days_left(due: datetime, now: datetime) -> int:
    """Return the number of whole days until a session is deleted."""
    return max(0, (due - now).days)


def _row(
    session: Session, refs: Sequence[FileRef], fates: Mapping[Path, Deletion], live: Mapping[Path, bool], now: datetime
) -> StatusRow | None:
    paths = list(dict.fromkeys(ref.path for ref in refs if ref.path in live))  # a file has several versions
    if not paths:  # deleted, or in a home that is not mounted
        return StatusRow(session, DeletionTime.DELETED, None, is_archived=True) if session.deleted else None
    own = [ref for ref in session.files if ref.path in fates and (session.is_stub or ref.role != Role.STUB)]
    first = min(own, key=lambda ref: (fates[ref.path].due, ref.role not in (Role.MAIN, Role.IMPORT)), default=None)
    deletion = fates[first.path] if first else None
    return StatusRow(
        session,
        _deletion_time(deletion, now),
        deletion,
        is_archived=all(live[path] for path in paths),
        deleted_files=tuple(path for path in paths if path in fates),
        remaining_files=tuple(path for path in paths if path not in fates),
    )


def _deletion_time(fate: Deletion | None, now: datetime) -> DeletionTime:
    if fate is None:
        return DeletionTime.NEVER
    if fate.due <= now:
        return DeletionTime.NEXT
    return DeletionTime.SOON if fate.due <= now + SOON else DeletionTime.LATER


def _soonest_first(row: StatusRow) -> tuple[int, float, str]:
    """Sort by deletion time and date; sessions that are deleted together, the newest first."""
    updated = row.session.updated
    newest = -updated.timestamp() if updated else 0.0
    is_dated = row.deletion and row.deletion_time in (DeletionTime.SOON, DeletionTime.LATER)
    return (
        _DELETION_TIMES.index(row.deletion_time),
        row.deletion.due.timestamp() if row.deletion and is_dated else newest,
        row.session.id,
    )


_DELETION_TIMES = list(DeletionTime)


def load_forecast(database: sqlite3.Connection, kind: type[_Forecast]) -> _Forecast | None:
    """Return the forecast that an archive stores; None if there is none, or only one of an older Pollux."""
    body = schema.stored_result(database, _FORECAST)
    try:
        return msgspec.msgpack.decode(body, type=kind) if body else None
    except msgspec.DecodeError:
        return None


def store_forecast(database: sqlite3.Connection, forecast: object) -> None:
    """Store a forecast; in a database that takes no writes, do nothing."""
    schema.store_result(database, _FORECAST, msgspec.msgpack.encode(forecast))
