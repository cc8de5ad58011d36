"""The segments that an archive keeps bytes in: whose they are, and whether they are what their hash says."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import NamedTuple

import zstandard

from pollux.archive import raw
from pollux.errors import DamagedArchiveError

UNPACKING = (
    DamagedArchiveError,
    zstandard.ZstdError,
    sqlite3.DatabaseError,
    TypeError,
    ValueError,
    LookupError,
    MemoryError,
)
"""What goes wrong with a segment that is damaged, or that leans on nothing."""
_LEVEL = 3


class Segment(NamedTuple):
    """A stretch of a version, and whose it is."""

    id: int
    version_id: int
    number: int
    start: int
    length: int
    sha256: bytes
    base_id: int | None
    depth: int
    machine: str
    home: str
    path: str


@dataclass(frozen=True, slots=True)
class Version:
    """What was kept of a file at one time, and whose it is."""

    id: int
    number: int
    kept: int
    head: bytes
    tail: bytes
    is_current: bool
    machine: str
    home: str
    path: str


def segment(database: sqlite3.Connection, segment_id: int) -> Segment:
    """Look a segment up; whose it is stays open where the reference dangles."""
    return Segment(
        *database.execute(
            """
            SELECT segments.id, segments.version_id, coalesce(number, 0), start, length, sha256, base_id, depth,
                coalesce(machine, ''), coalesce(home, ''), coalesce(path, '')
            FROM segments LEFT JOIN versions ON versions.id = segments.version_id
            LEFT JOIN files ON files.id = file_id
            WHERE segments.id = ?
            """,
            (segment_id,),
        ).fetchone()
    )


def fault(database: sqlite3.Connection, one: Segment) -> str | None:
    """Return what is wrong with a segment, if anything is."""
    try:
        data = raw.content(database, one.id)
    except DamagedArchiveError as error:
        return error.reason
    return None if len(data) == one.length else "they are not as many as their row says"


def packed(data: bytes) -> bytes:
    """Compress bytes that lean on nothing."""
    return zstandard.ZstdCompressor(_LEVEL).compress(data)
