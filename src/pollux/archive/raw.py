"""The client's files in SQLite, byte for byte.

A file has one or more *versions*, and the bytes of a version are stored in compressed *segments*. Archived bytes never
change: a file that grew gets another segment, and a file whose archived beginning changed gets another version. The
client rewrites `.json` sessions completely at every turn; such a version is compressed against the one before, so that
it costs little more than its new part.

Every segment has a SHA-256. `content` checks it each time a segment is decompressed, so damaged bytes are never read,
merged or copied; `prepare` checks it against the file on disk before a version may be continued. A search, which reads
many segments for a few lines of each, checks the messages instead if their digests are in the index; else it checks a
segment once as long as the archive is open.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from bisect import bisect_right
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec
import zstandard

from pollux.archive.inventory import DiskFile, original_path
from pollux.errors import DamagedArchiveError
from pollux.sessions.locate import held_inode
from pollux.text.numbers import clamped

SEGMENT = 4 << 20
"""Maximum number of bytes in a segment."""
PROBE = 4096
"""Each version stores the SHA-256 of this many bytes at its beginning and at its end."""
COMPARED_WHOLE = 16 << 20
"""Up to this length, all archived bytes are compared with the disk each time the file grew; of a longer file, this many
bytes at a time, continuing where the last comparison stopped. SHA-256 takes 10 ms for them, 40 ms without SHA-NI."""
UNDECODABLE = (zstandard.ZstdError, TypeError, ValueError, LookupError, OverflowError, MemoryError)
"""What decoding damaged bytes may raise."""
UNPACKING = (DamagedArchiveError, sqlite3.DatabaseError, *UNDECODABLE)
"""What reading a damaged segment may raise."""
_PACKING = zstandard.ZstdCompressionParameters.from_level(
    3, hash_log=18, chain_log=17, enable_ldm=True, ldm_min_match=32, ldm_hash_rate_log=5
)
"""Long-distance matching, because the client writes a message again whenever something is added to it."""
_LEVEL = 3
_MAX_DEPTH = 16
"""Number of versions that are compressed against each other before one is compressed by itself again."""
_BLOCK = 64 << 10
"""Bytes that are decompressed at a time where the rest may not be needed."""
MAX_CHAIN = 64
"""A longer chain of base segments is a cycle."""
_TRIES, _PAUSE = 5, 0.02
CheckedSegments: TypeAlias = dict[int, bytes]
"""Segments that were compared with their SHA-256, by ID."""


class KnownVersion(NamedTuple):
    """The newest version of a file: how much of it is archived, and the SHA-256 of its beginning and end."""

    id: int
    length: int
    head: bytes
    tail: bytes


class PackedSegment(NamedTuple):
    """Compressed bytes of a file, ready to be stored."""

    start: int
    length: int
    sha256: bytes
    base_id: int | None
    depth: int
    data: bytes


class KnownFile(msgspec.Struct, frozen=True):
    """What the archive knows about a file before reading it again."""

    file_id: int
    inode: int
    version: KnownVersion | None
    segments: tuple[tuple[int, int, bytes], ...] = ()
    """Start, length and SHA-256 of each segment, in order."""
    mtime_ns: int = 0
    compared: int = 0
    """Where the next comparison of a large file with the disk starts."""
    base: tuple[int, int, bytes] | None = None
    """A segment that a rewritten file can be compressed against: its ID, the resulting depth, its bytes."""


class PendingWrite(msgspec.Struct, frozen=True):
    """New bytes of a file, read and compressed but not stored yet."""

    file: DiskFile
    known: KnownFile | None
    is_continuation: bool
    segments: tuple[PackedSegment, ...]
    length: int
    head: bytes
    tail: bytes
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int = 0
    compared: int = 0

    @property
    def n_new(self) -> int:
        """The number of new bytes."""
        return sum(segment.length for segment in self.segments)


def known_file(database: sqlite3.Connection, item: DiskFile, machine: str) -> KnownFile | None:
    """Return what the archive knows about a file, or None for a new file.

    Damaged rows are treated as no version, so that the file is archived again as a new version.
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
    if version is None or not all(map(_is_valid_row, segments)) or not isinstance(compared, int):
        return KnownFile(file_id, inode, None)
    base = _base(database, version) if item.path.endswith(".json") else None  # the client rewrites these
    return KnownFile(file_id, inode, version, tuple(segments), mtime_ns, compared, base)


