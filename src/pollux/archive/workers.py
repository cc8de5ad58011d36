"""Other processes that derive facts, for the one that may write.

Each derives into a database of its own, in memory, with the archive attached for reading: the same code makes the same
rows, and the writer only copies them. They are given what is new; a bundle that has facts already is the writer's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pollux.archive import schema
from pollux.archive.derive import File, Told, derive_bundle, reader_of
from pollux.archive.store import Archive
from pollux.sessions.parallel import copies, done_by

_PIECE = 8 << 20
"""Bytes of a piece of work."""
_WORTH_IT = (64 << 20, 32)
"""Bytes and bundles from which on other processes help: one file, however large, is read by one."""

_Bundles = dict[str, list[File]]


class Derived(NamedTuple):
    """The facts of some bundles, to be copied."""

    rows: dict[str, list[tuple[Any, ...]]]
    told: Told
    n_bytes: int


def derived(archive: Archive, bundles: _Bundles, memory: Mapping[str, str]) -> Iterator[Derived]:
    """Yield the facts of the bundles that have none yet, piece by piece; nothing where others are no help."""
    new = {name: files for name, files in sorted(bundles.items()) if all(one.read is None for one in files)}
    n_bytes = sum(one.kept for files in new.values() for one in files)
    is_worth_it = n_bytes > _WORTH_IT[0] and len(new) > _WORTH_IT[1] and archive.lock is not None
    with copies(_begin, (archive.path, memory), is_worth_it=is_worth_it) as pool:
        yield from done_by(pool, _derived, _pieces(new))


_place: tuple[Path, Mapping[str, str]]
_scratch: sqlite3.Connection | None


def _begin(path: Path, memory: Mapping[str, str]) -> None:
    global _place, _scratch
    _place, _scratch = (path, memory), None


def _pieces(bundles: _Bundles) -> Iterator[_Bundles]:
    piece: _Bundles = {}
    for name, files in bundles.items():
        piece[name] = files
        if sum(one.kept for found in piece.values() for one in found) > _PIECE:
            yield piece
            piece = {}
    if piece:
        yield piece


def _derived(bundles: _Bundles) -> Derived:
    """Derive some bundles, and leave nothing behind."""
    global _scratch  # noqa: PLW0603
    path, memory = _place
    database = _scratch = _scratch or _opened(path)
    reader, told = reader_of(database, memory), Told(set(), [])
    database.execute("BEGIN")
    try:
        for name, files in bundles.items():
            found = derive_bundle(database, reader, name, files)
            told = Told(told.sessions | found.sessions, [*told.problems, *found.problems], told.shared | found.shared)
        rows = {table: list(schema.rows(database, table)) for table in schema.TABLES}
    finally:
        database.execute("ROLLBACK")
    n_bytes = sum(one.kept for files in bundles.values() for one in files)
    return Derived(rows, told._replace(problems=[*told.problems, *reader.problems]), n_bytes)


def _opened(path: Path) -> sqlite3.Connection:
    """Make tables for facts in memory; all other names lead to the archive."""
    database = sqlite3.connect("file::memory:", uri=True, isolation_level=None)
    database.execute("CREATE TABLE facts_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    schema.reset(database)
    database.execute("ATTACH ? AS kept", (f"{path.absolute().as_uri()}?mode=ro",))
    return database
