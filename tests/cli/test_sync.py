"""`pollux sync` archives new files, reports what it copied, and waits for other writers."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from tests import builders
from tests.cli.running import Runner

from pollux.archive import raw
from pollux.archive.store import open_archive


@pytest.fixture
def home(tmp_path: Path) -> Path:
    data = builders.log(builders.header(), builders.user("u1", "fix the door"))
    builders.put(builders.chats(tmp_path / "home") / f"{builders.NAME}.jsonl", data)
    return tmp_path / "home"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POLLUX_ARCHIVE", str(tmp_path / "kept" / "archive.db"))
    return tmp_path / "kept" / "archive.db"


def test_sync_reports_what_was_archived(run: Runner, home: Path, archive: Path) -> None:
    first = run("sync", "--home", str(home))
    assert (first.status, first.err) == (0, "")
    assert first.out == f"Archived in {archive}: 2 files, 336 B, 1 session.\n"
    again = run("sync", "--home", str(home))
    assert (again.status, again.out) == (0, "Nothing new in 1 project.\n")
    (builders.chats(home) / f"{builders.NAME}.jsonl").unlink()
    assert (
        run("sync", "--home", str(home)).out
        == "Nothing new in 1 project; 1 file deleted by the client, but archived.\n"
    )
    assert run("sync", "--home", str(home)).out == "Nothing new in 1 project.\n"


def test_sync_keeps_its_contract(run: Runner, home: Path, archive: Path) -> None:
    assert run("sync", "--home", str(home), "--json").json == {
        "schema": "pollux.sync/1",
        "archive": str(archive),
        "homes": [str(home / ".gemini")],
        "files": 2,
        "bytes": 336,
        "sessions": [builders.SESSION],
        "deleted": 0,
        "problems": [],
    }


def test_sync_reports_unreadable_files(run: Runner, home: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(place: str, *_: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", place)

    monkeypatch.setattr(raw, "open", forbidden, raising=False)
    ended = run("sync", "--home", str(home))
    assert (ended.status, ended.out) == (1, "Nothing new in 1 project.\n")
    assert ended.err.count("cannot be read: Permission denied") == 2
    found = run("sync", "--home", str(home), "--json")
    assert (found.status, len(found.json["problems"]), found.err) == (1, 2, "")
    assert archive.exists()


def test_sync_waits_for_another_writer(run: Runner, home: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pollux"])
    other = open_archive(archive)
    monkeypatch.setattr("pollux.archive.lock.time.sleep", lambda _seconds: other.close())
    ended = run("sync", "--home", str(home))
    said = f"Waiting for pollux (process {os.getpid()}), which is writing to the archive …\n"
    assert (ended.status, ended.err) == (0, said)
    assert "2 files" in ended.out


def test_raw_only_leaves_deriving_to_the_next_command(run: Runner, home: Path, archive: Path) -> None:
    ended = run("sync", "--home", str(home), "--raw-only")
    assert (ended.status, "2 files" in ended.out, "session" in ended.out) == (0, True, False)
    with open_archive(archive, write=False) as found:
        assert found.database.execute("SELECT count(*) FROM versions").fetchone() == (2,)
        assert found.database.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
    shutil.rmtree(home)
    home.mkdir()
    assert run("sync", "--home", str(home), "--raw-only").out.startswith("Nothing new")
    assert [one["title"] for one in run("ls", "--json", "--home", str(home)).json["sessions"]] == ["fix the door"]


def test_interrupted_sync_keeps_what_it_copied(
    run: Runner, home: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **_options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pollux.archive.ingest._derive", interrupted)
        assert run("sync", "--home", str(home)).status == 130
    with open_archive(archive, write=False) as found:
        assert found.database.execute("SELECT count(*) FROM files").fetchone() == (2,)
    assert run("sync", "--home", str(home)).status == 0
    with open_archive(archive) as found:
        assert found.database.execute("SELECT title FROM sessions").fetchall() == [("fix the door",)]


@pytest.mark.parametrize(
    ("args", "status", "sentence"),
    [
        (("--home", "/none-such"), 2, "--home /none-such does not exist"),
        (("--no-archive",), 2, "There is nothing to do without an archive"),
        (("--archive", "/proc/none/archive.db"), 2, "There is no archive at /proc/none/archive.db yet"),
        (("--archive", "notes.txt"), 2, "is not a valid archive (file is not a database)"),
    ],
)
def test_mistake_gets_a_sentence(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], status: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    builders.put(tmp_path / "notes.txt", b"do not forget\n")
    ended = run("sync", *args)
    assert (ended.status, ended.out, ended.err.count("\n")) == (status, "", 1)
    assert sentence in ended.err


def test_empty_home_has_nothing_new(run: Runner, tmp_path: Path, archive: Path) -> None:
    assert (run("sync", home=tmp_path).status, run("sync").out) == (0, "Nothing new in 0 projects.\n")
    assert "`pollux doctor` lists the folders that were searched" in run("sync").err
    assert archive.exists()
