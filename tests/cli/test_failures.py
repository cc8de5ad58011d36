"""A session on which Pollux fails is reported by every command, and stops none of them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests import builders
from tests.archive.test_failures import BAD, BAD_NAME, failing_to_write, homes_with_two
from tests.cli.running import Runner

from pollux.archive import fact_rows
from pollux.cli.demo import HOME as DEMO
from pollux.sessions.reader import SessionReader

COMMANDS = (
    ("sync",),
    ("ls",),
    ("ls", "--all", "--json"),
    ("show", builders.SESSION),
    ("show", "latest", "--json"),
    ("raw", builders.SESSION),
    ("tree", builders.SESSION),
    ("usage",),
    ("usage", "--by", "session"),
    ("usage", "--by", "tool"),
    ("stats",),
    ("audit", builders.SESSION),
    ("statusline", "--all-projects"),
    ("status",),
    ("projects",),
    ("doctor",),
    ("verify",),
    ("verify", "--deep"),
    ("archive", "info"),
    ("archive", "compact"),
    ("export", builders.SESSION, "-f", "json"),
    (),
)


@pytest.fixture
def bad(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home with a session that cannot be derived; return its file."""
    file = homes_with_two(tmp_path)
    monkeypatch.setenv("POLLUX_HOME", str(tmp_path))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(tmp_path / "archive.db"))
    failing_to_write(monkeypatch, ZeroDivisionError("odd"))
    assert run("sync").status == 1
    return file


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("is_deleted", [False, True])
def test_failed_session_stops_no_command(
    run: Runner,
    bad: Path,
    command: tuple[str, ...],
    is_deleted: bool,  # noqa: FBT001
) -> None:
    if is_deleted:
        bad.unlink()
    ended = run(*command)
    assert ended.status in (0, 1)
    if command[:1] in (("ls",), ("show",), ("raw",), ("tree",), ("audit",), ("export",)):
        assert builders.SESSION[:8] in ended.out


@pytest.mark.parametrize("command", [("ls", "--json"), ("doctor", "--json"), ("usage", "--json"), ("stats", "--json")])
def test_problem_is_reported_every_time(run: Runner, bad: Path, command: tuple[str, ...]) -> None:
    for _ in range(2):
        ended = run(*command)
        assert ended.status == (1 if command[0] == "doctor" else 0)
        (problem,) = ended.json["problems"]
        assert (problem["code"], problem["file"]) == ("cannot-derive", str(bad))
        assert "ZeroDivisionError: odd" in problem["message"]


COUNTED = "1 file with problems; `pollux doctor` lists them.\n"


@pytest.mark.parametrize("command", [("ls",), ("usage",), ("stats",), ("export", "--all", "-f", "jsonl")])
def test_problem_in_another_file_is_no_failure(run: Runner, bad: Path, command: tuple[str, ...]) -> None:
    assert bad.exists()
    ended = run(*command)
    assert (ended.status, ended.err.count(COUNTED)) == (0, 1)
    strict = run(*command, "--strict")
    assert (strict.status, strict.out, strict.err) == (1, ended.out, ended.err)


def test_export_of_all_ends_with_status_0(run: Runner, bad: Path, tmp_path: Path) -> None:
    bad.unlink()
    bad.symlink_to("nowhere")
    ended = run("export", "--all", "-f", "html", "-o", str(tmp_path / "site"))
    assert (ended.status, COUNTED in ended.err) == (0, True)
    assert run("export", "--all", "-f", "html", "-o", str(tmp_path / "site"), "--strict").status == 1


@pytest.mark.parametrize("command", [("show",), ("export",), ("audit",)])
def test_damage_in_the_requested_session_is_a_failure(run: Runner, command: tuple[str, ...]) -> None:
    ended = run(*command, "408a8bb2", home=DEMO)
    assert (ended.status, "408a8bb2.jsonl:48: " in ended.err) == (1, True)


def test_problem_of_another_home_is_not_reported(run: Runner, bad: Path, tmp_path: Path) -> None:
    builders.put(builders.chats(tmp_path / "other") / f"{builders.NAME}.jsonl", builders.log(builders.header()))
    assert run("ls", "--json", home=tmp_path / "other").json["problems"] == []
    assert run("usage", "--json", home=tmp_path / "other").json["problems"] == []
    assert bad.exists()


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.parametrize("wanted", ["PATH", BAD_NAME, BAD_NAME.partition(".")[0], BAD[:8], BAD[:5], BAD])
def test_raw_accepts_every_name_of_a_failed_session(
    run: Runner,
    bad: Path,
    wanted: str,
    is_deleted: bool,  # noqa: FBT001
) -> None:
    data = bad.read_text("utf-8")
    if is_deleted:
        bad.unlink()
    ended = run("raw", wanted.replace("PATH", str(bad)))
    assert (ended.status, ended.out) == (0, data)


