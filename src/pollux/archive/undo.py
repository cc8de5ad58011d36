"""Undo copies: what `forget` removed from the archive can be brought back for a week.

`forget` destroys bytes and facts in the archive at once, so that no backup or export contains them. Before that, it
copies the removed versions and segments to a file of their own in a folder next to the archive. `bring_back` puts
them into the archive again with their numbers, times and hashes, so that seals still match.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from pollux.archive import dependents, raw, schema
from pollux.archive.inventory import original_path
from pollux.archive.migrations import transaction
from pollux.archive.raw import UNPACKING, compress
from pollux.archive.store import Archive, undo_folder
from pollux.disk.write import make_private_folder
from pollux.errors import PolluxError
from pollux.sessions.reader import Progress

KEPT_US = 7 * 86_400_000_000
"""Microseconds for which an undo copy is kept."""
_SUFFIX = ".db"
_TABLES = ("versions", "segments", "imported")
_OTHER_TABLES = (
    "CREATE TABLE sessions (session_id TEXT)",
    "CREATE TABLE files (machine TEXT, home TEXT, path TEXT, version_id INTEGER, id INTEGER)",
    "CREATE TABLE relatives (version_id INTEGER)",
)


class UndoCopy(msgspec.Struct, frozen=True):
    """A file with what one call of `forget` removed."""

    path: Path
    forgotten_us: int
    sessions: tuple[str, ...]

    @property
    def expires_us(self) -> int:
        """When it is deleted."""
        return self.forgotten_us + KEPT_US


class UndoResult(msgspec.Struct, frozen=True):
    """What was brought back."""

    sessions: tuple[str, ...]
    files: tuple[str, ...]


def store(
    archive: Archive, sessions: Sequence[str], files: Collection[int], relatives: Iterable[int], *, now_us: int
) -> UndoCopy:
    """Copy files of the archive to a new undo copy. Raises `PolluxError` if it cannot be written.

    Args:
        archive: from which they are about to be removed.
        sessions: that are forgotten.
        files: numbers of their files.
        relatives: versions of other sessions whose facts depend on these.
        now_us: the time.

    """
    folder = undo_folder(archive.path)
    path, number = folder / f"{now_us}{_SUFFIX}", 2
    try:
        make_private_folder(folder)
        while os.path.lexists(path):
            path, number = folder / f"{now_us}-{number}{_SUFFIX}", number + 1
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(path, isolation_level=None)) as copy, transaction(copy):
            _copy_files(archive.database, copy, files)
            copy.executemany("INSERT INTO sessions VALUES (?)", [(session_id,) for session_id in sessions])
            copy.executemany("INSERT INTO relatives VALUES (?)", [(version_id,) for version_id in relatives])
    except (OSError, sqlite3.OperationalError) as error:
        _remove(archive.path, [path])
        reason = error.strerror if isinstance(error, OSError) else error
        raise PolluxError(
            f"Nothing was forgotten: the undo copy {path} cannot be written ({reason}). "
            "Free some space, or pass --no-undo to forget without one."
        ) from None
    except BaseException:
        _remove(archive.path, [path])
        raise
    return UndoCopy(path, now_us, tuple(sessions))


def undo_copies(archive: Path) -> list[UndoCopy]:
    """Return the undo copies of an archive, the newest first. Damaged ones have no sessions."""
    copies = []
    for path, forgotten_us in _paths(archive):
        sessions: tuple[str, ...] = ()
        with suppress(sqlite3.DatabaseError), closing(_read_only(path)) as copy:
            sessions = tuple(str(row[0]) for row in copy.execute("SELECT session_id FROM sessions ORDER BY rowid"))
        copies.append(UndoCopy(path, forgotten_us, sessions))
    return copies


def bring_back(
    archive: Archive,
    copy: UndoCopy,
    *,
    memory: Mapping[str, str],
    progress: Progress = lambda _done, _all: None,
) -> UndoResult:
    """Restore the contents of an undo copy to the archive, derive their facts, and delete the copy."""
    database = archive.database
    try:
        with closing(_read_only(copy.path)) as source, transaction(database):
            if not schema.are_current(database):
                schema.reset(database)
            files = _insert_files(database, source)
            database.executemany(
                "DELETE FROM tombstones WHERE session_id = ?", [(session_id,) for session_id in copy.sessions]
            )
            relatives = source.execute("SELECT version_id FROM relatives").fetchall()
            database.executemany("DELETE FROM readings WHERE version_id = ?", relatives)
            dependents.update(database)
    except sqlite3.DatabaseError as error:
        raise PolluxError(f"The undo copy {copy.path} cannot be used ({error}). The archive was not changed.") from None
    from pollux.archive.verify import rederive  # noqa: PLC0415  slow to load, and every refresh loads this module

    rederive(archive, memory=memory, progress=progress)
    _remove(archive.path, [copy.path])
    return UndoResult(copy.sessions, files)


def remove_expired(archive: Path, now_us: int) -> None:
    """Delete the undo copies that are older than a week."""
    _remove(archive, [path for path, forgotten_us in _paths(archive) if forgotten_us + KEPT_US <= now_us])


def remove_all(archive: Path) -> None:
    """Delete all undo copies of an archive."""
    _remove(archive, [path for path, _ in _paths(archive)])


def _paths(archive: Path) -> list[tuple[Path, int]]:
    """Return the files of undo copies and when they were written, the newest first."""
    try:
        names = [path.name for path in undo_folder(archive).iterdir()]
    except OSError:
        return []
    paths = []
    for name in names:
        digits, _, number = name.removesuffix(_SUFFIX).partition("-")
        if name.endswith(_SUFFIX) and digits.isascii() and digits.isdigit():
            paths.append((int(digits), int(number) if number.isdecimal() else 1, undo_folder(archive) / name))
    return [(path, forgotten_us) for forgotten_us, _, path in sorted(paths, reverse=True)]


def _remove(archive: Path, paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):  # another process may have removed it
            path.unlink()
        with suppress(OSError):  # it contains other copies
            undo_folder(archive).rmdir()


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _copy_files(database: sqlite3.Connection, copy: sqlite3.Connection, files: Collection[int]) -> None:
    for statement in _OTHER_TABLES:
        copy.execute(statement)
    columns = {table: _columns(database, table) for table in _TABLES}
    for table, names in columns.items():
        copy.execute(f"CREATE TABLE {table} ({', '.join(names)})")
    for file_id in files:
        row = database.execute("SELECT machine, home, path, version_id, id FROM files WHERE id = ?", (file_id,))
        copy.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?)", row.fetchone())
        _copy_rows(database, copy, "versions", columns["versions"], "file_id = ?", file_id)
    versions = [row[0] for row in copy.execute("SELECT id FROM versions")]
    for version_id in versions:
        _copy_rows(database, copy, "imported", columns["imported"], "version_id = ?", version_id)
        _copy_rows(database, copy, "segments", columns["segments"], "version_id = ?", version_id)
    _separate_segments(database, copy)


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def _copy_rows(
    source: sqlite3.Connection, target: sqlite3.Connection, table: str, columns: Sequence[str], where: str, key: int
) -> None:
    rows = source.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE {where}", (key,))  # noqa: S608  ours
    target.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)  # noqa: S608


def _separate_segments(database: sqlite3.Connection, copy: sqlite3.Connection) -> None:
    """Compress segments by themselves that are compressed against others, which may change in the meantime."""
    for (segment_id,) in copy.execute("SELECT id FROM segments WHERE base_id IS NOT NULL").fetchall():
        with suppress(*UNPACKING):  # one that was damaged before stays damaged, and `verify` reports it again
            data = compress(raw.content(database, segment_id))
            copy.execute("UPDATE segments SET data = ? WHERE id = ?", (data, segment_id))
    copy.execute("UPDATE segments SET base_id = NULL, depth = 0")


def _insert_files(database: sqlite3.Connection, copy: sqlite3.Connection) -> tuple[str, ...]:
    """Insert the files of an undo copy that are still forgotten, with their versions and segments."""
    places = []
    for machine, home, path, current_id, old_id in copy.execute("SELECT * FROM files").fetchall():
        row = database.execute(
            "SELECT id FROM files WHERE machine = ? AND home = ? AND path = ? AND forgotten_us IS NOT NULL",
            (machine, home, path),
        ).fetchone()
        if row is None:
            continue
        new_ids = {}
        for version in _rows(copy, "versions", "file_id = ?", old_id):
            new_ids[version["id"]] = new_id = _insert(database, "versions", version | {"file_id": row[0]})
            for imported in _rows(copy, "imported", "version_id = ?", version["id"]):
                _insert(database, "imported", imported | {"version_id": new_id})
            for segment in _rows(copy, "segments", "version_id = ?", version["id"]):
                _insert(database, "segments", segment | {"version_id": new_id})
        current = new_ids.get(current_id)
        database.execute("UPDATE files SET forgotten_us = NULL, version_id = ? WHERE id = ?", (current, row[0]))
        places.append(str(original_path(home, path)))
    return tuple(places)


def _rows(copy: sqlite3.Connection, table: str, where: str, key: int) -> Iterator[dict[str, Any]]:
    cursor = copy.execute(f"SELECT * FROM {table} WHERE {where}", (key,))  # noqa: S608  ours
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def _insert(database: sqlite3.Connection, table: str, row: dict[str, Any]) -> int:
    """Insert a row under its old number if that is free; return its number."""
    if "id" in row and database.execute(f"SELECT 1 FROM {table} WHERE id = ?", (row["id"],)).fetchone():  # noqa: S608
        row = {**row, "id": None}
    marks = ", ".join("?" * len(row))
    statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"  # noqa: S608
    row_id = database.execute(statement, tuple(row.values())).lastrowid
    assert row_id is not None
    return row_id
