"""What a report on many model calls came to, kept beside them.

Its rows are sums per quarter of an hour. Triggers on the calls (`archive.schema`) note the quarters that have changed
since, and only those are added up again.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from pollux.archive.schema import NO_TIME, throw_away_reports

_Row = TypeVar("_Row", bound=tuple[Any, ...])
_Value = TypeVar("_Value")
_WORTH_KEEPING = 1000
"""Rows; fewer are added up again sooner than they are written."""
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
    if database.in_transaction:  # of a reader, who cannot write the rows
        return _rows(database, name, kind, run, run_changed)[0]
    database.execute("BEGIN")  # one moment for all of it, whoever writes meanwhile
    try:
        rows, is_worth_keeping = _rows(database, name, kind, run, run_changed)
        if is_worth_keeping:
            _keep(database, name, rows)
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")
    return rows


def is_current(database: sqlite3.Connection, name: str) -> bool:
    """Return whether the stored rows of a report are those of the calls as they are now."""
    stored = database.execute("SELECT 1 FROM reports WHERE name = ?", (name,)).fetchone()
    return stored is not None and database.execute("SELECT 1 FROM changed_quarters LIMIT 1").fetchone() is None


def _rows(
    database: sqlite3.Connection,
    name: str,
    kind: type[_Row],
    run: Callable[[], list[_Row]],
    run_changed: Callable[[], list[_Row]],
) -> tuple[list[_Row], bool]:
    """Return the rows as they are now, and whether they should be written."""
    stored = _found(database, name, kind)
    changed = {row[0] for row in database.execute("SELECT quarter_us FROM changed_quarters")}
    if stored is None:
        rows = run()
        return rows, bool(changed) or len(rows) >= _WORTH_KEEPING
    if not changed:
        return stored, False
    rows = [row for row in stored if (NO_TIME if row[0] is None else row[0]) not in changed]
    return rows + run_changed(), True


def _found(database: sqlite3.Connection, name: str, kind: type[_Row]) -> list[_Row] | None:
    """Return the rows of last time; nothing if there are none, or none that can be read."""
    row = database.execute("SELECT body FROM reports WHERE name = ?", (name,)).fetchone()
    try:
        return msgspec.msgpack.decode(zlib.decompress(row[0]), type=list[kind]) if row else None  # type: ignore[valid-type]
    except (zlib.error, msgspec.DecodeError):
        return None


def _keep(database: sqlite3.Connection, name: str, rows: list[_Row]) -> None:
    """Write a report down, in the place of any other; a short one is only thrown away."""
    with suppress(sqlite3.OperationalError):  # a read-only disk, or another writer: it is only run again
        throw_away_reports(database)
        if len(rows) >= _WORTH_KEEPING:
            body = zlib.compress(msgspec.msgpack.encode(rows), _LEVEL)
            database.execute("INSERT INTO reports VALUES (?, ?)", (name, body))
        database.execute("COMMIT")


def load_value(database: sqlite3.Connection, name: str, kind: type[_Value]) -> _Value | None:
    """Return a stored value; None if there is none, or none of this kind."""
    row = database.execute("SELECT body FROM reports WHERE name = ?", (name,)).fetchone()
    try:
        return msgspec.msgpack.decode(row[0], type=kind) if row else None
    except msgspec.DecodeError:
        return None


def store_value(database: sqlite3.Connection, name: str, value: object) -> None:
    """Store a value; in a database that takes no writes, do nothing."""
    with suppress(sqlite3.OperationalError):
        database.execute("INSERT OR REPLACE INTO reports VALUES (?, ?)", (name, msgspec.msgpack.encode(value)))
