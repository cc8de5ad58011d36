"""The archive as a file: opened, checked, locked, closed."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pollux.archive.lock import WriterLock
from pollux.archive.migrations import STEPS, migrate
from pollux.errors import ArchiveError

_BUSY_MS = 10_000


@dataclass(slots=True)
class Archive:
    """An open archive."""

    database: sqlite3.Connection
    path: Path
    is_writable: bool
    lock: WriterLock | None = None
    why_not: str = ""
    """Why it is not writable."""

    def close(self) -> None:
        """Close, and give the lock back."""
        self.database.close()
        if self.lock:
            self.lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def opened(path: Path, *, write: bool = True) -> Archive:
    """Open the archive, make it if there is none, and become its writer if nobody else is.

    Raises `ArchiveError` for what is no archive, a broken one, or one from a newer Pollux.
    """
    lock = WriterLock(path)
    why_not = "" if write else "opened for reading"
    try:
        if write:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not lock.take():
                why_not = f"{lock.owner()} is writing to it"
    except OSError as error:
        why_not = error.strerror or "it cannot be written"
    try:
        if not why_not:
            return Archive(_writable(path), path, is_writable=True, lock=lock)
        return Archive(_readable(path), path, is_writable=False, why_not=why_not)
    except sqlite3.OperationalError as error:
        lock.release()
        if not why_not and path.exists():  # a disk that takes no writes, found out late
            return Archive(_readable(path), path, is_writable=False, why_not=str(error))
        raise ArchiveError(f"The archive {path} cannot be opened ({error}); name another with --archive.") from None
    except sqlite3.DatabaseError as error:
        lock.release()
        raise ArchiveError(
            f"{path} is no sound archive ({error}); move it away or put a backup in its place, then run `pollux sync`."
        ) from None
    except ArchiveError:
        lock.release()
        raise


def _writable(path: Path) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    database = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_MS / 1000)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA foreign_keys = ON")
    migrate(database, path)
    return database


def _readable(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise ArchiveError(
            f"There is no archive at {path} yet, and none can be made there; name another with --archive."
        )
    for options in ("mode=ro", "mode=ro&immutable=1"):  # the second where not even a -shm file can be made
        database = sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True, isolation_level=None)
        try:
            taken = database.execute("PRAGMA user_version").fetchone()[0]
            database.execute("SELECT count(*) FROM files").fetchone()
        except sqlite3.OperationalError as error:
            if options != "mode=ro":
                raise
            database.close()
            del error
            continue
        if taken > len(STEPS):
            migrate(database, path)
        return database
    raise AssertionError
