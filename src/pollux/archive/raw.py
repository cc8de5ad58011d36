"""The client's files in SQLite, byte for byte.

A file is a row; each time it was written anew it has another version; the bytes of a version stand in segments, one for
each time something was added to it. Nothing that was kept is ever changed: a file that grew gets another segment, a
file that is different gets another version. The client rewrites old `.json` sessions whole at every turn; such a
version is compressed against the one before it and costs little more than what is new.

Every segment has a SHA-256. `content` compares it each time that a segment is unpacked, so no reader gets damaged bytes
and nothing is derived, merged or copied from them; `prepare` compares it with the disk before a file may go on.
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

from pollux.archive.inventory import Item, place_of
from pollux.errors import DamagedArchiveError
from pollux.sessions.locate import held_inode
from pollux.text.integers import clamped

SEGMENT = 4 << 20
"""Bytes of a file in one segment, at most."""
_PROBE = 4096
COMPARED_WHOLE = 16 << 20
"""A file of which at most so many bytes are archived is compared whole each time that it grew; a larger one so many
bytes at a time, from where the last comparison stopped. SHA-256 takes about 10 ms for them, or 40 without SHA-NI."""
_PACKING = zstandard.ZstdCompressionParameters.from_level(
    3, hash_log=18, chain_log=17, enable_ldm=True, ldm_min_match=32, ldm_hash_rate_log=5
)
"""A session repeats itself over long distances: each message is written again whenever something is added to it."""
_DEEPEST = 16
"""How many versions may lean on each other before one stands alone again."""
MOST_BASES = 64
"""More segments than that never lean on each other: a longer chain leads back to itself."""
_TRIES, _PAUSE = 5, 0.02


class Version(NamedTuple):
    """One state of a file that was not just a continuation of the one before."""

    id: int
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
    """Start, length and digest of what is kept, in order."""
    mtime_ns: int = 0
    compared: int = 0
    """Where the next comparison of a large file with the disk begins."""
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
    ctime_ns: int = 0
    compared: int = 0

    @property
    def n_new(self) -> int:
        """New bytes."""
        return sum(one.length for one in self.segments)


def before(database: sqlite3.Connection, item: Item, machine: str) -> Before | None:
    """Return what is known of a file.

    A version whose rows are damaged counts as none: the file then gets a new version, whole.
    """
    row = database.execute(
        "SELECT id, version_id, inode, mtime_ns, compared FROM files WHERE machine = ? AND home = ? AND path = ?",
        (machine, item.home, item.path),
    ).fetchone()
    if row is None:
        return None
    file_id, version_id, inode, mtime_ns, compared = row
    version = None if version_id is None else current_version(database, version_id)
    segments = database.execute(
        "SELECT start, length, sha256 FROM segments WHERE version_id = ? ORDER BY start", (version_id,)
    ).fetchall()
    if version is None or not all(map(_is_sound_row, segments)) or not isinstance(compared, int):
        return Before(file_id, inode, None)
    base = _base(database, version) if item.path.endswith(".json") else None  # what the client rewrites whole
    return Before(file_id, inode, version, tuple(segments), mtime_ns, compared, base)


def _is_sound_row(row: tuple[object, object, object]) -> bool:
    return isinstance(row[0], int) and isinstance(row[1], int) and isinstance(row[2], bytes)


def prepare(item: Item, known: Before | None) -> Prepared:
    """Read and pack what is new of a file; needs no database, so that it can run beside everything else.

    Raises `OSError` if the file cannot be read.
    """
    with open(item.place, "rb", buffering=0) as file:  # noqa: PTH123  a string from the inventory
        fd = file.fileno()
        status = os.fstat(fd)
        version = known.version if known else None
        compared = _compare(fd, known, version, status) if known and version else None
        goes_on = compared is not None
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
        item,
        known,
        goes_on,
        tuple(segments),
        kept,
        head,
        tail,
        status.st_size,
        status.st_mtime_ns,
        status.st_ino,
        status.st_ctime_ns,
        compared or 0,
    )


def store(database: sqlite3.Connection, found: Prepared, *, machine: str, now_us: int) -> int:
    """Store what was prepared; return the version it belongs to."""
    known = found.before
    mtime_ns, inode = clamped(found.mtime_ns), held_inode(found.inode)  # as the inventory has them
    file_id = known.file_id if known else _new_file(database, found.item, machine, now_us)
    version = known.version if known else None
    if version is None or not found.goes_on:
        version = _new_version(database, file_id, now_us)
    for segment in found.segments:
        _insert(database, version.id, segment)
    database.execute(
        "UPDATE versions SET kept = ?, head = ?, tail = ?, mtime_ns = ? WHERE id = ?",
        (found.kept, found.head, found.tail, mtime_ns, version.id),
    )
    database.execute(
        "UPDATE files SET size = ?, mtime_ns = ?, inode = ?, ctime_ns = ?, compared = ?, last_us = ?, gone_us = NULL, "
        "version_id = ? WHERE id = ?",
        (
            found.size,
            mtime_ns,
            inode,
            clamped(found.ctime_ns),
            found.compared,
            now_us,
            version.id,
            file_id,
        ),
    )
    return version.id


def keep(database: sqlite3.Connection, item: Item, *, machine: str, now_us: int) -> Prepared:
    """Take in what is new of one file. Raises `OSError` if it cannot be read; then nothing has changed."""
    found = prepare(item, before(database, item, machine))
    store(database, found, machine=machine, now_us=now_us)
    return found


def current_version(database: sqlite3.Connection, version_id: int) -> Version | None:
    """Return a version, or nothing if its row is missing or damaged."""
    row = database.execute("SELECT id, kept, head, tail FROM versions WHERE id = ?", (version_id,)).fetchone()
    if row is None:
        return None
    _, kept, head, tail = row
    is_sound = isinstance(kept, int) and isinstance(head, bytes) and isinstance(tail, bytes)
    return Version(*row) if is_sound else None


def reader(database: sqlite3.Connection, version_id: int) -> Reader:
    """Return the bytes of a version, to be read in any order. Raises `DamagedArchiveError` for damaged rows."""
    rows = database.execute("SELECT start, length, id FROM segments WHERE version_id = ? ORDER BY start", (version_id,))
    segments = rows.fetchall()
    if not all(isinstance(start, int) and isinstance(length, int) for start, length, _ in segments):
        raise damaged(database, version_id, "a row of its segments has no valid range")
    return Reader(database, version_id, segments)


class Reader:
    """Reads a version from its segments; the last few stay unpacked."""

    def __init__(self, database: sqlite3.Connection, version_id: int, segments: list[tuple[int, int, int]]) -> None:
        """Take the starts, lengths and ids of the segments, in order."""
        self._database, self._version_id = database, version_id
        self._segments = segments
        self._starts = [start for start, _, _ in segments]
        self.size = segments[-1][0] + segments[-1][1] if segments else 0
        self._content = lru_cache(maxsize=4)(lambda segment_id: content(database, segment_id))

    def __call__(self, start: int, end: int) -> bytes:
        """Return the bytes between two offsets. Raises `DamagedArchiveError` if some are missing or damaged."""
        end = min(end, self.size)
        pieces = []
        index = max(bisect_right(self._starts, start) - 1, 0)
        while start < end:
            at, length, segment_id = self._segments[index]
            following = self._starts[index + 1] if index + 1 < len(self._segments) else self.size
            if not at <= start < at + length or following < at + length:
                first = min(start, following)
                raise damaged(self._database, self._version_id, f"its bytes from {first} on are missing or overlap")
            pieces.append(self._content(segment_id)[start - at : end - at])
            start = at + length
            index += 1
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def content(database: sqlite3.Connection, segment_id: int) -> bytes:
    """Return the bytes of a segment, compared with their SHA-256. Raises `DamagedArchiveError` if they differ.

    The segments that it is compressed against need no comparison: where one of them is damaged, the result is.
    """
    try:
        chain = _chain(database, segment_id)
        data = b""
        for link in reversed(chain):
            data = _unpacked(link.data, link.length, data)
        if len(data) != chain[0].length or _digest(data) != chain[0].sha256:
            raise _DamageError("they do not match their SHA-256")
    except _UNPACKING as error:
        raise _damaged_segment(database, segment_id, error) from None
    return data


def damaged(database: sqlite3.Connection, version_id: int, reason: str, where: str = "") -> DamagedArchiveError:
    """Return the error that names the file of a version, and the archive that it is in."""
    places = [row[2] for row in database.execute("PRAGMA database_list") if row[2]]  # facts alone may be in memory
    try:
        row = database.execute(
            "SELECT CAST(home AS TEXT), CAST(path AS TEXT), number FROM versions JOIN files ON files.id = file_id "
            "WHERE versions.id = ?",
            (version_id,),
        ).fetchone()
    except sqlite3.DatabaseError:
        row = None
    file = f"Version {row[2]} of {place_of(row[0], row[1])}" if row else f"Version {version_id} of an unknown file"
    return DamagedArchiveError(reason, f"{file}{where}", places[-1] if places else "in memory")


def _damaged_segment(database: sqlite3.Connection, segment_id: int, error: Exception) -> DamagedArchiveError:
    try:
        row = database.execute("SELECT version_id, start FROM segments WHERE id = ?", (segment_id,)).fetchone()
    except sqlite3.DatabaseError:
        row = None
    if row is None:
        return damaged(database, 0, "they are missing", f", bytes of segment {segment_id}")
    reason = str(error) if isinstance(error, _DamageError) else "they cannot be unpacked"
    return damaged(database, row[0], reason, f", bytes from {row[1]} on,")


class _DamageError(ValueError):
    """The bytes of a segment are missing or not those that were archived."""


class _Link(NamedTuple):
    length: int
    sha256: bytes
    data: bytes
    base_id: int | None


_UNPACKING = (zstandard.ZstdError, sqlite3.DatabaseError, TypeError, ValueError, OverflowError, MemoryError)


def _chain(database: sqlite3.Connection, segment_id: int) -> list[_Link]:
    """Return a segment, the one that it is compressed against, and so on."""
    chain: list[_Link] = []
    following: int | None = segment_id
    while following is not None:
        row = database.execute(
            "SELECT length, sha256, data, base_id FROM segments WHERE id = ?", (following,)
        ).fetchone()
        if row is None:
            raise _DamageError("what they are compressed against is missing")
        if len(chain) > MOST_BASES:
            raise _DamageError("they are compressed against themselves")
        chain.append(_Link(*row))
        following = chain[-1].base_id
    return chain


def _unpacked(packed: bytes, length: int, base: bytes) -> bytes:
    """Unpack data; a frame that claims to be longer than it should be is not tried, since it may be enormous."""
    if zstandard.frame_content_size(packed) > length:
        raise zstandard.ZstdError("it is longer than it should be")
    dictionary = _dictionary(base)
    unpacker = zstandard.ZstdDecompressor(dict_data=dictionary) if dictionary else zstandard.ZstdDecompressor()
    return unpacker.decompress(packed, max_output_size=length)


def merge(database: sqlite3.Connection, version_id: int) -> int:
    """Put small neighbouring segments of a version together; return how many fewer there are.

    Raises `DamagedArchiveError` if one of them is damaged: the caller's transaction has to be rolled back then, so
    that no damage is given a new hash.
    """
    rows = database.execute(
        """
        SELECT id, start, length FROM segments WHERE version_id = ? AND base_id IS NULL
            AND id NOT IN (SELECT base_id FROM segments WHERE base_id IS NOT NULL)
        ORDER BY start
        """,
        (version_id,),
    ).fetchall()
    if not all(isinstance(start, int) and isinstance(length, int) for _, start, length in rows):
        raise damaged(database, version_id, "a row of its segments has no valid range")
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


def _compare(fd: int, known: Before, version: Version, status: os.stat_result) -> int | None:
    """Return where the next comparison begins, or nothing if a file does not begin with what is archived of it.

    A large file that was only appended to, as far as its times tell, is compared piece by piece: its beginning, its
    end and some segments each time. Any other file is compared whole.
    """
    if status.st_size < version.kept or _probe(fd, 0, version.kept) != version.head:
        return None
    if _probe(fd, max(0, version.kept - _PROBE), version.kept) != version.tail:
        return None
    segments, following = known.segments, 0
    if version.kept > COMPARED_WHOLE and _was_only_appended_to(known, version, status):
        segments, following = _next_segments(known.segments, known.compared)
    is_same = all(_digest(_read(fd, start, start + length)) == digest for start, length, digest in segments)
    return following if is_same else None


def _was_only_appended_to(known: Before, version: Version, status: os.stat_result) -> bool:
    """Return whether the status of a file tells of nothing but growth.

    A write sets both times to the same moment; who sets the time of change back, or changes the mode, leaves them
    different. Windows has the time of creation in `st_ctime_ns`.
    """
    is_last_change_a_write = os.name == "nt" or status.st_ctime_ns == status.st_mtime_ns
    is_later = status.st_mtime_ns >= known.mtime_ns
    return known.inode == status.st_ino and status.st_size > version.kept and is_later and is_last_change_a_write


def _next_segments(
    segments: tuple[tuple[int, int, bytes], ...], position: int
) -> tuple[tuple[tuple[int, int, bytes], ...], int]:
    """Return some segments from a position on, and where to go on the next time: at the beginning after the last."""
    waiting = [one for one in segments if one[0] + one[1] > position] or list(segments)
    n_bytes = 0
    for number, (start, length, _) in enumerate(waiting):
        if number and n_bytes + length > COMPARED_WHOLE:
            return tuple(waiting[:number]), start
        n_bytes += length
    return tuple(waiting), 0


def differs_from_disk(database: sqlite3.Connection, version_id: int, place: str) -> bool:
    """Return whether a file does not begin with what is archived of it. Raises `OSError` if it cannot be read."""
    segments = database.execute("SELECT start, length, sha256 FROM segments WHERE version_id = ?", (version_id,))
    with open(place, "rb", buffering=0) as file:  # noqa: PTH123  as in `prepare`
        fd = file.fileno()
        return any(
            _is_sound_row(row) and _digest(_read(fd, row[0], row[0] + row[1])) != row[2] for row in segments.fetchall()
        )


def _new_file(database: sqlite3.Connection, item: Item, machine: str, now_us: int) -> int:
    found = database.execute(
        "INSERT INTO files (machine, home, path, size, mtime_ns, inode, first_us, last_us) "
        "VALUES (?, ?, ?, 0, 0, 0, ?, ?)",
        (machine, item.home, item.path, now_us, now_us),
    ).lastrowid
    assert found is not None
    return found


def _new_version(database: sqlite3.Connection, file_id: int, now_us: int) -> Version:
    """Add a version under an id that no segment has: where rows of versions were lost, their segments may be left."""
    last_id = database.execute(
        "SELECT max(coalesce(max(id), 0), (SELECT coalesce(CAST(max(version_id) AS INTEGER), 0) FROM segments)) "
        "FROM versions"
    ).fetchone()[0]
    database.execute(
        "INSERT INTO versions (id, file_id, number, kept, head, tail, mtime_ns, first_us) "
        "SELECT ?1, ?2, coalesce(max(CAST(number AS INTEGER)), 0) + 1, 0, x'', x'', 0, ?3 "
        "FROM versions WHERE file_id = ?2",
        (last_id + 1, file_id, now_us),
    )
    return Version(last_id + 1, 0, b"", b"")


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
