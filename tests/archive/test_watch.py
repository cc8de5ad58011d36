"""A watch reports each change and its folder, and continues after errors."""

from __future__ import annotations

import functools
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import watchfiles
from tests import builders
from tests.refreshing import refresh

from pollux.archive import maintenance, watch
from pollux.archive.store import open_archive
from pollux.archive.watch import SyncReport, changes, is_remote
from pollux.errors import ArchiveError
from pollux.sessions.locate import Home

PATIENCE = 20.0
"""Seconds; a slow machine is no wrong answer."""


class Watched:
    """A watch in a thread, and the times of its reports."""

    def __init__(self, homes: tuple[Home, ...], *, poll: bool = False) -> None:
        self.times: list[float] = []
        self.said: list[str] = []
        self._stop = False
        self._thread = threading.Thread(target=self._run, args=(homes,), kwargs={"poll": poll})
        self._thread.start()

    def _run(self, homes: tuple[Home, ...], *, poll: bool) -> None:
        for _ in changes(lambda: homes, poll=poll, tell=self.said.append):
            self.times.append(time.monotonic())
            if self._stop:
                return

    def settled(self) -> None:
        """Wait until the watch has reported the existing files."""
        wait_for(lambda: len(self.times) >= 2)
        time.sleep(0.2)

    def saw(self, change: Callable[[], object]) -> float:
        """Make a change, and return the seconds until the watch reported it."""
        n_before, began = len(self.times), time.monotonic()
        change()
        wait_for(lambda: len(self.times) > n_before)
        return self.times[n_before] - began

    def end(self, folder: Path) -> None:
        self._stop = True
        builders.put(folder / "end", b"")
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the watch reported nothing"
        time.sleep(0.01)


@contextmanager
def watched(root: Path, *, poll: bool = False) -> Iterator[Watched]:
    one = Watched((builders.home(root),), poll=poll)
    try:
        yield one
    finally:
        one.end(builders.home(root).tmp)


@pytest.mark.parametrize("poll", [False, True])
def test_change_is_reported_within_a_second(tmp_path: Path, poll: bool) -> None:  # noqa: FBT001
    file = builders.put(builders.chats(tmp_path) / "session-a.jsonl", b"{}\n")
    with watched(tmp_path, poll=poll) as one:
        one.settled()

        def append() -> None:
            with file.open("ab") as stream:
                stream.write(b"{}\n")

        took = []
        for _ in range(3):
            took.append(one.saw(append))
            time.sleep(0.5)
        assert min(took) < 1


def test_folder_created_later_is_watched(tmp_path: Path) -> None:
    with watched(tmp_path) as one:
        one.settled()
        one.saw(lambda: builders.put(builders.chats(tmp_path) / "session-a.jsonl", b"{}\n"))
        time.sleep(1)
        one.saw(lambda: builders.put(builders.chats(tmp_path, "new") / "session-b.jsonl", b"{}\n"))


def test_folder_that_replaces_another_is_watched(tmp_path: Path) -> None:
    tmp = builders.home(tmp_path).tmp
    builders.chats(tmp_path)
    with watched(tmp_path) as one:
        one.settled()
        one.saw(lambda: tmp.rename(tmp_path / "old"))
        one.saw(lambda: builders.put(builders.chats(tmp_path) / "session-a.jsonl", b"{}\n"))
        time.sleep(1)
        one.saw(lambda: builders.put(builders.chats(tmp_path) / "session-b.jsonl", b"{}\n"))


def test_quiet_folder_is_scanned_at_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builders.chats(tmp_path)
    monkeypatch.setattr(watch, "_MAX_WAIT", 0.0)
    with watched(tmp_path) as one:
        wait_for(lambda: len(one.times) > 4)


@pytest.mark.parametrize("kind", [OSError, RuntimeError])
def test_system_without_notifications_is_scanned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    builders.chats(tmp_path)

    def limited(*_: str, **_options: object) -> Iterator[object]:
        raise kind("OS file watch limit reached")

    monkeypatch.setattr(watchfiles, "watch", limited)
    monkeypatch.setattr(watch, "MOUNTS", tmp_path / "none")
    with watched(tmp_path) as one:
        one.settled()
        one.saw(lambda: builders.put(builders.chats(tmp_path) / "session-a.jsonl", b"{}\n"))
    assert one.said == ["The system cannot report changes (OS file watch limit reached); polling the folders instead."]


def test_ended_watch_is_restarted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builders.chats(tmp_path)
    monkeypatch.setattr(watchfiles, "watch", lambda *_, **_options: iter(()))
    with watched(tmp_path) as one:
        one.settled()
        one.saw(lambda: builders.put(builders.chats(tmp_path) / "session-a.jsonl", b"{}\n"))


def test_two_changes_within_a_second_are_both_reported(tmp_path: Path) -> None:
    file = builders.put(builders.chats(tmp_path) / "session-a.jsonl", b"{}\n")
    with watched(tmp_path, poll=True) as one:
        one.settled()
        for nanosecond in (1, 2, 3, 4):
            one.saw(functools.partial(os.utime, file, ns=(0, nanosecond)))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems watch all folders at once")
