"""`pollux status`, in a pipe and on a terminal, with and without an archive."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.cli.running import NOW, Result, Runner

from pollux.archive import store
from pollux.cli import COMMANDS, Command
from pollux.cli.demo import HOME as DEMO
from pollux.library import expiry
from pollux.sessions.projects.resolve import project_hash
from pollux.text.times import client_timestamp

OLD = "aaaaaaaa-5955-4bdb-8380-88eda48ac048"


@pytest.fixture(autouse=True)
def _listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(COMMANDS, "status", Command("pollux.cli.status", "Say what the client will delete."))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a home with one project that exists."""
    folder = tmp_path / "dev" / "webapp"
    (folder / ".gemini").mkdir(parents=True)
    builders.put(tmp_path / ".gemini" / "tmp" / "webapp" / ".project_root", str(folder).encode())
    return folder


def add(
    root: Path, session: str = builders.SESSION, *, age: float = 1, folder: str = "webapp", minute: int = 0
) -> Path:
    """Put a session into the home, last used so many days ago."""
    at = client_timestamp(NOW - timedelta(days=age))
    name = f"session-2026-11-15T10-{minute:02}-{session[:8]}.jsonl"
    head = builders.header(session, startTime=at, lastUpdated=at)
    path = root / ".gemini" / "tmp" / folder / "chats" / name
    return builders.put(path, builders.log(head, builders.preamble(), builders.user(timestamp=at)))


def add_stub(root: Path, session: str = builders.SESSION) -> Path:
    head = builders.header(session, startTime=client_timestamp(NOW), lastUpdated=client_timestamp(NOW))
    name = f"session-2026-11-15T11-00-{session[:8]}.jsonl"
    path = root / ".gemini" / "tmp" / "webapp" / "chats" / name
    return builders.put(path, builders.log(head, builders.preamble()))


def configure(path: Path, **values: object) -> None:
    builders.put(path, json.dumps({"general": {"sessionRetention": values}}).encode())


def lines(ended: Result) -> list[list[str]]:
    """Return the fields of each line below the header."""
    rows = [line.split("\t") for line in ended.out.splitlines()]
    assert rows[:1] in ([], [["session", "expires", "reason", "archived", "project", "title"]])
    return rows[1:]


def only(ended: Result) -> Any:  # noqa: ANN401  a row of JSON
    (row,) = ended.json["sessions"]
    return row


def test_archived_session_is_not_at_risk(run: Runner, tmp_path: Path, project: Path) -> None:
    del project
    add(tmp_path)
    add_stub(tmp_path)
    bare = run("status", "--no-archive", home=tmp_path)
    assert bare.status == 1
    assert lines(bare) == [
        [builders.SESSION, "next start", "a stub beside it, left by --resume", "no", builders.ROOT, "hello"]
    ]
    assert "1 session, none archived: 1 at the next start" in bare.err
    assert "`pollux sync` archives what is not archived yet." in bare.err
    kept = run("status")
    assert (kept.status, lines(kept)[0][3]) == (0, "yes")
    assert "pollux sync" not in kept.err
    assert only(run("status", "--json"))["archived"] is True


def test_deleted_sessions_are_listed(run: Runner, tmp_path: Path, project: Path) -> None:
    del project
    path = add(tmp_path)
    add(tmp_path, OLD, age=40)
    run("status", home=tmp_path)
    path.unlink()
    ended = run("status")
    assert [(line[0], line[1], line[2]) for line in lines(ended)] == [
        (OLD, "next start", "30 days unused"),
        (builders.SESSION, "deleted", ""),
    ]
    assert "1 session, all archived: 1 at the next start, 1 deleted by the client" in ended.err


