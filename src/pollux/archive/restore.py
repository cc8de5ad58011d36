"""Write a session back below a Gemini home, so that the client can resume it and does not delete it at once.

All is decided first (`plan`), and written then (`carry_out`), the session's own file last. That is the best that was
kept, byte for byte; only the time of its last update becomes now, since the client goes by that, and where the header
is lost it gets one. Records that emptied the conversation and lines of other sessions are left out (`resumable`). What
has a name already is never touched.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from pollux.archive.readings import source_of
from pollux.archive.restore_content import EARLIEST, Kept, companions, new_ids, pieces_of
from pollux.archive.resumable import excerpt_for, has_conversation
from pollux.disk.placing import CollisionError, RestoreError, Writing, below, place_all
from pollux.model import Role, Session
from pollux.sessions.locate import Home, id8_in
from pollux.sessions.projects.paths import is_project_hash
from pollux.sessions.projects.resolve import Known, known_paths, project_hash, slug
from pollux.sessions.replay.reading import Reading, read
from pollux.text.escape import printable
from pollux.text.shell import quoted
from pollux.text.times import stamp


@dataclass(frozen=True, slots=True)
class Plan:
    """What a restore comes to."""

    id: str
    """To resume it by."""
    home: Home
    main: Path
    """The session's own file."""
    n_messages: int
    files: tuple[Writing, ...] = ()
    """What is to be written, the session's own file last; nothing if all of it is there."""
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
) -> Plan:
    """Decide what to write where. Raises `RestoreError` if it cannot be done.

    Args:
        database: the archive's.
        session: one of its sessions.
        homes: those that are looked at; the session goes back to its own, or to the first if that is not among them.
        now: what becomes the time of its last update.
        to: another home.
        new_id: another id, under which nothing can be in the way.

    """
    found = _all_kept(database, session)
    best = _best(session, found)
    home = to or _own_home(best.home, tuple(homes))
    path = session.project.path
    folder, has_marker = _folder(home, path, best.folder)
    place = below(home.tmp, folder)
    main = below(place, "chats", _name(best, session, new_id))
    there = {path: reading for path in _of_same_name(main) if (reading := _read(path))}
    if done := _is_there(there, session, best, home):
        return done
    if in_the_way := [main] if os.path.lexists(main) else [path for path, one in there.items() if _is_it(one, session)]:
        raise CollisionError(_refusal(in_the_way[0], there.get(in_the_way[0]), session, best))
    ids = new_ids(database, session.id, new_id) if new_id else {}
    marker = [] if has_marker or path is None else [Writing(place / ".project_root", lambda: [os.fsencode(path)])]
    beside = list(companions(database, session.id, best, place, ids))
    new = [one for one in beside if not os.path.lexists(one.place)]
    kept = [one.place for one in beside if one not in new and not _is_same(one)]
    own = Writing(main, lambda: pieces_of(best, session, ids, now))
    notes = (*_notes(best, found), *(f"{printable(str(one))} has other contents now, and keeps them." for one in kept))
    return Plan(new_id or session.id, home, main, best.n_messages, (*marker, *new, own), notes)


def is_restored(main: Path) -> bool:
    """Tell by its name whether we put a file there: then it goes with no other."""
    return bool(_OURS.search(main.stem))


def carry_out(plan: Plan) -> None:
    """Write everything, or nothing. Raises `RestoreError`."""
    place_all(plan.files)


def _all_kept(database: sqlite3.Connection, session: Session) -> list[Kept]:
    """Read all that was kept of a session's own files."""
    rows = database.execute(
        """
        SELECT versions.id, files.home, files.path, session_files.role FROM session_files
        JOIN versions ON versions.id = session_files.file_version_id JOIN files ON files.id = versions.file_id
        WHERE session_files.session_id = ? AND session_files.role != 'stub' AND files.forgotten_us IS NULL
        """,
        (session.id,),
    ).fetchall()
    return [_kept(database, session.id, *row) for row in rows]


def _best(session: Session, found: list[Kept]) -> Kept:
    """Choose what to restore."""
    if session.kind != "main":
        parent = (
            f": `pollux restore {quoted(session.parent)}` restores that, and this with it" if session.parent else ""
        )
        raise RestoreError(f"{session.id} is the session of a subagent and part of another{parent}.")
    own = [one for one in found if not one.is_import] or found
    main = {id_ for one in own if one.role in (Role.MAIN, Role.IMPORT) for id_ in one.message_ids}
    fitting = (one for one in found if one.reading.format in _FORMATS)
    best = max(fitting, key=lambda one: one.rank(main), default=None)
    if best is None or not best.is_resumable:
        raise RestoreError(f"{session.id} holds nothing that could be resumed; `pollux show` reads what there is.")
    return best


def _kept(database: sqlite3.Connection, session_id: str, version_id: int, home: str, path: str, role: str) -> Kept:
    _, folder, _, name = path.split("/", 3)
    return Kept(version_id, home, folder, name, role, excerpt_for(session_id, source_of(database, version_id)))


def _notes(best: Kept, found: Iterable[Kept]) -> Iterator[str]:
    if not best.reading.replay.is_readable:
        yield "The client could not read this file as it was kept; what it lacks was added."
    if best.excerpt.is_before_emptying:
        yield (
            "The last records of this file emptied the conversation, as `session/load` of ACP and `/rewind` do; "
            "it is restored as it was before them."
        )
    if others := best.excerpt.others:
        names = ", ".join(map(printable, others))
        yield f"The file also holds other sessions, whose lines are not restored with this one: {names}."
    ids = best.message_ids
    parts = {one.name for one in found if one.role == Role.PART and not one.message_ids <= ids}
    if parts:
        names = ", ".join(map(printable, sorted(parts)))
        yield f"Not restored, since the client can only go on from one file, but archived: {names}."
    n_imported = len({id_ for one in found if one.is_import for id_ in one.message_ids} - ids)
    if n_imported and not best.is_import:
        yield f"Not restored: {n_imported} messages that only an import has; `pollux show` shows them."