def test_folder_behind_a_link_is_not_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chats = builders.put(builders.chats(tmp_path) / "session-a.jsonl", b"{}\n").parent
    for number in range(50):
        (tmp_path / "big" / str(number) / "inner").mkdir(parents=True)
    (chats / "link").symlink_to(tmp_path / "big")
    (chats.parents[1] / "other").symlink_to(tmp_path / "big")
    real, asked = watchfiles.watch, list[tuple[tuple[str, ...], bool]]()

    def noted(*folders: str, recursive: bool, **options: int) -> Iterator[object]:
        asked.append((folders, recursive))
        return real(*folders, recursive=recursive, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(watchfiles, "watch", noted)
    with watched(tmp_path) as one:
        one.settled()
        assert asked == [((str(chats.parents[1]), str(chats.parent), str(chats)), False)]
        one.saw((chats / "subagent").mkdir)
        wait_for(lambda: str(chats / "subagent") in asked[-1][0])
        one.saw(lambda: builders.put(chats / "subagent" / "a.jsonl", b"{}\n"))
    elsewhere = (str(tmp_path / "big"), str(chats / "link"), str(chats.parents[1] / "other"))
    assert not any(folder.startswith(elsewhere) for folders, _ in asked for folder in folders)


def test_file_that_vanishes_during_a_scan_is_not_an_error(tmp_path: Path) -> None:
    (builders.put(tmp_path / "there", b"").with_name("dangling")).symlink_to(tmp_path / "nowhere")
    assert [Path(path).name for path, _, _ in watch._stamps([str(tmp_path)])] == ["there"]


def test_watch_archives_each_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "changes", lambda _homes, **_options: iter((None, None)))
    coming = iter((3, 4))
    watched = watch.watch(
        lambda: (builders.home(tmp_path),), lambda: next(coming), poll=False, tell=lambda _words: None
    )
    assert [*watched] == [3, 4]


def test_sync_to_an_unwritable_archive_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_archive(tmp_path / "archive.db").close()
    monkeypatch.setattr(
        "pollux.archive.maintenance.store.open_archive", lambda path, **_options: open_archive(path, write=False)
    )
    with pytest.raises(ArchiveError, match=r"Cannot write to .*archive.db \(opened for reading\)"):
        captured(tmp_path)


def test_folder_that_vanishes_during_a_scan_is_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builders.chats(tmp_path)
    real, n_asked = watchfiles.watch, []

    def gone(*folders: str, **options: int) -> Iterator[object]:
        n_asked.append(1)
        if len(n_asked) == 1:
            raise FileNotFoundError("gone")
        return real(*folders, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(watchfiles, "watch", gone)
    with watched(tmp_path) as one:
        wait_for(lambda: len(n_asked) > 1)
    assert one.said == []


@pytest.mark.parametrize(
    ("folder", "far"),
    [
        ("/home/alice/.gemini/tmp", True),
        ("/home/bob/.gemini/tmp", False),
        ("/mnt/my share/tmp", True),
        ("/mnt/other/tmp", False),
        ("/host", True),
        ("/hosts", False),
        ("/media/stick", False),
        ("/net/x", True),
    ],
)
def test_network_folder_is_recognised(folder: str, far: bool) -> None:  # noqa: FBT001
    mounts = """\
/dev/sda1 / ext4 rw 0 0
server:/home/alice /home/alice nfs4 rw 0 0
//server/share /mnt/my\\040share cifs rw 0 0
/dev/sdb1 /mnt/other ext4 rw 0 0
host /host 9p rw 0 0
/dev/sdc1 /media/stick fuseblk rw 0 0
me@there:/ /net fuse.sshfs rw 0 0
"""
    assert is_remote([folder], mounts) is far
    assert is_remote([folder], "") is False


def test_capture_lists_archived_files(tmp_path: Path) -> None:
    for number in range(5):
        data = builders.log(builders.header(f"{number}{builders.SESSION[1:]}"), builders.user("u1", f"ask {number}"))
        builders.put(builders.chats(tmp_path) / f"session-2026-11-15T19-30-{number}ece72aa.jsonl", data)
    result = captured(tmp_path)
    assert (result.n_files, len(result.sessions)) == (6, 5)
    assert [*result.titles.values()] == ["ask 0", "ask 1", "ask 2"]
    assert captured(tmp_path).titles == {}


def captured(root: Path, waiting: Callable[[str], None] = lambda _who: None) -> SyncReport:
    with maintenance.writable(root / "archive.db", create=True, wait=waiting) as archive:
        return watch.sync_report(archive, refresh(archive, (builders.home(root),)))


def test_capture_waits_for_another_writer(tmp_path: Path) -> None:
    writers: list[str] = []
    other = open_archive(tmp_path / "archive.db")

    def waiting(who: str) -> None:
        writers.append(who)
        other.close()

    captured(tmp_path, waiting)
    assert len(writers) == 1


def test_error_is_reported_once_and_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    troubles: list[Exception | None] = [
        ArchiveError("It is full."),
        ArchiveError("It is full."),
        sqlite3.OperationalError("locked"),
        *[OSError("broken")] * 8,
        None,
    ]
    reports: list[str] = []
    pauses: list[float] = []
    monkeypatch.setattr("pollux.archive.watch.time.sleep", pauses.append)

    def take_in() -> None:
        if not troubles:
            raise KeyboardInterrupt
        if trouble := troubles.pop(0):
            raise trouble

    builders.chats(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        [*watch.watch(lambda: (builders.home(tmp_path),), take_in, poll=False, tell=reports.append)]
    assert reports == [
        "It is full. Trying again until it works.",
        "locked Trying again until it works.",
        "broken Trying again until it works.",
        "It works again.",
    ]
    assert pauses[:3] == [0.25, 0.5, 1.0]
    assert max(pauses) == 30.0
