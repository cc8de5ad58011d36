"""`pollux forget` asks, removes for good, and says what it removed."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path

import pytest
from tests import builders
from tests.archive.test_maintenance import leaks, sessions
from tests.archive.test_verify import CHILD, LOG, kept
from tests.cli.running import Runner

from pollux.archive import forget
from pollux.archive.forget import Forgotten
from pollux.archive.lock import WriterLock
from pollux.cli import COMMANDS, Command
from pollux.render.terminal.archive import forget_notes


@pytest.fixture(autouse=True)
def _commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "forget", Command("pollux.cli.forget", ""))


@pytest.fixture
def place(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root, archive = kept(tmp_path)
    monkeypatch.setenv("POLLUX_HOME", str(root))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive))
    del run
    return archive


class _Person(StringIO):
    def isatty(self) -> bool:
        return True


def test_it_is_gone(run: Runner, place: Path, tmp_path: Path) -> None:
    result = run("forget", builders.SESSION[:8], builders.NAME, "--yes")
    assert result.status == 0
    assert LOG in result.out
    assert len(result.out.splitlines()) == 7
    assert "2 sessions, 7 files, 7 versions" in result.err
    assert "logs.json" in result.err
    assert sessions(place) == {builders.OTHER}
    assert not leaks(tmp_path)
    assert (tmp_path / "home" / ".gemini" / LOG).exists()
    assert run("ls", "--json").json["sessions"][0]["id"] == builders.OTHER
    again = run("forget", builders.SESSION, "--yes")
    assert (again.status, "No session fits" in again.err) == (1, True)


@pytest.mark.parametrize(("said", "status", "left"), [("y\n", 0, 1), ("n\n", 130, 3), ("", 130, 3)])
def test_it_asks(run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch, said: str, status: int, left: int) -> None:
    monkeypatch.setattr(sys, "stdin", _Person(said))
    result = run("forget", builders.SESSION)
    assert result.status == status
    assert "Remove 1 session with 1 subagent, 7 files, for good?" in result.err
    assert len(sessions(place)) == left


def test_it_asks_about_a_subagent(run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Person("y\n"))
    assert "Remove 1 session, 1 file, for good?" in run("forget", CHILD).err
    assert len(sessions(place)) == 2


@pytest.mark.parametrize("stream", [StringIO(), None], ids=["no terminal", "closed"])
def test_nobody_to_ask(run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch, stream: StringIO | None) -> None:
    monkeypatch.setattr(sys, "stdin", stream)
    result = run("forget", builders.SESSION)
    assert (result.status, "--yes" in result.err) == (2, True)
    assert len(sessions(place)) == 3


def test_one_writer_at_a_time(run: Runner, place: Path) -> None:
    lock = WriterLock(place)
    assert lock.take()
    result = run("forget", builders.SESSION, "--yes")
    assert (result.status, lock.owner() in result.err) == (1, True)
    lock.release()


def test_no_archive(run: Runner, tmp_path: Path) -> None:
    result = run("forget", "latest", "--yes", "--archive", str(tmp_path / "none.db"))
    assert (result.status, "no archive" in result.err) == (1, True)


def test_what_is_left_is_said(run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forget, "written_anew", lambda _: False)
    assert "still reads" in run("forget", builders.SESSION, "--yes").err
    assert place.exists()


def test_a_file_that_also_holds_another_session_is_said_to_stay(
    run: Runner, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "tmp/webapp/chats/session-2026-11-15T19-30-nightly-.jsonl"
    lines = [builders.log(builders.header(f"nightly-{one}"), builders.user(f"u{one}", "a word")) for one in "AB"]
    builders.put(tmp_path / "home" / ".gemini" / name, b"".join(lines))
    monkeypatch.setattr(sys, "stdin", _Person("y\n"))
    result = run("forget", "nightly-A")
    words = "This file also holds another session; its bytes {} in the archive until you forget that too:"
    assert words.format("will stay") in result.err
    assert words.format("stay") in result.err
    assert f"{name}  (nightly-B)" in result.err
    assert "Removed: 1 session, 0 files" in result.err
    assert "nightly-B" in sessions(place)
    assert "nightly-A" not in sessions(place)
    last = run("forget", "nightly-B", "--yes")
    assert name in last.out
    assert "Removed for good: 1 session, 1 file" in last.err
    assert "also hold" not in last.err


def test_sessions_of_one_file_are_forgotten_together(run: Runner, place: Path, tmp_path: Path) -> None:
    del place
    name = "tmp/webapp/chats/session-2026-11-15T19-30-nightly-.jsonl"
    lines = [builders.log(builders.header(f"nightly-{one}"), builders.user(f"u{one}", "a word")) for one in "AB"]
    builders.put(tmp_path / "home" / ".gemini" / name, b"".join(lines))
    result = run("forget", "nightly-A", "nightly-B", "--yes")
    assert "Removed for good: 2 sessions, 1 file" in result.err


def test_several_files_that_hold_other_sessions_are_said_to_stay() -> None:
    said = "\n".join(forget_notes(Forgotten(["x"], shared={"first": ["y"], "second": ["y", "z"]}), str))
    assert "Each of these files also holds other sessions; its bytes stay in the archive until you forget those" in said
    assert "second  (y, z)" in said


def test_long_lists_are_cut() -> None:
    said = "\n".join(forget_notes(Forgotten(["x"], repeats=[f"session {number}" for number in range(12)]), str))
    assert "repeat some of it" in said
    assert "… and 2 more" in said