def _own_home(root: str, homes: tuple[Home, ...]) -> Home:
    """Return the home that a session was archived from, if it is one of those looked at, else the first of them.

    What an archive says about homes only chooses among those: it may come from somebody else, and must not decide where
    on this machine something is written.
    """
    if not homes:
        raise RestoreError("There is no Gemini home to restore to; name one with --to.")
    return next((home for home in homes if str(home.root) == root), homes[0])


def _folder(home: Home, path: str | None, kept: str) -> tuple[str, bool]:
    """Name the folder below `tmp` where the client looks for a project, and say whether it would find it by itself.

    The registry decides, as long as no marker contradicts it; then the markers. A project that a home does not know yet
    gets a marker, and the client takes the folder over with its next start. Where there is no registry, the client may
    be of the time of hashes; newer ones copy such a folder.
    """
    if path is None:
        return kept, True
    known = known_paths(home.root, home.tmp, home.link_limit)
    markers = [claim for claim in known.claims if claim.how == "project_root"]
    registered = {_normal(one.path): one.folder for one in known.claims if one.how == "projects.json" and one.folder}
    name = registered.get(_normal(path))
    if name and not _is_foreign(known, name, path):
        return name, True
    for claim in markers:
        if claim.folder and _normal(claim.path) == _normal(path):
            return claim.folder, True
    if kept == project_hash(path) and not (home.root / "projects.json").exists():
        return kept, True
    wanted, taken = slug(path), set(registered.values())
    names = chain([kept] if _is_slug(kept) else [], [wanted], (f"{wanted}-{number}" for number in count(1)))
    free = (one for one in names if one not in taken and not _is_foreign(known, one, path))
    return next(one for one in free if not os.path.lexists(home.tmp / one / ".project_root")), False


def _is_slug(name: str) -> bool:
    return bool(_SLUG.fullmatch(name)) and not is_project_hash(name)


def _is_foreign(known: Known, folder: str, path: str) -> bool:
    owners = (one.path for one in known.claims if one.how == "project_root" and one.folder == folder)
    return any(_normal(owner) != _normal(path) for owner in owners)


def _normal(path: str) -> str:
    return os.path.normcase(path)


def _name(best: Kept, session: Session, new_id: str | None) -> str:
    """Name the session's own file as the client did, but for an ending that no other file has.

    The client deletes together what ends in the same eight characters. It makes a stub that ends in those of the id
    whenever it resumes a session, and deletes that at the next start; a file that ends otherwise stays.
    """
    name = _LEFTOVER.sub("", best.name)
    stem, suffix = _OURS.sub("", Path(name).stem), Path(name).suffix
    id8 = id8_in(name)
    if new_id:
        began = stamp(session.started or EARLIEST)[:16].replace(":", "-")
        stem = (stem.removesuffix(id8) if id8 else f"session-{began}-") + new_id[:8]
    elif id8 is None:
        return name  # given by hand, and not by the id
    return f"{stem}-p{hashlib.sha256((new_id or session.id).encode()).hexdigest()[:7]}{suffix}"


def _of_same_name(main: Path) -> list[Path]:
    """Return the files whose names tell of the same session."""
    try:
        names = sorted(os.listdir(main.parent))  # noqa: PTH208  names only
    except FileNotFoundError:
        return []
    id8 = id8_in(main.name)
    fitting = (name for name in names if name == main.name or (id8 and id8_in(name) == id8))
    return [main.parent / name for name in fitting if not _LEFTOVER.search(name)]


def _is_there(there: Mapping[Path, Reading], session: Session, best: Kept, home: Home) -> Plan | None:
    """Tell whether one of these files is the session, with nothing missing."""
    for path, found in there.items():
        if _is_it(found, session) and len(found.replay.timeline) >= best.n_messages:
            end = path.stem.rpartition("-")[2]
            stubs = [
                one for one in there if one != path and one.stem.endswith(end) and not has_conversation(there[one])
            ]
            notes = tuple(
                f"{printable(str(one))} is a stub: the next session in this project makes the client delete both."
                for one in stubs
            )
            return Plan(session.id, home, path, len(found.replay.timeline), notes=notes)
    return None


def _is_it(found: Reading, session: Session) -> bool:
    """Tell whether the client would resume this file if it is asked for the session."""
    return found.id == session.id and found.replay.is_readable and has_conversation(found)


def _refusal(path: Path, found: Reading | None, session: Session, best: Kept) -> str:
    place = printable(str(path))
    if found and _is_it(found, session):
        n = len(found.replay.timeline)
        return (
            f"{place} is there, with {n} of {best.n_messages} messages, and is not overwritten; "
            "--new-id writes the fuller version beside it."
        )
    return f"{place} is there already and is not overwritten; --new-id writes the session under another id."


def _read(path: Path) -> Reading | None:
    try:
        return read(path)
    except OSError:
        return None


def _is_same(writing: Writing) -> bool:
    try:
        with writing.place.open("rb") as file:
            return all(file.read(len(piece)) == piece for piece in writing.pieces()) and not file.read(1)
    except OSError:
        return False
