"""Write an archived session back into a Gemini home, so that the client can resume it and does not delete it at once.

`plan` decides what to write and `write_plan` writes it, the session's own file last. That is the best archived version,
byte for byte, with a new time of last update (by which the client decides about deletion) and a header if it has none.
Records that emptied the conversation and lines of other sessions are left out (`restore_content`). Existing files are
never changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from pollux.archive.readings import source_of
from pollux.archive.restore_content import (
    EARLIEST,
    ArchivedReading,
    companions,
    excerpt_for,
    has_conversation,
    new_ids,
    pieces_of,
)
from pollux.disk.write import CollisionError, RestoreError, Writing, below, place_all
from pollux.model import Role, Session
from pollux.sessions.locate import Home, id8_in
from pollux.sessions.projects.paths import is_project_hash
from pollux.sessions.projects.resolve import ProjectClaims, project_hash, read_claims, slug
from pollux.sessions.replay.reading import FileReading, read
from pollux.text.escape import printable
from pollux.text.shell import quoted
from pollux.text.times import client_timestamp


@dataclass(frozen=True, slots=True)
class WritePlan:
    """What a restore will write."""

    id: str
    """The ID to resume the session with."""
    home: Home
    main: Path
    """The session's own file."""
    n_messages: int
    files: tuple[Writing, ...] = ()
    """The files to write, the session's own file last; empty if the session is still complete on disk."""
    notes: tuple[str, ...] = ()


_SLUG = re.compile(r"[a-z0-9-]+")
_LEFTOVER = re.compile(r"\.(?:unreadable|tmp)-[\w-]+$")
_OURS = re.compile(r"-p[0-9a-f]{7}$")
_FORMATS = ("log", "document")


def plan(
    database: sqlite3.Connection,
    session: Session,
    homes: Iterable[Home],
    *,
    now: datetime,
    to: Home | None = None,
    new_id: str | None = None,
) -> WritePlan:
    """Decide which files to write. Raises `RestoreError` if the session cannot be restored.

    Args:
        database: the archive's.
        session: one of its sessions.
        homes: the known homes; the session returns to its own, or to the first if its own is not among them.
        now: becomes the time of its last update.
        to: another home to restore to.
        new_id: another ID, with which no existing file can collide.

    """
    archived = _archived_readings(database, session)
    best = _best(session, archived)
    home = to or _own_home(best.home, tuple(homes))
    project = session.project.path
    folder_name, has_marker = _folder(home, project, best.folder)
    folder = below(home.tmp, folder_name)
    main = below(folder, "chats", _name(best, session, new_id))
    existing = _existing_readings(main)
    if done := _restored_already(existing, session, best, home):
        return done
    obstacles = [main] if os.path.lexists(main) else [path for path in existing if _is_it(existing[path], session)]
    if obstacles:
        raise CollisionError(_refusal(obstacles[0], existing.get(obstacles[0]), session, best))
    ids = new_ids(database, session.id, new_id) if new_id else {}
    files = []
    if project is not None and not has_marker:
        files.append(Writing(folder / ".project_root", lambda: [os.fsencode(project)]))
    notes = [*_notes(best, archived)]
    for companion in companions(database, session.id, best, folder, ids):
        if not os.path.lexists(companion.place):
            files.append(companion)
        elif not _is_same(companion):
            notes.append(f"{printable(str(companion.place))} exists with other contents and is not changed.")
    files.append(Writing(main, lambda: pieces_of(best, session, ids, now)))
    return WritePlan(new_id or session.id, home, main, best.n_messages, tuple(files), tuple(notes))


def is_restored(main: Path) -> bool:
    """Return whether a file has a name that only Pollux gives, so that the client deletes no other file with it."""
    return bool(_OURS.search(main.stem))


def write_plan(plan: WritePlan) -> None:
    """Write all files of a plan, or none. Raises `RestoreError`."""
    place_all(plan.files)


