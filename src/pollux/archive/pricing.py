"""Write the cost of each model call next to its token counts, so that reports only have to sum.

`price_id` is NULL for a call that was not priced yet, and empty for a call without a price. With another price table,
all calls are priced again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pollux.archive import dependents, schema
from pollux.archive.migrations import transaction
from pollux.model import Tokens
from pollux.prices import Prices, cost, find
from pollux.text.times import from_microseconds

NO_PRICE = ""
_META = "prices"
_PRICED_TABLES = ("model_calls", "session_usage")
_COUNTS = ", ".join(f"tok_{count}" for count in schema.COUNTS)


def is_priced(database: sqlite3.Connection, prices: Prices) -> bool:
    """Return whether every model call is priced by a price table."""
    return _version(database) == prices.version and not schema.are_unpriced(database)


def price_calls(database: sqlite3.Connection, prices: Prices) -> None:
    """Price every model call that is not priced yet.

    If the database cannot be written, because it is read-only or another process is writing, this connection gets
    temporary tables that hide the stored ones.
    """
    if is_priced(database, prices):
        return
    is_stale = _version(database) != prices.version
    which = "1" if is_stale else "price_id IS NULL"
    try:
        with transaction(database):
            price_in_place(database, prices, which)
            note_prices(database, prices)
            dependents.update(database)
    except sqlite3.OperationalError:
        shadow(database, prices)


def price_in_place(database: sqlite3.Connection, prices: Prices, which: str = "1") -> None:
    """Write the cost of all calls, or of those that an SQL condition selects."""
    _write(database, _priced(_calls(database, which), prices))


def note_prices(database: sqlite3.Connection, prices: Prices) -> None:
    """Note that every call has its cost by a price table."""
    database.execute("INSERT OR REPLACE INTO facts_meta VALUES (?, ?)", (_META, prices.version))
    schema.note_priced(database)


@contextmanager
def priced_view(database: sqlite3.Connection, prices: Prices) -> Iterator[None]:
    """Make a connection see the costs by a price table, regardless of the stored costs."""
    if is_priced(database, prices):
        yield
        return
    shadow(database, prices)
    try:
        yield
    finally:
        for table in _PRICED_TABLES:
            database.execute(f"DROP TABLE temp.{table}")


def shadow(database: sqlite3.Connection, prices: Prices) -> None:
    """Hide the stored tables behind priced copies: SQLite resolves names to temporary tables first."""
    for table in _PRICED_TABLES:
        database.execute(schema.TABLES[table].create("temp"))
    database.execute("INSERT INTO temp.model_calls SELECT * FROM main.model_calls")
    _write(database, _priced(_calls(database, "1"), prices))
    dependents.add_up(database)


def _version(database: sqlite3.Connection) -> str | None:
    row = database.execute("SELECT value FROM facts_meta WHERE key = ?", (_META,)).fetchone()
    return row[0] if row else None


def _calls(database: sqlite3.Connection, which: str) -> list[Any]:
    return database.execute(
        f"SELECT session_id, message_id, at_us, model, {_COUNTS} FROM model_calls WHERE {which}"  # noqa: S608  ours
    ).fetchall()


def _write(database: sqlite3.Connection, costs: Iterable[tuple[int | None, str, str, str]]) -> None:
    database.executemany(
        "UPDATE model_calls SET cost_nanousd = ?, price_id = ? WHERE session_id = ? AND message_id = ?", costs
    )


def _priced(rows: list[Any], prices: Prices) -> Iterator[tuple[int | None, str, str, str]]:
    for session_id, message_id, at_us, model, *counts in rows:
        nanousd, price_id = priced(prices, model, from_microseconds(at_us), Tokens(*counts))
        yield nanousd, price_id, session_id, message_id


def priced(prices: Prices, model: str | None, at: datetime | None, tokens: Tokens) -> tuple[int | None, str]:
    """Return the cost of a call in nano-dollars and the ID of its price; None and "" if the model has no price."""
    price = find(prices, model, at)
    return (None, NO_PRICE) if price is None else (cost(price, tokens), price.id)
