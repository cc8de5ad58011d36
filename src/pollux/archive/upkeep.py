"""What an archive needs now and then: a look at it, less room, a backup; and sessions forgotten for good.

What is destroyed is destroyed in one transaction, and only then is the file written anew without it. What is written
anew stands in a place of its own until it is whole.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pollux.archive import facts, raw, store
from pollux.archive.inventory import belongs_to, place_of
from pollux.archive.lock import WriterLock
from pollux.archive.migrations import transaction
from pollux.archive.store import Archive
from pollux.archive.verify import UNPACKING, is_written, packed, rederive, verify
from pollux.errors import ArchiveError, PolluxError
from pollux.sessions import Progress

_PAGES = 4096
"""Of SQLite, copied between two looks at the progress."""
"""Ids that mean one session wherever they stand; subagents may have names that others have too."""


@dataclass(frozen=True, slots=True)
class Place:
    """What came from one home on one machine."""

    machine: str
    home: str
    n_files: int
    n_gone: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Info:
    """An archive in numbers."""

    path: Path
    n_on_disk: int
    n_files: int
    n_gone_files: int
    n_versions: int
    n_segments: int
    n_kept: int
    """Bytes of files."""
    n_stored: int
    """Bytes that those take here, packed."""
    n_sessions: int
    n_subagents: int
    n_gone: int
    """Sessions that only the archive still has."""
    n_forgotten: int
    last_us: int | None
    """When something new was last seen."""
    writer: str | None
    places: tuple[Place, ...]
    facts_are_current: bool

    @property
    def ratio(self) -> float | None:
        """How many times smaller it is than what it holds."""
        return self.n_kept / self.n_on_disk if self.n_kept else None


@dataclass(slots=True)
class Compacted:
    """What became of an archive's room."""

    before: int
    after: int = 0
    n_merged: int = 0
    """Segments that are now part of another."""
    is_clean: bool = True
    """Whether nothing of the old file is left; somebody who still reads it keeps it for a while."""
    damaged: list[str] = field(default_factory=list)
    """Files that were left as they are."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A backup."""

    path: Path
    n_bytes: int
    is_sound: bool


@dataclass(slots=True)
class Forgotten:
    """What is no longer there."""

    sessions: list[str]
    files: list[str] = field(default_factory=list)
    n_versions: int = 0
    n_bytes: int = 0
    mentions: list[str] = field(default_factory=list)
    """Files that are kept and still name the session: all of a project write into them."""
    repeats: list[str] = field(default_factory=list)
    """Sessions that were made from it and hold some of the same messages."""
    is_clean: bool = True


def writable(path: Path) -> Archive:
    """Open an archive to change it. Raises `PolluxError` if it is not there, or somebody else is writing to it."""
    if not path.exists():
        raise PolluxError(f"There is no archive at {path} yet; `pollux sync` makes one.")
    archive = store.opened(path)
    if not archive.is_writable:
        archive.close()
        raise PolluxError(f"The archive {path} cannot be changed now: {archive.why_not}.")
    return archive


def readable(path: Path) -> Archive:
    """Open an archive to look at it. Raises `PolluxError` if it is not there."""
    if not path.exists():
        raise PolluxError(f"There is no archive at {path} yet; `pollux sync` makes one.")
    return store.opened(path, write=False)


def info(archive: Archive) -> Info:
    """Count what an archive holds."""
    database = archive.database
    are_current = facts.are_current(database)
    n_kept, n_stored, n_segments = _row(
        database, "SELECT coalesce(sum(length), 0), coalesce(sum(length(data)), 0), count(*) FROM segments"
    )
    n_files, n_gone_files = _row(database, "SELECT count(*), count(gone_us) FROM files WHERE forgotten_us IS NULL")
    n_sessions, n_subagents, n_gone = _sessions(database) if are_current else (0, 0, 0)
    return Info(
        archive.path,
        _on_disk(archive.path),
        n_files,
        n_gone_files,
        _row(database, "SELECT count(*) FROM versions")[0],
        n_segments,
        n_kept,
        n_stored,
        n_sessions,
        n_subagents,
        n_gone,
        _row(database, "SELECT count(*) FROM tombstones")[0],
        database.execute("SELECT max(max(last_us, coalesce(gone_us, 0))) FROM files").fetchone()[0],
        WriterLock(archive.path).owner() if is_written(archive) else None,
        _places(database),
        are_current,
    )


