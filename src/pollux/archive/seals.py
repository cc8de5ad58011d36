"""What a sealed archive keeps beside its files: the entries that were sealed, the seals, and a secret for salts.

Entries only ever come to the end of their list, and nothing of it is ever changed; what they say is the business of
`pollux.proofs`. Here they are bytes in a certain place.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import zstandard

from pollux.archive import raw
from pollux.archive.migrations import transaction
from pollux.archive.segments import UNPACKING

_SECRET = 32
_HEADER = 18
"""Bytes at the beginning of what zstandard packs, at most, in which it says how much there is."""
_NAME = "CAST(machine AS TEXT), CAST(home AS TEXT), CAST(path AS TEXT)"
"""Whoever tampers may have put anything anywhere: types are made sure of."""

Name: TypeAlias = tuple[str, str, str]
"""Machine, home and path of a file."""


class Kept(NamedTuple):
    """A version of a file, as the archive has it now."""

    id: int
    name: Name
    first_us: int
    kept: int


class Prefixes(NamedTuple):
    """The digests of some beginnings of a version, by their lengths."""

    digests: dict[int, bytes]
    fault: str | None = None
    """Why there are no more."""


def is_sealed(database: sqlite3.Connection) -> bool:
    """Tell whether an archive can hold seals: one that was last opened by an older Pollux cannot."""
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'seals'").fetchone() is not None


def entries(database: sqlite3.Connection) -> list[tuple[int, bytes]]:
    """Return all entries with their places."""
    if not is_sealed(database):
        return []
    return database.execute("SELECT place, CAST(body AS BLOB) FROM sealed ORDER BY place").fetchall()


def seals(database: sqlite3.Connection) -> list[tuple[int, bytes]]:
    """Return all seals with their numbers."""
    if not is_sealed(database):
        return []
    return database.execute("SELECT number, CAST(body AS BLOB) FROM seals ORDER BY number").fetchall()


def append(database: sqlite3.Connection, bodies: Iterable[tuple[int, bytes]], number: int, seal: bytes) -> None:
    """Add entries, and the seal over them and all that came before."""
    with transaction(database):
        database.executemany("INSERT INTO sealed (place, body) VALUES (?, ?)", bodies)
        database.execute("INSERT INTO seals (number, body) VALUES (?, ?)", (number, seal))


def secret(database: sqlite3.Connection) -> bytes:
    """Return the secret that salts are made from; make it if there is none."""
    with transaction(database):
        database.execute("INSERT OR IGNORE INTO sealing (key, value) VALUES ('salt', ?)", (os.urandom(_SECRET),))
    return known_secret(database) or b""


def known_secret(database: sqlite3.Connection) -> bytes | None:
    """Return the secret that salts are made from, if there is one."""
    if not is_sealed(database):
        return None
    row = database.execute("SELECT CAST(value AS BLOB) FROM sealing WHERE key = 'salt'").fetchone()
    return row[0] if row else None


def versions(database: sqlite3.Connection) -> list[Kept]:
    """Return every version of every file, in a lasting order."""
    rows = database.execute(
        f"SELECT versions.id, {_NAME}, CAST(versions.first_us AS INTEGER), CAST(kept AS INTEGER) FROM versions "  # noqa: S608
        "JOIN files ON files.id = file_id ORDER BY machine, home, path, versions.first_us, number"
    )
    return [Kept(version_id, (machine, home, path), *rest) for version_id, machine, home, path, *rest in rows]


def files(database: sqlite3.Connection) -> dict[Name, int | None]:
    """Return all files, with the moment at which somebody asked to forget them."""
    rows = database.execute(f"SELECT {_NAME}, CAST(forgotten_us AS INTEGER) FROM files")  # noqa: S608
    return {(machine, home, path): forgotten_us for machine, home, path, forgotten_us in rows}


def names(database: sqlite3.Connection, file_ids: Iterable[int]) -> set[Name]:
    """Return the names of some files."""
    wanted = set(file_ids)
    rows = database.execute(f"SELECT id, {_NAME} FROM files")  # noqa: S608
    return {(machine, home, path) for file_id, machine, home, path in rows if file_id in wanted}


def sources(database: sqlite3.Connection) -> dict[str, list[int]]:
    """Return the versions that each session is read from."""
    found: dict[str, list[int]] = {}
    rows = database.execute("SELECT session_id, file_version_id FROM session_files ORDER BY 1, 2")
    for session_id, version_id in rows:
        found.setdefault(session_id, []).append(version_id)
    return found


def prefixes(database: sqlite3.Connection, version_id: int, lengths: Sequence[int]) -> Prefixes:
    """Hash some beginnings of a version in one pass, as far as its bytes are there and are what was kept."""
    whole, position = hashlib.sha256(), 0
    digests: dict[int, bytes] = {0: whole.digest()} if 0 in lengths else {}
    rows = database.execute(
        f"SELECT id, start, length, sha256, substr(data, 1, {_HEADER}) "  # noqa: S608
        "FROM segments WHERE version_id = ? ORDER BY start",
        (version_id,),
    ).fetchall()
    for segment_id, start, length, sha256, head in rows:
        if start != position or not isinstance(length, int):
            return Prefixes(digests, f"its bytes from {position} on are missing")
        try:
            data = raw.content(database, segment_id) if zstandard.frame_content_size(head) <= length else None
        except UNPACKING:
            data = None
        if data is None:
            return Prefixes(digests, f"its bytes from {start} on cannot be unpacked")
        if len(data) != length or hashlib.sha256(data).digest() != sha256:
            return Prefixes(digests, f"its bytes from {start} on are damaged")
        for end in sorted(one for one in lengths if start < one <= start + length):
            whole.update(data[position - start : end - start])
            digests[end], position = whole.digest(), end
        whole.update(data[position - start :])
        position = start + length
    short = [one for one in lengths if one > position]
    return Prefixes(digests, f"only {position} of {max(short)} bytes are there" if short else None)


def take_over(ours: sqlite3.Connection, theirs: sqlite3.Connection) -> bool:
    """Take over the seals of another archive, where there are none yet: two chains cannot be one."""
    if not seals(theirs) or seals(ours):
        return False
    with transaction(ours):
        for table, columns in (("sealed", "place, body"), ("seals", "number, body"), ("sealing", "key, value")):
            rows = theirs.execute(f"SELECT {columns} FROM {table}")  # noqa: S608
            ours.execute(f"DELETE FROM {table}")  # noqa: S608
            ours.executemany(f"INSERT INTO {table} ({columns}) VALUES (?, ?)", rows)  # noqa: S608
    return True