def _archived_readings(database: sqlite3.Connection, session: Session) -> list[ArchivedReading]:
    rows = database.execute(
        """
        SELECT versions.id, files.home, files.path, session_files.role FROM session_files
        JOIN versions ON versions.id = session_files.file_version_id JOIN files ON files.id = versions.file_id
        WHERE session_files.session_id = ? AND session_files.role != 'stub' AND files.forgotten_us IS NULL
        """,
        (session.id,),
    ).fetchall()
    readings = []
    for version_id, home, path, role in rows:
        _, folder, _, name = path.split("/", 3)
        excerpt = excerpt_for(session.id, source_of(database, version_id))
        readings.append(ArchivedReading(version_id, home, folder, name, role, excerpt))
    return readings


def _best(session: Session, archived: list[ArchivedReading]) -> ArchivedReading:
    if session.kind != "main":
        parent = f"; `pollux restore {quoted(session.parent)}` restores both" if session.parent else ""
        raise RestoreError(f"{session.id} is the session of a subagent and part of another session{parent}.")
    own = [reading for reading in archived if not reading.is_import] or archived
    main: set[str] = set()
    for reading in own:
        if reading.role in (Role.MAIN, Role.IMPORT):
            main |= reading.message_ids
    candidates = (reading for reading in archived if reading.reading.format in _FORMATS)
    best = max(candidates, key=lambda reading: reading.rank(main), default=None)
    if best is None or not best.excerpt.is_resumable:
        raise RestoreError(f"{session.id} has no messages to resume; run `pollux show` to read what it contains.")
    return best


def _notes(best: ArchivedReading, archived: Iterable[ArchivedReading]) -> Iterator[str]:
    if not best.reading.replay.is_readable:
        yield "The client could not read the archived file; the missing header was added."
    if best.excerpt.is_before_emptying:
        yield (
            "The last records of this file emptied the conversation, as `session/load` of ACP and `/rewind` do; "
            "the conversation before them is restored."
        )
    if others := best.excerpt.others:
        names = ", ".join(map(printable, others))
        yield f"The file also contains other sessions, whose lines are not restored with this one: {names}."
    ids = best.message_ids
    parts = {reading.name for reading in archived if reading.role == Role.PART and not reading.message_ids <= ids}
    if parts:
        names = ", ".join(map(printable, sorted(parts)))
        yield f"Archived but not restored, since the client can continue only one file: {names}."
    imported: set[str] = set()
    for reading in archived:
        if reading.is_import:
            imported |= reading.message_ids
    if imported - ids and not best.is_import:
        yield f"Not restored: {len(imported - ids)} messages that only an import has; `pollux show` shows them."


def _own_home(root: str, homes: tuple[Home, ...]) -> Home:
    """Return the home that a session was archived from if it is a known one, else the first known home.

    The archive only selects a known home: it may come from someone else, and must not decide where files are written.
    """
    if not homes:
        raise RestoreError("There is no Gemini home to restore to; name one with --to.")
    return next((home for home in homes if str(home.root) == root), homes[0])


def _folder(home: Home, path: str | None, archived: str) -> tuple[str, bool]:
    """Return the folder in `tmp` where the client looks for a project, and whether it will find it without a marker.

    The registry decides unless a marker contradicts it, then the markers. A project that the home does not know yet
    gets a marker, and the client adopts its folder at the next start. A home without a registry may belong to a client
    that names folders by hash; newer clients copy such folders.
    """
    if path is None:
        return archived, True
    claims = read_claims(home.root, home.tmp, home.link_limit)
    markers = [claim for claim in claims.claims if claim.source == "project_root"]
    registered = {
        _normal(claim.path): claim.folder for claim in claims.claims if claim.source == "projects.json" and claim.folder
    }
    name = registered.get(_normal(path))
    if name and not _is_foreign(claims, name, path):
        return name, True
    for claim in markers:
        if claim.folder and _normal(claim.path) == _normal(path):
            return claim.folder, True
    if archived == project_hash(path) and not (home.root / "projects.json").exists():
        return archived, True
    base, taken = slug(path), set(registered.values())
    names = chain([archived] if _is_slug(archived) else [], [base], (f"{base}-{number}" for number in count(1)))
    free = (name for name in names if name not in taken and not _is_foreign(claims, name, path))
    return next(name for name in free if not os.path.lexists(home.tmp / name / ".project_root")), False