def compact(archive: Archive, *, progress: Progress = lambda _done, _all: None) -> Compacted:
    """Put small segments together, version by version, and write the file anew without its gaps."""
    database = archive.database
    result = Compacted(_on_disk(archive.path))
    versions = _mergeable(database)
    for done, version_id in enumerate(versions, 1):
        before = _digest(database, version_id)
        if before is None:
            result.damaged.append(_name(database, version_id))
        else:
            with transaction(database):
                result.n_merged += raw.merge(database, version_id)
                if _digest(database, version_id) != before:
                    raise ArchiveError(f"{archive.path}: merging would have changed bytes, so it was not done.")
        progress(done, len(versions))
    result.is_clean = _written_anew(database)
    result.after = _on_disk(archive.path)
    return result


def backup(path: Path, target: Path, *, force: bool = False, progress: Progress = lambda _done, _all: None) -> Copied:
    """Copy an archive as it is at one moment, look at every byte of the copy, and only then give it its name.

    Raises `PolluxError` if something is there already; not even with `force` does a damaged copy replace it.
    """
    if target.is_dir():
        target = target / path.name
    if target.exists() and path.exists() and target.samefile(path):
        raise PolluxError(f"{target} is the archive itself; name another file.")
    _refuse_to_overwrite(target, force=force)
    part = target.with_name(f".{target.name}.part")
    try:
        part.unlink(missing_ok=True)  # of one that was killed
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with readable(path) as archive:
            _copy(archive.database, part, progress)
        with store.opened(part, write=False) as copied:
            report = verify(copied)
        if target.exists() and not report.bytes_are_sound:
            raise PolluxError(f"{path} is damaged, so it does not replace {target}; `pollux verify` tells more.")
        _refuse_to_overwrite(target, force=force)
        for suffix in ("-wal", "-shm"):  # of what is replaced: SQLite would apply it to the new file
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        part.replace(target)
    except OSError as error:
        raise PolluxError(f"{target} cannot be written: {error.strerror}.") from None
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            part.with_name(part.name + suffix).unlink(missing_ok=True)
    return Copied(target, target.stat().st_size, is_sound=report.bytes_are_sound)


