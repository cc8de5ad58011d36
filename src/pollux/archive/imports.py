"""Versions that came from another archive: this machine has not read their bytes from a disk itself.

The table `imported` has a row for each of them, with the archive it came from. A refresh that finds the same bytes in
the file on the disk takes the row away: from then on the version is one of this machine's own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

BESIDE_OWN = """
    (
        session_files.file_version_id IN (SELECT version_id FROM imported)
        AND EXISTS (
            SELECT 1 FROM session_files AS own WHERE own.session_id = session_files.session_id
                AND own.file_version_id NOT IN (SELECT version_id FROM imported)
        )
    )
"""
"""Whether a row of `session_files` is an import of a session of which this machine has also read a file itself."""


def note_imported(database: sqlite3.Connection, version_id: int, *, source: str, at_us: int) -> None:
    """Mark a version as imported from another archive."""
    database.execute("INSERT INTO imported VALUES (?, ?, ?)", (version_id, source, at_us))


def note_read_here(database: sqlite3.Connection, version_ids: Iterable[int]) -> None:
    """Take the mark off versions whose bytes were just compared with a file on the disk; have those read again.

    A file of which only imports are here has an inode that no file has, so `raw.prepare` compares all bytes before it
    says that a file goes on.
    """
    for version_id in version_ids:
        if database.execute("DELETE FROM imported WHERE version_id = ?", (version_id,)).rowcount:
            database.execute("UPDATE readings SET kept = -1 WHERE version_id = ?", (version_id,))


def imported_versions(database: sqlite3.Connection, file_id: int) -> set[int]:
    """Return the imported versions of a file."""
    rows = database.execute(
        "SELECT version_id FROM imported JOIN versions ON versions.id = version_id WHERE file_id = ?", (file_id,)
    )
    return {row[0] for row in rows}
