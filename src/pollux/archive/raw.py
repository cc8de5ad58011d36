"""The client's files in SQLite, byte for byte.

A file is a row; each time it was written anew it has another version; the bytes of a version stand in segments, one for
each time something was added to it. Nothing that was kept is ever changed: a file that grew gets another segment, a
file that is different gets another version. The client rewrites old `.json` sessions whole at every turn; such a
version is compressed against the one before it and costs little more than what is new.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import msgspec
import zstandard

from pollux.archive.inventory import Item
from pollux.errors import DamagedArchiveError
from pollux.integers import clamped
from pollux.locate import held_inode

SEGMENT = 4 << 20
"""Bytes of a file in one segment, at most."""
_PROBE = 4096
_PACKING = zstandard.ZstdCompressionParameters.from_level(
    3, hash_log=18, chain_log=17, enable_ldm=True, ldm_min_match=32, ldm_hash_rate_log=5
)
"""A session repeats itself over long distances: each message is written again whenever something is added to it."""
_DEEPEST = 16
"""How many versions may lean on each other before one stands alone again."""
_TRIES, _PAUSE = 5, 0.02


class Version(NamedTuple):
    """One state of a file that was not just a continuation of the one before."""

    id: int
    number: int
    kept: int
    head: bytes
    tail: bytes


class Segment(NamedTuple):
    """Packed bytes of a file, ready to be stored."""

    start: int
    length: int
    sha256: bytes
    base_id: int | None
    depth: int
    data: bytes


class Before(msgspec.Struct, frozen=True):
    """What the archive knows of a file before it looks at it again."""

    file_id: int
    inode: int
    version: Version | None
    segments: tuple[tuple[int, int, bytes], ...] = ()
    """Start, length and digest of what is kept; only needed where probes are not enough."""
    base: tuple[int, int, bytes] | None = None
    """A segment that a rewritten file may lean on: its id, the depth that makes, its bytes."""


class Prepared(msgspec.Struct, frozen=True):
    """What is new of a file: read and packed, but not stored yet."""

    item: Item
    before: Before | None
    goes_on: bool
    segments: tuple[Segment, ...]
    kept: int
    head: bytes
    tail: bytes
    size: int
    mtime_ns: int
    inode: int

    @property
    def n_new(self) -> int:
        """New bytes."""
        return sum(one.length for one in self.segments)


def before(database: sqlite3.Connection, item: Item, machine: str) -> Before | None:
    """Look up what is known of a file."""
    row = database.execute(
        "SELECT id, version_id, inode FROM files WHERE machine = ? AND home = ? AND path = ?",
        (machine, item.home, item.path),
    ).fetchone()
    if row is None:
        return None
    file_id, version_id, inode = row
    if version_id is None:
        return Before(file_id, inode, None)
    version = current_version(database, version_id)
    segments = database.execute("SELECT start, length, sha256 FROM segments WHERE version_id = ?", (version_id,))
    base = _base(database, version) if item.path.endswith(".json") else None  # what the client rewrites whole
    return Before(file_id, inode, version, tuple(segments), base)


def prepare(item: Item, known: Before | None) -> Prepared:
    """Read and pack what is new of a file; needs no database, so that it can run beside everything else.

    Raises `OSError` if the file cannot be read.
    """
    with open(item.place, "rb", buffering=0) as file:  # noqa: PTH123  a string from the inventory
        fd = file.fileno()
        status = os.fstat(fd)
        version = known.version if known else None
        goes_on = known is not None and version is not None and _goes_on(fd, known, version, status)
        kept = version.kept if version and goes_on else 0
        pieces = _pieces(fd, kept, status.st_size) if goes_on else _whole_pieces(fd, item.path)
        base = None if goes_on or known is None else known.base
        segments = []
        for piece in pieces:
            segments.append(_packed(kept, piece, base if kept == 0 else None))
            kept += len(piece)
        head, tail = _probe(fd, 0, kept), _probe(fd, max(0, kept - _PROBE), kept)
        if not item.path.endswith(".jsonl") and _stamp(os.fstat(fd)) != _stamp(status):
            head = b""  # written while we read: whatever comes next is another version
    return Prepared(
        item, known, goes_on, tuple(segments), kept, head, tail, status.st_size, status.st_mtime_ns, status.st_ino
    )


def store(database: sqlite3.Connection, found: Prepared, *, machine: str, now_us: int) -> int:
    """Store what was prepared; return the version it belongs to."""
    known = found.before
    mtime_ns, inode = clamped(found.mtime_ns), held_inode(found.inode)  # as the inventory has them
    file_id = known.file_id if known else _new_file(database, found.item, machine, now_us)
    version = known.version if known else None
    if version is None or not found.goes_on:
        version = _new_version(database, file_id, version, now_us)
    for segment in found.segments:
        _insert(database, version.id, segment)
    database.execute(
        "UPDATE versions SET kept = ?, head = ?, tail = ?, mtime_ns = ? WHERE id = ?",
        (found.kept, found.head, found.tail, mtime_ns, version.id),
    )
    database.execute(
        "UPDATE files SET size = ?, mtime_ns = ?, inode = ?, last_us = ?, gone_us = NULL, version_id = ? WHERE id = ?",
        (found.size, mtime_ns, inode, now_us, version.id, file_id),
    )
    return version.id


def keep(database: sqlite3.Connection, item: Item, *, machine: str, now_us: int) -> Prepared:
    """Take in what is new of one file. Raises `OSError` if it cannot be read; then nothing has changed."""
    found = prepare(item, before(database, item, machine))
    store(database, found, machine=machine, now_us=now_us)
    return found


def current_version(database: sqlite3.Connection, version_id: int) -> Version:
    """Look a version up."""
    columns = "id, number, kept, head, tail"
    return Version(*database.execute(f"SELECT {columns} FROM versions WHERE id = ?", (version_id,)).fetchone())  # noqa: S608


def reader(database: sqlite3.Connection, version_id: int) -> Reader:
    """Return the bytes of a version, to be read in any order."""
    rows = database.execute("SELECT start, length, id FROM segments WHERE version_id = ? ORDER BY start", (version_id,))
    return Reader(database, [tuple(row) for row in rows])


class Reader:
    """Reads a version from its segments; the last few stay unpacked."""

    def __init__(self, database: sqlite3.Connection, segments: list[tuple[int, int, int]]) -> None:
        """Take the starts, lengths and ids of the segments, in order."""
        self._segments = segments
        self._starts = [start for start, _, _ in segments]
        self.size = segments[-1][0] + segments[-1][1] if segments else 0
        self._content = lru_cache(maxsize=4)(lambda segment_id: content(database, segment_id))

    def __call__(self, start: int, end: int) -> bytes:
        """Return the bytes between two offsets."""
        end = min(end, self.size)
        found = []
        index = max(bisect_right(self._starts, start) - 1, 0)
        while start < end:
            at, length, segment_id = self._segments[index]
            found.append(self._content(segment_id)[start - at : end - at])
            start = at + length
            index += 1
        return found[0] if len(found) == 1 else b"".join(found)


def content(database: sqlite3.Connection, segment_id: int) -> bytes:
    """Unpack one segment, and what it leans on."""
    row = database.execute("SELECT data, length, base_id FROM segments WHERE id = ?", (segment_id,)).fetchone()
    if row is None:
        raise DamagedArchiveError(f"segment {segment_id} is not there")
    data, length, base_id = row
    dictionary = _dictionary(content(database, base_id)) if base_id else None
    unpacked = zstandard.ZstdDecompressor(dict_data=dictionary) if dictionary else zstandard.ZstdDecompressor()
    try:
        return unpacked.decompress(data, max_output_size=length)
    except zstandard.ZstdError as error:
        raise DamagedArchiveError(error) from None


def merge(database: sqlite3.Connection, version_id: int) -> int:
    """Put small neighbouring segments of a version together; return how many fewer there are."""
    rows = database.execute(
        """
        SELECT id, start, length FROM segments WHERE version_id = ? AND base_id IS NULL
            AND id NOT IN (SELECT base_id FROM segments WHERE base_id IS NOT NULL)
        ORDER BY start
        """,
        (version_id,),
    ).fetchall()
    n_fewer = 0
    for run in _runs(rows):
        data = b"".join(content(database, row[0]) for row in run)
        database.executemany("DELETE FROM segments WHERE id = ?", [(row[0],) for row in run])
        _insert(database, version_id, _packed(run[0][1], data))
        n_fewer += len(run) - 1
    return n_fewer


def _runs(rows: list[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    run: list[tuple[int, int, int]] = []
    for row in rows:
        if run and (row[1] != run[-1][1] + run[-1][2] or sum(one[2] for one in run) + row[2] > SEGMENT):
            if len(run) > 1:
                yield run
            run = []
        run.append(row)
    if len(run) > 1:
        yield run


def _goes_on(fd: int, known: Before, version: Version, status: os.stat_result) -> bool:
    """Tell whether a file still begins with what was kept of it.

    A file that grew under the same inode is known by its first and its last bytes; any other is compared in full.
    """
    if status.st_size < version.kept or _probe(fd, 0, version.kept) != version.head:
        return False
    if _probe(fd, max(0, version.kept - _PROBE), version.kept) != version.tail:
        return False
    if known.inode == status.st_ino and status.st_size > version.kept:
        return True
    return all(_digest(_read(fd, start, start + length)) == digest for start, length, digest in known.segments)


def _new_file(database: sqlite3.Connection, item: Item, machine: str, now_us: int) -> int:
    found = database.execute(
        "INSERT INTO files (machine, home, path, size, mtime_ns, inode, first_us, last_us) "
        "VALUES (?, ?, ?, 0, 0, 0, ?, ?)",
        (machine, item.home, item.path, now_us, now_us),
    ).lastrowid
    assert found is not None
    return found


def _new_version(database: sqlite3.Connection, file_id: int, before: Version | None, now_us: int) -> Version:
    number = before.number + 1 if before else 1
    found = database.execute(
        "INSERT INTO versions (file_id, number, kept, head, tail, mtime_ns, first_us) VALUES (?, ?, 0, ?, ?, 0, ?)",
        (file_id, number, b"", b"", now_us),
    ).lastrowid
    assert found is not None
    return Version(found, number, 0, b"", b"")


def _whole_pieces(fd: int, path: str) -> Iterator[bytes]:
    """Read a file from its beginning; an old session may be caught while the client rewrites it, so look again."""
    first = _read(fd, 0, SEGMENT)
    if path.endswith(".json"):
        for _ in range(_TRIES):
            if len(first) == SEGMENT or first.rstrip().endswith((b"}", b"]")):
                break
            time.sleep(_PAUSE)
            first = _read(fd, 0, SEGMENT)
    if first:
        yield first
        yield from _pieces(fd, len(first), None)


def _pieces(fd: int, start: int, end: int | None) -> Iterator[bytes]:
    while piece := _read(fd, start, min(start + SEGMENT, end) if end is not None else start + SEGMENT):
        yield piece
        start += len(piece)


def _base(database: sqlite3.Connection, version: Version) -> tuple[int, int, bytes] | None:
    """Return the first segment of a version, for the next version to lean on, and how deep that makes it."""
    row = database.execute(
        "SELECT id, depth + 1 FROM segments WHERE version_id = ? AND start = 0 AND depth < ?", (version.id, _DEEPEST)
    ).fetchone()
    try:
        return (row[0], row[1], content(database, row[0])) if row else None
    except DamagedArchiveError:
        return None  # what is new stands alone; `verify` tells of the damage


def _packed(start: int, data: bytes, base: tuple[int, int, bytes] | None = None) -> Segment:
    base_id, depth, dictionary = (base[0], base[1], _dictionary(base[2])) if base else (None, 0, None)
    packer = zstandard.ZstdCompressor(compression_params=_PACKING, dict_data=dictionary)
    packed = bytes(memoryview(packer.compress(data)))  # a copy: the packer's own has room for all it was given
    return Segment(start, len(data), _digest(data), base_id if dictionary else None, depth, packed)


def _insert(database: sqlite3.Connection, version_id: int, segment: Segment) -> None:
    database.execute(
        "INSERT INTO segments (version_id, start, length, sha256, base_id, depth, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (version_id, *segment),
    )


def _dictionary(data: bytes) -> zstandard.ZstdCompressionDict | None:
    if len(data) < 8:  # noqa: PLR2004  less is no dictionary
        return None
    return zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _probe(fd: int, start: int, end: int) -> bytes:
    return _digest(_read(fd, start, min(start + _PROBE, end)))


def _read(fd: int, start: int, end: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, end - start, start)
    os.lseek(fd, start, os.SEEK_SET)  # Windows has no pread
    return os.read(fd, end - start)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
