"""What a report on many model calls came to, kept beside them until one of them changes."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from typing import TypeVar

import msgspec

from pollux.archive.migrations import transaction

_Row = TypeVar("_Row")
_WORTH_KEEPING = 1000
"""Rows; fewer are added up again sooner than they are written."""


def kept(database: sqlite3.Connection, name: str, run: Callable[[], list[_Row]], kind: type[_Row]) -> list[_Row]:
    """Return the rows that a report came to last time, or run it; its name tells all that its rows depend on."""
    found = database.execute("SELECT body FROM reports WHERE name = ?", (name,)).fetchone()
    if found:
        return msgspec.msgpack.decode(zlib.decompress(found[0]), type=list[kind])  # type: ignore[valid-type]
    before = _changes(database)
    rows = run()
    if len(rows) >= _WORTH_KEEPING:
        body = zlib.compress(msgspec.msgpack.encode(rows))
        try:
            with transaction(database):
                if _changes(database) == before:
                    database.execute("INSERT OR REPLACE INTO reports VALUES (?, ?)", (name, body))
        except sqlite3.OperationalError:
            pass  # a read-only disk, or another writer: it is only run again
    return rows


def _changes(database: sqlite3.Connection) -> int:
    """Return a number that is another one once somebody else has written."""
    number: int = database.execute("PRAGMA data_version").fetchone()[0]
    return number
