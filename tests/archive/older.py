"""Archives in the format of an older Pollux."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from pollux.archive.migrations import STEPS

_REVERTS: Mapping[str, tuple[str, ...]] = {
    "seals": ("DROP TABLE sealed", "DROP TABLE seals", "DROP TABLE sealing"),
    "imports": ("DROP TABLE imported", "DROP TABLE imported_entries", "DROP TABLE imported_seals"),
    "comparisons": ("ALTER TABLE files DROP COLUMN ctime_ns", "ALTER TABLE files DROP COLUMN compared"),
    "names": ("DROP TABLE migrations",),
    "columns": (
        "ALTER TABLE files RENAME COLUMN deleted_us TO gone_us",
        "ALTER TABLE versions RENAME COLUMN archived_bytes TO kept",
        "DELETE FROM migrations WHERE name = 'columns'",
    ),
}
"""The statements that undo each migration."""


def revert(archive: Path, last: str) -> None:
    """Undo all migrations of an archive after the named one."""
    steps = [*STEPS]
    number = steps.index(last) + 1
    with closing(sqlite3.connect(archive, isolation_level=None)) as database:
        for name in reversed(steps[number:]):
            for statement in _REVERTS[name]:
                database.execute(statement)
        database.execute(f"PRAGMA user_version = {number}")
