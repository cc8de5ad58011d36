"""Take in what changed: stat the homes, keep the new bytes, bring the facts up to date.

First the raw bytes, batch by batch, each in a transaction: what is kept there is kept, whatever happens next. Then the
facts, for every file whose kept bytes are not all read yet; so what was stopped in between is gone on with by the next
refresh.
"""

from __future__ import annotations

import os
import platform
import sqlite3
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from pollux.archive import facts, raw
from pollux.archive.inventory import Item, belongs_to, inventory, place_of
from pollux.archive.migrations import transaction
from pollux.archive.readings import read_on, source_of, taken_up
from pollux.archive.store import Archive
from pollux.errors import DamagedArchiveError
from pollux.formats.times import microseconds
from pollux.grouping import Placed, bundle_of, put_together
from pollux.locate import Home, Located, SessionFile, locate, name_facts
from pollux.model import Fate, Problem
from pollux.project_claims import MARKER, REGISTRY, TRUSTED, Known, known_from_files
from pollux.reading import Reading
from pollux.sessions import LOGS, Progress, Reader

BATCH_FILES, BATCH_BYTES = 200, 64 << 20
_MANY = 64
"""Segments of one file, before they are put together."""
_AHEAD = 400
"""Files that are packed before they are needed."""
_NO_MEMORY: Mapping[str, str] = {}


@dataclass(slots=True)
class Refreshed:
    """What a refresh came to."""

    located: Located
    n_files: int = 0
    """Files with something new."""
    n_bytes: int = 0
    """New bytes."""
    n_gone: int = 0
    sessions: set[str] = field(default_factory=set)
    """Ids whose facts were written."""
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _File:
    """A session file in the archive."""

    session_file: SessionFile
    file_id: int
    version_id: int
    kept: int
    read: int | None
    """How much of it the facts have seen; nothing yet if there is no number."""

    @property
    def is_pending(self) -> bool:
        return self.read != self.kept


def refresh(
    archive: Archive,
    homes: Iterable[Home],
    *,
    memory: Mapping[str, str] = _NO_MEMORY,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    progress: Progress = lambda _done, _all: None,
) -> Refreshed:
    """Bring an archive up to date with some homes; one that cannot be written stays as it is."""
    located = locate(homes)
    result = Refreshed(located, problems=list(located.problems))
    if not archive.is_writable:
        return result
    if not facts.are_current(archive.database):
        with transaction(archive.database):
            facts.reset(archive.database)
    reader = reader_of(archive.database, memory)
    items = list(inventory(located, result.problems))
    now_us = microseconds(now()) or 0
    _note_gone(archive.database, located, items, result, now_us)
    changed = _changed(archive.database, items)
    n_bytes, done = sum(one.size for one in changed), 0
    for batch in _batches(_prepared(archive.database, changed, result)):
        with transaction(archive.database):
            for found in batch:
                raw.store(archive.database, found, machine=platform.node(), now_us=now_us)
        result.n_files += sum(bool(found.n_new) for found in batch)
        result.n_bytes += sum(found.n_new for found in batch)
        if any(_is_claim(found.item.path) for found in batch):
            reader = reader_of(archive.database, memory)
            _doubt_projects(archive.database)
        _derive(archive.database, reader, result)  # while the next files are read and packed beside this
        done += sum(found.size for found in batch)
        progress(done, n_bytes)
    derive(archive, reader, result, progress)
    _merge_small(archive.database)
    result.problems += reader.problems
    return result


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


