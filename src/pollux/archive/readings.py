"""Readings of archived files: from where the last one stopped, and from the archive's own bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime

from pollux import formats
from pollux.archive.inventory import place_of
from pollux.archive.raw import damaged, reader
from pollux.archive.snapshots import BadSnapshotError, Snapshot, restored, snapshot
from pollux.formats import log
from pollux.formats.source import Source, end_of_lines
from pollux.model import Fate
from pollux.sessions.replay.reading import Reading, finished, looks
from pollux.sessions.replay.replay import Running


def source_of(database: sqlite3.Connection, version_id: int, n_bytes: int | None = None) -> Source:
    """Open the bytes of a version, as the archive has them, or only the first of them.

    Raises `DamagedArchiveError` if its rows are missing or damaged; so does whoever reads bytes that are.
    """
    row = database.execute(
        "SELECT files.home, files.path, versions.mtime_ns, versions.kept, "
        "versions.id IN (SELECT version_id FROM imported) "
        "FROM versions JOIN files ON files.id = versions.file_id WHERE versions.id = ?",
        (version_id,),
    ).fetchone()
    if row is None:
        raise damaged(database, version_id, "its row is missing")
    home, path, mtime_ns, kept, is_import = row
    if not (isinstance(home, str) and isinstance(path, str) and isinstance(mtime_ns, int) and isinstance(kept, int)):
        raise damaged(database, version_id, "its row holds values of the wrong type")
    read = reader(database, version_id)
    if read.size != kept:
        raise damaged(database, version_id, f"{read.size} of {kept} bytes are there")
    modified = datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    size = min(n_bytes, read.size) if n_bytes is not None and n_bytes >= 0 else read.size
    clipped = read if size == read.size else lambda start, end: read(start, min(end, size))
    return Source(place_of(home, path), read=clipped, size=size, modified=modified, is_import=bool(is_import))


def read_on(source: Source, kept: bytes | None) -> tuple[Reading, bytes]:
    """Read a file, from where it was left if it was read before; return also what to set aside for the next time.

    That is what was set aside before where little has come since: to read it again is less work than to write all anew.
    """
    if kept and (found := _restored(source, kept)):
        before, running = found
        if before.format == "log":
            if source.size - before.offset < WORTH_A_SNAPSHOT:
                return _with_the_rest(source, running, before.offset, before.line), kept
            return _read_log(source, running, before.offset, before.line)
    original = source
    source, format_, operations = formats.opened(original)
    running = Running(*looks(source))
    if format_ == "log":
        return _read_log(source, running, 0, 0)
    for operation in operations:
        running.take(operation)
    aside = _aside(running, source, source.size, 0, format_)
    return finished(source, format_, running.result, original), aside


def taken_up(source: Source, kept: bytes) -> Reading:
    """Take a reading up as it was set aside; only what came since has to be read."""
    found = _restored(source, kept) if kept else None
    if found is None:
        return read_on(source, None)[0]
    before, running = found
    if before.format == "log":
        return _with_the_rest(source, running, before.offset, before.line)
    if before.format == "document":
        return finished(source, "document", running.result, source)
    return read_on(source, None)[0]


def compare_versions(versions: Sequence[Reading]) -> list[bool]:
    """Compare the versions of one file, oldest first; return for each whether a later one contains all its messages.

    Old releases rewrite a document at every turn and remove rewound messages from it, so a message of an earlier
    version that the last one lacks gets the fate `rewound`. Versions that this machine has read itself are compared
    with each other only: an import neither supersedes them nor takes back a message of theirs.
    """
    ids = [{entry.id for entry in reading.replay.timeline} for reading in versions]
    is_import = [reading.original.is_import for reading in versions]
    is_superseded = []
    for number, reading in enumerate(versions):
        alike = [place for place, kind in enumerate(is_import) if kind == is_import[number]]
        covering = [place for place in alike if place > number]
        if is_import[number]:
            covering += [place for place, kind in enumerate(is_import) if not kind]
        is_superseded.append(any(ids[number] <= ids[place] for place in covering))
        if reading.format == "document" and not is_superseded[-1]:
            for entry in reading.replay.timeline:
                if entry.id not in ids[alike[-1]]:
                    entry.fate = Fate.REWOUND
    return is_superseded


def _restored(source: Source, kept: bytes) -> tuple[Snapshot, Running] | None:
    """Return a replay that was set aside, or nothing if it is damaged: the bytes of the file still tell everything."""
    try:
        return restored(kept, *looks(source))
    except BadSnapshotError:
        return None


def _read_log(source: Source, running: Running, offset: int, line: int) -> tuple[Reading, bytes]:
    """Read a log on; only whole lines are set aside, since the last one may still be growing."""
    end = end_of_lines(source, offset)
    for found in source.lines(offset, line):
        if found.start >= end:
            break
        line = found.number
        for operation in log.operations(found, source.path):
            running.take(operation)
    aside = _aside(running, source, end, line, "log")
    return _with_the_rest(source, running, end, line), aside


def _aside(running: Running, source: Source, offset: int, line: int, format_: str) -> bytes:
    """Set a replay aside; one of a small file is not worth the room."""
    if source.size < WORTH_A_SNAPSHOT or running.result.earlier:  # several sessions in one file are rare
        return b""
    return snapshot(running, offset=offset, line=line, format_=format_)


def _with_the_rest(source: Source, running: Running, offset: int, line: int) -> Reading:
    for found in source.lines(offset, line):
        for operation in log.operations(found, source.path):
            running.take(operation)
    return finished(source, "log", running.result, source)


WORTH_A_SNAPSHOT = 1 << 20
"""A file smaller than this is read again in less time than it takes to tell."""
