"""Bundles that hold files of one session under different names: read together, once that is known.

A bundle is named by the paths of its files, and somebody may have given a copy another name.
"""

from __future__ import annotations

import sqlite3


def joined(database: sqlite3.Connection) -> dict[str, str]:
    """Return the bundles that are part of another, each with the name of that."""
    return dict(database.execute("SELECT name, bundle FROM joined").fetchall())


def shared_with(database: sqlite3.Connection, session_id: str, bundle: str) -> set[tuple[str, str]]:
    """Tell of a session that is about to be written which other bundle holds it, too."""
    rows = database.execute("SELECT bundle FROM sessions WHERE session_id = ? AND bundle != ?", (session_id, bundle))
    return {(bundle, row[0]) for row in rows}


def join(database: sqlite3.Connection, one: str, other: str) -> None:
    """Have two bundles read together from now on, under the name that comes first."""
    known = joined(database)
    first, second = sorted((known.get(one, one), known.get(other, other)))
    if first == second:
        return
    members = [second, *(name for name, bundle in known.items() if bundle == second)]
    database.executemany("INSERT OR REPLACE INTO joined VALUES (?, ?)", [(name, first) for name in members])
    database.execute("UPDATE sessions SET bundle = ? WHERE bundle = ?", (first, second))
    database.execute(
        """
        UPDATE readings SET kept = -1 WHERE version_id IN (
            SELECT file_version_id FROM session_files JOIN sessions USING (session_id) WHERE bundle = ?
        )
        """,
        (first,),
    )