def test_read_only_archive_hides_no_session(
    run: Runner, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del project
    add(tmp_path, OLD, age=40)
    run("status", home=tmp_path)
    add(tmp_path, age=29)
    opened = store.open_archive
    monkeypatch.setattr(store, "open_archive", lambda path, **_: opened(path, write=False))
    ended = run("status")
    assert ended.status == 1
    assert [(line[0], line[1], line[3]) for line in lines(ended)] == [
        (OLD, "next start", "yes"),
        (builders.SESSION, "in 1 day", "no"),
    ]


def test_demo_on_a_terminal(run: Runner, tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "home")
    narrow = run("status", "--no-archive", columns=80, home=tmp_path / "home")
    assert max(map(len, narrow.out.splitlines())) <= 80
    assert "At the next start" in narrow.out
    assert "Later" not in narrow.out
    assert "By the rules of Gemini CLI 0.61.0" in narrow.err
    everything = run("status", "--no-archive", "--all", columns=120)
    assert {"Later", "Never"} <= set(everything.out.split())
    assert "title" in everything.out


def test_unreadable_file_is_not_called_archived(run: Runner, tmp_path: Path, project: Path) -> None:
    del project
    chats = add(tmp_path).parent
    (chats / "session-2026-11-15T10-00-bbbbbbbb.jsonl").symlink_to("session-2026-11-15T10-00-bbbbbbbb.jsonl")
    ended = run("status", home=tmp_path)
    assert ended.status == 1
    assert "1 file or folder cannot be read and may not be archived; `pollux doctor` lists them." in ended.err
    assert (run("status", "--json").status, run("status", "--json").err) == (1, "")


def test_impossible_project_path_is_supported(run: Runner, tmp_path: Path) -> None:
    add(tmp_path)
    builders.put(tmp_path / ".gemini" / "tmp" / "webapp" / ".project_root", b"/home/a\0b")
    assert lines(run("status", "--no-archive", "--all", home=tmp_path))[0][0] == builders.SESSION


@pytest.mark.parametrize("columns", [40, 60, 71])
def test_narrow_terminal_keeps_the_important_columns(run: Runner, columns: int) -> None:
    ended = run("status", "--no-archive", columns=columns)
    assert max(map(len, ended.out.splitlines())) <= columns
    (row,) = [line for line in ended.out.splitlines() if line.startswith("0363a0b0  next start  ")]
    assert row.split()[-1 if columns < 71 else -2] == "no"
    assert ("a stub beside it" in row) == (columns > 40)


def test_all_adds_empty_sessions(run: Runner, tmp_path: Path, project: Path) -> None:
    del project
    add_stub(tmp_path, OLD)
    quiet = run("status", "--no-archive", home=tmp_path)
    assert (quiet.status, lines(quiet)) == (0, [])
    assert [line[2] for line in lines(run("status", "--no-archive", "--all"))] == ["nothing to resume in it"]
    for args in (("status",), ("status", "--all")):
        assert "No sessions with messages; 1 empty session." in run(*args, columns=80).out


def test_empty_home_has_no_sessions(run: Runner, tmp_path: Path) -> None:
    (tmp_path / ".gemini" / "tmp").mkdir(parents=True)
    assert run("status", "--all", columns=80, home=tmp_path).out.startswith("No sessions.\n")


def test_settings_of_user_project_and_system(
    run: Runner, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path, age=5.5)
    gemini = tmp_path / ".gemini"

    def found() -> tuple[str, int | None]:
        row = only(run("status", "--json", home=tmp_path))
        return row["deletion"], row["days_left"]

    assert found() == ("later", 24)
    configure(gemini / "settings.json", maxAge="7d")
    assert found() == ("soon", 1)
    configure(project / ".gemini" / "settings.json", enabled=False)
    assert found() == ("soon", 1)
    builders.put(gemini / "trustedFolders.json", json.dumps({str(project): "TRUST_FOLDER"}).encode())
    assert found() == ("never", None)
    system = tmp_path / "etc" / "settings.json"
    configure(system, enabled=True, maxAge="2d")
    configure(system.with_name("system-defaults.json"), maxCount=0)
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", str(system))
    assert found() == ("never", None)
    configure(tmp_path / "defaults.json", maxCount=9)
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", str(tmp_path / "defaults.json"))
    assert found() == ("next", 0)


@pytest.mark.parametrize(("platform", "folder"), [("darwin", "GeminiCli"), ("win32", "gemini-cli"), ("linux", "/etc")])
def test_path_of_the_system_settings(platform: str, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    defaults, system = expiry._system_settings({})
    assert folder in str(system)
    assert system.name == "settings.json"
    assert defaults.name.startswith("system-defaults") or "\\" in str(system)


def test_mistakes_in_settings_are_named(run: Runner, tmp_path: Path, project: Path) -> None:
    del project
    add(tmp_path, age=40)
    configure(tmp_path / ".gemini" / "settings.json", maxAge="a month")
    ended = run("status", "--no-archive", "--all", home=tmp_path)
    assert (ended.status, lines(ended)[0][1:3]) == (0, ["never", "wrong settings"])
    assert 'Settings: maxAge "a month" is not <number>h, d, w or m' in ended.err
    configure(tmp_path / ".gemini" / "settings.json", maxAge="60d", minRetention="x")
    assert "the client uses 1d" in run("status", "--no-archive").err


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"enabled": False}, ["never", "turned off"]),
        ({"maxAge": "", "maxCount": 9}, ["never", "no age limit"]),
        ({"maxAge": "36h"}, ["in hours", "36 hours unused"]),
        ({"maxAge": "3d"}, ["in 2 days", "3 days unused"]),
    ],
)
def test_expiry_and_reason_are_described(
    run: Runner, tmp_path: Path, project: Path, values: dict[str, object], words: list[str]
) -> None:
    del project
    add(tmp_path, age=0.9)
    configure(tmp_path / ".gemini" / "settings.json", **values)
    assert lines(run("status", "--no-archive", "--all", home=tmp_path))[0][1:3] == words