def test_path_of_a_failed_file_is_printed(run: Runner, bad: Path) -> None:
    assert run("raw", "--path", BAD[:8]).out.split("\t")[0] == str(bad)


def test_missing_file_is_reported(run: Runner, bad: Path) -> None:
    ended = run("raw", str(bad.with_name("session-none.jsonl")))
    assert (ended.status, "No such file" in ended.err) == (1, True)


@pytest.mark.parametrize("command", [("show", BAD), ("tree", BAD[:8]), ("export", BAD[:8]), ("audit", BAD[:8])])
def test_requested_session_that_failed_is_reported(run: Runner, bad: Path, command: tuple[str, ...]) -> None:
    ended = run(*command)
    assert ended.status == 1
    assert f"{bad}: Pollux failed to read this file (ZeroDivisionError: odd)" in ended.err


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.parametrize("wanted", ["PATH", BAD_NAME.partition(".")[0], BAD[:8]])
def test_failed_session_can_be_forgotten(
    run: Runner,
    bad: Path,
    tmp_path: Path,
    wanted: str,
    is_deleted: bool,  # noqa: FBT001
) -> None:
    if is_deleted:
        bad.unlink()
    ended = run("forget", wanted.replace("PATH", str(bad)), "--yes")
    assert (ended.status, ended.out) == (0, f"{bad}\n")
    assert bad.exists() != is_deleted
    listed = run("ls", "--json")
    assert (listed.status, [one["id"] for one in listed.json["sessions"]]) == (0, [builders.SESSION])
    with sqlite3.connect(tmp_path / "archive.db") as database:
        assert database.execute("SELECT count(*) FROM failures").fetchone() == (0,)
    assert run("verify").status == 0


def test_session_can_be_forgotten_by_its_path(run: Runner, bad: Path) -> None:
    file = bad.with_name(f"{builders.NAME}.jsonl")
    ended = run("forget", str(file), "--yes")
    assert (ended.status, ended.out) == (0, f"{file}\n")
    assert run("ls", "--json").json["sessions"] == []


def test_damaged_session_can_be_forgotten(
    run: Runner, bad: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("POLLUX_HOME", str(tmp_path))
    monkeypatch.setenv("POLLUX_ARCHIVE", str(tmp_path / "archive.db"))
    bad.unlink()
    with sqlite3.connect(tmp_path / "archive.db") as database:
        database.execute("UPDATE segments SET data = x'00' WHERE version_id IN (SELECT version_id FROM failures)")
        database.execute("DELETE FROM failures")
    assert "damaged" in run("show", BAD[:8]).err
    assert run("forget", BAD[:8], "--yes").out == f"{bad}\n"
    assert run("ls").status == 0


def test_ambiguous_names_of_failed_sessions_are_refused(
    run: Runner, bad: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("odd")

    monkeypatch.setattr(fact_rows, "write", fail)
    other = "b3000000-0c54-4d8e-9c11-0d3e2b6f7a01"
    name = f"session-2026-11-14T08-00-{other[:8]}.jsonl"
    builders.put(bad.with_name(name), builders.log(builders.header(other), builders.user("u9")))
    ended = run("forget", "b3", "--yes")
    assert "'b3' matches 2 sessions (b3000000, b3e2640d). Give more characters of the session ID" in ended.err
    assert ended.status == 2


@pytest.mark.parametrize("command", [one for one in COMMANDS if one and one[0] not in ("sync", "verify", "archive")])
def test_failed_session_stops_no_command_without_an_archive(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    file = homes_with_two(tmp_path)
    monkeypatch.setenv("POLLUX_HOME", str(tmp_path))
    summed_up = SessionReader.summarize

    def fail(self: SessionReader, found: list[object]) -> object:
        if BAD in repr(found):
            raise ZeroDivisionError("odd")
        return summed_up(self, found)  # type: ignore[arg-type]

    monkeypatch.setattr(SessionReader, "summarize", fail)
    monkeypatch.setattr("pollux.reports.usage_quick.scanned", lambda *_file, **_options: None)
    ended = run(*command, "--no-archive")
    assert ended.status in (0, 1)
    listed = run("ls", "--json", "--no-archive")
    assert [one["id"] for one in listed.json["sessions"]] == [builders.SESSION]
    assert [(one["code"], one["file"]) for one in listed.json["problems"]] == [("cannot-derive", str(file))]
    assert run("raw", BAD[:8], "--no-archive").out == file.read_text("utf-8")


def test_strict_list_counts_problems_of_sessions_that_are_not_shown(run: Runner) -> None:
    assert run("ls", "-n", "1").status == 0
    assert run("ls", "-n", "1", "--strict").status == 1
