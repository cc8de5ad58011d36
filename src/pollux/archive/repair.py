"""Find lost bytes elsewhere and put them back: only what has the very hash of what was lost."""

from __future__ import annotations

import hashlib
import platform
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pollux.archive import raw, schema
from pollux.archive.damage import Damage, damage_of
from pollux.archive.inventory import place_of
from pollux.archive.migrations import transaction
from pollux.archive.segments import UNPACKING, Segment, Version, packed, segment

_PROBE = 4096
"""A version notes the hash of so many bytes of its beginning and of its end."""
_Read = Callable[[int, int], bytes]


def mended(database: sqlite3.Connection, one: Segment, wrong: str, roots: Sequence[str], *, repair: bool) -> Damage:
    """Say what is wrong with a segment and where its bytes are to be had; with `repair`, put them back."""
    damage = damage_of("bytes", wrong, one, one.number, one.start, one.start + one.length)
    for name, read in _elsewhere(database, one, one.version_id, roots, digest=one.sha256):
        data = _tried(read, one.start, one.start + one.length)
        if data is None or hashlib.sha256(data).digest() != one.sha256:
            continue
        if repair:
            with transaction(database):
                database.execute(
                    "UPDATE segments SET data = ?, base_id = NULL, depth = 0 WHERE id = ?", (packed(data), one.id)
                )
        return replace(damage, source=name, is_repaired=repair)
    return damage


def filled(
    database: sqlite3.Connection, version: Version, start: int, end: int, roots: Sequence[str], *, repair: bool
) -> Damage:
    """Fill a gap. Its own hash is lost with it: only the hashes of the beginning and the end of a version prove it."""
    damage = damage_of("gap", "they are missing", version, version.number, start, end)
    for name, read in _elsewhere(database, version, version.id, roots):
        if data := _proven(version, read, start, end):
            if repair:
                with transaction(database):
                    database.execute(
                        "INSERT INTO segments (version_id, start, length, sha256, base_id, depth, data) "
                        "VALUES (?, ?, ?, ?, NULL, 0, ?)",
                        (version.id, start, end - start, hashlib.sha256(data).digest(), packed(data)),
                    )
            return replace(damage, source=name, is_repaired=repair)
    place = place_of(version.home, version.path)
    if version.is_current and version.machine == platform.node() and place.is_file():
        if repair:
            take_anew(database, version.id)
        return replace(damage, source=f"{place}, which cannot be proven to be the same; taken in as a new version")
    return damage


def take_anew(database: sqlite3.Connection, version_id: int) -> None:
    """Make the next refresh look at the file again, and see that it is not what was kept."""
    with transaction(database):
        database.execute("UPDATE versions SET head = x'' WHERE id = ?", (version_id,))
        database.execute("UPDATE files SET size = -1 WHERE version_id = ?", (version_id,))
        if schema.are_current(database):
            database.execute("UPDATE readings SET is_superseded = 1 WHERE version_id = ?", (version_id,))


def _elsewhere(
    database: sqlite3.Connection,
    lost: Segment | Version,
    version_id: int,
    roots: Sequence[str],
    *,
    digest: bytes | None = None,
) -> Iterator[tuple[str, _Read]]:
    """Name everything that may have the same bytes: the file itself, its copies, other versions."""
    here = [place_of(lost.home, lost.path)] if lost.machine == platform.node() else []
    for place in dict.fromkeys([*here, *(place_of(root, lost.path) for root in roots)]):
        yield str(place), _from_disk(place)
    if digest is not None:
        rows = database.execute("SELECT id, start FROM segments WHERE sha256 = ? AND id <> ?", (digest, lost.id))
        for segment_id, start in rows.fetchall():
            twin = segment(database, segment_id)
            name = f"version {twin.number} of {place_of(twin.home, twin.path)}, bytes {start}–{start + twin.length}"
            yield name, lambda _start, _end, found=segment_id: raw.content(database, found)  # type: ignore[misc]
    rows = database.execute(
        "SELECT versions.id, number, machine, CAST(home AS TEXT), CAST(path AS TEXT) "
        "FROM versions JOIN files ON files.id = file_id "
        "WHERE (path = ? OR path LIKE ?) AND versions.id <> ? ORDER BY number DESC",
        (lost.path, f"%/{lost.path.rpartition('/')[2]}", version_id),
    )
    for other_id, number, machine, home, path in rows.fetchall():
        place = place_of(home, path)
        if machine == platform.node():
            yield str(place), _from_disk(place)
        yield f"version {number} of {place}", _from_version(database, other_id)


def _from_disk(place: Path) -> _Read:
    def read(start: int, end: int) -> bytes:
        with place.open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    return read


def _from_version(database: sqlite3.Connection, version_id: int) -> _Read:
    def read(start: int, end: int) -> bytes:
        return raw.reader(database, version_id)(start, end)  # in here, since it may be damaged, too

    return read


def _tried(read: _Read, start: int, end: int) -> bytes | None:
    try:
        return read(start, end)
    except (OSError, *UNPACKING):
        return None


def _proven(version: Version, read: _Read, start: int, end: int) -> bytes | None:
    for first, last, digest in (
        (0, min(_PROBE, version.kept), version.head),
        (max(0, version.kept - _PROBE), version.kept, version.tail),
    ):
        if first <= start and end <= last:
            data = _tried(read, first, last)
            if data is not None and len(data) == last - first and hashlib.sha256(data).digest() == digest:
                return data[start - first : end - first]
    return None
