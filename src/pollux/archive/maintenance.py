"""Open an archive for a command, describe it, compact it and back it up."""

from __future__ import annotations

import errno
import hashlib
import os
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pollux.archive import raw, schema, store
from pollux.archive.lock import WriterLock
from pollux.archive.migrations import transaction
from pollux.archive.store import Archive
from pollux.archive.verify import is_written, verify
from pollux.errors import ArchiveError, DamagedArchiveError, PolluxError
from pollux.sessions.reader import Progress

_BACKUP_PAGES = 4096
"""Number of SQLite pages that are copied between two reports of progress."""


@dataclass(frozen=True, slots=True)
class HomeInfo:
    """The files of one home on one machine, in numbers."""

    machine: str
    home: str
    n_files: int
    n_deleted: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class ArchiveInfo:
    """An archive in numbers."""

    path: Path
    n_on_disk: int
    """Bytes of the archive's file."""
    n_files: int
    n_deleted_files: int
    n_versions: int
    n_segments: int
    n_bytes: int
    """Archived bytes."""
    n_stored: int
    """Archived bytes after compression."""
    n_sessions: int
    n_subagents: int
    n_deleted: int
    """Sessions that the client has deleted."""
    n_imported: int
    """Versions that were imported from other archives and never read on this machine."""
    n_forgotten: int
    last_us: int | None
    """When a change was last seen."""
    writer: str | None
    """The process that is writing to the archive."""
    homes: tuple[HomeInfo, ...]
    facts_are_current: bool
    n_index_bytes: int = 0
    """Bytes of the search index, which is a file of its own."""
    n_indexed: int = 0
    """Sessions in the search index, including subagents and stubs."""
    n_indexable: int = 0
    """Sessions in the archive, including subagents and stubs."""

    @property
    def ratio(self) -> float | None:
        """How many times smaller the archive is than the files in it."""
        return self.n_bytes / self.n_on_disk if self.n_bytes else None


@dataclass(slots=True)
class CompactResult:
    """The size of an archive before and after it was compacted."""

    before: int
    after: int = 0
    n_merged: int = 0
    """Segments that became part of another one."""
    is_clean: bool = True
    """Whether nothing of the old file is left; a process that is still reading keeps it for a while."""
    damaged: list[str] = field(default_factory=list)
    """A sentence for each version that was not compacted because a segment of it is damaged."""
    n_undo_copies: int = 0
    """Undo copies that were deleted."""


@dataclass(frozen=True, slots=True)
class BackupResult:
    """A finished backup."""

    path: Path
    n_bytes: int
    is_ok: bool
    """Whether every byte matches its SHA-256."""


def writable(
    path: Path, *, machine: str = "localhost", create: bool = False, wait: Callable[[str], None] | None = None
) -> Archive:
    """Open an archive as its only writer. Raises `PolluxError` if it cannot be written.

    Args:
        path: the archive's file.
        machine: the name under which files of this computer are archived.
        create: whether to create a missing archive.
        wait: called with the name of another writer; the call then waits until that has finished.

    """
    if not create and not path.exists():
        raise _missing(path)
    archive = store.open_archive(path, machine=machine, wait=wait)
    if archive.is_writable:
        return archive
    archive.close()
    if wait:
        raise ArchiveError(f"Cannot write to {path} ({archive.read_only_reason}); name another with --archive.")
    raise PolluxError(f"The archive {path} cannot be changed now: {archive.read_only_reason}.")


def readable(path: Path, *, machine: str = "localhost") -> Archive:
    """Open an archive for reading. Raises `PolluxError` if it is missing."""
    if not path.exists():
        raise _missing(path)
    return store.open_archive(path, machine=machine, write=False)


def info(archive: Archive) -> ArchiveInfo:
    """Return the numbers of files, versions, bytes and sessions in an archive."""
    database = archive.database
    are_current = schema.are_current(database)
    n_bytes, n_stored, n_segments = _row(
        database, "SELECT CAST(total(length) AS INTEGER), CAST(total(length(data)) AS INTEGER), count(*) FROM segments"
    )
    n_files, n_deleted_files = _row(
        database, "SELECT count(*), count(deleted_us) FROM files WHERE forgotten_us IS NULL"
    )
    n_sessions, n_subagents, n_deleted = _row(database, _SESSIONS) if are_current else (0, 0, 0)
    return ArchiveInfo(
        archive.path,
        _size_on_disk(archive.path),
        n_files,
        n_deleted_files,
        _row(database, "SELECT count(*) FROM versions")[0],
        n_segments,
        n_bytes,
        n_stored,
        n_sessions,
        n_subagents,
        n_deleted,
        _row(database, "SELECT count(*) FROM imported")[0],
        _row(database, "SELECT count(*) FROM tombstones")[0],
        database.execute("SELECT max(max(last_us, coalesce(deleted_us, 0))) FROM files").fetchone()[0],
        WriterLock(archive.path).owner() if is_written(archive) else None,
        tuple(HomeInfo(*row) for row in database.execute(_HOMES)),
        are_current,
        n_indexable=schema.count_sessions(database) if are_current else 0,
    )


