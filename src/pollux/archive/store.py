"""Open, check, lock and close the archive file."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import msgspec

from pollux.archive.lock import WriterLock
from pollux.archive.migrations import STEPS, migrate, supply_columns, supply_imported
from pollux.disk.write import make_private_folder
from pollux.errors import ArchiveError, InvalidArchiveError, MissingArchiveError, UnfinishedArchiveError

_BUSY_MS = 10_000
_MAGIC, _HEAD = b"SQLite format 3\0", 100
"""The first bytes of every SQLite file, and the length of its header."""


class Archive(msgspec.Struct, weakref=True):
    """An open archive. As a context manager it turns SQLite's errors into `ArchiveError`."""

    database: sqlite3.Connection
    path: Path
    is_writable: bool
    machine: str = "localhost"
    """The name under which files of this computer are archived."""
    lock: WriterLock | None = None
    read_only_reason: str = ""
    """Why it is not writable."""
    lock_is_taken: bool = False
    """Whether that is because another process is writing to it."""
    checked: dict[int, bytes] = msgspec.field(default_factory=dict)
    """Segments whose bytes a search has compared with their SHA-256, by ID."""
    uncount: Callable[[], object] | None = None
    """Undoes `_counted`; called once, at the latest when the archive is garbage."""

    def close(self) -> None:
        """Close the database and release the lock."""
        self.database.close()
        if self.uncount:
            self.uncount()
        if self.lock:
            self.lock.release()

    def stop_writing(self, reason: str) -> None:
        """Make the archive read-only and let other processes write."""
        self.is_writable, self.read_only_reason = False, reason
        if self.lock:
            self.lock.release()
            self.lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise _refusal(self.path, error) from error


def open_archive(
    path: Path, *, machine: str = "localhost", write: bool = True, wait: Callable[[str], None] | None = None
) -> Archive:
    """Open an archive and create it if it is missing; for reading only, if another process is writing to it.

    Raises `ArchiveError` for a file that is no archive, is damaged or was written by a newer Pollux, and
    `UnfinishedArchiveError` while another process is creating it.

    Args:
        path: the archive's file.
        machine: the name under which files of this computer are archived.
        write: whether to become the writer.
        wait: called with the name of another writer; the call then waits until that has finished.

    """
    lock = WriterLock(path)
    reason, is_taken = ("", False) if write else ("opened for reading", False)
    try:
        if write:
            reason = _take_lock(path, lock, wait)
            is_taken = bool(reason)
        if not reason:
            database = _writable(path)
            return _counted(Archive(database, path, is_writable=True, machine=machine, lock=lock))
    except (OSError, sqlite3.OperationalError) as error:  # a read-only folder or file system
        lock.release()
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    except sqlite3.DatabaseError as error:
        lock.release()
        raise _refusal(path, error) from None
    except BaseException:
        lock.release()
        raise
    try:
        database = _readable(path, reason)
    except sqlite3.DatabaseError as error:
        raise _refusal(path, error) from None
    archive = Archive(
        database, path, is_writable=False, machine=machine, read_only_reason=reason, lock_is_taken=is_taken
    )
    return _counted(archive)


