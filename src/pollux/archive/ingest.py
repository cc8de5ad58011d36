"""Archive the bytes of changed files, then derive facts from them.

Bytes are archived first, in batches of one transaction each, and are safe from then on. Facts are then derived for
every file with bytes that were not derived yet, so that a refresh continues where an interrupted one stopped.

Other processes help when there is much to derive. Each of them writes facts into its own in-memory database, with the
archive attached read-only, and this process copies the rows. They only get bundles without facts.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pollux.archive import dependents, fact_rows, failures, raw, schema
from pollux.archive.derive import (
    BundleFile,
    DerivedBundle,
    archive_reader,
    bundle_name,
    derive_bundle,
    merge_bundles,
    merged_bundles,
    other_bundles,
    pending,
)
from pollux.archive.inventory import DiskFile
from pollux.archive.migrations import savepoint, transaction
from pollux.archive.store import Archive
from pollux.errors import DamagedArchiveError
from pollux.model import Problem
from pollux.sessions.parallel import map_until_killed, worker_pool
from pollux.sessions.projects.resolve import MARKER, REGISTRY, TRUSTED
from pollux.sessions.reader import Progress
from pollux.sessions.replay.reading import reason_of

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pollux.archive.refresh import RefreshResult

BATCH_FILES, BATCH_BYTES = 200, 64 << 20
_MANY_SEGMENTS = 64
"""A version with more segments than this has its small ones merged."""
_AHEAD = 400
"""Number of files that are compressed in advance."""
_FEW = 4
"""Up to this many files are compressed without starting threads."""
_LAST = "~"
_OF_VERSION = "files.id = (SELECT file_id FROM versions WHERE id = ?)"
_BUNDLE = schema.TABLES["sessions"].names.index("bundle")
"""The index of a session's bundle in its row."""
_WORKER_BYTES = 8 << 20
"""Number of bytes that a worker process derives at a time."""
_WORKERS_FROM = (64 << 20, 32)
"""Bytes and bundles from which on workers are worth their start; a single file is always read by one process."""

_Bundles = dict[str, list[BundleFile]]


class DerivedBatch(NamedTuple):
    """The facts that a worker derived from some bundles."""

    rows: dict[str, list[tuple[Any, ...]]]
    result: DerivedBundle
    n_bytes: int


def archive_changes(
    archive: Archive, changed: list[DiskFile], result: RefreshResult, *, now_us: int, progress: Progress
) -> None:
    """Archive the new bytes of changed files."""
    database = archive.database
    n_bytes, done, are_claims_new = sum(file.size for file in changed), 0, False
    grown: set[int] = set()
    for batch in _batches(_prepared(archive, sorted(changed, key=_order), result)):
        grown |= _store(archive, batch, result, now_us)
        are_claims_new |= any(
            _is_claim(new.file.path) and not (new.is_continuation and new.n_new == 0) for new in batch
        )
        done += sum(new.size for new in batch)
        progress(done, n_bytes)
    if are_claims_new:
        _reread_unproven_projects(database)
    _merge_small_segments(database, grown, result)


def derive_pending(archive: Archive, result: RefreshResult, *, memory: Mapping[str, str], progress: Progress) -> None:
    """Derive facts from all archived bytes that have none yet."""
    database = archive.database
    was_interrupted = schema.are_unowned(database)
    waiting = pending(database)
    n_bytes, done = sum(file.length for files in waiting.values() for file in files), 0
    for batch in _derive_in_workers(archive, waiting, memory):
        _copy_batch(database, batch, result)
        done += batch.n_bytes
        progress(done, n_bytes)
    remaining = pending(database) if done else waiting
    while remaining:
        n_merged = len(merged_bundles(database))
        _derive(database, remaining, memory, result, lambda more: progress(min(done + more, n_bytes), n_bytes))
        remaining = pending(database) if len(merged_bundles(database)) > n_merged else {}
    result.problems[:] = dict.fromkeys(result.problems)  # merged bundles are read twice
    with transaction(database):
        dependents.assign_owners(database, None if was_interrupted else result.sessions)
        schema.note_owned(database)
        dependents.update(database)


