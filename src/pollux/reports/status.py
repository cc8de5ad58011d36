"""Which sessions the client will delete, when and why, and whether they are kept."""

from __future__ import annotations

import platform
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path

import msgspec

from pollux.archive import schema
from pollux.model import FileRef, Json, Problem, Role, Session
from pollux.sessions.client_settings import Policy
from pollux.sessions.locate import SessionFile
from pollux.sessions.retention import CLIENT, Fate, Look, Why
from pollux.views.contracts import problem_row, when

STATUS = "pollux.status/1"
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
class KeptFile:
    """What the archive has of a file that is still there."""

    version_id: int
    size: int
    mtime_ns: int
    look: Look | None
    """What the client's clean-up sees in it, if the facts are up to date and it is a session of its own."""

    def is_whole(self, file: SessionFile) -> bool:
        """Tell whether every byte that the file has now is kept."""
        return (self.size, self.mtime_ns) == (file.size, file.mtime_ns)


@dataclass(frozen=True, slots=True)
class Row:
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


def kept_files(database: sqlite3.Connection) -> dict[tuple[str, str], KeptFile]:
    """Return what an archive has of the session files of this machine, by home and path."""
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
        (platform.node(),),
    )
    return {
        (home, path): KeptFile(version_id, size, mtime_ns, _decode_look(seen) if seen else None)
        for home, path, version_id, size, mtime_ns, seen in rows
    }


def key_of(file: SessionFile) -> tuple[str, str]:
    """Name a file as the archive does."""
    inner = (file.parent, file.path.name) if file.parent else (file.path.name,)
    return str(file.home.root), "/".join(("tmp", file.folder, "chats", *inner))


def status_rows(
    sessions: Sequence[Session], fates: Mapping[Path, Fate], live: Mapping[Path, bool], *, now: datetime
) -> list[Row]:
    """Tell what becomes of each session, soonest first; a subagent's is told with the session that started it.

    Args:
        sessions: those on the disk and those that only the archive still has.
        fates: by file.
        live: the files on the disk, and whether each is kept.
        now: the time of the next start.

    """
    by_id = {one.id: one for one in sessions}
    tops = [one for one in sessions if one.kind == "main" or one.parent not in by_id]
    found = [row for one in tops if (row := _row(one, list(_files(one, by_id)), fates, live, now))]
    return sorted(found, key=_soonest_first)


def status_json(
    rows: Sequence[Row],
    policies: Iterable[FolderPolicy],
    problems: Iterable[Problem],
    *,
    archive: Path | None,
    now: datetime,
) -> dict[str, Json]:
    """Tell all.

    `sessions[].turn` is a `Turn`, `why` a `Why` or null, `because` the file that takes the session along, `due` when
    its age deletes it; `going` and `staying` are its files and those of its subagents.
    """
    counts = Counter(row.turn for row in rows)
    return {
        "schema": STATUS,
        "client": CLIENT,
        "now": when(now),
        "archive": str(archive) if archive else None,
        "policies": [_policy_row(one) for one in policies],
        "sessions": [_session_row(row, now) for row in rows],
        "counts": {str(turn): counts[turn] for turn in Turn},
        "at_risk": sum(row.is_at_risk for row in rows),
        "problems": [problem_row(one) for one in problems],
    }


def risks(rows: Iterable[Row], *, now: datetime) -> dict[str, str]:
    """Say in a word when the client deletes each session that soon goes: at its next start, or some days later."""
    words = {}
    for row in rows:
        if row.fate and row.turn in (Turn.NEXT, Turn.SOON):
            words[row.session.id] = "due" if row.turn == Turn.NEXT else f"{max(1, days_left(row.fate, now))}d left"
    return words


def days_left(fate: Fate, now: datetime) -> int:
    """Count the whole days until a session goes."""
    return max(0, (fate.due - now).days)


def _row(
    session: Session, refs: Sequence[FileRef], fates: Mapping[Path, Fate], live: Mapping[Path, bool], now: datetime
) -> Row | None:
    paths = list(dict.fromkeys(ref.path for ref in refs if ref.path in live))  # a file has several versions
    if not paths:  # of a home that is not there now, if it is not gone
        return Row(session, Turn.GONE, None, is_kept=True) if session.gone else None
    mine = [ref for ref in session.files if ref.path in fates and (session.is_stub or ref.role != Role.STUB)]
    first = min(mine, key=lambda ref: (fates[ref.path].due, ref.role not in (Role.MAIN, Role.IMPORT)), default=None)
    fate = fates[first.path] if first else None
    return Row(
        session,
        _turn(fate, now),
        fate,
        is_kept=all(live[path] for path in paths),
        going=tuple(path for path in paths if path in fates),
        staying=tuple(path for path in paths if path not in fates),
    )


def _files(session: Session, by_id: Mapping[str, Session]) -> Iterator[FileRef]:
    """Yield the files of a session and of its subagents, however deep."""
    waiting, seen = [session], {session.id}
    while waiting:
        one = waiting.pop()
        yield from one.files
        waiting += [by_id[child] for child in one.children if child in by_id and child not in seen]
        seen.update(one.children)


def _turn(fate: Fate | None, now: datetime) -> Turn:
    if fate is None:
        return Turn.NEVER
    if fate.due <= now:
        return Turn.NEXT
    return Turn.SOON if fate.due <= now + SOON else Turn.LATER


def _soonest_first(row: Row) -> tuple[int, float, str]:
    """Order by turn, then by date; of those that go at once the newest is the first to be missed."""
    updated = row.session.updated
    newest = -updated.timestamp() if updated else 0.0
    is_dated = row.fate and row.turn in (Turn.SOON, Turn.LATER)
    return (_TURNS.index(row.turn), row.fate.due.timestamp() if row.fate and is_dated else newest, row.session.id)


_TURNS = list(Turn)


def _session_row(row: Row, now: datetime) -> dict[str, Json]:
    session, fate = row.session, row.fate
    project = session.project
    return {
        "id": session.id,
        "kind": session.kind,
        "title": session.title,
        "project": {"path": project.path, "hash": project.hash, "slug": project.slug},
        "updated": when(session.updated),
        "turn": row.turn,
        "why": fate.why if fate else None,
        "because": str(fate.because) if fate and fate.because else None,
        "due": when(fate.due) if fate and fate.why == Why.AGE else None,
        "days_left": days_left(fate, now) if fate else None,
        "stub": session.is_stub,
        "kept": row.is_kept,
        "at_risk": row.is_at_risk,
        "going": [str(path) for path in row.going],
        "staying": [str(path) for path in row.staying],
    }


def _policy_row(one: FolderPolicy) -> dict[str, Json]:
    policy = one.policy
    return {
        "folder": str(one.folder),
        "project": one.project,
        "deletes": policy.off is None,
        "off": policy.off,
        "is_fault": policy.is_fault,
        "settings": dict(policy.given),
        "sources": list(policy.sources),
        "notes": list(policy.notes),
    }