def test_older_file_makes_the_client_delete_the_newer_one(run: Runner, tmp_path: Path, project: Path) -> None:
    del project
    add(tmp_path, age=28)
    add(tmp_path, age=1, minute=5)
    row = only(run("status", "--json", "--no-archive", home=tmp_path))
    assert (row["deletion"], row["days_left"], row["caused_by"] is not None) == ("soon", 2, True)
    assert lines(run("status"))[0][2] == "an older file of it: 30 days unused"


def test_sessions_in_hash_named_folders_never_expire(run: Runner, tmp_path: Path) -> None:
    add(tmp_path, age=99, folder=project_hash("/home/alice/webapp"))
    assert lines(run("status", "--no-archive", "--all", home=tmp_path))[0][1:3] == ["never", "not cleaned up"]


def test_subagent_files_expire_and_set_aside_files_remain(run: Runner, tmp_path: Path, project: Path) -> None:
    del project
    path = add(tmp_path, age=40)
    agent = builders.log(builders.header(builders.OTHER, kind="subagent"), builders.user("a1"))
    inner = builders.put(path.parent / builders.SESSION / f"{builders.OTHER}.jsonl", agent)
    left = builders.put(path.with_name(f"{path.name}.unreadable-1790000000000"), path.read_bytes())
    row = only(run("status", "--json", home=tmp_path))
    assert (set(row["deleted_files"]), row["remaining_files"]) == ({str(path), str(inner)}, [str(left)])


def test_seatbelt_home_uses_the_settings_of_the_main_home(run: Runner, tmp_path: Path) -> None:
    add(tmp_path / ".cache", age=40)
    (tmp_path / ".gemini" / "tmp").mkdir(parents=True)
    configure(tmp_path / ".gemini" / "settings.json", enabled=False)
    assert only(run("status", "--json", "--no-archive", home=tmp_path))["deletion"] == "never"


def test_expiry_of_a_large_file_comes_from_stored_facts(
    run: Runner, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del project
    path = add(tmp_path, age=40)
    with path.open("ab") as file:
        file.write(builders.log(*(builders.user(f"u{n}", "word " * 2000) for n in range(200))))
    run("status", home=tmp_path)
    monkeypatch.setattr("pollux.sessions.replay.reading.read", None)
    assert only(run("status", "--json"))["deletion"] == "next"


def test_client_deletes_files_that_it_cannot_open(
    run: Runner, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del project
    path = add(tmp_path)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pollux.sessions.replay.reading.read", refuse)
    row = only(run("status", "--json", "--no-archive", home=tmp_path))
    assert (row["reason"], row["deleted_files"]) == ("unreadable", [str(path)])


def test_lists_mark_expiring_sessions(run: Runner, tmp_path: Path) -> None:
    chats = builders.chats(tmp_path)
    old = builders.header(lastUpdated="2026-10-01T10:00:00.000Z", startTime="2026-10-01T09:00:00.000Z")
    builders.put(chats / f"{builders.NAME}.jsonl", builders.log(old, builders.user("u1", "an old question")))
    for command in (("ls",), ()):
        shown = run(*command, home=tmp_path, columns=100)
        assert "due an old question" in shown.out
    assert "The client will delete 1 session at its next start" in shown.out
