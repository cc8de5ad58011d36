"""The archive as a file: opened, checked, locked, closed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import msgspec

from pollux.archive.lock import WriterLock
from pollux.archive.migrations import STEPS, migrate, supply_imported
from pollux.disk.private_files import make_private_folder
from pollux.errors import ArchiveError, NoArchiveError, UnfinishedArchiveError

_BUSY_MS = 10_000
_MAGIC, _HEAD = b"SQLite format 3\0", 100
"""How every SQLite file begins, and how long its header is."""


class Archive(msgspec.Struct):
    """An open archive; what SQLite has against it becomes an `ArchiveError`."""

    database: sqlite3.Connection
    path: Path
    is_writable: bool
    lock: WriterLock | None = None
    why_not: str = ""
    """Why it is not writable."""
    lock_is_taken: bool = False
    """Because somebody else is writing to it, that is."""

    def close(self) -> None:
        """Close, and give the lock back."""
        self.database.close()
        if self.lock:
            self.lock.release()

    def stop_writing(self, why: str) -> None:
        """Go on as with an archive that cannot be written, and let others write."""
        self.is_writable, self.why_not = False, why
        if self.lock:
            self.lock.release()
            self.lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.close()
        if isinstance(error, sqlite3.DatabaseError):
            raise _refusal(self.path, error) from error


def opened(path: Path, *, write: bool = True, wait: Callable[[str], None] | None = None) -> Archive:
    """Open the archive, make it if there is none, and become its writer if nobody else is.

    With `wait`, stay until the other writer is done; it is told who that is.
    Raises `ArchiveError` for what is no archive, a broken one, or one from a newer Pollux, and `UnfinishedArchiveError`
    for one that somebody else is just making.
    """
    lock = WriterLock(path)
    why_not, is_taken = ("", False) if write else ("opened for reading", False)
    try:
        if write:
            why_not = _locked(path, lock, wait)
            is_taken = bool(why_not)
        if not why_not:
            return Archive(_writable(path), path, is_writable=True, lock=lock)
    except (OSError, sqlite3.OperationalError) as error:  # a place that takes no writes
        lock.release()
        why_not = (error.strerror if isinstance(error, OSError) else None) or str(error)
    except sqlite3.DatabaseError as error:
        lock.release()
        raise _refusal(path, error) from None
    except BaseException:
        lock.release()
        raise
    try:
        database = _readable(path, why_not)
        return Archive(database, path, is_writable=False, why_not=why_not, lock_is_taken=is_taken)
    except sqlite3.DatabaseError as error:
        raise _refusal(path, error) from None


@contextmanager
def read_transaction(database: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Hold one snapshot of a database, whoever writes to it meanwhile; inside another one, hold that."""
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
    """Raise `ArchiveError` with a sentence for what SQLite has against an archive."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _refusal(path, error) from error


def _locked(path: Path, lock: WriterLock, wait: Callable[[str], None] | None) -> str:
    """Become the writer, or say why not."""
    make_private_folder(path.parent)
    if wait:
        lock.wait(wait)
        return ""
    return "" if lock.take() else f"{lock.owner()} is writing to it"


def _writable(path: Path) -> sqlite3.Connection:
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


def _readable(path: Path, why: str) -> sqlite3.Connection:
    if path.exists():
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
                f"The newest part of {path} is in {path.name}-wal, which cannot be read here ({why}); "
                "copy both to a place that can be written."
            )
        with suppress(sqlite3.OperationalError):
            return _checked(path, "mode=ro&immutable=1")  # where not even a -shm file can be made
    raise ArchiveError(f"There is no archive at {path} yet ({why}); name another with --archive.")


def _writer(path: Path) -> str | None:
    """Return who is writing to an archive; nobody where there can be no lock."""
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
    # One thread reads with a connection, and another may close it.
    address = f"{path.resolve().as_uri()}?{options}"
    database = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    try:
        if database.execute("PRAGMA user_version").fetchone()[0] > len(STEPS):
            migrate(database, path)
        database.execute("SELECT count(*) FROM files").fetchone()
        supply_imported(database)
    except BaseException:
        database.close()
        raise
    return database


def check_size(path: Path) -> None:
    """Refuse what SQLite would not: a copy that was cut short, or a tiny file of somebody else's.

    While there is a journal beside it, the file may be shorter than it says; then SQLite knows better.
    """
    may_be_short = has_journal(path)
    with path.open("rb") as file:
        head = file.read(_HEAD)
        size = os.fstat(file.fileno()).st_size
    if head and not head.startswith(_MAGIC):
        raise sqlite3.DatabaseError("file is not a database")
    page_size = int.from_bytes(head[16:18], "big")
    said = int.from_bytes(head[28:32], "big") * (page_size if page_size > 1 else 1 << 16)
    if not may_be_short and (0 < len(head) < _HEAD or said > size):
        raise sqlite3.DatabaseError(f"it is cut short: {size} bytes of {said or 'more'}")


def has_journal(path: Path) -> bool:
    """Return whether the newest part of a database stands in a journal beside it."""
    journal = path.with_name(path.name + "-wal")
    return journal.exists() and journal.stat().st_size > 0


def _refusal(path: Path, error: sqlite3.DatabaseError) -> ArchiveError:
    """Say in one sentence what is wrong, and what to do."""
    if isinstance(error, sqlite3.OperationalError):
        return ArchiveError(
            f"The archive {path} cannot be used ({error}); see to its disk, or name another with --archive."
        )
    return NoArchiveError(path, error)
