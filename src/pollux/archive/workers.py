"""Other processes that derive facts while this one keeps bytes.

Each derives into a database of its own, in memory, with the archive attached for reading: the same code makes the same
rows, and the writer only copies them. They are given what is new; a bundle that has facts already is the writer's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.pool import ApplyResult, Pool
from pathlib import Path
from typing import Any, NamedTuple

from pollux.archive import facts
from pollux.archive.deriving import File, Told, derive_bundle, reader_of
from pollux.processes import copies

_PIECE = 8 << 20
"""Bytes of a piece of work."""

_Bundles = dict[str, list[File]]


class Derived(NamedTuple):
    """The facts of some bundles, to be copied."""

    rows: dict[str, list[tuple[Any, ...]]]
    told: Told


@dataclass(slots=True)
class Workers:
    """The processes, and what they are at."""

    pool: Pool
    given: set[str] = field(default_factory=set)
    at_work: list[ApplyResult[Derived]] = field(default_factory=list)

    def give(self, bundles: Mapping[str, list[File]]) -> None:
        """Give them the bundles that are new, each once."""
        new = {name: files for name, files in bundles.items() if all(one.read is None for one in files)}
        for piece in _pieces({name: files for name, files in sorted(new.items()) if name not in self.given}):
            self.at_work.append(self.pool.apply_async(_derived, (piece,)))
        self.given |= new.keys()

    def done(self, *, wait: bool = False) -> Iterator[Derived]:
        """Yield what they have done, in the order in which it was given."""
        while self.at_work and (wait or self.at_work[0].ready()):
            yield self.at_work.pop(0).get()


@contextmanager
def started(path: Path, memory: Mapping[str, str], *, is_worth_it: bool) -> Iterator[Workers | None]:
    """Start the processes, where that is worth it and can be done."""
    with copies(_begin, (path, memory), is_worth_it=is_worth_it) as pool:
        yield Workers(pool) if pool else None


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
            told = Told(told.sessions | found.sessions, [*told.problems, *found.problems])
        rows = {table: list(facts.rows(database, table)) for table in facts.TABLES}
    finally:
        database.execute("ROLLBACK")
    return Derived(rows, Told(told.sessions, [*told.problems, *reader.problems]))


def _opened(path: Path) -> sqlite3.Connection:
    """Make tables for facts in memory; all other names lead to the archive."""
    database = sqlite3.connect("file::memory:", uri=True, isolation_level=None)
    database.execute("CREATE TABLE facts_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
    facts.reset(database)
    database.execute("ATTACH ? AS kept", (f"{path.absolute().as_uri()}?mode=ro",))
    return database
