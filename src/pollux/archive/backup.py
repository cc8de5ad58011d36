"""A copy of an archive as it is at one moment; it stands in a place of its own until it is whole."""

from __future__ import annotations

import errno
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from pollux.archive import store
from pollux.archive.maintenance import readable
from pollux.archive.verify import verify
from pollux.errors import PolluxError
from pollux.sessions.reader import Progress

_PAGES = 4096
"""Of SQLite, copied between two looks at the progress."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A backup."""

    path: Path
    n_bytes: int
    is_sound: bool


def backup(path: Path, target: Path, *, force: bool = False, progress: Progress = lambda _done, _all: None) -> Copied:
    """Copy an archive as it is at one moment, look at every byte of the copy, and only then give it its name.

    Raises `PolluxError` if something is there already; not even with `force` does a damaged copy replace it.
    """
    target = target_of(path, target)
    if target.exists() and path.exists() and target.samefile(path):
        raise PolluxError(f"{target} is the archive itself; name another file.")
    _refuse_to_overwrite(target, force=force)
    part = target.with_name(f".{target.name}.part")
    try:
        part.unlink(missing_ok=True)  # of one that was killed
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with readable(path) as archive:
            _copy(archive.database, part, progress)
        with store.opened(part, write=False) as copied:
            report = verify(copied)
        if target.exists() and not report.bytes_are_sound:
            raise PolluxError(f"{path} is damaged, so it does not replace {target}; `pollux verify` tells more.")
        _refuse_to_overwrite(target, force=force)
        for suffix in ("-wal", "-shm"):  # of what is replaced: SQLite would apply it to the new file
            target.with_name(target.name + suffix).unlink(missing_ok=True)
        part.replace(target)
    except OSError as error:
        raise PolluxError(f"{target} cannot be written: {error.strerror}.") from None
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            part.with_name(part.name + suffix).unlink(missing_ok=True)
    return Copied(target, target.stat().st_size, is_sound=report.bytes_are_sound)


def target_of(path: Path, target: Path) -> Path:
    """Return the file that a backup goes to: in a folder, it has the name of the archive."""
    return target / path.name if target.is_dir() else target


def _refuse_to_overwrite(target: Path, *, force: bool) -> None:
    if target.exists() and not force:
        raise PolluxError(f"{target} is there already; name another file, or replace it with --force.")


def _copy(database: sqlite3.Connection, part: Path, progress: Progress) -> None:
    database.execute("BEGIN")  # one moment, however much somebody writes meanwhile
    copy = sqlite3.connect(part, isolation_level=None)
    try:
        database.execute("SELECT count(*) FROM files").fetchone()
        database.backup(copy, pages=_PAGES, progress=lambda _, left, whole: progress(whole - left, whole))
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, to be read anywhere
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE):  # the copy's disk, not ours
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
        raise
    finally:
        copy.close()
        database.execute("ROLLBACK")
    with part.open("rb+") as file:
        os.fsync(file.fileno())