def _is_slug(name: str) -> bool:
    return bool(_SLUG.fullmatch(name)) and not is_project_hash(name)


def _is_foreign(known: ProjectClaims, folder: str, path: str) -> bool:
    owners = (claim.path for claim in known.claims if claim.source == "project_root" and claim.folder == folder)
    return any(_normal(owner) != _normal(path) for owner in owners)


def _normal(path: str) -> str:
    return os.path.normcase(path)


def _name(best: ArchivedReading, session: Session, new_id: str | None) -> str:
    """Return the client's name for the session's own file, with an ending that no other file has.

    The client deletes files together that end in the same eight characters. Whenever it resumes a session, it creates a
    stub that ends in those of the session ID and deletes it at the next start; a file with another ending stays.
    """
    name = _LEFTOVER.sub("", best.name)
    stem, suffix = _OURS.sub("", Path(name).stem), Path(name).suffix
    id8 = id8_in(name)
    if new_id:
        began = client_timestamp(session.started or EARLIEST)[:16].replace(":", "-")
        stem = (stem.removesuffix(id8) if id8 else f"session-{began}-") + new_id[:8]
    elif id8 is None:
        return name  # the user named the file, not the client
    return f"{stem}-p{hashlib.sha256((new_id or session.id).encode()).hexdigest()[:7]}{suffix}"


def _existing_readings(main: Path) -> dict[Path, FileReading]:
    """Read the files whose names contain the same session ID."""
    try:
        names = sorted(os.listdir(main.parent))  # noqa: PTH208  names only
    except FileNotFoundError:
        return {}
    id8 = id8_in(main.name)
    readings = {}
    for name in names:
        is_same = name == main.name or (id8 and id8_in(name) == id8)
        if is_same and not _LEFTOVER.search(name):
            with suppress(OSError):
                readings[main.parent / name] = read(main.parent / name)
    return readings


def _restored_already(
    existing: Mapping[Path, FileReading], session: Session, best: ArchivedReading, home: Home
) -> WritePlan | None:
    """Return a plan without files if one of the existing files is the complete session."""
    for path, reading in existing.items():
        if not _is_it(reading, session) or len(reading.replay.timeline) < best.n_messages:
            continue
        end = path.stem.rpartition("-")[2]
        notes = []
        for other in existing:
            if other != path and other.stem.endswith(end) and not has_conversation(existing[other]):
                stub = printable(str(other))
                notes.append(f"{stub} is a stub: the next session in this project makes the client delete both.")
        return WritePlan(session.id, home, path, len(reading.replay.timeline), notes=tuple(notes))
    return None


def _is_it(reading: FileReading, session: Session) -> bool:
    """Return whether the client would load this file to resume the session."""
    return reading.id == session.id and reading.replay.is_readable and has_conversation(reading)


def _refusal(path: Path, reading: FileReading | None, session: Session, best: ArchivedReading) -> str:
    file = printable(str(path))
    if reading and _is_it(reading, session):
        n = len(reading.replay.timeline)
        return (
            f"{file} exists with {n} of {best.n_messages} messages and is not overwritten; "
            "use --new-id to write the more complete version as another session."
        )
    return f"{file} exists already and is not overwritten; use --new-id to write the session under another ID."


def _is_same(writing: Writing) -> bool:
    try:
        with writing.place.open("rb") as file:
            return all(file.read(len(piece)) == piece for piece in writing.pieces()) and not file.read(1)
    except OSError:
        return False