def _is_valid_row(row: tuple[object, object, object]) -> bool:
    return isinstance(row[0], int) and isinstance(row[1], int) and isinstance(row[2], bytes)


def prepare(item: DiskFile, known: KnownFile | None) -> PendingWrite:
    """Read and compress the new bytes of a file. Raises `OSError`.

    Uses no database, so that it can run in a thread.
    """
    with open(item.place, "rb", buffering=0) as file:  # noqa: PTH123  a string from the inventory
        fd = file.fileno()
        status = os.fstat(fd)
        version = known.version if known else None
        compared = _compare(fd, known, version, status) if known and version else None
        is_continuation = compared is not None
        length = version.length if version and is_continuation else 0
        pieces = _pieces(fd, length, status.st_size) if is_continuation else _whole_pieces(fd, item.path)
        base = None if is_continuation or known is None else known.base
        segments = []
        for piece in pieces:
            segments.append(_packed(length, piece, base if length == 0 else None))
            length += len(piece)
        head, tail = _probe(fd, 0, length), _probe(fd, max(0, length - PROBE), length)
        if not item.path.endswith(".jsonl") and _stamp(os.fstat(fd)) != _stamp(status):
            head = b""  # written while we read it, so the next read must start another version
    return PendingWrite(
        item,
        known,
        is_continuation,
        tuple(segments),
        length,
        head,
        tail,
        status.st_size,
        status.st_mtime_ns,
        status.st_ino,
        status.st_ctime_ns,
        compared or 0,
    )


def store(database: sqlite3.Connection, new: PendingWrite, *, machine: str, now_us: int) -> int:
    """Store prepared bytes and return the ID of their version."""
    archived = new.known
    mtime_ns, inode = clamped(new.mtime_ns), held_inode(new.inode)  # as in the inventory
    file_id = archived.file_id if archived else _new_file(database, new.file, machine, now_us)
    version = archived.version if archived else None
    if version is None or not new.is_continuation:
        version = _new_version(database, file_id, now_us)
    for segment in new.segments:
        _insert(database, version.id, segment)
    database.execute(
        "UPDATE versions SET archived_bytes = ?, head = ?, tail = ?, mtime_ns = ? WHERE id = ?",
        (new.length, new.head, new.tail, mtime_ns, version.id),
    )
    database.execute(
        "UPDATE files SET size = ?, mtime_ns = ?, inode = ?, ctime_ns = ?, compared = ?, last_us = ?, "
        "deleted_us = NULL, version_id = ? WHERE id = ?",
        (new.size, mtime_ns, inode, clamped(new.ctime_ns), new.compared, now_us, version.id, file_id),
    )
    return version.id


def current_version(database: sqlite3.Connection, version_id: int) -> KnownVersion | None:
    """Return a version, or None if its row is missing or damaged."""
    row = database.execute("SELECT id, archived_bytes, head, tail FROM versions WHERE id = ?", (version_id,)).fetchone()
    if row is None:
        return None
    _, length, head, tail = row
    is_valid = isinstance(length, int) and isinstance(head, bytes) and isinstance(tail, bytes)
    return KnownVersion(*row) if is_valid else None


def reader(database: sqlite3.Connection, version_id: int, checked: CheckedSegments | None = None) -> VersionReader:
    """Open a version for random access. Raises `DamagedArchiveError` if rows of its segments are damaged."""
    rows = database.execute("SELECT start, length, id FROM segments WHERE version_id = ? ORDER BY start", (version_id,))
    segments = rows.fetchall()
    if not all(isinstance(start, int) and isinstance(length, int) for start, length, _ in segments):
        raise damaged(database, version_id, "a row of its segments has no valid range")
    return VersionReader(database, version_id, segments, checked)


