"""What a report on many model calls came to, kept beside them.

Its rows are sums per quarter of an hour. Triggers on the calls (`facts.py`) note the quarters that have changed since,
and only those are added up again.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

_Row = TypeVar("_Row", bound=tuple[Any, ...])
_WORTH_KEEPING = 1000
"""Rows; fewer are added up again sooner than they are written."""
NO_TIME = 1
"""Stands for the quarter of calls without a time; no quarter begins there."""
_LEVEL = 1
"""Of packing: it is written more often than it is read long after."""


def kept(
    database: sqlite3.Connection,
    name: str,
    kind: type[_Row],
    run: Callable[[], list[_Row]],
    run_changed: Callable[[], list[_Row]],
) -> list[_Row]:
    """Return the rows of a report: those of last time, but for the quarters that have changed.

    Args:
        database: an archive.
        name: tells all that the rows depend on, but for the calls.
        kind: of a row, the first value of which is its quarter.
        run: adds all up.
        run_changed: adds up the `changed_quarters` alone.

    """
    database.execute("BEGIN")  # one moment for all of it, whoever writes meanwhile
    try:
        found = database.execute("SELECT body FROM reports WHERE name = ?", (name,)).fetchone()
        changed = {row[0] for row in database.execute("SELECT quarter_us FROM changed_quarters")}
        if found is None:
            rows = run()
        else:
            rows = msgspec.msgpack.decode(zlib.decompress(found[0]), type=list[kind])  # type: ignore[valid-type]
            if changed:
                rows = [row for row in rows if (NO_TIME if row[0] is None else row[0]) not in changed]
                rows += run_changed()
        if (found is None or changed) and len(rows) >= _WORTH_KEEPING:
            _keep(database, name, rows)
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")
    return rows


def _keep(database: sqlite3.Connection, name: str, rows: list[_Row]) -> None:
    """Write a report down, in the place of any other."""
    body = zlib.compress(msgspec.msgpack.encode(rows), _LEVEL)
    with suppress(sqlite3.OperationalError):  # a read-only disk, or another writer: it is only run again
        database.execute("DELETE FROM reports")
        database.execute("DELETE FROM changed_quarters")
        database.execute("INSERT INTO reports VALUES (?, ?)", (name, body))
        database.execute("COMMIT")
