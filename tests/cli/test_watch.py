"""`pollux watch` archives changes until it is stopped, and can be installed as a service."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click
import pytest
from tests import builders
from tests.cli.running import Runner

from pollux.archive import watch as archive_watch
from pollux.archive.store import open_archive
from pollux.archive.watch import SyncReport
from pollux.errors import ArchiveError
from pollux.library import freshness
from pollux.model import Problem

PATIENCE = 30.0


@contextmanager
def watching(home: Path, *args: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Start the command as a process; yield it and the list of lines that it has printed so far."""
    words = [sys.executable, "-m", "pollux", "watch", "--home", str(home), "--archive", str(home / "archive.db"), *args]
    lines: list[str] = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=_read, args=(process.stdout, lines))
        reader.start()
        try:
            yield process, lines
        finally:
            process.kill()
            process.wait()
            reader.join()


def _read(stream: IO[str], lines: list[str]) -> None:
    lines.extend(iter(stream.readline, ""))


def wait_for(lines: list[str], number: int) -> float:
    end = time.monotonic() + PATIENCE
    while len(lines) < number:
        assert time.monotonic() < end, lines
        time.sleep(0.005)
    return time.monotonic()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    data = builders.log(builders.header(), builders.user("u1", "fix the door"))
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", data)
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to end it")
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGINT"])
def test_running_client_is_followed(home: Path, ending: str) -> None:
    file = builders.chats(home) / f"{builders.NAME}.jsonl"
    with watching(home) as (process, lines):
        wait_for(lines, 1)
        assert lines[0].startswith("Archived in ")
        time.sleep(1)
        took = []
        for number in range(3):
            began = time.monotonic()
            with file.open("ab") as stream:
                stream.write(builders.log(builders.user(f"v{number}", "more", second=number)))
            took.append(wait_for(lines, number + 2) - began)
            time.sleep(0.3)
        file.unlink()
        wait_for(lines, 5)
        process.send_signal(getattr(signal, ending))
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert process.stderr.read() == "Watching for changes. Press Ctrl-C to stop.\n"
    assert min(took) < 1
    assert [line[10:] for line in lines[1:]] == [
        *["+82 B, 6ece72aa fix the door\n"] * 3,
        "1 file deleted, but archived\n",
    ]
    with open_archive(home / "archive.db") as archive:
        assert archive.database.execute("SELECT n_user FROM sessions").fetchall() == [(4,)]


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to end it")
def test_idle_watch_releases_the_lock(home: Path) -> None:
    with watching(home, "--quiet") as (process, lines):
        end = time.monotonic() + PATIENCE
        while not _has_session(home):
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(1.5)
        with open_archive(home / "archive.db") as archive:
            assert archive.is_writable
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert lines == []


def _has_session(home: Path) -> bool:
    try:
        archive = open_archive(home / "archive.db", write=False)
    except ArchiveError:  # not yet
        return False
    with archive:
        tables = archive.database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'sessions'").fetchone()
        return bool(tables[0] and archive.database.execute("SELECT count(*) FROM sessions").fetchone()[0])


def syncs(monkeypatch: pytest.MonkeyPatch, *reports: SyncReport) -> None:
    """Make the watch see so many changes, then stop it."""
    coming = iter(reports)

    def sync(*_: object, **_options: object) -> SyncReport:
        try:
            return next(coming)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(freshness, "sync", sync)
    monkeypatch.setattr(freshness, "index", lambda *_: ("", ()))
    monkeypatch.setattr(archive_watch, "changes", lambda homes, **_: (None for _ in range(99) if homes()))


