"""`pollux forget` asks, removes sessions from the archive, reports what it removed, and can undo it."""

from __future__ import annotations

import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from tests import builders
from tests.archive.test_maintenance import leaks, sessions
from tests.archive.test_verify import CHILD, LOG, archived_home
from tests.cli.running import NOW, Runner

from pollux.archive import forget
from pollux.archive.forget import ForgetResult
from pollux.archive.lock import WriterLock
from pollux.cli import COMMANDS, Command, output
from pollux.render.terminal.archive import forget_notes


@pytest.fixture(autouse=True)
def _commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "forget", Command("pollux.cli.forget", ""))


@pytest.fixture
def place(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root, archive = archived_home(tmp_path)
    monkeypatch.setenv("POLLUX_HOME", str(root))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive))
    del run
    return archive


class _Person(StringIO):
    def isatty(self) -> bool:
        return True


def test_no_byte_is_left_in_the_archive(run: Runner, place: Path, tmp_path: Path) -> None:
    result = run("forget", builders.SESSION[:8], builders.NAME, "--yes", "--no-undo")
    assert result.status == 0
    assert "The client's own files, listed above, stay on the disk; delete them yourself" in result.err
    assert "No undo copy was stored" in result.err
    assert not (tmp_path / "archive.db.forgotten").exists()
    assert LOG in result.out
    assert len(result.out.splitlines()) == 7
    assert "2 sessions, 7 files, 7 versions" in result.err
    assert "logs.json" in result.err
    assert sessions(place) == {builders.OTHER}
    assert not leaks(tmp_path)
    assert (tmp_path / "home" / ".gemini" / LOG).exists()
    assert run("ls", "--json").json["sessions"][0]["id"] == builders.OTHER
    again = run("forget", builders.SESSION, "--yes")
    assert (again.status, "No session matches" in again.err) == (1, True)


def test_undo_brings_the_last_forgotten_sessions_back(run: Runner, place: Path) -> None:
    before = run("ls", "--all", "--json").json["sessions"]
    forgotten = run("forget", builders.SESSION, "--yes")
    assert "`pollux forget --undo` brings this back until 2026-11-22" in forgotten.err
    assert builders.SESSION not in sessions(place)
    undone = run("forget", "--undo")
    assert (undone.status, undone.err) == (0, "Brought back: 2 sessions, 7 files.\n")
    assert undone.out.split() == [builders.SESSION, CHILD]
    assert run("ls", "--all", "--json").json["sessions"] == before
    assert run("verify", "--deep").status == 0
    again = run("forget", "--undo")
    assert (again.status, "There is nothing to undo" in again.err) == (1, True)


def test_files_that_the_client_has_deleted_are_not_said_to_stay(run: Runner, place: Path, tmp_path: Path) -> None:
    del place
    run("sync")
    (tmp_path / "home" / ".gemini" / LOG).unlink()
    forgotten = run("forget", builders.SESSION, "--yes")
    assert LOG in forgotten.out
    assert "These files of the client stay on the disk" in forgotten.err
    assert LOG not in forgotten.err


def test_undo_brings_a_named_session_back(run: Runner, place: Path) -> None:
    run("forget", builders.SESSION, "--yes")
    run("forget", builders.OTHER, "--yes")
    assert sessions(place) == set()
    assert run("forget", "--undo", builders.SESSION[:8]).status == 0
    assert sessions(place) == {builders.SESSION, CHILD}
    missing = run("forget", "--undo", "nosuch")
    assert (missing.status, "No session that was forgotten in the last 7 days matches 'nosuch'" in missing.err) == (
        1,
        True,
    )


@pytest.mark.parametrize("later", [("sync",), ("ls",), ("forget", "--undo")], ids=" ".join)
def test_undo_ends_after_a_week(
    run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch, later: tuple[str, ...]
) -> None:
    folder = place.with_name("archive.db.forgotten")
    run("forget", builders.SESSION, "--yes")
    monkeypatch.setattr(output, "now", lambda: NOW + timedelta(days=6, hours=23))
    run("sync")
    assert folder.exists()
    monkeypatch.setattr(output, "now", lambda: NOW + timedelta(days=7))
    run(*later)
    assert not folder.exists()
    assert run("forget", "--undo").status == 1


def test_compacting_deletes_undo_copies(run: Runner, place: Path) -> None:
    run("forget", builders.SESSION, "--yes")
    assert run("archive", "compact").status == 0
    assert not place.with_name("archive.db.forgotten").exists()


