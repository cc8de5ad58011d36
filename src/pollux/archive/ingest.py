"""Take in what changed: keep the new bytes, bring the facts up to date.

First the raw bytes, batch by batch, each in a transaction: what is kept there is kept, whatever happens next. Then the
facts, for every file whose kept bytes are not all read yet; so what was stopped in between is gone on with by the next
refresh.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from pollux.archive import dependents, fact_rows, failures, raw, schema, workers
from pollux.archive.derive import File, bundle_name, derive_bundle, pending, reader_of
from pollux.archive.imports import note_read_here
from pollux.archive.inventory import Item
from pollux.archive.joins import join, joined, shared_with
from pollux.archive.migrations import savepoint, transaction
from pollux.archive.owners import mark_copies
from pollux.archive.store import Archive
from pollux.errors import DamagedArchiveError
from pollux.model import Problem
from pollux.sessions.projects.claims import MARKER, REGISTRY, TRUSTED
from pollux.sessions.reader import Progress
from pollux.sessions.replay.reading import reason_of

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pollux.archive.refresh import Refreshed

BATCH_FILES, BATCH_BYTES = 200, 64 << 20
_MANY = 64
"""Segments of one file, before they are put together."""
_AHEAD = 400
"""Files that are packed before they are needed."""
_FEW = 4
"""Files that are packed sooner than threads are loaded."""
_LAST = "~"
_OF_VERSION = "files.id = (SELECT file_id FROM versions WHERE id = ?)"
_BUNDLE = schema.TABLES["sessions"].names.index("bundle")
"""Where a row of `sessions` says which bundle it is from."""


def keep(archive: Archive, changed: list[Item], result: Refreshed, *, now_us: int, progress: Progress) -> None:
    """Keep what is new in some files."""
    database = archive.database
    n_bytes, done, are_claims_new = sum(one.size for one in changed), 0, False
    grown: set[int] = set()
    for batch in _batches(_prepared(database, sorted(changed, key=_order), result)):
        grown |= _keep(database, batch, result, now_us)
        are_claims_new |= any(_is_claim(one.item.path) and not (one.goes_on and one.n_new == 0) for one in batch)
        done += sum(found.size for found in batch)
        progress(done, n_bytes)
    if are_claims_new:
        _doubt_projects(database)
    _merge_small(database, grown, result)


def derive(archive: Archive, result: Refreshed, *, memory: Mapping[str, str], progress: Progress) -> None:
    """Bring the facts up to date with all the raw bytes, bundle by bundle."""
    database = archive.database
    was_stopped = schema.are_unowned(database)
    waiting = pending(database)
    n_bytes, done = sum(one.kept for files in waiting.values() for one in files), 0
    for piece in workers.derived(archive, waiting, memory):
        _take_over(database, piece, result)
        done += piece.n_bytes
        progress(done, n_bytes)
    left = pending(database) if done else waiting
    while left:
        n_joined = len(joined(database))
        _derive(database, left, memory, result, lambda more: progress(min(done + more, n_bytes), n_bytes))
        left = pending(database) if len(joined(database)) > n_joined else {}
    result.problems[:] = dict.fromkeys(result.problems)  # what is read together is read once more
    with transaction(database):
        mark_copies(database, None if was_stopped else result.sessions)
        schema.note_owned(database)
        dependents.update(database)


def _order(item: Item) -> tuple[bool, str, str]:
    """Put what tells of projects first, then session by session."""
    bundle = bundle_name(item.path) if "/chats/" in item.path else None
    return not _is_claim(item.path), bundle or _LAST, item.path


def _keep(database: sqlite3.Connection, batch: list[raw.Prepared], result: Refreshed, now_us: int) -> set[int]:
    """Store some files in one transaction; return the versions that have grown."""
    grown, stored = set[int](), list[raw.Prepared]()
    with transaction(database):
        for found in batch:
            try:
                with savepoint(database):
                    version_id = raw.store(database, found, machine=platform.node(), now_us=now_us)
                    note_read_here(database, [version_id])
                    dependents.note_files(database, _OF_VERSION, (version_id,))
            except Exception as error:
                if failures.concerns_everybody(error):
                    raise
                result.problems.append(_cannot_archive(found.item, error))
                continue
            stored.append(found)
            if found.goes_on and found.n_new:
                grown.add(version_id)
        dependents.update(database)
    result.n_files += sum(bool(found.n_new) for found in stored)
    result.n_bytes += sum(found.n_new for found in stored)
    return grown


def _cannot_archive(item: Item, error: Exception) -> Problem:
    text = f"Pollux failed to archive this file ({reason_of(error)}). Please report this"
    return Problem("cannot-archive", text, item.place)


def _is_claim(path: str) -> bool:
    return path.endswith(f"/{MARKER}") or path in (REGISTRY, TRUSTED)


def _doubt_projects(database: sqlite3.Connection) -> None:
    """Have the sessions looked at again whose project is not proven: something new was said about paths."""
    with transaction(database):
        database.execute(
            """
            UPDATE readings SET kept = -1 WHERE version_id IN (
                SELECT file_version_id FROM session_files JOIN sessions USING (session_id)
                LEFT JOIN projects USING (project_hash) WHERE NOT coalesce(projects.proven, 0)
            )
            """
        )


def _merge_small(database: sqlite3.Connection, grown: set[int], result: Refreshed) -> None:
    """Put the segments together of files that grew by many small pieces; report those that are damaged."""
    for version_id in grown:
        number, length = database.execute(
            "SELECT count(*), sum(length) FROM segments WHERE version_id = ?", (version_id,)
        ).fetchone()
        if number > _MANY and length < number * raw.SEGMENT // 4:
            try:
                with transaction(database):
                    raw.merge(database, version_id)
            except DamagedArchiveError as error:
                result.problems.append(Problem("damaged-archive", str(error)))


def _derive(
    database: sqlite3.Connection,
    waiting: Mapping[str, list[File]],
    memory: Mapping[str, str],
    result: Refreshed,
    progress: Callable[[int], None],
) -> None:
    """Derive all that still waits, in this process."""
    reader, done = reader_of(database, memory), 0
    bundles = iter(sorted(waiting.items()))  # in the order of the keys, so that pages fill up
    while batch := list(islice(bundles, BATCH_FILES)):
        with transaction(database):
            schema.note_new_calls(database)
            for name, files in batch:
                told = derive_bundle(database, reader, name, files)
                result.sessions |= told.sessions
                result.problems += told.problems
                _join(database, told.shared)
                done += sum(one.kept for one in files)
                progress(done)
            dependents.update(database)
    result.problems += reader.problems


def _prepared(database: sqlite3.Connection, items: list[Item], result: Refreshed) -> Iterator[raw.Prepared]:
    """Read and pack files; many on all cores, some ahead of where they are needed."""
    if len(items) <= _FEW:
        for item in items:
            yield from _ready(item, partial(raw.prepare, item, _known(database, item)), result)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  slow to load

    waiting: deque[tuple[Item, Future[raw.Prepared]]] = deque()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for item in items:
            waiting.append((item, pool.submit(raw.prepare, item, _known(database, item))))
            if len(waiting) > _AHEAD:
                first, found = waiting.popleft()
                yield from _ready(first, found.result, result)
        for first, found in waiting:
            yield from _ready(first, found.result, result)


def _known(database: sqlite3.Connection, item: Item) -> raw.Before | None:
    return raw.before(database, item, platform.node())


def _ready(item: Item, found: Callable[[], raw.Prepared], result: Refreshed) -> Iterator[raw.Prepared]:
    try:
        yield found()
    except OSError as error:
        result.problems.append(Problem("unreadable-file", f"cannot be read: {error.strerror}", item.place))
    except Exception as error:  # noqa: BLE001  reported; the other files must be archived
        result.problems.append(_cannot_archive(item, error))


def _batches(found: Iterable[raw.Prepared]) -> Iterator[list[raw.Prepared]]:
    batch: list[raw.Prepared] = []
    for one in found:
        batch.append(one)
        if len(batch) >= BATCH_FILES or sum(each.n_new for each in batch) >= BATCH_BYTES:
            yield batch
            batch = []
    if batch:
        yield batch


def _take_over(database: sqlite3.Connection, piece: workers.Derived, result: Refreshed) -> None:
    """Write down what others derived."""
    with transaction(database):
        shared = {pair for row in piece.rows["sessions"] for pair in shared_with(database, row[0], row[_BUNDLE])}
        failures.clear(database, [row[0] for row in piece.rows["readings"]])
        fact_rows.copy(database, piece.rows)
        _join(database, piece.told.shared | shared)
        schema.note_new_calls(database)
        dependents.update(database)
    result.sessions |= piece.told.sessions
    result.problems += piece.told.problems


def _join(database: sqlite3.Connection, shared: Iterable[tuple[str, str]]) -> None:
    for one, other in sorted(shared):
        join(database, one, other)
