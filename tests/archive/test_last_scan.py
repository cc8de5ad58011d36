"""The digest of the last scan saves the comparison of files, and hides no change."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from tests import builders
from tests.builders import header, log, put, user

from pollux.archive import refresh as refreshing
from pollux.archive.refresh import RefreshResult, refresh
from pollux.archive.store import Archive, open_archive
from pollux.library.config import utc_now

MOST_BYTES_OF_A_FILE = 1_100
"""Of its entry, its path and its status; the folder of the test is part of each path."""
NAMES = ("session-2026-11-15T19-30-6ece72aa.jsonl", "session-2026-11-15T19-31-7ece72aa.jsonl")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(refreshing, "_WORTH_STORING", 1)
    for name in NAMES:
        put(
            builders.chats(tmp_path) / name,
            log(header(f"{name[-14:-6]}-5955-4bdb-8380-88eda48ac048"), user("u1", "ask")),
        )
    return tmp_path


def later() -> datetime:
    """Return a time long after the files were written, so that none of them may have changed in the same tick."""
    return utc_now() + timedelta(days=1)


def refreshed(archive: Archive, home: Path) -> RefreshResult:
    return refresh(archive, [builders.home(home)], clock=later)


def is_compared(archive: Archive, home: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether a refresh compares every file."""
    calls = []
    real = refreshing.compared

    def counted(*args: object) -> object:
        calls.append(args)
        return real(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(refreshing, "compared", counted)
        refreshed(archive, home)
    return bool(calls)


def test_scan_like_the_last_one_is_not_compared(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_archive(home / "archive.db") as archive:
        refreshed(archive, home)
        assert is_compared(archive, home, monkeypatch)
        assert not is_compared(archive, home, monkeypatch)


def _append(home: Path) -> None:
    with (builders.chats(home) / NAMES[0]).open("ab") as file:
        file.write(log(user("u2", "more")))


def _replace(home: Path) -> None:
    put(builders.chats(home) / NAMES[0], log(header(), user("u1", "new")))


def _delete(home: Path) -> None:
    (builders.chats(home) / NAMES[0]).unlink()


def _add(home: Path) -> None:
    put(builders.chats(home) / NAMES[0].replace("-30-", "-40-"), log(header(), user("u3", "another")))


@pytest.mark.parametrize("change", [_append, _replace, _delete, _add])
def test_every_change_is_noticed(home: Path, change: Callable[[Path], None]) -> None:
    with open_archive(home / "archive.db") as archive:
        for _ in range(3):
            refreshed(archive, home)
        change(home)
        result = refreshed(archive, home)
        assert result.n_files + result.n_deleted == 1


def test_change_of_the_archive_is_noticed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_archive(home / "archive.db") as archive:
        for _ in range(3):
            refreshed(archive, home)
        archive.database.execute("UPDATE files SET size = size - 1 WHERE path LIKE '%6ece72aa%'")
        assert is_compared(archive, home, monkeypatch)


def test_file_written_just_before_is_compared_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its times may stay the same if it changes again in the same tick."""
    with open_archive(home / "archive.db") as archive:
        for _ in range(3):
            refresh(archive, [builders.home(home)], clock=utc_now)
        archive.database.execute("UPDATE files SET last_us = mtime_ns / 1000")
        assert is_compared(archive, home, monkeypatch)
        archive.database.execute("UPDATE files SET last_us = mtime_ns / 1000")
        assert is_compared(archive, home, monkeypatch)


def test_path_that_is_not_unicode_is_compared(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = builders.chats(home).parent / "tool-outputs"
    folder.mkdir()
    try:
        (folder / "odd-\udc80.txt").write_text("output")
    except (OSError, UnicodeError):
        pytest.skip("this file system does not allow such names")
    with open_archive(home / "archive.db") as archive:
        for _ in range(3):
            refreshed(archive, home)
        assert is_compared(archive, home, monkeypatch)


def test_refresh_needs_little_memory_for_each_file(home: Path) -> None:
    peaks = []
    with open_archive(home / "archive.db") as archive:
        for n_files in (100, 600):
            for number in range(n_files):
                put(builders.chats(home) / f"session-2026-11-15T19-30-{number:08x}.jsonl", log(header(f"{number:08x}")))
            refreshed(archive, home)
            tracemalloc.start()
            refreshed(archive, home)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert (peaks[1] - peaks[0]) / 500 <= MOST_BYTES_OF_A_FILE
