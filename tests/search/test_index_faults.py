"""Whatever happens to the index or to its builder: the next build completes it, and nothing else suffers."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.refreshing import refresh
from tests.search.indexing import check, found, indexed, opened, put_session, session_file, session_id, synced

from pollux.archive import store
from pollux.archive.index_file import index_files, index_path
from pollux.archive.lock import WriterLock
from pollux.library.config import configure
from pollux.library.library import Library
from pollux.search import index, prepare, write
from pollux.search.build import IndexBuilder, build_index, delete_index

if sys.platform == "win32":
    pytest.skip("there is no SIGKILL here", allow_module_level=True)

from tests.archive.test_faults import mounted, started
from tests.search import child

ARCHIVE = "archive.db"


def fill(root: Path, n_sessions: int = 5) -> None:
    for number in range(n_sessions):
        put_session(root, number, *(f"text {number} {turn} " + "filler " * 20 for turn in range(4)))


def run(archive: Path, what: str, number: int) -> Any:  # noqa: ANN401  whatever it sent
    """Build in another process; return what it sent last, or None if it was killed."""
    with started(child.build, archive, (what, number)) as (_, pipe):
        return last_sent(pipe)


def last_sent(pipe: Connection) -> Any:  # noqa: ANN401
    try:
        while (sent := pipe.recv()) == "ready":
            pass
    except EOFError:
        return None
    return sent


@pytest.mark.parametrize("moment", ["before commit", "after commit"])
def test_a_build_killed_at_any_commit_goes_on(tmp_path: Path, moment: str) -> None:
    fill(tmp_path)
    with synced(tmp_path):
        pass
    number, n_before = 0, -1
    for number in range(1, 40):
        delete_index(tmp_path / ARCHIVE)
        if run(tmp_path / ARCHIVE, moment, number):
            break
        with store.open_archive(tmp_path / ARCHIVE, write=False) as archive:
            result = build_index(archive.path, archive.database)
            assert result.n_missing == 0
        check(tmp_path, random.Random(number), 10)  # noqa: S311
        if moment == "after commit":
            assert result.n_sessions <= n_before or n_before < 0, "what was committed is not done again"
            n_before = result.n_sessions
    assert number > 5
    assert n_before <= 1


def test_an_update_killed_at_any_statement_goes_on(tmp_path: Path) -> None:
    rng = random.Random(5)  # noqa: S311
    fill(tmp_path)
    indexed(tmp_path)
    for number in range(20):
        with session_file(tmp_path, rng.randrange(5)).open("ab") as stream:
            again = builders.gemini("g0-3", f"again {number}", second=299)
            stream.write(builders.log(again, builders.user(f"k{number}", f"turn {number}", second=300 + number)))
        with synced(tmp_path):
            pass
        run(tmp_path / ARCHIVE, "statement", rng.randint(1, 90))
        indexed(tmp_path)
        check(tmp_path, rng, 15)


def test_a_builder_that_is_killed_while_it_creates_the_index(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    with synced(tmp_path):
        pass
    for number in range(1, 30, 3):
        delete_index(tmp_path / ARCHIVE)
        run(tmp_path / ARCHIVE, "statement", number)
        indexed(tmp_path)
        check(tmp_path)


def test_two_builders_at_once_make_one_index(tmp_path: Path) -> None:
    fill(tmp_path, 12)
    with synced(tmp_path):
        pass
    archive = tmp_path / ARCHIVE
    with (
        started(child.build, archive, ("live", 0)) as (_, one),
        started(child.build, archive, ("live", 0)) as (_, other),
    ):
        for pipe in (one, other):
            assert pipe.recv() == "ready"
        for pipe in (one, other):
            pipe.send("go")
        results = [one.recv(), other.recv()]
    for n_sessions, reason, is_busy in results:
        assert (n_sessions, is_busy) in {(12, False), (0, False), (0, True)}
        assert bool(reason) == is_busy
    assert sum(n_sessions for n_sessions, _, _ in results) == 12
    check(tmp_path)


def test_a_busy_index_is_left_to_its_builder(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    with synced(tmp_path) as archive:
        lock = WriterLock(index_path(archive.path))
        assert lock.take()
        result = build_index(archive.path, archive.database)
        assert (result.is_busy, result.n_sessions) == (True, 0)
        assert "is building the search index" in result.reason
        lock.release()
        assert build_index(archive.path, archive.database).n_sessions == 2


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(50_000))  # noqa: S311


def other_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE sessions (a)")


def half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def torn(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))


def without_values(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DELETE FROM meta WHERE key = 'high'")


def bad_anchors(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE meta SET value = x'c1' WHERE key = 'anchors'")


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        garbage,
        other_database,
        half,
        torn,
        without_values,
        bad_anchors,
        lambda path: os.truncate(path, 0),
        lambda path: os.truncate(path, 50),
        lambda path: os.truncate(path, path.stat().st_size - 1),
        lambda path: path.write_text("a text of the user's"),
    ],
    ids=["gone", "garbage", "other", "half", "torn", "values", "anchors", "empty", "tiny", "short", "text"],
)
def test_a_damaged_or_foreign_index_is_built_again(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    fill(tmp_path)
    indexed(tmp_path)
    damage(index_path(tmp_path / ARCHIVE))
    result = indexed(tmp_path)
    assert result.reason == ""
    check(tmp_path)


def test_a_journal_that_was_left_behind_does_no_harm(tmp_path: Path) -> None:
    fill(tmp_path)
    archive = tmp_path / ARCHIVE
    with synced(tmp_path) as opened_archive:
        build_index(archive, opened_archive.database)
        with opened(tmp_path):
            for path in index_files(archive)[1:3]:
                shutil.copy(path, tmp_path / f"old{path.suffix}")
    put_session(tmp_path, 7, "later words")
    delete_index(archive)
    for path in index_files(archive)[1:3]:
        shutil.copy(tmp_path / f"old{path.suffix}", path)
    indexed(tmp_path)
    check(tmp_path)


def test_an_archive_in_the_place_of_the_index_is_not_touched(tmp_path: Path) -> None:
    fill(tmp_path)
    with synced(tmp_path) as archive:
        other = index_path(archive.path)
        with store.open_archive(other):
            pass
        before = other.read_bytes()
        result = build_index(archive.path, archive.database)
        assert "is an archive, not an index" in result.reason
        assert other.read_bytes() == before


def test_a_link_in_the_place_of_the_index_is_not_followed(tmp_path: Path) -> None:
    fill(tmp_path)
    target = tmp_path / "precious"
    target.write_bytes(b"")
    with synced(tmp_path) as archive:
        index_path(archive.path).symlink_to(target)
        result = build_index(archive.path, archive.database)
        assert result.reason
    assert target.read_bytes() == b""


def test_a_full_disk_is_a_reason_and_the_next_build_goes_on(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    with synced(tmp_path):
        pass
    for limit in (0, 5_000, 60_000, 120_000):
        _, reason, is_busy = run(tmp_path / ARCHIVE, "limit", limit)
        assert reason
        assert not is_busy
        assert "\n" not in reason
    indexed(tmp_path)
    check(tmp_path)


def test_a_small_disk_is_a_reason_until_there_is_room(tmp_path: Path) -> None:
    fill(tmp_path / "home", 20)
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=20m", "tmpfs") as disk:
        with store.open_archive(disk / ARCHIVE) as archive:
            refresh(archive, (builders.home(tmp_path / "home"),))
            free = os.statvfs(disk)
            filler = builders.put(disk / "filler", bytes(free.f_bavail * free.f_frsize - 100_000))
            assert "full" in build_index(archive.path, archive.database).reason
            filler.unlink()
            assert build_index(archive.path, archive.database).reason == ""
        check(disk)


def test_a_read_only_folder_is_a_reason_and_its_index_is_read(tmp_path: Path) -> None:
    place = tmp_path / "place"
    fill(place)
    indexed(place)
    with mounted(place, "--bind", str(place)):
        subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)  # noqa: S607
        with store.open_archive(place / ARCHIVE, write=False) as archive:
            assert build_index(archive.path, archive.database).reason == "Read-only file system"
        check(place)


def test_without_fts5_there_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 1)
    monkeypatch.setattr(write, "TABLES", ("CREATE VIRTUAL TABLE parts USING fts9(text)",))
    assert indexed(tmp_path).reason == "no such module: fts9"
    with store.open_archive(tmp_path / ARCHIVE, write=False) as archive:
        assert index.open_index(archive.path, archive.database) is None


def test_an_index_that_is_deleted_during_the_build_stays_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path)
    monkeypatch.setattr(prepare, "BATCH", 100)
    with synced(tmp_path) as archive:
        result = build_index(archive.path, archive.database, lambda _done, _all: remove(archive.path))
        assert result.reason == "another process deleted the index"
        assert not any(path.exists() for path in index_files(archive.path))
        assert build_index(archive.path, archive.database).n_sessions == 5
    check(tmp_path)


def remove(archive: Path) -> None:
    delete_index(archive)


def test_a_builder_that_stays_open_notices_a_new_file(tmp_path: Path) -> None:
    fill(tmp_path)
    with synced(tmp_path) as archive, closing(IndexBuilder(archive.path)) as builder:
        assert builder.build(archive.database).n_sessions == 5
        assert builder.build(archive.database).n_sessions == 0
        delete_index(archive.path)
        assert build_index(archive.path, archive.database).n_sessions == 5
        assert builder.build(archive.database).n_sessions == 0
        delete_index(archive.path)
        assert builder.build(archive.database).n_sessions == 5
    check(tmp_path)


def library(root: Path) -> Library:
    return Library(configure(named_homes=[root], archive=root / ARCHIVE, environ={}))


def test_forgotten_words_are_in_no_byte(tmp_path: Path) -> None:
    fill(tmp_path)
    put_session(tmp_path, 9, "xylophone quartz", "xylophonic answers")
    with library(tmp_path) as opened_library:
        opened_library.sync()
        assert len(found(tmp_path, "xylophone")) == 2
        opened_library.archive.forget([session_id(9)], undo=False)
        session_file(tmp_path, 9).unlink()
        opened_library.sync()
    check(tmp_path)
    assert not found(tmp_path, "xylophone")
    for path in tmp_path.glob("archive*"):
        assert b"xylophon" not in path.read_bytes(), path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_sync_indexes_after_the_facts_and_tells_once_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    notes: list[str] = []
    with library(tmp_path) as opened_library:
        with monkeypatch.context() as patch:
            patch.setattr(write, "TABLES", ("CREATE VIRTUAL TABLE parts USING fts9(text)",))
            for _ in range(3):
                assert not opened_library.sync(waiting=notes.append).problems
        assert notes == [
            "The search index cannot be updated (no such module: fts9); `pollux search` reads the sessions instead."
        ]
        opened_library.sync(derive=False)
        assert opened_library.archive.info().n_indexed == 0
        opened_library.sync()
        info = opened_library.archive.info()
        assert (info.n_indexed, info.n_indexable) == (5, 5)
        assert info.n_index_bytes > 10_000
    check(tmp_path)


def test_the_archive_is_free_while_it_is_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    writers: list[bool] = []
    original = IndexBuilder.build

    def building(self: IndexBuilder, *args: Any, **options: Any) -> Any:  # noqa: ANN401
        with store.open_archive(tmp_path / ARCHIVE) as archive:
            writers.append(archive.is_writable)
        return original(self, *args, **options)

    monkeypatch.setattr(IndexBuilder, "build", building)
    with library(tmp_path) as opened_library:
        opened_library.sync()
    assert writers == [True]


def test_compacting_keeps_the_index(tmp_path: Path) -> None:
    fill(tmp_path)
    with library(tmp_path) as opened_library:
        opened_library.sync()
        opened_library.archive.compact()
    check(tmp_path)


def test_a_backup_has_no_index_and_an_import_is_indexed(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    fill(one)
    put_session(other, 8, "imported words")
    with library(other) as theirs:
        theirs.sync()
        theirs.archive.backup(tmp_path / "copy.db")
    assert not index_path(tmp_path / "copy.db").exists()
    with library(one) as ours:
        ours.sync()
        ours.archive.import_(tmp_path / "copy.db")
    assert found(one, "imported")
    check(one)