class UncheckedBytes:
    """The bytes of a version, decompressed from the beginning on as far as they are needed.

    They are not compared with their SHA-256, so the reader has to compare what it uses with something else. Reading may
    raise one of `UNPACKING`.
    """

    def __init__(self, database: sqlite3.Connection, segments: list[tuple[int, int]]) -> None:
        """Open segments, given in order as ID and length, none of which is compressed against another."""
        self._database, self._segments = database, segments[::-1]
        self._stream: zstandard.ZstdDecompressionReader | None = None
        self.data = bytearray()
        """What was read last."""
        self.start = 0
        """Where `data` begins; what is before it was read and dropped."""
        self._most = sum(length for _, length in segments)

    @property
    def end(self) -> int:
        """How many bytes were read."""
        return self.start + len(self.data)

    def drop(self) -> None:
        """Drop what was read."""
        self.start = self.end
        self.data.clear()

    def read_on(self) -> bool:
        """Read another block; return whether there was one."""
        while True:
            if self._stream is not None:
                block = self._stream.read(min(_BLOCK, self._most - self.end))
                self.data += block
                if block:
                    return True
            if not self._segments or self.end == self._most:
                return False
            segment_id, length = self._segments.pop()
            (packed,) = self._database.execute("SELECT data FROM segments WHERE id = ?", (segment_id,)).fetchone()
            if zstandard.frame_content_size(packed) > length:
                raise zstandard.ZstdError("it is longer than it should be")
            self._stream = zstandard.ZstdDecompressor().stream_reader(packed)


def unchecked_bytes(database: sqlite3.Connection, version_ids: Collection[int]) -> dict[int, UncheckedBytes]:
    """Return the bytes of some versions; those compressed against others, or with damaged rows, are left out."""
    segments: dict[int, list[tuple[int, int]]] = {}
    ends: dict[int, int] = {}
    refused: set[int] = set()
    rows = database.execute(
        "SELECT version_id, start, length, id, base_id FROM segments "
        "WHERE version_id IN (SELECT value FROM json_each(?)) ORDER BY version_id, start",
        (msgspec.json.encode([*version_ids]).decode(),),
    ).fetchall()
    for version_id, start, length, segment_id, base_id in rows:
        if base_id is not None or start != ends.get(version_id, 0) or not isinstance(length, int) or length > SEGMENT:
            refused.add(version_id)
            continue
        ends[version_id] = start + length
        segments.setdefault(version_id, []).append((segment_id, length))
    return {
        version_id: UncheckedBytes(database, own_segments)
        for version_id, own_segments in segments.items()
        if version_id not in refused
    }


class VersionReader:
    """Reads a version from its segments; the last few stay decompressed."""

    def __init__(
        self,
        database: sqlite3.Connection,
        version_id: int,
        segments: list[tuple[int, int, int]],
        checked: CheckedSegments | None = None,
    ) -> None:
        """Open a version whose segments are given in order as start, length and ID."""
        self._database, self._version_id = database, version_id
        self._segments = segments
        self._starts = [start for start, _, _ in segments]
        self.size = segments[-1][0] + segments[-1][1] if segments else 0
        self._content = lru_cache(maxsize=4)(lambda segment_id: content(database, segment_id, checked))

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


def content(database: sqlite3.Connection, segment_id: int, checked: CheckedSegments | None = None) -> bytes:
    """Return the bytes of a segment. Raises `DamagedArchiveError` if they do not match their SHA-256.

    Base segments need no check of their own: if one of them is damaged, the result is too. A segment that is among
    `checked` is not checked again, which takes as long as to decompress it; one that is checked is added.
    """
    try:
        chain = _chain(database, segment_id)
        data = b""
        for link in reversed(chain):
            data = _unpacked(link.data, link.length, data)
        length, sha256 = chain[0].length, chain[0].sha256
        is_checked = checked is not None and checked.get(segment_id) == sha256
        if len(data) != length or not (is_checked or _digest(data) == sha256):
            raise _DamageError("they do not match their SHA-256")
        if checked is not None:
            checked[segment_id] = sha256
    except UNPACKING as error:
        raise _damaged_segment(database, segment_id, error) from None
    return data


def compress(data: bytes) -> bytes:
    """Compress bytes without a base segment."""
    return zstandard.ZstdCompressor(_LEVEL).compress(data)


def damaged(database: sqlite3.Connection, version_id: int, reason: str, where: str = "") -> DamagedArchiveError:
    """Return an error that names the file of a version and the archive."""
    archives = [row[2] for row in database.execute("PRAGMA database_list") if row[2]]  # an in-memory one has no path
    try:
        row = database.execute(
            "SELECT CAST(home AS TEXT), CAST(path AS TEXT), number FROM versions JOIN files ON files.id = file_id "
            "WHERE versions.id = ?",
            (version_id,),
        ).fetchone()
    except sqlite3.DatabaseError:
        row = None
    file = f"Version {row[2]} of {original_path(row[0], row[1])}" if row else f"Version {version_id} of an unknown file"
    return DamagedArchiveError(reason, f"{file}{where}", archives[-1] if archives else "in memory")


