"""Which sessions the client will delete, when and why, and whether they are kept."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

import msgspec

from pollux.archive import schema
from pollux.model import FileRef, Problem, Role, Session
from pollux.sessions.client_settings import Policy
from pollux.sessions.family import find_roots, with_subagents
from pollux.sessions.locate import SessionFile
from pollux.sessions.retention import CLIENT, Fate, Look

_UNREADABLE = frozenset({"unreadable-file", "unreadable-folder"})
SOON = timedelta(days=7)

_decode_look = msgspec.msgpack.Decoder(Look).decode


class Turn(StrEnum):
    """When a session goes."""

    NEXT = "next"
    """At the client's next start in its project."""
    SOON = "soon"
    LATER = "later"
    NEVER = "never"
    GONE = "gone"
    """The client has deleted it already; it is kept."""


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """What the archive has of a file that is still there."""

    version_id: int
    size: int
    mtime_ns: int
    look: Look | None
    """What the client's clean-up sees in it, if the facts are up to date and it is a session of its own."""

    def is_whole(self, file: SessionFile) -> bool:
        """Return whether the archive has every byte that the file has now."""
        return (self.size, self.mtime_ns) == (file.size, file.mtime_ns)


@dataclass(frozen=True, slots=True)
class StatusRow:
    """What becomes of one session."""

    session: Session
    turn: Turn
    fate: Fate | None
    is_kept: bool
    """Whether every byte of its files, and of those of its subagents, is in the archive."""
    going: tuple[Path, ...] = ()
    staying: tuple[Path, ...] = ()

    @property
    def is_at_risk(self) -> bool:
        """Whether something that somebody said or was told may soon be lost; a stub holds nothing."""
        return self.turn in (Turn.NEXT, Turn.SOON) and not self.is_kept and not self.session.is_stub


@dataclass(frozen=True, slots=True)
class FolderPolicy:
    """What the settings say for one project folder."""

    folder: Path
    project: str | None
    policy: Policy


class StatusReport(msgspec.Struct, frozen=True):
    """When the client deletes each session, and whether the archive has it."""

    rows: tuple[StatusRow, ...]
    """The soonest first."""
    policies: tuple[FolderPolicy, ...]
    problems: tuple[Problem, ...]
    archive: Path | None
    now: datetime
    client: str = CLIENT
    """The release whose rules decide."""

    @property
    def unreadable(self) -> set[str | None]:
        """Files and folders that cannot be read, so that nobody knows whether they are archived."""
        return {problem.file for problem in self.problems if problem.code in _UNREADABLE}

    @property
    def is_at_risk(self) -> bool:
        """Whether something may be lost: a session that is deleted soon and not archived, or an unreadable file."""
        return bool(self.unreadable) or any(row.is_at_risk for row in self.rows)


def archived_files(database: sqlite3.Connection, machine: str) -> dict[tuple[str, str], ArchivedFile]:
    """Return what an archive has of the session files of a machine, by home and path."""
    has_readings = schema.are_current(database)
    look = "CASE WHEN readings.kept = versions.kept THEN readings.look END" if has_readings else "NULL"
    join = "LEFT JOIN readings ON readings.version_id = versions.id" if has_readings else ""
    rows = database.execute(
        f"""
        SELECT files.home, files.path, versions.id, versions.kept, files.mtime_ns, {look}
        FROM files JOIN versions ON versions.id = files.version_id {join}
        WHERE files.machine = ? AND files.path LIKE 'tmp/%/chats/%' AND files.size = versions.kept
            AND files.gone_us IS NULL AND files.forgotten_us IS NULL
        """,  # noqa: S608  of our own words
        (machine,),
    )
    return {
        (home, path): ArchivedFile(version_id, size, mtime_ns, _decode_look(seen) if seen else None)
        for home, path, version_id, size, mtime_ns, seen in rows
    }


def archive_key(file: SessionFile) -> tuple[str, str]:
    """Return home and path of a file as the archive writes them."""
    name = file.place.rpartition(os.sep)[2]  # thousands of paths as objects would take longer than all the rest
    inner = (file.parent, name) if file.parent else (name,)
    return str(file.home.root), "/".join(("tmp", file.folder, "chats", *inner))