_SESSIONS = """
    SELECT count(*) FILTER (WHERE kind = 'main' AND NOT is_stub), count(*) FILTER (WHERE kind = 'subagent'),
        count(*) FILTER (WHERE kind = 'main' AND NOT is_stub AND is_deleted)
    FROM sessions
"""
"""Numbers of listed sessions, of subagents, and of listed sessions that the client has deleted."""
_HOMES = """
    SELECT CAST(machine AS TEXT), CAST(home AS TEXT), count(*), count(deleted_us), CAST(total(bytes) AS INTEGER)
    FROM files
    LEFT JOIN (SELECT file_id, total(archived_bytes) AS bytes FROM versions GROUP BY file_id) ON file_id = files.id
    WHERE forgotten_us IS NULL GROUP BY machine, home ORDER BY machine, home
"""


def compact(archive: Archive, *, progress: Progress = lambda _done, _all: None) -> CompactResult:
    """Merge small segments, version by version, and rewrite the file without its free pages.

    A version with a damaged segment is left alone: merged, the damage would get a new SHA-256.
    """
    database = archive.database
    result = CompactResult(_size_on_disk(archive.path))
    versions = _mergeable(database)
    for done, version_id in enumerate(versions, 1):
        try:
            with transaction(database):
                before = _digest(database, version_id)
                result.n_merged += raw.merge(database, version_id)
                if _digest(database, version_id) != before:
                    raise ArchiveError(f"{archive.path}: merging would have changed bytes, so it was undone.")
        except DamagedArchiveError as error:
            result.damaged.append(str(error))
        progress(done, len(versions))
    result.is_clean = vacuum(database)
    result.after = _size_on_disk(archive.path)
    return result


def vacuum(database: sqlite3.Connection) -> bool:
    """Rewrite the file without deleted rows, and return whether nothing of the old file is left."""
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    try:
        database.execute("VACUUM")
    except sqlite3.OperationalError as error:  # the disk is full, or another process is writing
        raise PolluxError(
            f"The archive could not be rewritten ({error}); run `pollux archive compact` when there is room."
        ) from None
    is_busy, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not is_busy


def backup(
    path: Path, target: Path, *, force: bool = False, progress: Progress = lambda _done, _all: None
) -> BackupResult:
    """Copy a snapshot of an archive, check every byte of the copy, and only then give it its name.

    Raises `PolluxError` if the target exists and `force` is not set; a damaged copy never replaces it.
    """
    target = backup_target(path, target)
    if target.exists() and path.exists() and target.samefile(path):
        raise PolluxError(f"{target} is the archive itself; name another file.")
    _refuse_to_overwrite(target, force=force)
    part = target.with_name(f".{target.name}.part")
    try:
        part.unlink(missing_ok=True)  # left by a process that was killed
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with readable(path) as archive:
            _copy(archive.database, part, progress)
        with store.open_archive(part, write=False) as copied:
            report = verify(copied)
        if target.exists() and not report.bytes_are_ok:
            raise PolluxError(f"{path} is damaged, so it does not replace {target}; run `pollux verify` for details.")
        _refuse_to_overwrite(target, force=force)
        for suffix in ("-wal", "-shm"):  # of the replaced file: SQLite would apply them to the new one
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        part.replace(target)
    except OSError as error:
        raise PolluxError(f"{target} cannot be written: {error.strerror}.") from None
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            part.with_name(part.name + suffix).unlink(missing_ok=True)
    return BackupResult(target, target.stat().st_size, is_ok=report.bytes_are_ok)


def temporary_copy(archive: Archive, path: Path, *, machine: str) -> Archive:
    """Open a copy of an archive that cannot be written, to which the files that it lacks can be added.

    An existing copy is used. Raises `OSError` or `ArchiveError` if there is no room for it.
    """
    if not path.exists():
        with store.explained_errors(path):
            _copy(archive.database, path, lambda _done, _all: None)
    return store.open_archive(path, machine=machine)


def backup_target(path: Path, target: Path) -> Path:
    """Return the file of a backup; in a folder, it gets the name of the archive."""
    return target / path.name if target.is_dir() else target


def _missing(path: Path) -> PolluxError:
    return PolluxError(f"There is no archive at {path} yet; `pollux sync` makes one.")


def _row(database: sqlite3.Connection, query: str) -> tuple[int, ...]:
    return tuple(database.execute(query).fetchone())


def _size_on_disk(path: Path) -> int:
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _mergeable(database: sqlite3.Connection) -> list[int]:
    """Return the versions with two neighbouring segments that fit into one."""
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


def _digest(database: sqlite3.Connection, version_id: int) -> bytes:
    """Return the SHA-256 of a version. Raises `DamagedArchiveError` if one of its segments is damaged."""
    digest = hashlib.sha256()
    rows = database.execute("SELECT id FROM segments WHERE version_id = ? ORDER BY start", (version_id,))
    for (segment_id,) in rows.fetchall():
        digest.update(raw.content(database, segment_id))
    return digest.digest()


def _refuse_to_overwrite(target: Path, *, force: bool) -> None:
    if target.exists() and not force:
        raise PolluxError(f"{target} exists already; name another file, or replace it with --force.")


def _copy(database: sqlite3.Connection, part: Path, progress: Progress) -> None:
    database.execute("BEGIN")  # one snapshot, although other processes may write
    copy = sqlite3.connect(part, isolation_level=None)
    try:
        database.execute("SELECT count(*) FROM files").fetchone()
        database.backup(copy, pages=_BACKUP_PAGES, progress=lambda _, left, total: progress(total - left, total))
        copy.execute("PRAGMA journal_mode = DELETE")  # a single file that can be read anywhere
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE):  # the disk of the copy
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
        raise
    finally:
        copy.close()
        database.execute("ROLLBACK")
    with part.open("rb+") as file:
        os.fsync(file.fileno())