def _merge_small(database: sqlite3.Connection) -> None:
    """Put the segments together of files that grew by many small pieces."""
    rows = database.execute(
        "SELECT version_id FROM segments GROUP BY version_id HAVING count(*) > ? AND sum(length) < count(*) * ?",
        (_MANY, raw.SEGMENT // 4),
    ).fetchall()
    for (version_id,) in rows:
        with transaction(database):
            raw.merge(database, version_id)


def reader_of(database: sqlite3.Connection, memory: Mapping[str, str]) -> Reader:
    """Return a reader that looks for claims and logged prompts among the bytes that were kept, not on the disk."""

    def known(home: Home) -> Known:
        rows = _current(database, str(home.root), "(path LIKE '%/.project_root' OR path NOT LIKE '%/%')")
        return known_from_files(str(home.root), dict(rows))

    def logs(file: SessionFile) -> bytes | None:
        path = f"tmp/{file.folder}/{LOGS}"
        return next((data for _, data in _current(database, str(file.home.root), "path = ?", path)), None)

    return Reader(memory, known, logs)


def _current(database: sqlite3.Connection, home: str, which: str, *values: str) -> Iterator[tuple[str, bytes]]:
    """Yield the newest version of some files of a home, by their paths."""
    rows = database.execute(
        f"SELECT path, version_id FROM files WHERE home = ? AND version_id IS NOT NULL AND {which} ORDER BY machine",  # noqa: S608
        (home, *values),
    ).fetchall()
    for path, version_id in rows:
        read = raw.reader(database, version_id)
        yield path, read(0, read.size)


def derive(archive: Archive, reader: Reader, result: Refreshed, progress: Progress) -> None:
    """Bring the facts up to date with all the raw bytes, bundle by bundle."""
    _derive(archive.database, reader, result, progress)


def _derive(
    database: sqlite3.Connection,
    reader: Reader,
    result: Refreshed,
    progress: Progress = lambda _done, _all: None,
) -> None:
    pending = _pending(database)
    n_bytes, done = sum(one.kept for files in pending.values() for one in files), 0
    waiting = iter(sorted(pending.items()))  # in the order of the keys, so that pages fill up
    while batch := list(islice(waiting, BATCH_FILES)):
        with transaction(database):
            for name, files in batch:
                _derive_bundle(database, reader, name, files, result)
                done += sum(one.kept for one in files)
                progress(done, n_bytes)
            _mark_copies(database)


def _pending(database: sqlite3.Connection) -> dict[str, list[_File]]:
    """Return the bundles in which a file has bytes that the facts have not seen, with all their files."""
    rows = database.execute(f"SELECT files.path {_VERSIONS} AND versions.kept IS NOT readings.kept").fetchall()
    names = {_bundle_name(path) for (path,) in rows}
    found: dict[str, list[_File]] = defaultdict(list)
    for one in _session_files(database, names) if names else ():
        found[bundle_of(one.session_file)].append(one)
    return found


def _bundle_name(path: str) -> str:
    """Name the bundle of a file by its path alone, as `bundle_of` does."""
    *_, above, name = path.split("/")
    return (name_facts(name)[1] if above == "chats" else above[:8]) or ""


def _changed(database: sqlite3.Connection, items: list[Item]) -> list[Item]:
    """Return the files that are not as they were last time: what tells of projects, then session by session."""
    known = {
        (home, path): (size, mtime_ns, inode, gone_us, forgotten_us)
        for home, path, size, mtime_ns, inode, gone_us, forgotten_us in database.execute(
            "SELECT home, path, size, mtime_ns, inode, gone_us, forgotten_us FROM files WHERE machine = ?",
            (platform.node(),),
        )
    }
    forgotten = [row[0] for row in database.execute("SELECT session_id FROM tombstones")]
    changed = [
        one
        for one in items
        if _has_changed(one, known.get((one.home, one.path))) and not belongs_to(one.path, forgotten)
    ]
    return sorted(changed, key=lambda one: (not _is_claim(one.path), one.path.rpartition("-")[2]))


def _prepared(database: sqlite3.Connection, items: list[Item], result: Refreshed) -> Iterator[raw.Prepared]:
    """Read and pack files on the other cores, some ahead of where they are needed."""
    waiting: deque[tuple[Item, Future[raw.Prepared]]] = deque()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for number, item in enumerate([*items, *[None] * _AHEAD]):
            if item:
                known = raw.before(database, item, platform.node())
                waiting.append((item, pool.submit(raw.prepare, item, known)))
            if number >= _AHEAD and waiting:
                yield from _ready(*waiting.popleft(), result)
        while waiting:
            yield from _ready(*waiting.popleft(), result)


def _ready(item: Item, found: Future[raw.Prepared], result: Refreshed) -> Iterator[raw.Prepared]:
    try:
        yield found.result()
    except OSError as error:
        result.problems.append(Problem("unreadable-file", f"cannot be read: {error.strerror}", item.place))


def _has_changed(item: Item, known: tuple[int, int, int, int | None, int | None] | None) -> bool:
    if known is None:
        return True
    size, mtime_ns, inode, gone_us, forgotten_us = known
    return forgotten_us is None and (
        (size, mtime_ns, inode) != (item.size, item.mtime_ns, item.inode) or gone_us is not None
    )


def _batches(found: Iterable[raw.Prepared]) -> Iterator[list[raw.Prepared]]:
    batch: list[raw.Prepared] = []
    for one in found:
        batch.append(one)
        if len(batch) >= BATCH_FILES or sum(each.n_new for each in batch) >= BATCH_BYTES:
            yield batch
            batch = []
    if batch:
        yield batch


def _note_gone(
    database: sqlite3.Connection, located: Located, items: list[Item], result: Refreshed, now_us: int
) -> None:
    """Note which files are no longer there; a home that is not there at all is only not mounted."""
    there = {(one.home, one.path) for one in items}
    unseen = tuple(str(problem.file) for problem in result.problems if problem.code == "unreadable-folder")
    homes = [str(home.root) for home in located.homes if home.tmp.is_dir()]
    with transaction(database):
        for home in homes:
            rows = database.execute(
                "SELECT id, path FROM files WHERE machine = ? AND home = ? AND gone_us IS NULL", (platform.node(), home)
            ).fetchall()
            gone = [
                (now_us, file_id)
                for file_id, path in rows
                if (home, path) not in there and not str(place_of(home, path)).startswith(unseen)
            ]
            database.executemany("UPDATE files SET gone_us = ? WHERE id = ?", gone)
            result.n_gone += len(gone)


_VERSIONS = """
    FROM versions JOIN files ON files.id = versions.file_id LEFT JOIN readings ON readings.version_id = versions.id
    WHERE files.path LIKE 'tmp/%/chats/%' AND files.forgotten_us IS NULL AND coalesce(readings.is_superseded, 0) = 0
"""
"""All versions of session files that still matter."""


def _session_files(database: sqlite3.Connection, names: set[str]) -> Iterator[_File]:
    """Yield the files of some bundles."""
    columns = "files.home, files.path, files.mtime_ns, files.id, versions.id, versions.kept, readings.kept"
    rows = database.execute(
        f"SELECT {columns} {_VERSIONS} ORDER BY files.machine, files.home, files.path, versions.number"
    )
    for home, path, mtime_ns, *ids in rows:
        if _bundle_name(path) in names and (session_file := _session_file(home, path, ids[2], mtime_ns)):
            yield _File(session_file, *ids)


def _session_file(home: str, path: str, size: int, mtime_ns: int) -> SessionFile | None:
    _, folder, _, *rest = path.split("/")
    if len(rest) > 2 or not rest:  # noqa: PLR2004  a session, or a subagent below its parent
        return None
    name = rest[-1]
    if len(rest) == 1 and not name.startswith("session-"):
        return None
    what = "leftover" if not name.endswith((".json", ".jsonl")) else "subagent" if len(rest) > 1 else "session"
    root = place_of(home, "")
    parent = rest[0] if len(rest) > 1 else None
    return SessionFile(
        place_of(home, path), Home(root, root / "tmp", "archive"), folder, parent, size, mtime_ns, 0, what
    )


def _derive_bundle(
    database: sqlite3.Connection, reader: Reader, name: str, files: list[_File], result: Refreshed
) -> None:
    """Read what is new in a bundle and write the facts of its sessions."""
    versions: dict[int, list[Placed]] = defaultdict(list)
    for one in files:
        try:
            reading = _read(database, one)
        except DamagedArchiveError as error:
            result.problems.append(Problem("damaged-archive", str(error), str(one.session_file.path)))
            continue
        versions[one.file_id].append(Placed(reading, one.session_file, version_id=one.version_id))
    placed = [one for found in versions.values() for one in _laid_over_each_other(database, found)]
    forgotten = {row[0] for row in database.execute("SELECT session_id FROM tombstones")}
    written = set()
    for group, session in reader.summed_up(put_together(placed, reader.full_id)):
        if session.id not in forgotten:
            facts.write(database, group, session, name)
            written.add(session.id)
    before = {row[0] for row in database.execute("SELECT session_id FROM sessions WHERE bundle = ?", (name,))}
    facts.forget_sessions(database, before - written)
    result.sessions |= written


def _read(database: sqlite3.Connection, file: _File) -> Reading:
    row = database.execute("SELECT snapshot FROM readings WHERE version_id = ?", (file.version_id,)).fetchone()
    source = source_of(database, file.version_id)
    if row and not file.is_pending:
        return taken_up(source, row[0])
    reading, aside = read_on(source, row[0] if row else None)
    database.execute("INSERT OR REPLACE INTO readings VALUES (?, ?, 0, ?)", (file.version_id, file.kept, aside))
    facts.write_problems(database, file.version_id, reading.replay.problems)
    return reading


def _laid_over_each_other(database: sqlite3.Connection, versions: list[Placed]) -> list[Placed]:
    """Deal with the versions of one file: what a later one has all of is done with, what the last lacks was rewound.

    Old releases rewrite their one document at every turn, and take rewound messages out of it for good.
    """
    ids = [{entry.id for entry in one.timeline} for one in versions]
    left = []
    for number, one in enumerate(versions):
        if any(ids[number] <= later for later in ids[number + 1 :]):
            database.execute("UPDATE readings SET is_superseded = 1 WHERE version_id = ?", (one.version_id,))
            continue
        left.append(one)
        if one.reading.format == "document":
            for entry in one.timeline:
                if entry.id not in ids[-1]:
                    entry.fate = Fate.REWOUND
    return left


def _mark_copies(database: sqlite3.Connection) -> None:
    rows = database.execute("SELECT message_id FROM model_calls GROUP BY message_id HAVING count(*) > 1").fetchall()
    facts.leave_copies_to_their_owner(database, [row[0] for row in rows])
