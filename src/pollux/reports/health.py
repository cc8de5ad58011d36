"""What the health page asks the archive: deleted sessions, known IDs, and files that changed after a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from datetime import datetime

from pollux.archive.load_sessions import AMONG, ids_as_json
from pollux.text.times import from_microseconds, microseconds


def deleted_sessions(
    database: sqlite3.Connection, scope: Collection[str] | None, *, limit: int
) -> tuple[list[str], int]:
    """Return the last used sessions that the client has deleted, and the number of all of them."""
    among = "" if scope is None else f"AND {AMONG}"
    values = [] if scope is None else [ids_as_json(scope)]
    where = f"FROM sessions WHERE kind = 'main' AND is_stub = 0 AND is_deleted = 1 {among}"
    (total,) = database.execute(f"SELECT count(*) {where}", values).fetchone()
    order = "ORDER BY last_used_us DESC, session_id LIMIT ?"
    rows = database.execute(f"SELECT session_id {where} {order}", [*values, limit])
    return [row[0] for row in rows], total


def known_sessions(database: sqlite3.Connection, ids: Iterable[str]) -> set[str]:
    """Return those of some IDs that are sessions."""
    rows = database.execute(f"SELECT session_id FROM sessions WHERE {AMONG}", (ids_as_json(ids),))  # noqa: S608  ours
    return {row[0] for row in rows}


def last_change(database: sqlite3.Connection) -> datetime | None:
    """Return when the archive last saw a change of a file."""
    (last_us,) = database.execute("SELECT max(max(last_us, coalesce(deleted_us, 0))) FROM files").fetchone()
    return from_microseconds(last_us)


def files_changed_after(database: sqlite3.Connection, at: datetime) -> int:
    """Return the number of archived files that have changed after a time."""
    (number,) = database.execute(
        "SELECT count(*) FROM files WHERE forgotten_us IS NULL AND last_us > ?", (microseconds(at),)
    ).fetchone()
    return int(number)