@contextmanager
def read_transaction(database: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Read one consistent snapshot of a database, within the current transaction if there is one."""
    if database.in_transaction:
        yield database
        return
    database.execute("BEGIN")
    try:
        yield database
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


@contextmanager
def explained_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into an `ArchiveError` that names the archive."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _refusal(path, error) from error


_open_files: Counter[tuple[int, int]] = Counter()
"""Device and inode of the archives that this process has open, and how often.

Such a file must not be opened and closed without SQLite: on POSIX systems, closing any descriptor of a file releases
all locks of the process on it. Another process would then delete the write-ahead log that connections here still read.
"""
_counting = threading.RLock()  # garbage may be collected while it is held


def _counted(archive: Archive) -> Archive:
    file = _identity(archive.path)
    if file:
        with _counting:
            _open_files[file] += 1
        archive.uncount = weakref.finalize(archive, _note_closed, file)
    return archive


def _note_closed(file: tuple[int, int]) -> None:
    with _counting:
        _open_files[file] -= 1
        if not _open_files[file]:
            del _open_files[file]


def _is_open(path: Path) -> bool:
    return _identity(path) in _open_files


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _take_lock(path: Path, lock: WriterLock, wait: Callable[[str], None] | None) -> str:
    """Become the writer and return an empty text, or return the reason why that is not possible."""
    make_private_folder(path.parent)
    if wait:
        lock.wait(wait)
        return ""
    return "" if lock.take() else f"{lock.owner()} is writing to it"


def _writable(path: Path) -> sqlite3.Connection:
    if not _is_open(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        check_size(path)
    database = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_MS / 1000)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA foreign_keys = ON")
        migrate(database, path)
    except BaseException:
        database.close()
        raise
    return database


def _readable(path: Path, reason: str) -> sqlite3.Connection:
    if path.exists():
        if not _is_open(path):
            check_size(path)
        with suppress(sqlite3.OperationalError):
            return _checked(path, "mode=ro")
    if writer := _writer(path):
        raise UnfinishedArchiveError(path, f"{writer} is writing to it")
    if path.exists():
        with suppress(sqlite3.OperationalError):
            return _checked(path, "mode=ro")  # a writer may have finished in between
        if has_journal(path):
            raise ArchiveError(
                f"The newest part of {path} is in {path.name}-wal, which cannot be read here ({reason}); "
                "copy both files to a writable folder and name the copy with --archive."
            )
        with suppress(sqlite3.OperationalError):
            return _checked(path, "mode=ro&immutable=1")  # where not even a -shm file can be created
    raise MissingArchiveError(path, reason)


def _writer(path: Path) -> str | None:
    lock = WriterLock(path)
    try:
        if not lock.path.exists() or lock.take():
            return None
    except OSError:
        return None
    finally:
        lock.release()
    return lock.owner()


def _checked(path: Path, options: str) -> sqlite3.Connection:
    # One thread reads with the connection, another one may close it.
    address = f"{path.resolve().as_uri()}?{options}"
    database = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    try:
        if database.execute("PRAGMA user_version").fetchone()[0] > len(STEPS):
            migrate(database, path)
        database.execute("SELECT count(*) FROM files").fetchone()
        supply_columns(database)
        supply_imported(database)
    except BaseException:
        database.close()
        raise
    return database


def check_size(path: Path) -> None:
    """Raise `sqlite3.DatabaseError` for files that SQLite itself accepts: a truncated copy, or a tiny other file.

    A database with a write-ahead log may be shorter than its header says, so then the length is not checked.
    """
    may_be_short = has_journal(path)
    with path.open("rb") as file:
        head = file.read(_HEAD)
        size = os.fstat(file.fileno()).st_size
    if head and not head.startswith(_MAGIC):
        raise sqlite3.DatabaseError("file is not a database")
    page_size = int.from_bytes(head[16:18], "big")
    expected = int.from_bytes(head[28:32], "big") * (page_size if page_size > 1 else 1 << 16)
    if not may_be_short and (0 < len(head) < _HEAD or expected > size):
        raise sqlite3.DatabaseError(f"it is truncated: {size} bytes of {expected or 'more'}")


def has_journal(path: Path) -> bool:
    """Return whether the newest part of a database is still in its write-ahead log."""
    journal = path.with_name(path.name + "-wal")
    return journal.exists() and journal.stat().st_size > 0


def _refusal(path: Path, error: sqlite3.DatabaseError) -> ArchiveError:
    if isinstance(error, sqlite3.OperationalError):
        return ArchiveError(
            f"The archive {path} cannot be used ({error}); check its disk, or name another archive with --archive."
        )
    return InvalidArchiveError(path, error)


def undo_folder(archive: Path) -> Path:
    """Return the folder of the copies that `forget --undo` brings back."""
    return archive.with_name(f"{archive.name}.forgotten")