def family(database: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Return sessions with all their subagents, and theirs."""
    found = dict.fromkeys(ids)
    waiting = list(found)
    while waiting:
        rows = database.execute("SELECT session_id FROM sessions WHERE parent_session_id = ?", (waiting.pop(),))
        new = [row[0] for row in rows if row[0] not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return list(found)


def files_of(database: sqlite3.Connection, ids: Sequence[str]) -> dict[int, str]:
    """Return what is kept of some sessions, by the file's number: their own files, outputs, plans, activity logs."""
    owners: dict[int, set[str]] = {}
    rows = database.execute(
        "SELECT file_id, session_id FROM session_files JOIN versions ON versions.id = file_version_id"
    )
    for file_id, owner in rows:
        owners.setdefault(file_id, set()).add(owner)
    paths = dict(database.execute("SELECT id, path FROM files WHERE forgotten_us IS NULL").fetchall())
    found = {
        file_id: path
        for file_id, path in paths.items()
        if (owners[file_id] <= set(ids) if file_id in owners else belongs_to(path, ids))
    }
    return found | _named_outputs(database, found, paths)


def forget(
    archive: Archive,
    ids: Sequence[str],
    *,
    now_us: int,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
) -> Forgotten:
    """Remove sessions with all that is kept of them, so that no refresh brings them back and no byte is left."""
    database = archive.database
    database.execute("PRAGMA secure_delete = ON")
    whole = family(database, ids)
    files = files_of(database, whole)
    result = Forgotten(whole, mentions=_mentions(database, whole, files), repeats=_repeats(database, whole))
    with transaction(database):
        touched = _relatives(database, whole, files)
        _remove_files(database, list(files), now_us, result)
        _remove_facts(database, whole)
        for one in whole:
            database.execute("INSERT OR IGNORE INTO tombstones VALUES (?, ?)", (one, now_us))
        database.executemany("DELETE FROM readings WHERE version_id = ?", [(one,) for one in touched])
    rederive(archive, memory=memory, progress=progress)
    result.is_clean = _written_anew(database)
    return result


def _row(database: sqlite3.Connection, query: str) -> tuple[int, ...]:
    return tuple(database.execute(query).fetchone())


def _sessions(database: sqlite3.Connection) -> tuple[int, int, int]:
    n_sessions, n_subagents = _row(
        database, "SELECT coalesce(sum(kind <> 'subagent'), 0), coalesce(sum(kind = 'subagent'), 0) FROM sessions"
    )
    (n_there,) = _row(
        database,
        """
        SELECT count(DISTINCT session_files.session_id) FROM session_files
        JOIN sessions USING (session_id) JOIN versions ON versions.id = file_version_id JOIN files ON files.id = file_id
        WHERE gone_us IS NULL AND role NOT IN ('stub', 'unreadable') AND sessions.kind <> 'subagent'
        """,
    )
    (n_stubs,) = _row(
        database,
        """
        SELECT count(*) FROM sessions WHERE kind <> 'subagent' AND session_id NOT IN
            (SELECT session_id FROM session_files WHERE role NOT IN ('stub', 'unreadable'))
        """,
    )
    return n_sessions, n_subagents, n_sessions - n_there - n_stubs


def _places(database: sqlite3.Connection) -> tuple[Place, ...]:
    rows = database.execute(
        """
        SELECT machine, home, count(*), count(gone_us), coalesce(sum(bytes), 0)
        FROM files LEFT JOIN (SELECT file_id, sum(kept) AS bytes FROM versions GROUP BY file_id) ON file_id = files.id
        WHERE forgotten_us IS NULL GROUP BY machine, home ORDER BY machine, home
        """
    )
    return tuple(Place(*row) for row in rows)


def _on_disk(path: Path) -> int:
    places = (path, path.with_name(path.name + "-wal"))
    return sum(place.stat().st_size for place in places if place.exists())


def _mergeable(database: sqlite3.Connection) -> list[int]:
    """Return the versions in which two neighbours would fit into one segment."""
    rows = database.execute(
        """
        SELECT DISTINCT version_id FROM (
            SELECT version_id, length + lag(length) OVER (PARTITION BY version_id ORDER BY start) AS both
            FROM segments WHERE base_id IS NULL AND id NOT IN (SELECT base_id FROM segments WHERE base_id IS NOT NULL)
        ) WHERE both <= ? ORDER BY version_id
        """,
        (raw.SEGMENT,),
    )
    return [row[0] for row in rows]


def _digest(database: sqlite3.Connection, version_id: int) -> bytes | None:
    """Hash a whole version; nothing where a segment is not what its own hash says."""
    whole = hashlib.sha256()
    rows = database.execute("SELECT id, sha256 FROM segments WHERE version_id = ? ORDER BY start", (version_id,))
    for segment_id, sha256 in rows.fetchall():
        try:
            data = raw.content(database, segment_id)
        except UNPACKING:
            return None
        if hashlib.sha256(data).digest() != sha256:
            return None
        whole.update(data)
    return whole.digest()


def _name(database: sqlite3.Connection, version_id: int) -> str:
    home, path = database.execute(
        "SELECT home, path FROM versions JOIN files ON files.id = file_id WHERE versions.id = ?", (version_id,)
    ).fetchone()
    return str(place_of(home, path))


def _written_anew(database: sqlite3.Connection) -> bool:
    """Write the file anew without what was deleted; tell whether nothing of the old one is left beside it."""
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    try:
        database.execute("VACUUM")
    except sqlite3.OperationalError as error:  # no room, or somebody writes
        raise PolluxError(
            f"The archive could not be written anew ({error}); `pollux archive compact` does it when there is room."
        ) from None
    is_busy, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy


def _refuse_to_overwrite(target: Path, *, force: bool) -> None:
    if target.exists() and not force:
        raise PolluxError(f"{target} is there already; name another file, or replace it with --force.")


def _copy(database: sqlite3.Connection, part: Path, progress: Progress) -> None:
    database.execute("BEGIN")  # one moment, however much somebody writes meanwhile
    copy = sqlite3.connect(part, isolation_level=None)
    try:
        database.execute("SELECT count(*) FROM files").fetchone()
        database.backup(copy, pages=_PAGES, progress=lambda _, left, whole: progress(whole - left, whole))
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, to be read anywhere
    finally:
        copy.close()
        database.execute("ROLLBACK")
    with part.open("rb+") as file:
        os.fsync(file.fileno())


def _named_outputs(database: sqlite3.Connection, own: Mapping[int, str], paths: Mapping[int, str]) -> dict[int, str]:
    """Find outputs that older clients put beside everything else: the session names their files."""
    folders = {_folder(path) for path in own.values()}
    loose = {
        file_id: path
        for file_id, path in paths.items()
        if file_id not in own and _folder(path) in folders and _is_loose_output(path)
    }
    names = {path.rpartition("/")[2].encode(): file_id for file_id, path in loose.items()}
    found = _said(database, own if names else (), lambda data: {name for name in names if name in data})
    return {names[name]: loose[names[name]] for name in found}


def _folder(path: str) -> str:
    return "/".join(path.split("/")[:2])


def _is_loose_output(path: str) -> bool:
    _, _, *parts = path.split("/")
    return path.endswith((".txt", ".output")) and (
        len(parts) == 1 or (len(parts) == 2 and parts[0] in ("tool_output", "tool-outputs"))  # noqa: PLR2004
    )


def _said(database: sqlite3.Connection, files: Iterable[int], look: Callable[[bytes], set[bytes]]) -> set[bytes]:
    """Look through all that is kept of some files, a segment at a time; what cannot be read says nothing."""
    found: set[bytes] = set()
    for file_id in files:
        rows = database.execute(
            "SELECT segments.id FROM segments JOIN versions ON versions.id = version_id WHERE file_id = ?", (file_id,)
        )
        for (segment_id,) in rows.fetchall():
            try:
                found |= look(raw.content(database, segment_id))
            except UNPACKING:
                continue
    return found


def _mentions(database: sqlite3.Connection, ids: Sequence[str], files: Mapping[int, str]) -> list[str]:
    """Name the files beside the sessions, shared by all of a project, that still speak of them."""
    folders = {_folder(path) for path in files.values()}
    words = [one.encode() for one in ids]
    rows = database.execute("SELECT id, home, path FROM files WHERE version_id IS NOT NULL ORDER BY home, path")
    return [
        str(place_of(home, path))
        for file_id, home, path in rows.fetchall()
        if file_id not in files
        and _folder(path) in folders
        and "/chats/" not in path
        and _said(database, [file_id], lambda data: {one for one in words if one in data})
    ]


def _relatives(database: sqlite3.Connection, ids: Sequence[str], files: Mapping[int, str]) -> list[int]:
    """Return the versions of other sessions whose facts say something of these: parents, copies, neighbours."""
    marks = ", ".join("?" * len(ids))
    rows = database.execute(
        f"""
        SELECT DISTINCT file_version_id, file_id FROM session_files JOIN versions ON versions.id = file_version_id
        WHERE session_id IN (
            SELECT parent_session_id FROM sessions WHERE session_id IN ({marks})
            UNION SELECT session_id FROM model_calls WHERE copy_of IN ({marks})
            UNION SELECT session_id FROM sessions
                WHERE bundle IN (SELECT bundle FROM sessions WHERE session_id IN ({marks}))
        )
        """,  # noqa: S608
        (*ids, *ids, *ids),
    ).fetchall()
    return [version_id for version_id, file_id in rows if file_id not in files]


def _repeats(database: sqlite3.Connection, ids: Sequence[str]) -> list[str]:
    """Name the other sessions that hold answers of these: what was imported or loaded from them."""
    marks = ", ".join("?" * len(ids))
    rows = database.execute(
        f"""
        SELECT DISTINCT session_id FROM messages WHERE session_id NOT IN ({marks}) AND message_id IN
            (SELECT message_id FROM messages WHERE kind = 'gemini' AND session_id IN ({marks}))
        ORDER BY session_id
        """,  # noqa: S608
        (*ids, *ids),
    )
    return [row[0] for row in rows]


def _remove_files(database: sqlite3.Connection, files: Sequence[int], now_us: int, result: Forgotten) -> None:
    """Take all bytes of some files away and leave only their names, so that no refresh takes them in again."""
    versions: list[int] = []
    for file_id in files:
        home, path = database.execute("SELECT home, path FROM files WHERE id = ?", (file_id,)).fetchone()
        result.files.append(str(place_of(home, path)))
        versions += [row[0] for row in database.execute("SELECT id FROM versions WHERE file_id = ?", (file_id,))]
        database.execute("UPDATE files SET version_id = NULL, forgotten_us = ? WHERE id = ?", (now_us, file_id))
    result.n_versions = len(versions)
    for version_id in versions:
        _stand_alone(database, version_id, set(versions))
    database.executemany("UPDATE segments SET base_id = NULL WHERE version_id = ?", [(one,) for one in versions])
    for version_id in versions:
        n_bytes = database.execute("SELECT sum(length) FROM segments WHERE version_id = ?", (version_id,)).fetchone()[0]
        result.n_bytes += n_bytes or 0
        database.execute("DELETE FROM segments WHERE version_id = ?", (version_id,))
        for table, column in _version_columns(database):
            database.execute(f"DELETE FROM {table} WHERE {column} = ?", (version_id,))  # noqa: S608
        database.execute("DELETE FROM versions WHERE id = ?", (version_id,))


def _stand_alone(database: sqlite3.Connection, version_id: int, going: set[int]) -> None:
    """Pack anew what leans on a version's bytes and stays."""
    rows = database.execute(
        "SELECT id, version_id FROM segments WHERE base_id IN (SELECT id FROM segments WHERE version_id = ?)",
        (version_id,),
    ).fetchall()
    for segment_id, owner in rows:
        if owner not in going:
            data = packed(_content(database, segment_id))
            database.execute("UPDATE segments SET data = ?, base_id = NULL, depth = 0 WHERE id = ?", (data, segment_id))


def _content(database: sqlite3.Connection, segment_id: int) -> bytes:
    try:
        return raw.content(database, segment_id)
    except UNPACKING:
        raise PolluxError(
            "What would be left is damaged, so nothing was removed; `pollux verify --repair` may mend it."
        ) from None


def _version_columns(database: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the derived tables that speak of versions, each with the column in which they do."""
    return [
        (table, row[1])
        for table in facts.TABLES
        for row in database.execute(f"PRAGMA table_info({table})")
        if row[1] in ("version_id", "file_version_id")
    ]


def _remove_facts(database: sqlite3.Connection, ids: Sequence[str]) -> None:
    for table in facts.TABLES:
        if any(row[1] == "session_id" for row in database.execute(f"PRAGMA table_info({table})")):
            database.executemany(f"DELETE FROM {table} WHERE session_id = ?", [(one,) for one in ids])  # noqa: S608
    database.executemany("UPDATE model_calls SET copy_of = NULL WHERE copy_of = ?", [(one,) for one in ids])
    database.execute(
        "DELETE FROM projects WHERE project_hash NOT IN (SELECT project_hash FROM sessions WHERE project_hash NOTNULL)"
    )
