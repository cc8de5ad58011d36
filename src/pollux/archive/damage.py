"""Damage in an archive: how it is described, and how lost bytes are found elsewhere and restored.

Bytes are restored only if they have exactly the SHA-256 of the lost ones.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from pollux.archive import raw, schema
from pollux.archive.inventory import original_path
from pollux.archive.migrations import transaction
from pollux.archive.raw import PROBE, UNPACKING, compress
from pollux.archive.store import Archive
from pollux.errors import DamagedArchiveError

_Read = Callable[[int, int], bytes]


@dataclass(frozen=True, slots=True)
class Damage:
    """One fault in an archive."""

    code: str
    message: str
    machine: str | None = None
    file: str | None = None
    version: int | None = None
    start: int | None = None
    end: int | None = None
    source: str | None = None
    """Where the same bytes still exist."""
    is_repaired: bool = False


@dataclass(slots=True)
class VerifyReport:
    """How much was checked, and the damage in it."""

    n_segments: int = 0
    n_bytes: int = 0
    damage: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Reasons why something was not checked; no damage."""
    not_compared: list[str] = field(default_factory=list)
    """What this check does not prove."""

    @property
    def is_ok(self) -> bool:
        """Whether there is no damage, or all of it was repaired."""
        return all(damage.is_repaired for damage in self.damage)

    @property
    def bytes_are_ok(self) -> bool:
        """Whether all archived bytes can be read, so that facts can be derived from them."""
        return all(damage.is_repaired or damage.code in ("facts", "edited") for damage in self.damage)


class StoredSegment(NamedTuple):
    """A row of `segments`, with the version and the file that it belongs to."""

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
class StoredVersion:
    """A row of `versions`, with the file that it belongs to."""

    id: int
    number: int
    length: int
    head: bytes
    tail: bytes
    is_current: bool
    machine: str
    home: str
    path: str