def _order(file: DiskFile) -> tuple[bool, str, str]:
    """Sort files that name project paths first, then the files of each session together."""
    bundle = bundle_name(file.path) if "/chats/" in file.path else None
    return not _is_claim(file.path), bundle or _LAST, file.path


def _store(archive: Archive, batch: list[raw.PendingWrite], result: RefreshResult, now_us: int) -> set[int]:
    """Store some files in one transaction; return the versions that have grown."""
    database = archive.database
    grown, stored = set[int](), list[raw.PendingWrite]()
    with transaction(database):
        for new in batch:
            try:
                with savepoint(database):
                    version_id = raw.store(database, new, machine=archive.machine, now_us=now_us)
                    dependents.confirm_imports(database, [version_id])
                    dependents.note_files(database, _OF_VERSION, (version_id,))
            except Exception as error:
                if failures.concerns_database(error):
                    raise
                result.problems.append(_cannot_archive(new.file, error))
                continue
            stored.append(new)
            if new.is_continuation and new.n_new:
                grown.add(version_id)
        dependents.update(database)
    result.n_files += sum(bool(new.n_new) for new in stored)
    result.n_bytes += sum(new.n_new for new in stored)
    return grown


def _cannot_archive(file: DiskFile, error: Exception) -> Problem:
    text = f"Pollux failed to archive this file ({reason_of(error)}). Please report this"
    return Problem("cannot-archive", text, file.place)


def _is_claim(path: str) -> bool:
    return path.endswith(f"/{MARKER}") or path in (REGISTRY, TRUSTED)


def _reread_unproven_projects(database: sqlite3.Connection) -> None:
    """Mark sessions without a proven project path as pending, because new files may name the path."""
    with transaction(database):
        database.execute(
            """
            UPDATE readings SET n_bytes = -1 WHERE version_id IN (
                SELECT file_version_id FROM session_files JOIN sessions USING (session_id)
                LEFT JOIN projects USING (project_hash) WHERE NOT coalesce(projects.proven, 0)
            )
            """
        )


def _merge_small_segments(database: sqlite3.Connection, grown: set[int], result: RefreshResult) -> None:
    """Merge the segments of files that grew by many small pieces; report damaged ones."""
    for version_id in grown:
        number, length = database.execute(
            "SELECT count(*), sum(length) FROM segments WHERE version_id = ?", (version_id,)
        ).fetchone()
        if number > _MANY_SEGMENTS and length < number * raw.SEGMENT // 4:
            try:
                with transaction(database):
                    raw.merge(database, version_id)
            except DamagedArchiveError as error:
                result.problems.append(Problem("damaged-archive", str(error)))


def _derive(
    database: sqlite3.Connection,
    waiting: Mapping[str, list[BundleFile]],
    memory: Mapping[str, str],
    result: RefreshResult,
    progress: Callable[[int], None],
) -> None:
    reader, done = archive_reader(database, memory), 0
    bundles = iter(sorted(waiting.items()))  # in the order of the keys, so that SQLite fills its pages
    while batch := list(islice(bundles, BATCH_FILES)):
        with transaction(database):
            schema.note_new_calls(database)
            for name, files in batch:
                derived = derive_bundle(database, reader, name, files)
                result.sessions |= derived.sessions
                result.problems += derived.problems
                for pair in sorted(derived.shared):
                    merge_bundles(database, *pair)
                done += sum(file.length for file in files)
                progress(done)
            dependents.update(database)
    result.problems += reader.problems


def _prepared(archive: Archive, files: list[DiskFile], result: RefreshResult) -> Iterator[raw.PendingWrite]:
    """Read and compress files, with threads if there are many."""

    def known(file: DiskFile) -> raw.KnownFile | None:
        return raw.known_file(archive.database, file, archive.machine)

    if len(files) <= _FEW:
        for file in files:
            yield from _ready(file, partial(raw.prepare, file, known(file)), result)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  slow to import

    waiting: deque[tuple[DiskFile, Future[raw.PendingWrite]]] = deque()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for file in files:
            waiting.append((file, pool.submit(raw.prepare, file, known(file))))
            if len(waiting) > _AHEAD:
                first, future = waiting.popleft()
                yield from _ready(first, future.result, result)
        for first, future in waiting:
            yield from _ready(first, future.result, result)


