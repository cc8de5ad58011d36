"""Model calls → what they cost, written beside their counts so that a report only has to add up.

`price_id` says what was found for a call: nothing there means that nobody has looked yet, an empty text that there is
no price. With another price table all calls are looked up again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from pollux.archive import schema
from pollux.archive.migrations import transaction
from pollux.model import Tokens
from pollux.prices import Prices, cost, find
from pollux.text.times import from_microseconds

NO_PRICE = ""
_META = "prices"
_SHADOW = """
    CREATE TEMP TABLE model_calls (
        session_id, message_id, at_us, model, fate, tok_input, tok_cached, tok_output, tok_thoughts, tok_tool,
        tok_total, tok_consistent, cost_nanousd, price_id, file_version_id, line, copy_of,
        PRIMARY KEY (session_id, message_id)
    ) WITHOUT ROWID
"""


def price_calls(database: sqlite3.Connection, prices: Prices) -> None:
    """Give every model call its price, where that is not done yet.

    In a database that takes no writes (a read-only disk, another writer that does not come to an end) this connection
    gets a table of its own in place of the stored one.
    """
    is_stale = _version(database) != prices.version
    if not is_stale and not schema.are_unpriced(database):
        return
    which = "1" if is_stale else "price_id IS NULL"
    try:
        with transaction(database):
            _write(database, _priced(_calls(database, which), prices))
            database.execute("INSERT OR REPLACE INTO facts_meta VALUES (?, ?)", (_META, prices.version))
            schema.note_priced(database)
    except sqlite3.OperationalError:
        _shadow(database)
        _write(database, _priced(_calls(database, which), prices))


def _version(database: sqlite3.Connection) -> str | None:
    row = database.execute("SELECT value FROM facts_meta WHERE key = ?", (_META,)).fetchone()
    return row[0] if row else None


def _shadow(database: sqlite3.Connection) -> None:
    """Put a copy before the stored table: SQLite looks for a name among the temporary tables first."""
    database.execute(_SHADOW)
    database.execute("INSERT INTO temp.model_calls SELECT * FROM main.model_calls")


def _calls(database: sqlite3.Connection, which: str) -> list[Any]:
    return database.execute(
        "SELECT session_id, message_id, at_us, model, tok_input, tok_cached, tok_output, tok_thoughts, tok_tool, "  # noqa: S608  ours
        f"tok_total FROM model_calls WHERE {which}"
    ).fetchall()


def _write(database: sqlite3.Connection, found: Iterable[tuple[int | None, str, str, str]]) -> None:
    database.executemany(
        "UPDATE model_calls SET cost_nanousd = ?, price_id = ? WHERE session_id = ? AND message_id = ?", found
    )


def _priced(rows: list[Any], prices: Prices) -> Iterator[tuple[int | None, str, str, str]]:
    for session_id, message_id, at_us, model, *counts in rows:
        found, price_id = priced(prices, model, from_microseconds(at_us), Tokens(*counts))
        yield found, price_id, session_id, message_id


def priced(prices: Prices, model: str | None, at: datetime | None, tokens: Tokens) -> tuple[int | None, str]:
    """Return the cost of one call in nano-dollars and the id of its price; what has no price costs nothing known."""
    price = find(prices, model, at)
    return (None, NO_PRICE) if price is None else (cost(price, tokens), price.id)