def stored_segment(database: sqlite3.Connection, segment_id: int) -> StoredSegment:
    """Return a segment; its file is empty if the reference to it dangles."""
    return StoredSegment(
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


def segment_fault(database: sqlite3.Connection, segment: StoredSegment) -> str | None:
    """Return what is wrong with a segment, or None."""
    try:
        data = raw.content(database, segment.id)
    except DamagedArchiveError as error:
        return error.reason
    return None if len(data) == segment.length else "their number is not the one in their row"


def damage_of(code: str, fault: str, owner: StoredSegment | StoredVersion, number: int, start: int, end: int) -> Damage:
    """Return the damage of a range of bytes."""
    file = str(original_path(owner.home, owner.path)) if owner.path else "a file that is missing"
    message = f"bytes {start}–{end} of version {number}: {fault}"
    return Damage(code, message, owner.machine or None, file, number, start, end)


def repair_segment(
    archive: Archive, segment: StoredSegment, fault: str, roots: Sequence[str], *, repair: bool
) -> Damage:
    """Return the damage of a segment and where its bytes still exist; with `repair`, restore them."""
    end = segment.start + segment.length
    damage = damage_of("bytes", fault, segment, segment.number, segment.start, end)
    for name, read in _candidates(archive, segment, segment.version_id, roots, digest=segment.sha256):
        data = _read_or_none(read, segment.start, end)
        if data is None or hashlib.sha256(data).digest() != segment.sha256:
            continue
        if repair:
            with transaction(archive.database):
                archive.database.execute(
                    "UPDATE segments SET data = ?, base_id = NULL, depth = 0 WHERE id = ?", (compress(data), segment.id)
                )
        return replace(damage, source=name, is_repaired=repair)
    return damage


def repair_gap(
    archive: Archive, version: StoredVersion, start: int, end: int, roots: Sequence[str], *, repair: bool
) -> Damage:
    """Return the damage of a gap between segments and where its bytes still exist; with `repair`, restore them.

    The SHA-256 of the missing segment is lost too, so only the hashes of the version's beginning and end can prove
    candidates. Otherwise the file on disk, if there is one, is archived as a new version.
    """
    database = archive.database
    damage = damage_of("gap", "they are missing", version, version.number, start, end)
    for name, read in _candidates(archive, version, version.id, roots):
        if data := _proven_bytes(version, read, start, end):
            if repair:
                with transaction(database):
                    database.execute(
                        "INSERT INTO segments (version_id, start, length, sha256, base_id, depth, data) "
                        "VALUES (?, ?, ?, ?, NULL, 0, ?)",
                        (version.id, start, end - start, hashlib.sha256(data).digest(), compress(data)),
                    )
            return replace(damage, source=name, is_repaired=repair)
    path = original_path(version.home, version.path)
    if version.is_current and version.machine == archive.machine and path.is_file():
        if repair:
            archive_again(database, version.id)
        return replace(damage, source=f"{path}, which cannot be proven to be the same; archived as a new version")
    return damage


def archive_again(database: sqlite3.Connection, version_id: int) -> None:
    """Make the next refresh archive the file as a new version."""
    with transaction(database):
        database.execute("UPDATE versions SET head = x'' WHERE id = ?", (version_id,))
        database.execute("UPDATE files SET size = -1 WHERE version_id = ?", (version_id,))
        if schema.are_current(database):
            database.execute("UPDATE readings SET is_superseded = 1 WHERE version_id = ?", (version_id,))


def _candidates(
    archive: Archive,
    lost: StoredSegment | StoredVersion,
    version_id: int,
    roots: Sequence[str],
    *,
    digest: bytes | None = None,
) -> Iterator[tuple[str, _Read]]:
    """Yield what may contain the lost bytes, with its name: the file itself, its copies, other versions."""
    database = archive.database
    own = [original_path(lost.home, lost.path)] if lost.machine == archive.machine else []
    for path in dict.fromkeys([*own, *(original_path(root, lost.path) for root in roots)]):
        yield str(path), _from_disk(path)
    if digest is not None:
        rows = database.execute("SELECT id, start FROM segments WHERE sha256 = ? AND id <> ?", (digest, lost.id))
        for segment_id, start in rows.fetchall():
            twin = stored_segment(database, segment_id)
            name = (
                f"version {twin.number} of {original_path(twin.home, twin.path)}, bytes {start}–{start + twin.length}"
            )
            yield name, lambda _start, _end, found=segment_id: raw.content(database, found)  # type: ignore[misc]
    rows = database.execute(
        "SELECT versions.id, number, machine, CAST(home AS TEXT), CAST(path AS TEXT) "
        "FROM versions JOIN files ON files.id = file_id "
        "WHERE (path = ? OR path LIKE ?) AND versions.id <> ? ORDER BY number DESC",
        (lost.path, f"%/{lost.path.rpartition('/')[2]}", version_id),
    )
    for other_id, number, machine, home, relative_path in rows.fetchall():
        path = original_path(home, relative_path)
        if machine == archive.machine:
            yield str(path), _from_disk(path)
        yield f"version {number} of {path}", _from_version(database, other_id)


def _from_disk(path: Path) -> _Read:
    def read(start: int, end: int) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    return read


def _from_version(database: sqlite3.Connection, version_id: int) -> _Read:
    def read(start: int, end: int) -> bytes:
        return raw.reader(database, version_id)(start, end)  # opened here, since it may be damaged too

    return read


def _read_or_none(read: _Read, start: int, end: int) -> bytes | None:
    try:
        return read(start, end)
    except (OSError, *UNPACKING):
        return None


def _proven_bytes(version: StoredVersion, read: _Read, start: int, end: int) -> bytes | None:
    """Return bytes of a candidate if they are within its beginning or end and that has the archived SHA-256."""
    for first, last, digest in (
        (0, min(PROBE, version.length), version.head),
        (max(0, version.length - PROBE), version.length, version.tail),
    ):
        if first <= start and end <= last:
            data = _read_or_none(read, first, last)
            if data is not None and len(data) == last - first and hashlib.sha256(data).digest() == digest:
                return data[start - first : end - first]
    return None
