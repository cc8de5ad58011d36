"""What the facts lack: files whose reading raises an error, and values that no column holds.

A failure is recorded with the number of bytes it was met at. So the file is tried again when it has grown, or when the
reader has changed and all facts are thrown away, but not at every refresh.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from pollux.archive.inventory import place_of
from pollux.archive.schema import TABLES
from pollux.model import Problem
from pollux.text.unicode import sound

_OF_ONE_STATEMENT = (
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.NotSupportedError,
    sqlite3.ProgrammingError,
)
"""Errors of SQLite about the values it was given; all others are about the database or its disk."""
_PASSING = (MemoryError, OSError)
"""Errors that may be gone at the next attempt."""


def concerns_everybody(error: Exception) -> bool:
    """Return whether an error is about the database as a whole: full, locked or corrupt."""
    return isinstance(error, sqlite3.Error) and not isinstance(error, _OF_ONE_STATEMENT)


def is_lasting(error: Exception) -> bool:
    """Return whether the same bytes will raise the same error again."""
    return not isinstance(error, _PASSING)


def record(database: sqlite3.Connection, versions: Iterable[tuple[int, int]], error: Exception) -> None:
    """Record that versions of files, each with the bytes it has, cannot be derived; forget earlier readings of them."""
    from pollux.sessions.replay.reading import reason_of  # noqa: PLC0415  slow to load, and failures are rare

    for version_id, kept in versions:
        database.execute("DELETE FROM readings WHERE version_id = ?", (version_id,))
        database.execute("DELETE FROM problems WHERE file_version_id = ?", (version_id,))
        database.execute(TABLES["failures"].insert, (version_id, kept, reason_of(error)))


def clear(database: sqlite3.Connection, versions: Iterable[int]) -> None:
    """Remove the record of failures before the same versions are tried again."""
    database.executemany("DELETE FROM failures WHERE version_id = ?", [(one,) for one in versions])


def problems(database: sqlite3.Connection, homes: Iterable[str] | None = None) -> list[Problem]:
    """Return the files of some homes, or of all, that cannot be derived."""
    wanted = None if homes is None else {sound(home) for home in homes}
    rows = database.execute(
        """
        SELECT files.home, files.path, failures.message FROM failures
        CROSS JOIN versions ON versions.id = failures.version_id JOIN files ON files.id = versions.file_id
        WHERE files.forgotten_us IS NULL ORDER BY files.home, files.path, versions.number
        """
    )
    failed = [(place_of(home, path), reason) for home, path, reason in rows if wanted is None or home in wanted]
    if not failed:
        return []
    from pollux.sessions.replay.reading import cannot_derive  # noqa: PLC0415  slow to load, and failures are rare

    return [cannot_derive(path, reason) for path, reason in failed]


def value_problems(database: sqlite3.Connection) -> list[tuple[str, Problem]]:
    """Return the values that were left out because no column holds them, each with its session."""
    rows = database.execute(
        """
        SELECT session_id, value_problems.message, files.home, files.path, line FROM value_problems
        JOIN versions ON versions.id = file_version_id JOIN files ON files.id = versions.file_id
        ORDER BY session_id, files.home, files.path, line, message_id, idx, n
        """
    )
    return [
        (session_id, left_out(what, str(place_of(home, path)), line)) for session_id, what, home, path, line in rows
    ]


def left_out(what: str, file: str, line: int) -> Problem:
    """Return the problem of a value that no column holds."""
    return Problem("value-out-of-range", f"left out: {what}", file, line)