def _ready(
    file: DiskFile, prepare: Callable[[], raw.PendingWrite], result: RefreshResult
) -> Iterator[raw.PendingWrite]:
    try:
        yield prepare()
    except OSError as error:
        result.problems.append(Problem("unreadable-file", f"cannot be read: {error.strerror}", file.place))
    except Exception as error:  # noqa: BLE001  reported; the other files must be archived
        result.problems.append(_cannot_archive(file, error))


def _batches(prepared: Iterable[raw.PendingWrite]) -> Iterator[list[raw.PendingWrite]]:
    batch: list[raw.PendingWrite] = []
    for new in prepared:
        batch.append(new)
        if len(batch) >= BATCH_FILES or sum(each.n_new for each in batch) >= BATCH_BYTES:
            yield batch
            batch = []
    if batch:
        yield batch


def _copy_batch(database: sqlite3.Connection, batch: DerivedBatch, result: RefreshResult) -> None:
    with transaction(database):
        shared = set(batch.result.shared)
        for row in batch.rows["sessions"]:
            shared |= other_bundles(database, row[0], row[_BUNDLE])
        failures.clear(database, [row[0] for row in batch.rows["readings"]])
        fact_rows.copy(database, batch.rows)
        for pair in sorted(shared):
            merge_bundles(database, *pair)
        schema.note_new_calls(database)
        dependents.update(database)
    result.sessions |= batch.result.sessions
    result.problems += batch.result.problems


def _derive_in_workers(archive: Archive, bundles: _Bundles, memory: Mapping[str, str]) -> Iterator[DerivedBatch]:
    """Yield the facts of bundles that have none yet; nothing if workers are not worth it."""
    new = {name: files for name, files in sorted(bundles.items()) if all(file.n_read is None for file in files)}
    n_bytes = sum(file.length for files in new.values() for file in files)
    is_worth_it = n_bytes > _WORKERS_FROM[0] and len(new) > _WORKERS_FROM[1] and archive.lock is not None
    with worker_pool(_start_worker, (archive.path, memory), is_worth_it=is_worth_it) as pool:
        yield from map_until_killed(pool, _derive_batch, _worker_batches(new))


_worker_input: tuple[Path, Mapping[str, str]]
_worker_database: sqlite3.Connection | None


def _start_worker(path: Path, memory: Mapping[str, str]) -> None:
    global _worker_input, _worker_database
    _worker_input, _worker_database = (path, memory), None


def _worker_batches(bundles: _Bundles) -> Iterator[_Bundles]:
    batch: _Bundles = {}
    n_bytes = 0
    for name, files in bundles.items():
        batch[name] = files
        n_bytes += sum(file.length for file in files)
        if n_bytes > _WORKER_BYTES:
            yield batch
            batch, n_bytes = {}, 0
    if batch:
        yield batch


def _derive_batch(bundles: _Bundles) -> DerivedBatch:
    """Derive some bundles in a worker; its database is empty again afterwards."""
    global _worker_database  # noqa: PLW0603
    path, memory = _worker_input
    database = _worker_database = _worker_database or _facts_in_memory(path)
    reader, result = archive_reader(database, memory), DerivedBundle(set(), [])
    database.execute("BEGIN")
    try:
        for name, files in bundles.items():
            derived = derive_bundle(database, reader, name, files)
            result = DerivedBundle(
                result.sessions | derived.sessions,
                [*result.problems, *derived.problems],
                result.shared | derived.shared,
            )
        rows = {table: list(schema.rows(database, table)) for table in schema.TABLES}
    finally:
        database.execute("ROLLBACK")
    n_bytes = sum(file.length for files in bundles.values() for file in files)
    return DerivedBatch(rows, result._replace(problems=[*result.problems, *reader.problems]), n_bytes)


def _facts_in_memory(path: Path) -> sqlite3.Connection:
    """Create fact tables in memory; all other tables are those of the archive."""
    database = sqlite3.connect("file::memory:", uri=True, isolation_level=None)
    database.execute("CREATE TABLE facts_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    schema.reset(database)
    database.execute("ATTACH ? AS archive", (f"{path.absolute().as_uri()}?mode=ro",))
    return database