def test_seals_match_after_an_undo(run: Runner, place: Path) -> None:
    del place
    run("keys", "create")
    run("archive", "seal")
    run("forget", builders.SESSION, "--yes")
    assert run("archive", "seal").status == 0
    run("forget", "--undo")
    assert run("verify", "--seal").status == 0
    assert run("archive", "seal").status == 0
    assert run("verify", "--seal").status == 0


@pytest.mark.parametrize(
    ("args", "sentence"),
    [((), "Name the sessions to forget"), (("--undo", "--no-undo"), "--undo and --no-undo contradict each other")],
)
def test_wrong_usage(run: Runner, place: Path, args: tuple[str, ...], sentence: str) -> None:
    result = run("forget", *args)
    assert (result.status, sentence in result.err) == (2, True)
    assert len(sessions(place)) == 3


@pytest.mark.parametrize(("said", "status", "left"), [("y\n", 0, 1), ("n\n", 130, 3), ("", 130, 3)])
def test_forgetting_needs_confirmation(
    run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch, said: str, status: int, left: int
) -> None:
    monkeypatch.setattr(sys, "stdin", _Person(said))
    result = run("forget", builders.SESSION)
    assert result.status == status
    assert "Remove 1 session with 1 subagent, 7 files, from the archive?" in result.err
    assert len(sessions(place)) == left


def test_forgetting_a_subagent_needs_confirmation(run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Person("y\n"))
    assert "Remove 1 session, 1 file, from the archive?" in run("forget", CHILD).err
    assert len(sessions(place)) == 2


@pytest.mark.parametrize("stream", [StringIO(), None], ids=["no terminal", "closed"])
def test_forgetting_without_a_terminal_needs_yes(
    run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch, stream: StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stdin", stream)
    result = run("forget", builders.SESSION)
    assert (result.status, "--yes" in result.err) == (2, True)
    assert len(sessions(place)) == 3


def test_second_writer_is_refused(run: Runner, place: Path) -> None:
    lock = WriterLock(place)
    assert lock.take()
    result = run("forget", builders.SESSION, "--yes")
    assert (result.status, lock.owner() in result.err) == (1, True)
    lock.release()


def test_missing_archive_is_reported(run: Runner, tmp_path: Path) -> None:
    result = run("forget", "latest", "--yes", "--archive", str(tmp_path / "none.db"))
    assert (result.status, "no archive" in result.err) == (1, True)


def test_concurrent_reader_is_reported(run: Runner, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forget, "vacuum", lambda _: False)
    assert "Another process is reading" in run("forget", builders.SESSION, "--yes").err
    assert place.exists()


def test_file_shared_with_another_session_stays(
    run: Runner, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "tmp/webapp/chats/session-2026-11-15T19-30-nightly-.jsonl"
    lines = [builders.log(builders.header(f"nightly-{one}"), builders.user(f"u{one}", "a word")) for one in "AB"]
    builders.put(tmp_path / "home" / ".gemini" / name, b"".join(lines))
    monkeypatch.setattr(sys, "stdin", _Person("y\n"))
    result = run("forget", "nightly-A")
    words = "This file also contains another session; its bytes {} in the archive until you forget that too:"
    assert words.format("will stay") in result.err
    assert words.format("stay") in result.err
    assert f"{name}  (nightly-B)" in result.err
    assert "Removed from the archive: 1 session, 0 files" in result.err
    assert "nightly-B" in sessions(place)
    assert "nightly-A" not in sessions(place)
    last = run("forget", "nightly-B", "--yes")
    assert name in last.out
    assert "Removed from the archive: 1 session, 1 file" in last.err
    assert "also hold" not in last.err


def test_sessions_of_one_file_are_forgotten_together(run: Runner, place: Path, tmp_path: Path) -> None:
    del place
    name = "tmp/webapp/chats/session-2026-11-15T19-30-nightly-.jsonl"
    lines = [builders.log(builders.header(f"nightly-{one}"), builders.user(f"u{one}", "a word")) for one in "AB"]
    builders.put(tmp_path / "home" / ".gemini" / name, b"".join(lines))
    result = run("forget", "nightly-A", "nightly-B", "--yes")
    assert "Removed from the archive: 2 sessions, 1 file" in result.err


def test_several_shared_files_are_listed() -> None:
    said = "\n".join(forget_notes(ForgetResult(["x"], shared={"first": ["y"], "second": ["y", "z"]}), str))
    assert "Each of these files also contains other sessions; its bytes stay in the archive until you forget" in said
    assert "second  (y, z)" in said


def test_long_lists_are_shortened() -> None:
    said = "\n".join(forget_notes(ForgetResult(["x"], repeats=[f"session {number}" for number in range(12)]), str))
    assert "contain messages copied from it" in said
    assert "… and 2 more" in said
