"""What an archive needs now and then: to be opened and looked at, and less room."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pollux.archive import raw, schema, store
from pollux.archive.lock import WriterLock
from pollux.archive.migrations import transaction
from pollux.archive.store import Archive
from pollux.archive.verify import is_written
from pollux.errors import ArchiveError, DamagedArchiveError, PolluxError
from pollux.sessions.reader import Progress


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
    n_imported: int
    """Versions that came from other archives and were not read on this machine."""
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
    """A sentence for each version that was left as it is, because a segment of it is damaged."""


def writable(path: Path, *, create: bool = False, wait: Callable[[str], None] | None = None) -> Archive:
    """Open an archive as its only writer.

    Raises `PolluxError` if it cannot be written.

    Args:
        path: the archive's file.
        create: whether to make an archive where there is none.
        wait: told who is writing to it; the call then waits for the other process instead of refusing.

    """
    if not create and not path.exists():
        raise _missing(path)
    archive = store.opened(path, wait=wait)
    if archive.is_writable:
        return archive
    archive.close()
    if wait:
        raise ArchiveError(f"Nothing can be kept in {path} ({archive.why_not}); name another with --archive.")
    raise PolluxError(f"The archive {path} cannot be changed now: {archive.why_not}.")


def readable(path: Path) -> Archive:
    """Open an archive to look at it. Raises `PolluxError` if it is not there."""
    if not path.exists():
        raise _missing(path)
    return store.opened(path, write=False)


def info(archive: Archive) -> Info:
    """Count what an archive holds."""
    database = archive.database
    are_current = schema.are_current(database)
    n_kept, n_stored, n_segments = _row(
        database, "SELECT CAST(total(length) AS INTEGER), CAST(total(length(data)) AS INTEGER), count(*) FROM segments"
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
        _row(database, "SELECT count(*) FROM imported")[0],
        _row(database, "SELECT count(*) FROM tombstones")[0],
        database.execute("SELECT max(max(last_us, coalesce(gone_us, 0))) FROM files").fetchone()[0],
        WriterLock(archive.path).owner() if is_written(archive) else None,
        _places(database),
        are_current,
    )


def compact(archive: Archive, *, progress: Progress = lambda _done, _all: None) -> Compacted:
    """Put small segments together, version by version, and write the file anew without its gaps.

    A version with a damaged segment stays as it is: merged, the damage would get a new hash.
    """
    database = archive.database
    result = Compacted(_on_disk(archive.path))
    versions = _mergeable(database)
    for done, version_id in enumerate(versions, 1):
        try:
            with transaction(database):
                before = _digest(database, version_id)
                result.n_merged += raw.merge(database, version_id)
                if _digest(database, version_id) != before:
                    raise ArchiveError(f"{archive.path}: merging would have changed bytes, so it was not done.")
        except DamagedArchiveError as error:
            result.damaged.append(str(error))
        progress(done, len(versions))
    result.is_clean = written_anew(database)
    result.after = _on_disk(archive.path)
    return result


def written_anew(database: sqlite3.Connection) -> bool:
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


def _missing(path: Path) -> PolluxError:
    return PolluxError(f"There is no archive at {path} yet; `pollux sync` makes one.")


def _row(database: sqlite3.Connection, query: str) -> tuple[int, ...]:
    return tuple(database.execute(query).fetchone())


def _sessions(database: sqlite3.Connection) -> tuple[int, int, int]:
    """Return the number of listed sessions, of subagents, and of listed sessions that the client has deleted."""
    n_listed, n_subagents, n_deleted = _row(
        database,
        """
        SELECT count(*) FILTER (WHERE kind = 'main' AND NOT is_stub), count(*) FILTER (WHERE kind = 'subagent'),
            count(*) FILTER (WHERE kind = 'main' AND NOT is_stub AND is_deleted)
        FROM sessions
        """,
    )
    return n_listed, n_subagents, n_deleted


def _places(database: sqlite3.Connection) -> tuple[Place, ...]:
    rows = database.execute(
        """
        SELECT CAST(machine AS TEXT), CAST(home AS TEXT), count(*), count(gone_us), CAST(total(bytes) AS INTEGER)
        FROM files LEFT JOIN (SELECT file_id, total(kept) AS bytes FROM versions GROUP BY file_id) ON file_id = files.id
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


def _digest(database: sqlite3.Connection, version_id: int) -> bytes:
    """Hash a whole version. Raises `DamagedArchiveError` if one of its segments is damaged."""
    whole = hashlib.sha256()
    rows = database.execute("SELECT id FROM segments WHERE version_id = ? ORDER BY start", (version_id,))
    for (segment_id,) in rows.fetchall():
        whole.update(raw.content(database, segment_id))
    return whole.digest()