def status_rows(
    sessions: Sequence[Session], fates: Mapping[Path, Fate], live: Mapping[Path, bool], *, now: datetime
) -> list[StatusRow]:
    """Tell what becomes of each session, soonest first; a subagent's is told with the session that started it.

    Args:
        sessions: those on the disk and those that only the archive still has.
        fates: by file.
        live: the files on the disk, and whether each is kept.
        now: the time of the next start.

    """
    by_id = {one.id: one for one in sessions}
    roots = find_roots({session.id: session.parent for session in sessions})
    found = []
    for session in sessions:
        if roots[session.id] == session.id:
            refs = [ref for member in with_subagents(session, by_id) for ref in member.files]
            found += [row] if (row := _row(session, refs, fates, live, now)) else []
    return sorted(found, key=_soonest_first)


def first_deletions(database: sqlite3.Connection, deletions: Mapping[tuple[str, str], Fate]) -> dict[str, Fate]:
    """Return the deletion of each session with messages whose files the client deletes, the earliest if several.

    Args:
        database: an archive, or tables made from files.
        deletions: by home and path of a file.

    """
    rows = database.execute(
        """
        SELECT sessions.session_id, files.home, files.path
        FROM sessions JOIN session_files ON session_files.session_id = sessions.session_id
        JOIN versions ON versions.id = session_files.file_version_id JOIN files ON files.id = versions.file_id
        WHERE sessions.root_session_id = sessions.session_id AND NOT sessions.is_stub
            AND session_files.role <> 'stub' AND files.gone_us IS NULL
        """
    )
    times: dict[str, Fate] = {}
    for session_id, home, path in rows:
        fate = deletions.get((home, path))
        if fate and (session_id not in times or fate.due < times[session_id].due):
            times[session_id] = fate
    return times


def deletion_word(due: datetime, now: datetime) -> str | None:
    """Return in a word when a session is deleted; None if that is not within a week."""
    if due <= now:
        return "due"
    return f"{max(1, days_left(due, now))}d left" if due <= now + SOON else None


def days_left(due: datetime, now: datetime) -> int:
    """Return the number of whole days until a session is deleted."""
    return max(0, (due - now).days)


def _row(
    session: Session, refs: Sequence[FileRef], fates: Mapping[Path, Fate], live: Mapping[Path, bool], now: datetime
) -> StatusRow | None:
    paths = list(dict.fromkeys(ref.path for ref in refs if ref.path in live))  # a file has several versions
    if not paths:  # of a home that is not there now, if it is not gone
        return StatusRow(session, Turn.GONE, None, is_kept=True) if session.gone else None
    mine = [ref for ref in session.files if ref.path in fates and (session.is_stub or ref.role != Role.STUB)]
    first = min(mine, key=lambda ref: (fates[ref.path].due, ref.role not in (Role.MAIN, Role.IMPORT)), default=None)
    fate = fates[first.path] if first else None
    return StatusRow(
        session,
        _turn(fate, now),
        fate,
        is_kept=all(live[path] for path in paths),
        going=tuple(path for path in paths if path in fates),
        staying=tuple(path for path in paths if path not in fates),
    )


def _turn(fate: Fate | None, now: datetime) -> Turn:
    if fate is None:
        return Turn.NEVER
    if fate.due <= now:
        return Turn.NEXT
    return Turn.SOON if fate.due <= now + SOON else Turn.LATER


def _soonest_first(row: StatusRow) -> tuple[int, float, str]:
    """Order by turn, then by date; of those that go at once the newest is the first to be missed."""
    updated = row.session.updated
    newest = -updated.timestamp() if updated else 0.0
    is_dated = row.fate and row.turn in (Turn.SOON, Turn.LATER)
    return (_TURNS.index(row.turn), row.fate.due.timestamp() if row.fate and is_dated else newest, row.session.id)


_TURNS = list(Turn)