def _damaged_segment(database: sqlite3.Connection, segment_id: int, error: Exception) -> DamagedArchiveError:
    try:
        row = database.execute("SELECT version_id, start FROM segments WHERE id = ?", (segment_id,)).fetchone()
    except sqlite3.DatabaseError:
        row = None
    if row is None:
        return damaged(database, 0, "they are missing", f", bytes of segment {segment_id}")
    reason = str(error) if isinstance(error, _DamageError) else "they cannot be decompressed"
    return damaged(database, row[0], reason, f", bytes from {row[1]} on,")


class _DamageError(ValueError):
    """The bytes of a segment are missing, or differ from those that were archived."""


class _Link(NamedTuple):
    length: int
    sha256: bytes
    data: bytes
    base_id: int | None


def _chain(database: sqlite3.Connection, segment_id: int) -> list[_Link]:
    """Return a segment, its base segment, the base of that, and so on."""
    chain: list[_Link] = []
    next_id: int | None = segment_id
    while next_id is not None:
        row = database.execute("SELECT length, sha256, data, base_id FROM segments WHERE id = ?", (next_id,)).fetchone()
        if row is None:
            raise _DamageError("what they are compressed against is missing")
        if len(chain) > MAX_CHAIN:
            raise _DamageError("they are compressed against themselves")
        chain.append(_Link(*row))
        next_id = chain[-1].base_id
    return chain


def _unpacked(packed: bytes, length: int, base: bytes) -> bytes:
    """Decompress data; a frame that claims to be longer than its segment is refused, since it may be enormous."""
    if zstandard.frame_content_size(packed) > length:
        raise zstandard.ZstdError("it is longer than it should be")
    dictionary = _dictionary(base)
    unpacker = zstandard.ZstdDecompressor(dict_data=dictionary) if dictionary else zstandard.ZstdDecompressor()
    return unpacker.decompress(packed, max_output_size=length)


