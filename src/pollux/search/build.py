"""Keep the search index in step with the archive.

Texts are prepared by worker processes if there are many, and inserted here in batches of one transaction each, so that
a build that was interrupted continues after its last batch. The first build starts with the newest sessions: it
reserves ordinals for all messages and fills them from the end, so that newer messages still have higher ordinals.
"""

from __future__ import annotations

import gc
import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.archive import store
from pollux.archive.index_file import index_files, index_path
from pollux.archive.lock import WriterLock
from pollux.archive.store import read_transaction
from pollux.errors import ArchiveError
from pollux.model import Problem
from pollux.search.changes import Change, anchors_of, compare
from pollux.search.index import is_current, meta_values, open_index
from pollux.search.prepare import IndexJob, PreparedChunk, prepare
from pollux.search.values import IndexCoverage
from pollux.search.write import IndexWriter, open_writable, remove_files, signatures_of
from pollux.sessions.parallel import worker_pool
from pollux.sessions.reader import Progress

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

_ITEM = 4 << 20
"""Bytes of session files that a worker prepares at a time."""
_LARGE = 8 << 20
"""A session with more bytes is prepared by this process, piece by piece."""
_WORKERS_FROM = (24 << 20, 4)
"""Bytes and sessions from which on workers are worth their start."""
_MANY_DEAD = 1000
"""Dead messages from which on the index may be rebuilt."""
_FEW_JOBS = 500
"""Up to this many sessions are looked up one by one."""
_AHEAD = 24 << 20
"""Bytes of session files that workers prepare before the first of them is inserted."""


def ignore_progress(_done: int, _all: int) -> None:
    """Show no progress."""


class BuildResult(msgspec.Struct, frozen=True):
    """What a build did, and what it left for the next one."""

    n_sessions: int = 0
    """Sessions that were indexed, completely or from where they had changed."""
    n_messages: int = 0
    n_missing: int = 0
    """Sessions that are still to be indexed."""
    reason: str = ""
    """Why nothing, or not everything, could be indexed."""
    is_busy: bool = False
    """Whether that is because another process is building the index."""
    problems: tuple[Problem, ...] = ()
    """One for each session that cannot be read; it is tried again when it changes."""


class IndexInfo(msgspec.Struct, frozen=True):
    """The size of an index, and how much of the archive it contains."""

    n_bytes: int
    coverage: IndexCoverage | None
    """None if there is no index that can be used."""


def build_index(
    archive: Path, database: sqlite3.Connection, progress: Progress = ignore_progress, *, budget: int | None = None
) -> BuildResult:
    """Index the sessions of an archive that are new or changed.

    Never raises because of the index: a full disk, a read-only folder, a missing FTS5 or another builder is the reason
    in the result.

    Args:
        archive: the archive's file.
        database: a connection to it.
        progress: called with the number of bytes of session files that are done, and of all.
        budget: the maximum number of bytes of session files to read, newest sessions first; None for no limit. If each
            of them is larger, the newest is read anyway.

    """
    with closing(IndexBuilder(archive)) as builder:
        return builder.build(database, progress, budget=budget)


