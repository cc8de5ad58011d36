"""Find files that changed: stat the homes and compare the result with the archive.

If nothing changed, that is all a refresh does; `ingest`, which archives and derives, is not even imported.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from pollux.archive import dependents, schema
from pollux.archive.inventory import DiskFile, belongs_to, inventory, original_path
from pollux.archive.migrations import transaction
from pollux.archive.store import Archive
from pollux.model import Problem
from pollux.sessions.locate import Home, HomeScan, ScanCache, locate
from pollux.text.escape import escape_surrogates
from pollux.text.times import microseconds

if TYPE_CHECKING:
    from pollux.sessions.reader import Progress

Clock: TypeAlias = Callable[[], datetime]
_SHARES = 4
"""Archiving a new file takes about one of this many shares of the work, deriving its facts the others."""
_TICK_US = 20_000
"""Longer than the resolution of file times on any file system but FAT."""
_LONGEST_US = 600_000_000
"""The longest refresh for which this check works; a file with a later time was not written during the refresh."""
_MAY_BE_OLDER = " OR ".join(
    f"({column} / 1000 > last_us - {_TICK_US} AND {column} / 1000 < last_us + {_LONGEST_US})"
    for column in ("mtime_ns", "ctime_ns")
)
"""Whether a file may have changed right after it was read while its times stayed the same.

File times have a limited resolution: two writes within one tick leave the same times.
"""
_LAST_SCAN = "last scan"
_WORTH_STORING = 1000
"""Files; fewer are compared sooner than a digest is stored."""
_UNSEEN = ("unreadable-folder", "link-outside")
"""Problems that hide files which may still exist."""
_NO_MEMORY: Mapping[str, str] = {}


class RefreshResult(msgspec.Struct):
    """What a refresh archived and derived."""

    located: HomeScan
    n_files: int = 0
    """Files with new bytes."""
    n_bytes: int = 0
    """New bytes."""
    n_deleted: int = 0
    sessions: set[str] = msgspec.field(default_factory=set)
    """The IDs of the sessions whose facts were written."""
    problems: list[Problem] = msgspec.field(default_factory=list)


def refresh_to_read(
    archive: Archive, homes: Iterable[Home], *, clock: Clock, memory: Mapping[str, str], progress: Progress
) -> RefreshResult:
    """Bring an archive up to date; if the disk is full, continue as with a read-only archive."""
    scan = _scan(homes)
    try:
        _update(archive, scan, memory=memory, clock=clock, progress=progress, derives=True)
    except sqlite3.OperationalError as error:
        if not _is_disk_full(error):
            raise
        archive.stop_writing(str(error))
    return scan.result


def refresh(
    archive: Archive,
    homes: Iterable[Home],
    *,
    clock: Clock,
    memory: Mapping[str, str] = _NO_MEMORY,
    progress: Progress = lambda _done, _all: None,
    derives: bool = True,
) -> RefreshResult:
    """Bring an archive up to date with some homes; a read-only archive stays unchanged.

    Raises `sqlite3.OperationalError` if the disk is full.

    Args:
        archive: to write to.
        homes: to read.
        clock: returns the time that is stored with changes.
        memory: project paths that were proven before.
        progress: called with the number of bytes done, and of all.
        derives: whether to derive facts, too; otherwise only bytes are archived.

    """
    scan = _scan(homes)
    _update(archive, scan, memory=memory, clock=clock, progress=progress, derives=derives)
    return scan.result


class _Scan(NamedTuple):
    look: ScanCache
    result: RefreshResult


def _scan(homes: Iterable[Home]) -> _Scan:
    look = ScanCache()
    return _Scan(look, RefreshResult(locate(homes, look), problems=look.problems))


def _is_disk_full(error: sqlite3.OperationalError) -> bool:
    """Return whether the disk is full, which SQLite sometimes reports as an I/O error."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_FULL)
    return code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def _update(
    archive: Archive, scan: _Scan, *, memory: Mapping[str, str], clock: Clock, progress: Progress, derives: bool
) -> None:
    look, result = scan
    if not archive.is_writable:
        return
    if not schema.are_current(archive.database):
        with transaction(archive.database):
            schema.reset(archive.database)
    items = inventory(result.located, look)
    now_us = microseconds(clock()) or 0
    missing, changed = _differences(archive, items)
    _mark_deleted(archive, missing, items, result, now_us)
    if changed or (derives and schema.are_behind(archive.database)):
        from pollux.archive import ingest  # noqa: PLC0415  a third of the time of a refresh without changes

        archiving, deriving = _shares(progress, _SHARES if derives else 1)
        ingest.archive_changes(archive, changed, result, now_us=now_us, progress=archiving)
        if derives:
            ingest.derive_pending(archive, result, memory=memory, progress=deriving)


def _differences(archive: Archive, items: list[DiskFile]) -> tuple[set[_Known], list[DiskFile]]:
    """Return the known files that changed or disappeared, and the files on disk that are to be read.

    A large archive stores a digest of the last scan without differences, which is quicker to compare than every file.
    """
    digest = None
    if len(items) >= _WORTH_STORING:
        digest = _digest(archive.machine, schema.generation(archive.database), items)
    if digest is not None and schema.stored_result(archive.database, _LAST_SCAN) == digest:
        return set(), []
    missing, changed = compared(archive.database, items, archive.machine)
    if digest is not None and not missing and not changed:
        schema.store_result(archive.database, _LAST_SCAN, digest)
    return missing, changed


def _digest(machine: str, generation: int, items: list[DiskFile]) -> bytes | None:
    """Return a digest of the files on disk and of an archive; None if a path is not Unicode."""
    import hashlib  # noqa: PLC0415  takes milliseconds

    digest = hashlib.sha256(msgspec.msgpack.encode((machine, generation)))
    try:
        for start in range(0, len(items), _WORTH_STORING):  # all at once would take as much memory as the items
            digest.update(msgspec.msgpack.encode(items[start : start + _WORTH_STORING]))
    except UnicodeEncodeError:
        return None
    return digest.digest()


