"""What the facts lack: files that cannot be derived, and values that do not fit into a column.

A failure is recorded with the length of the file, so that the file is tried again only when it has grown, or when a new
reader rebuilds all facts.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from pollux.archive.inventory import original_path
from pollux.archive.schema import TABLES
from pollux.model import Problem
from pollux.text.escape import escape_surrogates

_OF_ONE_STATEMENT = (
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.NotSupportedError,
    sqlite3.ProgrammingError,
)
"""SQLite's errors about single values; all others concern the database or its disk."""
_TRANSIENT = (MemoryError, OSError)
"""Errors that may not occur again."""


def concerns_database(error: Exception) -> bool:
    """Return whether an error concerns the whole database: full, locked or corrupt."""
    return isinstance(error, sqlite3.Error) and not isinstance(error, _OF_ONE_STATEMENT)


def is_lasting(error: Exception) -> bool:
    """Return whether the same bytes will raise the same error again."""
    return not isinstance(error, _TRANSIENT)


def record(database: sqlite3.Connection, versions: Iterable[tuple[int, int]], error: Exception) -> None:
    """Record that versions, given by ID and length, cannot be derived, and delete their earlier readings."""
    from pollux.sessions.replay.reading import reason_of  # noqa: PLC0415  slow to load, and failures are rare

    for version_id, length in versions:
        database.execute("DELETE FROM readings WHERE version_id = ?", (version_id,))
        database.execute("DELETE FROM problems WHERE file_version_id = ?", (version_id,))
        database.execute(TABLES["failures"].insert, (version_id, length, reason_of(error)))


def clear(database: sqlite3.Connection, versions: Iterable[int]) -> None:
    """Delete the recorded failures of versions that are about to be tried again."""
    database.executemany("DELETE FROM failures WHERE version_id = ?", [(version_id,) for version_id in versions])


def problems(database: sqlite3.Connection, homes: Iterable[str] | None = None) -> list[Problem]:
    """Return a problem for each file of some homes, or of all, that cannot be derived."""
    roots = None if homes is None else {escape_surrogates(home) for home in homes}
    rows = database.execute(
        """
        SELECT files.home, files.path, failures.message FROM failures
        CROSS JOIN versions ON versions.id = failures.version_id JOIN files ON files.id = versions.file_id
        WHERE files.forgotten_us IS NULL ORDER BY files.home, files.path, versions.number
        """
    )
    failed = [(original_path(home, path), reason) for home, path, reason in rows if roots is None or home in roots]
    if not failed:
        return []
    from pollux.sessions.replay.reading import cannot_derive  # noqa: PLC0415  slow to load, and failures are rare

    return [cannot_derive(path, reason) for path, reason in failed]


def value_problems(database: sqlite3.Connection) -> list[tuple[str, Problem]]:
    """Return a problem for each value that does not fit into its column, with the ID of the session."""
    rows = database.execute(
        """
        SELECT session_id, value_problems.message, files.home, files.path, line FROM value_problems
        JOIN versions ON versions.id = file_version_id JOIN files ON files.id = versions.file_id
        ORDER BY session_id, files.home, files.path, line, message_id, idx, n
        """
    )
    return [
        (session_id, Problem("value-out-of-range", f"left out: {value}", str(original_path(home, path)), line))
        for session_id, value, home, path, line in rows
    ]
