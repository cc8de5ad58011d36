"""The tables of data that cannot be derived again, created by named migrations.

Derived tables have no migrations: a newer reader drops and rebuilds them (`schema.py`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pollux.errors import ArchiveError

_RAW = (
    """
    CREATE TABLE files (
        id INTEGER PRIMARY KEY,
        machine TEXT NOT NULL,
        home TEXT NOT NULL,
        path TEXT NOT NULL,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        inode INTEGER NOT NULL,
        first_us INTEGER NOT NULL,
        last_us INTEGER NOT NULL,
        gone_us INTEGER,
        forgotten_us INTEGER,
        version_id INTEGER,
        UNIQUE (machine, home, path)
    )
    """,
    """
    CREATE TABLE versions (
        id INTEGER PRIMARY KEY,
        file_id INTEGER NOT NULL REFERENCES files (id),
        number INTEGER NOT NULL,
        kept INTEGER NOT NULL,
        head BLOB NOT NULL,
        tail BLOB NOT NULL,
        mtime_ns INTEGER NOT NULL,
        first_us INTEGER NOT NULL,
        UNIQUE (file_id, number)
    )
    """,
    """
    CREATE TABLE segments (
        id INTEGER PRIMARY KEY,
        version_id INTEGER NOT NULL REFERENCES versions (id),
        start INTEGER NOT NULL,
        length INTEGER NOT NULL,
        sha256 BLOB NOT NULL,
        base_id INTEGER REFERENCES segments (id),
        depth INTEGER NOT NULL DEFAULT 0,
        data BLOB NOT NULL,
        UNIQUE (version_id, start)
    )
    """,
    "CREATE INDEX segments_by_base ON segments (base_id) WHERE base_id IS NOT NULL",
    "CREATE TABLE tombstones (session_id TEXT PRIMARY KEY, at_us INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE facts_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)


_SEALS = (
    "CREATE TABLE sealed (place INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE seals (number INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE sealing (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
)


IMPORTED = """
    TABLE imported (
        version_id INTEGER PRIMARY KEY REFERENCES versions (id) ON DELETE CASCADE,
        source TEXT NOT NULL,
        at_us INTEGER NOT NULL
    )
"""
"""Versions that were imported from another archive, so that this machine has not read their bytes (`dependents.py`)."""
_IMPORTS = (
    f"CREATE {IMPORTED}",
    """
    CREATE TABLE imported_entries (
        chain TEXT NOT NULL, place INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (chain, place)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE imported_seals (
        chain TEXT NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (chain, number)
    ) WITHOUT ROWID
    """,
)


_COMPARISONS = (
    "ALTER TABLE files ADD COLUMN ctime_ns INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE files ADD COLUMN compared INTEGER NOT NULL DEFAULT 0",
)
"""The ctime of a file, and how far a large file was compared with the disk.

Files that are archived already get the ctime 0, so the next refresh compares each of them once.
"""
OLD_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "files": {"gone_us": "deleted_us"},
    "versions": {"kept": "archived_bytes"},
}
"""The columns of each table that had another name before the migration "columns"; new names by old ones."""
_COLUMNS = (
    "ALTER TABLE files RENAME COLUMN gone_us TO deleted_us",
    "ALTER TABLE versions RENAME COLUMN kept TO archived_bytes",
)
STEPS: Mapping[str, tuple[str, ...]] = {
    "raw": _RAW,
    "seals": _SEALS,
    "imports": _IMPORTS,
    "comparisons": _COMPARISONS,
    "names": ("CREATE TABLE migrations (name TEXT PRIMARY KEY) WITHOUT ROWID",),
    "columns": _COLUMNS,
}
"""The statements of each migration by its name, in order; the table `migrations` names those that were applied.

`PRAGMA user_version` is the number of migrations that the last writer knew; an older Pollux refuses a higher number.
Before "names" it was also the number of migrations that were applied.
"""


def migrate(database: sqlite3.Connection, path: object) -> None:
    """Apply missing migrations. Raises `ArchiveError` for an archive of a newer Pollux."""
    number = database.execute("PRAGMA user_version").fetchone()[0]
    applied = _applied(database, number)
    if number > len(STEPS) or applied - STEPS.keys():
        raise ArchiveError(
            f"{path} was written by a newer Pollux (format {number}, this one knows {len(STEPS)}); "
            "please update Pollux."
        )
    missing = [name for name in STEPS if name not in applied]
    if not missing:
        return
    with transaction(database):
        for name in missing:
            for statement in STEPS[name]:
                database.execute(statement)
        database.executemany("INSERT OR IGNORE INTO migrations VALUES (?)", [(name,) for name in STEPS])
        database.execute(f"PRAGMA user_version = {len(STEPS)}")


def _applied(database: sqlite3.Connection, number: int) -> set[str]:
    try:
        return {row[0] for row in database.execute("SELECT name FROM migrations")}
    except sqlite3.DatabaseError:  # an archive from before "names", or a damaged page, which `verify` reports
        return set([*STEPS][:number])


def supply_imported(database: sqlite3.Connection) -> None:
    """Create an empty temporary table `imported` if the database has none, so that queries can use it.

    Facts in memory have no such table, and an older archive that is opened for reading cannot be migrated.
    """
    try:
        database.execute("SELECT 1 FROM imported LIMIT 0")
    except sqlite3.OperationalError:
        database.execute(f"CREATE TEMP {IMPORTED}")


def supply_columns(database: sqlite3.Connection, archive: str = "main") -> None:
    """Create temporary views that give the columns of an older archive their names of today.

    Such an archive cannot be migrated when it is opened for reading. A view hides the table with the same name.
    `archive` is the name of the database, which may be an attached one.
    """
    for table, names in OLD_COLUMNS.items():
        columns = [row[1] for row in database.execute(f"PRAGMA {archive}.table_info({table})")]
        if not names.keys().isdisjoint(columns):
            selected = ", ".join(f"{column} AS {names.get(column, column)}" for column in columns)
            database.execute(f"CREATE TEMP VIEW {table} AS SELECT {selected} FROM {archive}.{table}")  # noqa: S608  ours


@contextmanager
def savepoint(database: sqlite3.Connection) -> Iterator[None]:
    """Undo only the writes of this block if it raises, within a transaction."""
    database.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        if database.in_transaction:  # SQLite ends the whole transaction when the disk is full
            database.execute("ROLLBACK TO part")
            database.execute("RELEASE part")
        raise
    database.execute("RELEASE part")


class transaction:  # noqa: N801  reads as a verb where it is used
    """`BEGIN IMMEDIATE` … `COMMIT`, or `ROLLBACK` on an exception."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Wrap a connection in autocommit mode."""
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._database.in_transaction:
            self._database.execute("COMMIT" if kind is None else "ROLLBACK")
