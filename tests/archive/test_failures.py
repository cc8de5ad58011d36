"""An error in one bundle does not stop the others; it is reported, and not retried at each refresh."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests import builders
from tests.archive.growing import content, rebuild, versions
from tests.archive.test_verify import CHILD
from tests.refreshing import refresh

from pollux.archive import derive, fact_rows, ingest, open_session, raw, schema, store, verify_facts
from pollux.archive.damage import VerifyReport
from pollux.archive.inventory import DiskFile, inventory
from pollux.archive.readings import continue_reading
from pollux.archive.refresh import RefreshResult, compared
from pollux.archive.store import Archive
from pollux.archive.verify import verify
from pollux.formats.source import Source
from pollux.model import Session
from pollux.sessions.grouping import OpenSession, group_readings
from pollux.sessions.locate import ScanCache, held_time, locate

BAD = builders.OTHER
BAD_NAME = "session-2026-11-14T08-00-b3e2640d.jsonl"
_write = fact_rows.write


def homes_with_two(root: Path) -> Path:
    """Write a home with a good session and another one, and return the file of the latter."""
    good = builders.log(builders.header(), builders.user(), builders.gemini(tokens=builders.tokens()))
    builders.put(builders.chats(root) / f"{builders.NAME}.jsonl", good)
    return builders.put(builders.chats(root) / BAD_NAME, builders.log(builders.header(BAD), builders.user("u9")))


def synced_home(archive: Archive, root: Path) -> RefreshResult:
    """Refresh a few seconds after the files were written, when their times are reliable."""
    later = datetime.now(UTC) + timedelta(seconds=5)
    return refresh(archive, [builders.home(root)], clock=lambda: later)


def ids(archive: Archive) -> set[str]:
    return {row[0] for row in archive.database.execute("SELECT session_id FROM sessions")}


def codes(result: RefreshResult) -> list[tuple[str, str | None]]:
    return [(problem.code, problem.file) for problem in result.problems]


def failing_to_read(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[Path]:
    """Make the reading of one file raise an error, and return the list of attempts."""
    attempts: list[Path] = []

    def fail(source: Source, snapshot: bytes | None) -> Any:  # noqa: ANN401
        if source.path.name == BAD_NAME:
            attempts.append(source.path)
            raise error
        return continue_reading(source, snapshot)

    monkeypatch.setattr(derive, "continue_reading", fail)
    return attempts


def failing_to_write(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def write(database: sqlite3.Connection, group: OpenSession, session: Session, bundle: str) -> None:
        _write(database, group, session, bundle)
        if session.id == BAD:
            raise error

    monkeypatch.setattr(fact_rows, "write", write)


def failing_to_sum_up(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(placed: list[Any], full_id: Any) -> list[OpenSession]:  # noqa: ANN401
        if any(placed_reading.reading.id == BAD for placed_reading in placed):
            raise error
        return group_readings(placed, full_id)

    monkeypatch.setattr(derive, "group_readings", fail)


@pytest.mark.parametrize("fail", [failing_to_read, failing_to_write, failing_to_sum_up])
@pytest.mark.parametrize("error", [OverflowError("too large"), KeyError(), RecursionError("deep"), sqlite3.DataError()])
def test_error_of_one_session_does_not_stop_the_others(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[[pytest.MonkeyPatch, Exception], None],
    error: Exception,
) -> None:
    file = homes_with_two(tmp_path)
    fail(monkeypatch, error)
    with store.open_archive(tmp_path / "archive.db") as archive:
        result = synced_home(archive, tmp_path)
        assert codes(result) == [("cannot-derive", str(file))]
        assert type(error).__name__ in result.problems[0].message
        assert result.sessions == ids(archive) == {builders.SESSION}
        assert versions(archive)[str(tmp_path / ".gemini"), f"tmp/webapp/chats/{BAD_NAME}"] == [file.read_bytes()]
        listed = open_session.history(archive.database, result.located)
        assert listed.problems == tuple(result.problems)
        assert [session.id for session in listed.sessions] == [builders.SESSION]


def test_failed_file_is_read_again_only_after_it_has_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = homes_with_two(tmp_path)
    attempts = failing_to_read(monkeypatch, ValueError("odd"))
    with store.open_archive(tmp_path / "archive.db") as archive:
        synced_home(archive, tmp_path)
        assert not schema.are_behind(archive.database)
        assert not codes(synced_home(archive, tmp_path))
        assert len(attempts) == 1
        with file.open("ab") as stream:
            stream.write(builders.log(builders.user("u10")))
        assert codes(synced_home(archive, tmp_path)) == [("cannot-derive", str(file))]
        assert len(attempts) == 2
        monkeypatch.setattr(derive, "continue_reading", continue_reading)
        with file.open("ab") as stream:
            stream.write(builders.log(builders.user("u11")))
        assert synced_home(archive, tmp_path).sessions == {BAD}
        assert not open_session.history(archive.database, synced_home(archive, tmp_path).located).problems


def test_new_reader_tries_a_failed_file_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes_with_two(tmp_path)
    failing_to_read(monkeypatch, ValueError("odd"))
    with store.open_archive(tmp_path / "archive.db") as archive:
        synced_home(archive, tmp_path)
        monkeypatch.setattr(derive, "continue_reading", continue_reading)
        monkeypatch.setattr(schema, "READER", "next")
        assert synced_home(archive, tmp_path).sessions == {builders.SESSION, BAD}


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.EIO, "no")])
def test_temporary_error_is_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    file = homes_with_two(tmp_path)
    attempts = failing_to_read(monkeypatch, error)
    with store.open_archive(tmp_path / "archive.db") as archive:
        for number in (1, 2):
            assert codes(synced_home(archive, tmp_path)) == [("cannot-derive", str(file))]
            assert len(attempts) == number
        assert ids(archive) == {builders.SESSION}


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk is full"), sqlite3.DatabaseError("malformed")])
def test_error_of_the_whole_database_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    homes_with_two(tmp_path)
    failing_to_write(monkeypatch, error)
    with store.open_archive(tmp_path / "archive.db") as archive:
        with pytest.raises(type(error)):
            synced_home(archive, tmp_path)
        assert not archive.database.in_transaction
        assert schema.are_behind(archive.database)


def test_session_that_grows_into_a_failure_loses_its_old_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = homes_with_two(tmp_path)
    with store.open_archive(tmp_path / "archive.db") as archive:
        synced_home(archive, tmp_path)
        failing_to_sum_up(monkeypatch, ValueError("odd"))
        with file.open("ab") as stream:
            stream.write(builders.log(builders.user("u10")))
        synced_home(archive, tmp_path)
        grown = content(archive)
        rebuild(archive, [builders.home(tmp_path)])
        assert content(archive) == grown
        assert ids(archive) == {builders.SESSION}


def test_subagent_that_cannot_be_written_does_not_affect_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes_with_two(tmp_path)
    subagent_log = builders.log(builders.header(CHILD, kind="subagent"), builders.user("s1"))
    child = builders.put(builders.chats(tmp_path) / builders.SESSION / f"{CHILD}.jsonl", subagent_log)

    def write(database: sqlite3.Connection, group: OpenSession, session: Session, bundle: str) -> None:
        if session.id == CHILD:
            raise ValueError("odd")
        _write(database, group, session, bundle)

    monkeypatch.setattr(fact_rows, "write", write)
    with store.open_archive(tmp_path / "archive.db") as archive:
        assert codes(synced_home(archive, tmp_path)) == [("cannot-derive", str(child))]
        assert ids(archive) == {builders.SESSION, BAD}


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="this system cannot fork processes")
def test_failures_in_other_processes_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "_WORKERS_FROM", (0, 0))
    file = homes_with_two(tmp_path)
    failing_to_write(monkeypatch, ValueError("odd"))
    with store.open_archive(tmp_path / "archive.db") as archive:
        assert codes(synced_home(archive, tmp_path)) == [("cannot-derive", str(file))]
        assert ids(archive) == {builders.SESSION}
        assert not schema.are_behind(archive.database)
        monkeypatch.setattr(fact_rows, "write", _write)
        with file.open("ab") as stream:
            stream.write(builders.log(builders.user("u10")))
        assert synced_home(archive, tmp_path).sessions == {BAD}
        assert not [*schema.rows(archive.database, "failures")]


def test_archive_with_a_failure_is_undamaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes_with_two(tmp_path)
    failing_to_write(monkeypatch, ValueError("odd"))
    with store.open_archive(tmp_path / "archive.db") as archive:
        synced_home(archive, tmp_path)
        report = verify(archive)
        assert (report.damage, report.notes) == ([], [])
        deep = VerifyReport()
        verify_facts.verify_deeply(archive, deep, memory={})
        assert deep.damage == []


def test_failure_of_project_files_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes_with_two(tmp_path)

    def fail(*_: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(derive, "claims_from_files", fail)
    with store.open_archive(tmp_path / "archive.db") as archive:
        result = synced_home(archive, tmp_path)
        assert codes(result) == [("cannot-derive", str(tmp_path / ".gemini"))]
        assert ids(archive) == {builders.SESSION, BAD}


def test_file_that_cannot_be_stored_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = homes_with_two(tmp_path)
    stored = raw.store

    def store_others(database: sqlite3.Connection, write: raw.PendingWrite, **more: Any) -> int:  # noqa: ANN401
        version_id = stored(database, write, **more)
        if write.file.place == str(file):
            raise OverflowError("too large")
        return version_id

    monkeypatch.setattr(raw, "store", store_others)
    with store.open_archive(tmp_path / "archive.db") as archive:
        assert codes(synced_home(archive, tmp_path)) == [("cannot-archive", str(file))]
        assert ids(archive) == {builders.SESSION}
        assert not any(path.endswith(BAD_NAME) for _, path in versions(archive))
        monkeypatch.setattr(raw, "store", stored)
        assert synced_home(archive, tmp_path).sessions == {BAD}


def test_file_that_cannot_be_prepared_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = homes_with_two(tmp_path)
    prepare = raw.prepare

    def prepare_others(item: Any, state: Any) -> raw.PendingWrite:  # noqa: ANN401
        if item.place == str(file):
            raise MemoryError
        return prepare(item, state)

    monkeypatch.setattr(raw, "prepare", prepare_others)
    monkeypatch.setattr(ingest, "_FEW", 0)
    with store.open_archive(tmp_path / "archive.db") as archive:
        assert codes(synced_home(archive, tmp_path)) == [("cannot-archive", str(file))]
        assert ids(archive) == {builders.SESSION}


def test_file_of_the_year_2300_is_archived_and_read_only_once(tmp_path: Path) -> None:
    file = homes_with_two(tmp_path)
    far = 10_413_792_000_000_000_000
    os.utime(file, ns=(far, far))
    assert file.stat().st_mtime_ns == far, "this file system cannot store such times"
    with store.open_archive(tmp_path / "archive.db") as archive:
        for _ in range(2):
            result = synced_home(archive, tmp_path)
            assert codes(result) == [("value-out-of-range", str(file))]
        assert ids(archive) == {builders.SESSION, BAD}
        assert str(file) not in {item.place for item in changed(archive, tmp_path)}
        with file.open("ab") as stream:
            stream.write(builders.log(builders.user("u10")))
        os.utime(file, ns=(far, far))
        assert synced_home(archive, tmp_path).n_files == 1


def changed(archive: Archive, root: Path) -> list[DiskFile]:
    look = ScanCache()
    return compared(archive.database, inventory(locate([builders.home(root)], look), look), archive.machine)[1]


@pytest.mark.parametrize(("mtime_ns", "held"), [(2**63, 2**63 - 1), (-(2**70), -(2**63)), (7, 7)])
def test_times_are_limited_to_the_range_of_a_column(mtime_ns: int, held: int) -> None:
    look = ScanCache()
    assert held_time(mtime_ns, "file", look) == held
    assert [problem.code for problem in look.problems] == ["value-out-of-range"] * (mtime_ns != held)


def test_large_inodes_are_archived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes_with_two(tmp_path)
    prepare = raw.prepare
    monkeypatch.setattr(
        raw, "prepare", lambda item, state: msgspec.structs.replace(prepare(item, state), inode=2**64 - 1)
    )
    with store.open_archive(tmp_path / "archive.db") as archive:
        assert not codes(synced_home(archive, tmp_path))
        assert ids(archive) == {builders.SESSION, BAD}