def bytes_done(database: sqlite3.Connection) -> int:
    """Return how much of the session files another process has read so far, in the bytes that `progress` counts."""
    query = f"SELECT coalesce(sum(versions.archived_bytes), 0), coalesce(sum(readings.n_bytes), 0) {schema.VERSIONS}"
    n_archived, n_derived = database.execute(query).fetchone()
    return int(n_archived + (_SHARES - 1) * n_derived) // _SHARES


_SESSION_FILES = "files.path LIKE 'tmp/%/chats/%' AND files.forgotten_us IS NULL"


def count_session_files(database: sqlite3.Connection) -> int:
    """Return the number of session files that existed at the last scan."""
    (number,) = database.execute(
        f"SELECT count(*) FROM files WHERE {_SESSION_FILES} AND deleted_us IS NULL"  # noqa: S608  ours
    ).fetchone()
    return int(number)


def has_deleted_files(database: sqlite3.Connection) -> bool:
    """Return whether an archive has a session file that the client has deleted."""
    query = f"SELECT 1 FROM files WHERE deleted_us IS NOT NULL AND {_SESSION_FILES} LIMIT 1"  # noqa: S608
    return database.execute(query).fetchone() is not None


def lacks_bytes(database: sqlite3.Connection, located: HomeScan) -> bool:
    """Return whether a session file on the disk is new or has another size than when its facts were derived."""
    rows = database.execute(
        f"""
        SELECT home, path, size FROM files
        WHERE {_SESSION_FILES} AND version_id NOT IN (SELECT versions.id {schema.UNREAD})
        """  # noqa: S608
    )
    archived = {(str(original_path(home, path)), size) for home, path, size in rows}
    return any((escape_surrogates(file.place), file.size) not in archived for file in located.files)


def lacks_files(database: sqlite3.Connection, located: HomeScan) -> bool:
    """Return whether there are session files on disk that an archive has never read."""
    rows = database.execute("SELECT home, path FROM files WHERE path LIKE 'tmp/%/chats/%'")
    archived = {str(original_path(home, path)) for home, path in rows}
    return any(escape_surrogates(file.place) not in archived for file in located.files)


def _shares(progress: Progress, number: int) -> tuple[Progress, Progress]:
    """Divide a progress report between two steps: the first is one of `number` shares, the second all others."""
    return (
        lambda done, total: progress(done, total * number),
        lambda done, total: progress(total + done * (number - 1), total * number),
    )


_Known: TypeAlias = tuple[str, str, int, int, int, int]
"""Home and path of a file, and its status when it was last read: size, mtime, inode and ctime.

The ctime reveals a file that was edited and given its old mtime back; any change of the status costs one comparison.
"""


def compared(database: sqlite3.Connection, items: list[DiskFile], machine: str) -> tuple[set[_Known], list[DiskFile]]:
    """Return the known files that changed or disappeared, and the files on disk that are to be read."""
    on_disk: dict[str, dict[str, DiskFile]] = {}
    for file in items:
        on_disk.setdefault(file.home, {})[file.path] = file
    missing = set()
    for status in _known(database, machine):
        files = on_disk.get(status[0], {})
        known = files.get(status[1])
        if known is not None and known[3:] == status[2:]:
            del files[known.path]
        else:
            missing.add(status)
    changed = [file for files in on_disk.values() for file in files.values()]
    return missing, _without_forgotten(database, changed, machine)


def _known(database: sqlite3.Connection, machine: str) -> Iterator[_Known]:
    """Yield the files that existed last time; the size is -1 for one that must be read again."""
    yield from database.execute(
        f"""
        SELECT home, path, CASE WHEN {_MAY_BE_OLDER} THEN -1 ELSE size END, mtime_ns, inode, ctime_ns
        FROM files NOT INDEXED
        WHERE machine = ? AND deleted_us IS NULL
        """,  # noqa: S608  ours
        (machine,),
    )


def _without_forgotten(database: sqlite3.Connection, changed: list[DiskFile], machine: str) -> list[DiskFile]:
    if not changed:
        return []
    rows = database.execute("SELECT home, path FROM files WHERE machine = ? AND forgotten_us IS NOT NULL", (machine,))
    files = set(rows.fetchall())
    sessions = [row[0] for row in database.execute("SELECT session_id FROM tombstones")]
    return [file for file in changed if (file.home, file.path) not in files and not belongs_to(file.path, sessions)]


def _mark_deleted(
    archive: Archive, missing: set[_Known], items: list[DiskFile], result: RefreshResult, now_us: int
) -> None:
    """Mark files that disappeared as deleted, unless their whole home is missing: it may just not be mounted."""
    if not missing:
        return
    existing = {(file.home, file.path) for file in items}
    unseen = tuple(str(problem.file) for problem in result.problems if problem.code in _UNSEEN)
    homes = {escape_surrogates(str(home.root)) for home in result.located.homes if home.tmp.is_dir()}
    deleted = []
    for home, path, *_ in missing:
        if (home, path) not in existing and home in homes and not str(original_path(home, path)).startswith(unseen):
            deleted.append((now_us, archive.machine, home, path))
    if deleted:
        with transaction(archive.database):
            for row in deleted:
                archive.database.execute(
                    "UPDATE files SET deleted_us = ? WHERE machine = ? AND home = ? AND path = ?", row
                )
                dependents.note_files(archive.database, "machine = ? AND home = ? AND path = ?", row[1:])
            dependents.update(archive.database)
    result.n_deleted += len(deleted)