def test_lines_are_short_and_harmless(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_ARCHIVE", str(home / "archive.db"))
    problem = Problem("unreadable-file", "cannot be read: Permission denied", "/a")
    archive = home / "archive.db"
    titles = {"a": "\x1b[2J" + "long " * 50, "b": "", "c": ""}
    syncs(
        monkeypatch,
        SyncReport(archive, problems=(problem,)),
        SyncReport(archive, n_files=1, sessions=("a",), problems=(problem,)),
        SyncReport(archive, n_files=9, n_bytes=12_345, n_deleted=2, sessions=tuple("abcd"), titles=titles),
    )
    before = signal.getsignal(signal.SIGINT)
    ended = run("watch", home=home)
    assert ended.status == 0
    first, line = ended.out.splitlines()
    assert first == "Nothing new in 0 projects."
    assert len(line) <= 80
    assert line[8:].startswith("  +12.3 kB, 2 files deleted, but archived, a ")
    assert "\x1b" not in line
    assert ended.err.count("Permission denied") == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_json_is_a_stream_of_objects(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_ARCHIVE", str(home / "archive.db"))
    archive = home / "archive.db"
    new = SyncReport(archive, n_files=1, n_bytes=5, sessions=("a", "b"))
    syncs(monkeypatch, SyncReport(archive), SyncReport(archive), new)
    lines = [json.loads(line) for line in run("watch", "--json", home=home).out.splitlines()]
    assert [(one["schema"], one["bytes"]) for one in lines] == [("pollux.sync/1", 0), ("pollux.sync/1", 5)]
    assert lines[1]["sessions"] == ["a", "b"]


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to end it")
def test_signal_ends_the_watch_cleanly(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_ARCHIVE", str(home / "archive.db"))

    def terminated(*_: object, **_options: object) -> SyncReport:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PATIENCE)
        raise AssertionError

    syncs(monkeypatch)
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(freshness, "sync", terminated)
    ended = run("watch", "--quiet", home=home)
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert signal.getsignal(signal.SIGTERM) is before


def test_quiet_prints_only_problems(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_ARCHIVE", str(home / "archive.db"))
    problem = Problem("unreadable-file", "cannot be read: Permission denied", "/a")
    report = SyncReport(home / "archive.db", n_files=1, n_bytes=5, sessions=("a",), problems=(problem,))
    syncs(monkeypatch, report)
    ended = run("watch", "--quiet", home=home)
    assert (ended.status, ended.out, ended.err) == (0, "", "/a: cannot be read: Permission denied\n")


def test_missing_home_is_waited_for(run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = home.with_name("elsewhere") / "archive.db"
    seen: list[int] = []

    def watched(homes: archive_watch.Homes, _sync: object, **_options: object) -> Iterator[SyncReport]:
        seen.append(len([*homes()]))
        home.rename(home.with_name("away"))
        seen.append(len([*homes()]))
        yield from ()

    monkeypatch.setattr(archive_watch, "watch", watched)
    assert run("watch", "--home", str(home), "--archive", str(archive)).status == 0
    assert seen == [1, 1]
    home.with_name("away").rename(home)
    assert "does not exist" in run("watch", "--home", "/none-such").err


@pytest.fixture
def linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")


UNIT = Path("systemd") / "user" / "pollux-watch.service"


@pytest.mark.usefixtures("linux")
def test_service_is_shown_before_it_is_written(run: Runner, home: Path, tmp_path: Path) -> None:
    place = Path(os.environ["XDG_CONFIG_HOME"]) / UNIT
    shown = run("watch", "--install", "--home", str(home), "--archive", str(tmp_path / "a.db"), "--poll")
    assert (shown.status, place.exists()) == (0, False)
    assert f'"watch" "--quiet" "--home" "{home}" "--archive" "{tmp_path}/a.db" "--poll"\n' in shown.out
    assert f'Environment="POLLUX_HOME={os.environ["POLLUX_HOME"]}"' in shown.out
    assert "Nothing was written" in shown.err
    written = run("watch", "--install", "--yes")
    assert written.status == 0
    assert place.read_text("utf-8") == written.out
    assert "systemctl --user enable --now pollux-watch.service" in written.err
    (place.parent / "default.target.wants").mkdir()
    (place.parent / "default.target.wants" / place.name).symlink_to(place)
    removed = run("watch", "--uninstall")
    assert (removed.status, [*place.parent.rglob("*.service")]) == (0, [])
    assert "systemctl --user stop" in removed.err
    assert (run("watch", "--uninstall").status, "there is no service to remove" in run("watch", "--uninstall").err) == (
        1,
        True,
    )


@pytest.mark.usefixtures("linux")
@pytest.mark.parametrize("answer", [True, False])
def test_service_is_written_only_after_confirmation(run: Runner, monkeypatch: pytest.MonkeyPatch, answer: bool) -> None:  # noqa: FBT001
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(click, "confirm", lambda *_, **_options: answer)
    ended = run("watch", "--install")
    assert (ended.status, (Path(os.environ["XDG_CONFIG_HOME"]) / UNIT).exists()) == (0, answer)
    assert ("Nothing was written." in ended.err) is not answer


def test_launch_agent_is_written_on_macos(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "launchctl bootstrap" in run("watch", "--install", "--yes").err
    assert [*Path.home().rglob("*.plist")]


def test_windows_gets_instructions(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    ended = run("watch", "--install")
    assert (ended.status, ended.out) == (1, "")
    assert "at logon with the Task Scheduler" in ended.err
