"""An archive is created, opened, locked, shared with readers and closed."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from pathlib import Path

import pytest
from tests import builders

from pollux.archive import lock, store
from pollux.archive.lock import WriterLock
from pollux.archive.migrations import STEPS
from pollux.archive.store import open_archive
from pollux.errors import ArchiveError


def test_archive_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "archive.db"
    with open_archive(path) as archive:
        assert (archive.is_writable, archive.read_only_reason) == (True, "")
        assert archive.database.execute("PRAGMA user_version").fetchone() == (len(STEPS),)
        assert archive.database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert archive.database.execute("PRAGMA synchronous").fetchone() == (2,)
    if sys.platform != "win32":
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.with_name("archive.db.lock").stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_second_writer_becomes_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pollux", "sync"])
    with open_archive(tmp_path / "archive.db") as first:
        with open_archive(tmp_path / "archive.db") as second:
            assert second.read_only_reason == f"pollux sync (process {os.getpid()}) is writing to it"
            assert (second.is_writable, second.lock_is_taken) == (False, True)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                second.database.execute("DELETE FROM files")
        assert first.is_writable
    with open_archive(tmp_path / "archive.db") as third:
        assert third.is_writable


def test_second_writer_waits_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pollux", "sync"])
    first = open_archive(tmp_path / "archive.db")
    writers: list[str] = []
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            first.close()

    monkeypatch.setattr("pollux.archive.lock.time.sleep", pause)
    with open_archive(tmp_path / "archive.db", wait=writers.append) as second:
        assert second.is_writable
    assert writers == [f"pollux sync (process {os.getpid()})"]
    assert len(pauses) == 3


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "{"])
def test_lock_without_a_name_has_an_unknown_owner(tmp_path: Path, text: str) -> None:
    builders.put(tmp_path / "archive.db.lock", text.encode())
    assert WriterLock(tmp_path / "archive.db").owner() == "another Pollux process"


def test_lock_is_taken_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_value: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    one, other = WriterLock(tmp_path / "archive.db"), WriterLock(tmp_path / "archive.db")
    with monkeypatch.context() as patch:
        patch.setattr("pollux.archive.lock.msgspec.json.encode", full)
        assert one.take()
    assert not other.take()
    one.release()
    assert other.take()
    other.release()
    other.release()


def test_archive_on_a_file_system_without_locks_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lockless(_file: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    open_archive(tmp_path / "archive.db").close()
    monkeypatch.setattr(lock, "_lock", lockless)
    with open_archive(tmp_path / "archive.db") as archive:
        assert (archive.is_writable, archive.read_only_reason) == (False, "No locks available")
        assert not archive.lock_is_taken


def test_missing_archive_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"There is no archive at .* yet \(opened for reading\)"):
        open_archive(tmp_path / "archive.db", write=False)
    assert not [*tmp_path.iterdir()]


def test_archive_without_content_is_missing(tmp_path: Path) -> None:
    builders.put(tmp_path / "archive.db", b"")
    with pytest.raises(ArchiveError, match="There is no archive at"):
        open_archive(tmp_path / "archive.db", write=False)


def test_reader_during_the_first_sync_is_asked_to_wait(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    lock = WriterLock(path)
    assert lock.take()
    first = sqlite3.connect(path, isolation_level=None)
    first.execute("PRAGMA journal_mode = WAL")
    first.execute("CREATE TABLE other (id)")  # in the journal: Pollux has not created its first table yet
    with pytest.raises(ArchiveError, match=r"is not ready: .* is writing to it. Try again"):
        open_archive(path)
    first.close()
    lock.release()


def test_database_error_becomes_a_message_and_frees_the_lock(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"cannot be used \(no such table: nowhere\); check its disk"):
        _ask(tmp_path / "archive.db", "SELECT 1 FROM nowhere")
    with open_archive(tmp_path / "archive.db") as again:
        assert again.is_writable


def test_other_errors_are_raised_unchanged(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), open_archive(tmp_path / "archive.db"):
        raise KeyboardInterrupt
    with open_archive(tmp_path / "archive.db") as again:
        assert again.is_writable


def test_interrupt_while_opening_frees_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "migrate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            open_archive(tmp_path / "archive.db")
    with open_archive(tmp_path / "archive.db") as again:
        assert again.is_writable


def test_archive_cut_while_it_has_a_journal_is_left_to_sqlite(tmp_path: Path) -> None:
    """The file looks the same during a checkpoint, when the journal contains the other pages."""
    path = tmp_path / "archive.db"
    with open_archive(path) as archive:
        archive.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        archive.database.execute("INSERT INTO tombstones VALUES ('one', 1)")
        copy = builders.put(tmp_path / "copy" / "archive.db", path.read_bytes())
        builders.put(tmp_path / "copy" / "archive.db-wal", path.with_name("archive.db-wal").read_bytes())
    with open_archive(copy) as opened:
        assert opened.database.execute("SELECT * FROM tombstones").fetchall() == [("one", 1)]


def _ask(path: Path, query: str) -> None:
    with open_archive(path) as archive:
        archive.database.execute(query)