class IndexBuilder:
    """Brings the index of an archive up to date, any number of times.

    It keeps the file open, because SQLite writes a journal into the file and waits for the disk at every close.
    """

    def __init__(self, archive: Path) -> None:
        """Store the archive's file; nothing is opened yet."""
        self._archive = archive
        self._writer: IndexWriter | None = None

    def close(self) -> None:
        """Close the file."""
        if self._writer:
            self._writer.close()
            self._writer = None

    def build(
        self, database: sqlite3.Connection, progress: Progress = ignore_progress, *, budget: int | None = None
    ) -> BuildResult:
        """Index the sessions that are new or changed; see `build_index`."""
        lock = WriterLock(index_path(self._archive))
        try:
            if not lock.take():
                return BuildResult(reason=f"{lock.owner()} is building the search index", is_busy=True)
        except (OSError, ArchiveError) as error:
            return BuildResult(reason=_sentence(error))
        try:
            return self._build_or_rebuild(database, progress, budget)
        finally:
            with suppress(OSError):
                lock.release()

    def _build_or_rebuild(self, database: sqlite3.Connection, progress: Progress, budget: int | None) -> BuildResult:
        try:
            return self._build(database, progress, budget)
        except (OSError, sqlite3.DatabaseError, *_DAMAGE) as error:
            self.close()
            if not _is_damage(error):
                return BuildResult(reason=_sentence(error))
        try:
            remove_files(self._archive)
            return self._build(database, progress, budget)
        except (OSError, sqlite3.DatabaseError) as error:
            self.close()
            return BuildResult(reason=_sentence(error))

    def _build(self, database: sqlite3.Connection, progress: Progress, budget: int | None) -> BuildResult:
        writer = self._opened()
        if budget is None and writer.n_dead > max(_MANY_DEAD, writer.n_live // 3):
            self.close()
            remove_files(self._archive)
            writer = self._opened()
        with read_transaction(database):
            state = compare(writer.index, database)
            jobs = _jobs(writer.index, database, state.changed)
            anchors = anchors_of(database)
        writer.reserve(sum(job.n_bytes for job in jobs))
        writer.remove(state.removed)
        jobs, n_missing = _within_budget(jobs, budget)
        chunks = _prepared(self._archive, writer.index, database, jobs)
        result = writer.write(chunks, sum(job.n_bytes for job in jobs), progress)
        if not writer.is_in_place:
            return BuildResult(n_missing=len(jobs), reason="another process deleted the index")
        if not n_missing:
            writer.finish(anchors)
        return BuildResult(result.n_sessions, result.n_messages, n_missing, problems=tuple(result.problems))

    def _opened(self) -> IndexWriter:
        """Return the writer, after opening the file if that is not open or was deleted by another process."""
        if self._writer and not (self._writer.is_in_place and is_current(self._writer.index)):
            self.close()
        self._writer = self._writer or IndexWriter(self._archive)
        self._writer.load_counters()
        return self._writer


def delete_index(archive: Path) -> bool:
    """Delete the index of an archive, and return whether nothing of it is left."""
    remove_files(archive)
    return not any(path.exists() for path in index_files(archive))


def optimize_index(archive: Path) -> None:
    """Merge the index into as few bytes as possible; do nothing if it is missing, damaged or being built."""
    path = index_path(archive)
    lock = WriterLock(path)
    with suppress(OSError, sqlite3.DatabaseError, ArchiveError):
        if not path.exists() or not lock.take():
            return
        try:
            with closing(open_writable(archive)) as index:
                index.execute("INSERT INTO parts(parts) VALUES ('optimize')")
                index.execute("INSERT INTO wholes(wholes) VALUES ('optimize')")
                index.execute("VACUUM")
                index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            lock.release()


def index_info(archive: Path, database: sqlite3.Connection) -> IndexInfo:
    """Return the size of an archive's index, and how much of the archive it contains."""
    n_bytes = sum(path.stat().st_size for path in index_files(archive)[:2] if path.exists())
    index = open_index(archive, database)
    if index is None:
        return IndexInfo(n_bytes, None)
    index.close()
    return IndexInfo(n_bytes, index.coverage)


def _sentence(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return reason or str(error)


_DAMAGE = (LookupError, TypeError, ValueError)
"""What values that are missing or of another type may raise."""


def _is_damage(error: Exception) -> bool:
    """Return whether the bytes of the index may be the cause, and not the disk or SQLite itself."""
    if isinstance(error, sqlite3.OperationalError):
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    return isinstance(error, (sqlite3.DatabaseError, *_DAMAGE))


def _jobs(index: sqlite3.Connection, database: sqlite3.Connection, changed: Sequence[Change]) -> list[IndexJob]:
    """Return what is to be indexed, newest session first."""
    is_first_build = index.execute("SELECT 1 FROM meta WHERE key = 'anchors'").fetchone() is None
    oldest_us = meta_values(index)["oldest_us"]
    sizes = _sizes(database, changed)
    jobs = []
    for session_id, is_comparable, is_indexed in changed:
        if session_id in sizes:
            used_us, n_bytes = sizes[session_id]
            goes_below = is_first_build and not is_indexed and used_us <= oldest_us
            jobs.append(IndexJob(session_id, n_bytes, used_us, is_comparable, b"", is_first_build, goes_below))
    return sorted(jobs, key=lambda job: (-job.used_us, job.session_id))


def _sizes(database: sqlite3.Connection, changed: Sequence[Change]) -> dict[str, tuple[int, int]]:
    """Return for each session when it was last used, and the number of bytes that its facts were read from."""
    query = """
        SELECT session_id, coalesce(last_used_us, 0), coalesce(sum(max(coalesce(n_bytes, 0), 0)), 0) FROM sessions
        LEFT JOIN session_files USING (session_id) LEFT JOIN readings ON version_id = file_version_id
        {which} GROUP BY session_id
    """
    if len(changed) > _FEW_JOBS:
        rows = database.execute(query.format(which="")).fetchall()
    else:
        rows = []
        for change in changed:
            rows += database.execute(query.format(which="WHERE session_id = ?"), (change.session_id,)).fetchall()
    return {session_id: (used_us, n_bytes) for session_id, used_us, n_bytes in rows}


def _within_budget(jobs: list[IndexJob], budget: int | None) -> tuple[list[IndexJob], int]:
    """Return the newest jobs that a budget allows in the order of work, and the number of the others.

    Sessions that go to the end of the index come first, the oldest of them first; then those that go below it.
    """
    allowed = []
    for job in jobs:
        if budget is None or job.n_bytes <= budget:
            allowed.append(job)
            budget = None if budget is None else budget - job.n_bytes
    allowed = allowed or jobs[:1]  # otherwise no search would ever index a session that is larger than its budget
    above = [job for job in reversed(allowed) if not job.goes_below]
    return [*above, *(job for job in allowed if job.goes_below)], len(jobs) - len(allowed)


def _prepared(
    archive: Path, index: sqlite3.Connection, database: sqlite3.Connection, jobs: Sequence[IndexJob]
) -> Iterator[PreparedChunk]:
    """Yield the chunks of all jobs in their order; worker processes help if there is much to do."""
    is_worth_it = sum(job.n_bytes for job in jobs) > _WORKERS_FROM[0] and len(jobs) > _WORKERS_FROM[1]
    with worker_pool(_start_worker, (archive,), is_worth_it=is_worth_it) as pool:
        waiting: deque[tuple[list[IndexJob], Future[list[PreparedChunk]] | None]] = deque()
        n_ahead = 0
        for item in _items(jobs):
            with_old = [_with_signatures(index, job) for job in item]
            n_bytes = sum(job.n_bytes for job in item)
            future = None if pool is None or n_bytes > _LARGE else _submitted(pool, with_old)
            waiting.append((with_old, future))
            n_ahead += n_bytes
            while waiting and (pool is None or n_ahead > _AHEAD):
                n_ahead -= sum(job.n_bytes for job in waiting[0][0])
                yield from _chunks_of(database, *waiting.popleft())
        while waiting:
            yield from _chunks_of(database, *waiting.popleft())


def _items(jobs: Sequence[IndexJob]) -> Iterator[list[IndexJob]]:
    """Yield the jobs in groups that one worker prepares at a time; a large session is alone."""
    item: list[IndexJob] = []
    n_bytes = 0
    for job in jobs:
        if item and n_bytes + job.n_bytes > _ITEM:
            yield item
            item, n_bytes = [], 0
        item.append(job)
        n_bytes += job.n_bytes
    if item:
        yield item


def _with_signatures(index: sqlite3.Connection, job: IndexJob) -> IndexJob:
    signatures = signatures_of(index, job.session_id)
    return msgspec.structs.replace(job, signatures=signatures) if signatures else job


def _submitted(pool: ProcessPoolExecutor, jobs: list[IndexJob]) -> Future[list[PreparedChunk]] | None:
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415  slow to load

    try:
        return pool.submit(_prepare_in_worker, jobs)
    except BrokenProcessPool:
        return None


def _chunks_of(
    database: sqlite3.Connection, jobs: list[IndexJob], future: Future[list[PreparedChunk]] | None
) -> Iterator[PreparedChunk]:
    """Yield what a worker prepared; without one, or if it was killed, prepare it here."""
    if future is not None:
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

        try:
            yield from future.result()
        except BrokenProcessPool:
            pass
        else:
            return
    for job in jobs:
        with read_transaction(database):
            yield from prepare(database, job)


_worker_archive: Path
_worker_database: sqlite3.Connection | None


def _start_worker(archive: Path) -> None:
    global _worker_archive, _worker_database
    _worker_archive, _worker_database = archive, None
    gc.freeze()
    gc.disable()  # a tenth of the time; each item ends with a collection


def _prepare_in_worker(jobs: list[IndexJob]) -> list[PreparedChunk]:
    global _worker_database  # noqa: PLW0603
    _worker_database = _worker_database or store.open_archive(_worker_archive, write=False).database
    chunks: list[PreparedChunk] = []
    for job in jobs:
        with read_transaction(_worker_database):
            chunks += prepare(_worker_database, job)
    gc.collect()
    return chunks
