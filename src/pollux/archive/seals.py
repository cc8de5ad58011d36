"""The tables of a sealed archive: sealed entries, seals, and a secret for salts.

Entries are only appended and never changed. `pollux.proofs` knows what they mean; here they are numbered bytes. Seals
of imported archives are stored in separate tables.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from pollux.archive import raw
from pollux.archive.migrations import transaction
from pollux.errors import DamagedArchiveError

_SECRET = 32
_NAME = "CAST(machine AS TEXT), CAST(home AS TEXT), CAST(path AS TEXT)"
"""Cast, because rows that were tampered with may contain values of any type."""

Name: TypeAlias = tuple[str, str, str]
"""Machine, home and path of a file."""


class SealedVersion(NamedTuple):
    """An archived version of a file."""

    id: int
    name: Name
    first_us: int
    length: int


Numbered: TypeAlias = Sequence[tuple[int, bytes]]
"""Seals or entries, each with its number."""


class ImportedChain(NamedTuple):
    """The seals of an imported archive, and the entries that they cover."""

    id: str
    seals: Numbered
    entries: Numbered


class Prefixes(NamedTuple):
    """The SHA-256 of prefixes of a version, by length."""

    digests: dict[int, bytes]
    fault: str | None = None
    """Why some prefixes are missing."""


def is_sealed(database: sqlite3.Connection) -> bool:
    """Return whether an archive has tables for seals; one that was last written by an older Pollux has none."""
    return database.execute("SELECT 1 FROM sqlite_master WHERE name = 'seals'").fetchone() is not None


def entries(database: sqlite3.Connection) -> list[tuple[int, bytes]]:
    """Return all entries with their numbers."""
    if not is_sealed(database):
        return []
    return database.execute("SELECT place, CAST(body AS BLOB) FROM sealed ORDER BY place").fetchall()


def seals(database: sqlite3.Connection) -> list[tuple[int, bytes]]:
    """Return all seals with their numbers."""
    if not is_sealed(database):
        return []
    return database.execute("SELECT number, CAST(body AS BLOB) FROM seals ORDER BY number").fetchall()


def append(database: sqlite3.Connection, bodies: Iterable[tuple[int, bytes]], number: int, seal: bytes) -> None:
    """Append entries and the seal that covers them and all earlier ones."""
    with transaction(database):
        database.executemany("INSERT INTO sealed (place, body) VALUES (?, ?)", bodies)
        database.execute("INSERT INTO seals (number, body) VALUES (?, ?)", (number, seal))


def secret(database: sqlite3.Connection) -> bytes:
    """Return the secret that salts are derived from; create it if there is none."""
    with transaction(database):
        database.execute("INSERT OR IGNORE INTO sealing (key, value) VALUES ('salt', ?)", (os.urandom(_SECRET),))
    return known_secret(database) or b""


def known_secret(database: sqlite3.Connection) -> bytes | None:
    """Return the secret that salts are derived from, or None."""
    if not is_sealed(database):
        return None
    row = database.execute("SELECT CAST(value AS BLOB) FROM sealing WHERE key = 'salt'").fetchone()
    return row[0] if row else None


def versions(database: sqlite3.Connection) -> list[SealedVersion]:
    """Return all versions of all files, in a stable order."""
    rows = database.execute(
        f"SELECT versions.id, {_NAME}, CAST(versions.first_us AS INTEGER), CAST(archived_bytes AS INTEGER) "  # noqa: S608
        "FROM versions JOIN files ON files.id = file_id ORDER BY machine, home, path, versions.first_us, number"
    )
    return [
        SealedVersion(version_id, (machine, home, path), first_us, length)
        for version_id, machine, home, path, first_us, length in rows
    ]


def files(database: sqlite3.Connection) -> dict[Name, int | None]:
    """Return all files, each with the time at which it was forgotten, or None."""
    rows = database.execute(f"SELECT {_NAME}, CAST(forgotten_us AS INTEGER) FROM files")  # noqa: S608
    return {(machine, home, path): forgotten_us for machine, home, path, forgotten_us in rows}


def names(database: sqlite3.Connection, file_ids: Iterable[int]) -> set[Name]:
    """Return the names of some files."""
    ids = set(file_ids)
    rows = database.execute(f"SELECT id, {_NAME} FROM files")  # noqa: S608
    return {(machine, home, path) for file_id, machine, home, path in rows if file_id in ids}


def sources(database: sqlite3.Connection) -> dict[str, list[int]]:
    """Return the versions that each session is read from."""
    versions_of: dict[str, list[int]] = {}
    rows = database.execute("SELECT session_id, file_version_id FROM session_files ORDER BY 1, 2")
    for session_id, version_id in rows:
        versions_of.setdefault(session_id, []).append(version_id)
    return versions_of


def prefixes(database: sqlite3.Connection, version_id: int, lengths: Sequence[int]) -> Prefixes:
    """Return the SHA-256 of some prefixes of a version, computed in one pass, up to the first damaged byte."""
    digest, position = hashlib.sha256(), 0
    digests: dict[int, bytes] = {0: digest.digest()} if 0 in lengths else {}
    rows = database.execute(
        "SELECT id, start, length FROM segments WHERE version_id = ? ORDER BY start", (version_id,)
    ).fetchall()
    for segment_id, start, length in rows:
        if start != position or not isinstance(length, int):
            return Prefixes(digests, f"its bytes from {position} on are missing")
        try:
            data = raw.content(database, segment_id)
        except DamagedArchiveError as error:
            return Prefixes(digests, f"its bytes from {start} on are damaged: {error.reason}")
        for end in sorted(prefix for prefix in lengths if start < prefix <= start + length):
            digest.update(data[position - start : end - start])
            digests[end], position = digest.digest(), end
        digest.update(data[position - start :])
        position = start + length
    too_long = [prefix for prefix in lengths if prefix > position]
    return Prefixes(digests, f"only {position} of {max(too_long)} bytes are there" if too_long else None)


def store_imported(database: sqlite3.Connection, seals_there: Numbered, entries_there: Numbered) -> int:
    """Store the seals of an imported archive next to this archive's own, and return how many are new.

    They do not become this archive's own, and the other archive's secret is not stored, since its owner knows it. A
    chain that continues a stored one replaces it; a chain that is stored already, or is the beginning of this archive's
    own, adds nothing.
    """
    if not seals_there or _begins(seals_there, seals(database)):
        return 0
    n_known = 0
    for chain in chains(database):
        if _begins(seals_there, chain.seals) and _begins(entries_there, chain.entries):
            return 0
        if _begins(chain.seals, seals_there) and _begins(chain.entries, entries_there):
            n_known = max(n_known, len(chain.seals))
            _remove_chain(database, chain.id)
    chain_id = hashlib.sha256(b"".join(hashlib.sha256(body).digest() for _, body in seals_there)).hexdigest()
    for table, column, rows in (
        ("imported_seals", "number", seals_there),
        ("imported_entries", "place", entries_there),
    ):
        database.executemany(
            f"INSERT OR IGNORE INTO {table} (chain, {column}, body) VALUES (?, ?, ?)",  # noqa: S608
            [(chain_id, number, body) for number, body in rows],
        )
    return len(seals_there) - n_known


def chains(database: sqlite3.Connection) -> list[ImportedChain]:
    """Return the imported seals, grouped by their chain."""
    if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'imported_seals'").fetchone() is None:
        return []
    ids = [row[0] for row in database.execute("SELECT DISTINCT chain FROM imported_seals ORDER BY chain")]
    return [_chain(database, chain_id) for chain_id in ids]


def _chain(database: sqlite3.Connection, chain_id: str) -> ImportedChain:
    seals_of = database.execute("SELECT number, body FROM imported_seals WHERE chain = ? ORDER BY number", (chain_id,))
    entries_of = database.execute(
        "SELECT place, body FROM imported_entries WHERE chain = ? ORDER BY place", (chain_id,)
    )
    return ImportedChain(chain_id, seals_of.fetchall(), entries_of.fetchall())


def adopt(database: sqlite3.Connection, chain: ImportedChain) -> None:
    """Make an imported chain this archive's own; the caller has checked that it has none yet."""
    with transaction(database):
        database.executemany("INSERT INTO sealed (place, body) VALUES (?, ?)", chain.entries)
        database.executemany("INSERT INTO seals (number, body) VALUES (?, ?)", chain.seals)
        _remove_chain(database, chain.id)


def _remove_chain(database: sqlite3.Connection, chain_id: str) -> None:
    for table in ("imported_seals", "imported_entries"):
        database.execute(f"DELETE FROM {table} WHERE chain = ?", (chain_id,))  # noqa: S608


def _begins(short: Numbered, long: Numbered) -> bool:
    return list(short) == list(long[: len(short)])