def merge(database: sqlite3.Connection, version_id: int) -> int:
    """Merge small neighbouring segments of a version and return by how many their number decreased.

    Raises `DamagedArchiveError` if one of them is damaged. The caller must then roll back its transaction, because a
    damaged segment must not get a new SHA-256.
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
        if run and (row[1] != run[-1][1] + run[-1][2] or sum(length for _, _, length in run) + row[2] > SEGMENT):
            if len(run) > 1:
                yield run
            run = []
        run.append(row)
    if len(run) > 1:
        yield run


def _compare(fd: int, known: KnownFile, version: KnownVersion, status: os.stat_result) -> int | None:
    """Return where the next comparison starts, or None if the file does not start with its archived bytes.

    Of a large file that was only appended to, judging by its status, each call compares the beginning, the end and some
    segments. Any other file is compared completely.
    """
    if status.st_size < version.length or _probe(fd, 0, version.length) != version.head:
        return None
    if _probe(fd, max(0, version.length - PROBE), version.length) != version.tail:
        return None
    segments, next_start = known.segments, 0
    if version.length > COMPARED_WHOLE and _was_only_appended_to(known, version, status):
        segments, next_start = _next_segments(known.segments, known.compared)
    is_same = all(_digest(_read(fd, start, start + length)) == digest for start, length, digest in segments)
    return next_start if is_same else None


def _was_only_appended_to(known: KnownFile, version: KnownVersion, status: os.stat_result) -> bool:
    """Return whether the status of a file shows nothing but growth.

    A write sets mtime and ctime to the same moment; setting mtime back or changing the mode makes them differ. On
    Windows `st_ctime_ns` is the time of creation.
    """
    is_last_change_a_write = os.name == "nt" or status.st_ctime_ns == status.st_mtime_ns
    is_later = status.st_mtime_ns >= known.mtime_ns
    return known.inode == status.st_ino and status.st_size > version.length and is_later and is_last_change_a_write


def _next_segments(
    segments: tuple[tuple[int, int, bytes], ...], position: int
) -> tuple[tuple[tuple[int, int, bytes], ...], int]:
    """Return some segments from a position on, and the position to continue from: 0 after the last segment."""
    remaining = [segment for segment in segments if segment[0] + segment[1] > position] or list(segments)
    n_bytes = 0
    for number, (start, length, _) in enumerate(remaining):
        if number and n_bytes + length > COMPARED_WHOLE:
            return tuple(remaining[:number]), start
        n_bytes += length
    return tuple(remaining), 0


def differs_from_disk(database: sqlite3.Connection, version_id: int, place: str) -> bool:
    """Return whether a file on disk differs from its archived bytes. Raises `OSError`."""
    segments = database.execute("SELECT start, length, sha256 FROM segments WHERE version_id = ?", (version_id,))
    with open(place, "rb", buffering=0) as file:  # noqa: PTH123  as in `prepare`
        fd = file.fileno()
        return any(
            _is_valid_row(row) and _digest(_read(fd, row[0], row[0] + row[1])) != row[2] for row in segments.fetchall()
        )


def _new_file(database: sqlite3.Connection, item: DiskFile, machine: str, now_us: int) -> int:
    file_id = database.execute(
        "INSERT INTO files (machine, home, path, size, mtime_ns, inode, first_us, last_us) "
        "VALUES (?, ?, ?, 0, 0, 0, ?, ?)",
        (machine, item.home, item.path, now_us, now_us),
    ).lastrowid
    assert file_id is not None
    return file_id


def _new_version(database: sqlite3.Connection, file_id: int, now_us: int) -> KnownVersion:
    """Insert a version with an ID that no segment refers to: segments of lost version rows may still exist."""
    last_id = database.execute(
        "SELECT max(coalesce(max(id), 0), (SELECT coalesce(CAST(max(version_id) AS INTEGER), 0) FROM segments)) "
        "FROM versions"
    ).fetchone()[0]
    database.execute(
        "INSERT INTO versions (id, file_id, number, archived_bytes, head, tail, mtime_ns, first_us) "
        "SELECT ?1, ?2, coalesce(max(CAST(number AS INTEGER)), 0) + 1, 0, x'', x'', 0, ?3 "
        "FROM versions WHERE file_id = ?2",
        (last_id + 1, file_id, now_us),
    )
    return KnownVersion(last_id + 1, 0, b"", b"")


def _whole_pieces(fd: int, path: str) -> Iterator[bytes]:
    """Yield a file from its beginning; wait briefly for a `.json` file that the client is rewriting at the moment."""
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


def _base(database: sqlite3.Connection, version: KnownVersion) -> tuple[int, int, bytes] | None:
    """Return the first segment of a version, as a base for the next version: its ID, the depth above it, its bytes."""
    row = database.execute(
        "SELECT id, depth + 1 FROM segments WHERE version_id = ? AND start = 0 AND depth < ?", (version.id, _MAX_DEPTH)
    ).fetchone()
    try:
        return (row[0], row[1], content(database, row[0])) if row else None
    except DamagedArchiveError:
        return None  # the new version is compressed by itself; `verify` reports the damage


def _packed(start: int, data: bytes, base: tuple[int, int, bytes] | None = None) -> PackedSegment:
    base_id, depth, dictionary = (base[0], base[1], _dictionary(base[2])) if base else (None, 0, None)
    packer = zstandard.ZstdCompressor(compression_params=_PACKING, dict_data=dictionary)
    packed = bytes(memoryview(packer.compress(data)))  # a copy, because the packer's buffer is as large as its input
    return PackedSegment(start, len(data), _digest(data), base_id if dictionary else None, depth, packed)


def _insert(database: sqlite3.Connection, version_id: int, segment: PackedSegment) -> None:
    database.execute(
        "INSERT INTO segments (version_id, start, length, sha256, base_id, depth, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (version_id, *segment),
    )


def _dictionary(data: bytes) -> zstandard.ZstdCompressionDict | None:
    if len(data) < 8:  # noqa: PLR2004  the minimum size of a dictionary
        return None
    return zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _probe(fd: int, start: int, end: int) -> bytes:
    return _digest(_read(fd, start, min(start + PROBE, end)))


def _read(fd: int, start: int, end: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, end - start, start)
    os.lseek(fd, start, os.SEEK_SET)  # Windows has no pread
    return os.read(fd, end - start)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
