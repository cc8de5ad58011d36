"""The shared options: homes, archives, projects known only by a hash, times and the progress bar."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.cli.running import Runner
from tests.refreshing import refresh

from pollux.archive import failures, store
from pollux.archive.lock import WriterLock
from pollux.cli import output
from pollux.library import config, project_memory
from pollux.sessions.projects.paths import project_hash


def hashed(root: Path, path: str, *, number: int = 0) -> None:
    """Write a session whose project is known only by its hash."""
    digest = project_hash(path)
    session = builders.SESSION.replace("6ece72aa", f"6ece72a{number}")
    data = builders.log(builders.header(session, projectHash=digest), builders.user(f"u{number}"))
    name = f"session-2026-11-15T19-30-6ece72a{number}.jsonl"
    builders.put(root / ".gemini" / "tmp" / digest / "chats" / name, data)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that a scan finds; one of two sessions belongs to it."""
    folder = tmp_path / "user" / "code" / "webshop"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "user"))
    hashed(tmp_path, str(folder.resolve()))
    hashed(tmp_path, "/nowhere/else", number=1)
    return folder


@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "files"])
def test_projects_have_the_same_name_in_every_table(run: Runner, tmp_path: Path, how: tuple[str, ...]) -> None:
    """A project of the same name need not be listed."""
    for number, parent in enumerate(("work", "play")):
        folder = tmp_path / ".gemini" / "tmp" / f"api-{number}"
        session = builders.SESSION.replace("6ece72aa", f"6ece72a{number}")
        path = f"/src/{parent}/api"
        answer = builders.gemini(f"g{number}", tokens=builders.tokens(10 + number))
        records = [builders.header(session, projectHash=project_hash(path)), builders.user(f"u{number}"), answer]
        name = f"session-2026-11-15T19-3{number}-6ece72a{number}.jsonl"
        builders.put(folder / "chats" / name, builders.log(*records))
        builders.put(folder / ".project_root", path.encode())
    for args in (
        ("ls", "-n", "1"),
        ("ls",),
        ("status", "--all", "-n", "1"),
        ("usage", "--by", "project", "--top", "1"),
        ("stats", "--by", "project", "--top", "1"),
    ):
        screen = run(*args, *how, columns=120, home=tmp_path).out
        assert "work/api" in screen or "play/api" in screen, screen
        assert " api " not in screen


def remembered() -> list[str]:
    path = project_memory.memory_path()
    return [*json.loads(path.read_text())["paths"].values()] if path.exists() else []


def ids(ended: str) -> list[str]:
    return [line[:8] for line in ended.splitlines()[1:]]


def no_room(*_: object, **__: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")


@pytest.mark.parametrize("stage", ["archive_changes", "derive_pending"])
def test_writing_commands_fail_on_a_full_disk(run: Runner, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    monkeypatch.setattr(f"pollux.archive.ingest.{stage}", no_room)
    run("keys", "create")
    for args in (("sync",), ("archive", "seal")):
        ended = run(*args)
        assert (ended.status, ended.out) == (2, "")
        assert "cannot be used (database or disk is full); check its disk" in ended.err


READERS = (
    ("ls",),
    ("show", "6ece72a0"),
    ("tree", "6ece72a0"),
    ("usage",),
    ("usage", "--by", "session"),
    ("stats",),
    ("projects",),
    ("export", "6ece72a0"),
)


def without_room(monkeypatch: pytest.MonkeyPatch, n_pages: int) -> None:
    """Limit the growth of archives to so many pages, as a nearly full disk does."""
    writable = store._writable

    def small(path: Path) -> sqlite3.Connection:
        database = writable(path)
        (n_now,) = database.execute("PRAGMA page_count").fetchone()
        database.execute(f"PRAGMA max_page_count = {n_now + n_pages}")
        return database

    monkeypatch.setattr(store, "_writable", small)


def session_with_calls(root: Path, number: int) -> Path:
    session = builders.SESSION.replace("6ece72aa", f"6ece72a{number}")
    answers = [builders.gemini(f"g{number}-{n}", tokens=builders.tokens(number + 1)) for n in range(100)]
    data = builders.log(builders.header(session), builders.user("u1", "ask"), *answers)
    return builders.put(builders.chats(root) / f"session-2026-11-15T19-30-6ece72a{number}.jsonl", data)


@pytest.mark.parametrize("args", READERS, ids=" ".join)
@pytest.mark.parametrize("n_pages", [0, 4])
def test_reading_commands_work_on_a_full_disk(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], n_pages: int
) -> None:
    for number in range(6):
        session_with_calls(tmp_path, number)
    expected = run(*args, "--no-archive", home=tmp_path)
    run("sync", "--raw-only")
    without_room(monkeypatch, n_pages)
    ended = run(*args)
    assert (ended.status, ended.out) == (expected.status, expected.out)
    said = "The archive cannot be brought up to date: database or disk is full; reading session files directly.\n"
    assert ended.err.replace(expected.err, "") == said
    monkeypatch.undo()


def test_deleted_sessions_are_listed_on_a_full_disk(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = session_with_calls(tmp_path, 0)
    assert run("sync", home=tmp_path).status == 0
    old.unlink()
    run("sync")
    for number in range(1, 6):
        session_with_calls(tmp_path, number)
    run("sync", "--raw-only")
    without_room(monkeypatch, 0)
    for args in (("ls",), ("show", "6ece72a0"), ("usage", "--by", "session")):
        ended = run(*args)
        assert (ended.status, "6ece72a0" in ended.out) == (0, True)
        assert "(database or disk is full); newer changes are missing." in ended.err


ALL_READERS = (
    *READERS,
    (),
    ("status",),
    ("doctor",),
    ("statusline", "--all-projects"),
    ("audit", "6ece72a0"),
    ("raw", "6ece72a0"),
    ("resume", "6ece72a0"),
    ("show", "6ece72a0", "--json"),
)


@pytest.mark.parametrize("args", ALL_READERS, ids=" ".join)
@pytest.mark.parametrize("place", ["below a file", "forbidden"])
def test_sessions_are_read_where_no_archive_can_be_created(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], place: str
) -> None:
    session_with_calls(tmp_path, 0)
    monkeypatch.setenv("POLLUX_ARCHIVE", "-")
    expected = run(*args, home=tmp_path)
    archive = builders.put(tmp_path / "file", b"") / "deeper" / "archive.db"
    if place == "forbidden":
        archive = tmp_path / "archive.db"
        monkeypatch.setattr(store, "open_archive", forbidden)
    monkeypatch.setenv("POLLUX_ARCHIVE", str(archive))
    ended = run(*args)
    assert (ended.status, ended.out) == (expected.status, expected.out)
    note = ended.err.replace(expected.err, "")
    assert note.count("\n") == 1
    reason = "Permission denied" if place == "forbidden" else "Not a directory"
    assert note.startswith(f"No archive can be created at {archive} ({reason})")


def forbidden(path: Path, **_: object) -> None:
    """Fail as `Path.exists` does below a folder that the user may not enter."""
    raise PermissionError(13, "Permission denied", str(path))


def test_sessions_are_read_by_a_user_without_a_home(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_with_calls(tmp_path, 0)
    for name in ("HOME", "USERPROFILE", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)

    expanduser = os.path.expanduser

    def unknown_user(path: str) -> str:  # as for a user ID without an entry in the system's list of users
        return expanduser(path) if "HOME" in os.environ else path

    monkeypatch.setattr(os.path, "expanduser", unknown_user)
    monkeypatch.setattr(store, "open_archive", forbidden)
    monkeypatch.chdir(tmp_path)
    ended = run("ls", home=tmp_path)
    assert (ended.status, ids(ended.out)) == (0, ["6ece72a0"])
    monkeypatch.delenv("HOME", raising=False)
    assert "No archive can be created at /.local/share/pollux/archive.db" in ended.err
    assert not (tmp_path / "~").exists()


def test_read_only_archive_hides_no_new_session(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deleted, grown = session_with_calls(tmp_path, 0), session_with_calls(tmp_path, 1)
    assert run("sync", home=tmp_path).status == 0
    deleted.unlink()
    assert run("sync").status == 0
    grown.write_bytes(grown.read_bytes() + builders.log(builders.gemini("late", tokens=builders.tokens(5))))
    session_with_calls(tmp_path, 2)
    take_lock = store._take_lock

    def locked(path: Path, *args: Any) -> str:  # noqa: ANN401
        if path == config.configure().archive:
            raise OSError(errno.EROFS, "Read-only file system")
        return take_lock(path, *args)

    monkeypatch.setattr(store, "_take_lock", locked)
    for args in (("ls",), ("stats", "--by", "session")):
        ended = run(*args)
        assert sorted(line[:8] for line in ended.out.splitlines()[1:]) == ["6ece72a0", "6ece72a1", "6ece72a2"]
        assert ended.err.count("\n") == 1
        assert "The archive cannot be written (Read-only file system)" in ended.err
    rows = run("ls", "--json").json["sessions"]
    assert {row["id"][:8]: (row["calls"], row["deleted"]) for row in rows} == {
        "6ece72a0": (100, True),
        "6ece72a1": (101, False),
        "6ece72a2": (100, False),
    }
    assert run("usage", "--json").json["billed"]["calls"] == 301
    assert run("usage", "--by", "tool", "--json").json["billed"]["calls"] == 301
    for number in range(3):
        assert run("show", f"6ece72a{number}").status == 0
        assert run("export", f"6ece72a{number}", "-f", "json").status == 0
    assert run("doctor").status == 0
    rows = run("status", "--json").json["sessions"]
    assert {row["id"][:8]: row["archived"] for row in rows} == {"6ece72a0": True, "6ece72a1": False, "6ece72a2": False}


def test_archive_that_another_process_creates_is_not_waited_for(run: Runner, tmp_path: Path) -> None:
    place = project_memory.memory_path().with_name("archive.db")
    place.parent.mkdir(parents=True)
    session_with_calls(tmp_path, 0)
    expected = {args: run(*args, "--no-archive", home=tmp_path).out for args in READERS}
    place.unlink(missing_ok=True)
    lock = WriterLock(place)
    assert lock.take()
    states = (lambda: None, place.touch, lambda: half_made(place))
    try:
        for make in states:
            made = make()
            for args in READERS:
                ended = run(*args)
                assert (ended.status, ended.out) == (0, expected[args])
                assert "The archive is not ready yet: pollux" in ended.err
                assert "reading session files directly." in ended.err
            ended = run("archive", "info")
            said = "is not ready: pollux" if place.exists() else "There is no archive"
            assert (ended.status in (1, 2), said in ended.err) == (True, True)
            if made:
                made.close()
    finally:
        lock.release()


def half_made(place: Path) -> sqlite3.Connection:
    """Create an archive as `store.open_archive` does, but without its tables."""
    database = sqlite3.connect(place, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("CREATE TABLE other (x)")
    return database


def test_archive_that_another_process_fills_hides_no_session(run: Runner, tmp_path: Path) -> None:
    place = project_memory.memory_path().with_name("archive.db")
    hashed(tmp_path, "/one")
    with store.open_archive(place):  # who has only just begun
        first = run("ls", home=tmp_path)
    assert (first.status, ids(first.out)) == (0, ["6ece72a0"])
    assert "is writing to it; reading session files directly." in first.err
    run("sync")
    with store.open_archive(place):
        assert not run("ls").err
        hashed(tmp_path, "/two", number=1)
        second = run("ls")
    assert ids(second.out) == ["6ece72a0"]
    assert "The archive is incomplete: pollux" in second.err
    assert ids(run("ls").out) == ["6ece72a0", "6ece72a1"]


def test_project_known_by_its_hash_is_searched_and_remembered(run: Runner, tmp_path: Path, project: Path) -> None:
    ended = run("ls", "--project", "webshop", home=tmp_path)
    assert (ended.status, ids(ended.out)) == (0, ["6ece72a0"])
    assert str(project) in ended.out
    assert remembered() == [str(project.resolve())]
    assert str(project) in run("ls").out


def test_search_is_announced_on_a_terminal(
    run: Runner, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del project
    monkeypatch.setattr(output, "_is_watched", lambda: True)
    assert "searching likely folders" in run("ls", "--project", "webshop", home=tmp_path).err


def test_unknown_project_is_reported(run: Runner, tmp_path: Path, project: Path) -> None:
    del project
    ended = run("ls", "--project", "none-such", home=tmp_path)
    assert (ended.status, ended.out) == (1, "")
    assert "No project matches 'none-such'" in ended.err


@pytest.mark.parametrize("where", [".", "./src", "..", "webshop"])
def test_folder_name_proves_the_project_hash(
    run: Runner, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    (project / "src").mkdir()
    monkeypatch.chdir({".": project / "src", "./src": project, "..": project / "src", "webshop": project.parent}[where])
    query = "." if where == "./src" else where
    ended = run("show", "latest", "--project", query, "--json", home=tmp_path)
    assert ended.status == 0
    assert ended.json["session"]["project"]["path"] == str(project.resolve())
    assert remembered() == [str(project.resolve())]


def test_parent_folder_selects_the_projects_below_it(run: Runner, tmp_path: Path, project: Path) -> None:
    assert ids(run("ls", "--project", str(project.parent), home=tmp_path).out) == ["6ece72a0"]


def test_project_can_be_named_by_its_hash(run: Runner, tmp_path: Path, project: Path) -> None:
    assert ids(run("ls", "--project", project_hash(str(project.resolve()))[:8], home=tmp_path).out) == ["6ece72a0"]


def test_scan_reports_how_many_projects_it_found(run: Runner, tmp_path: Path, project: Path) -> None:
    before = run("projects", columns=80, home=tmp_path)
    assert "`pollux projects --scan` searches" in before.err
    ended = run("projects", "--scan")
    assert "the paths of 1 of 2 unknown projects" in ended.err
    assert str(project) in ended.out
    assert remembered() == [str(project.resolve())]


def test_moved_project_is_reported(run: Runner, tmp_path: Path, project: Path) -> None:
    hashed(tmp_path, "/old/webshop", number=2)
    folder = tmp_path / ".gemini" / "tmp" / project_hash("/old/webshop")
    builders.put(folder / ".project_root", b"/old/webshop")
    run("projects", "--scan", home=tmp_path)
    assert f"/old/webshop does not exist any more; it may have moved to {project}" in run("projects", columns=200).err


@pytest.mark.parametrize(
    ("args", "n_sessions"),
    [
        (("--last", "7d"), 5),
        (("--since", "2026-11-10"), 3),
        (("--since", "2026-11-01", "--until", "2026-11-05"), 2),
        (("--model", "PRO", "--project", "skywatch"), 4),
        (("-n", "2"), 2),
    ],
)
def test_filters_select_sessions(run: Runner, args: tuple[str, ...], n_sessions: int) -> None:
    assert run("ls", "--no-header", *args).out.count("\n") == n_sessions


def test_progress_bar_appears_after_a_delay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "_is_watched", lambda: True)
    with output.progress("reading") as tell:
        tell(1, 3)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(output, "_SECONDS_WITHOUT_BAR", -1)
        monkeypatch.setenv("FORCE_COLOR", "1")
        n_threads = threading.active_count()
        tell(2, 3)
        tell(3, 3)
        assert threading.active_count() == n_threads, "with threads there could be no copies of this process"
    assert "reading" in capsys.readouterr().err


def test_quick_work_has_no_progress_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(output, "_is_watched", lambda: True)
    with output.progress("reading") as tell:
        tell(1, 1)
    assert capsys.readouterr().err == ""


def test_usage_is_read_from_files_until_the_archive_is_complete(run: Runner, tmp_path: Path) -> None:
    place = project_memory.memory_path().with_name("archive.db")
    session_with_calls(tmp_path, 0)
    expected = run("usage", "--json", "--no-archive", home=tmp_path).json["billed"]
    with store.open_archive(place) as archive:
        refresh(archive, [builders.home(tmp_path)], derives=False)
        ended = run("usage", "--json")
    assert ended.json["billed"] == expected
    assert "reading session files directly." in ended.err


def test_status_reports_archived_files_on_a_full_disk(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        session_with_calls(tmp_path, number)
    run("sync", "--raw-only", home=tmp_path)
    without_room(monkeypatch, 0)
    ended = run("status")
    assert "reading session files directly." in ended.err
    assert "3 sessions, all archived" in ended.err


def _home_with_session(root: Path, session_id: str) -> Path:
    name = session_id[:8]
    answer = builders.gemini(f"g-{name}", tokens=builders.tokens())
    data = builders.log(builders.header(session_id), builders.user(f"u-{name}"), answer)
    builders.put(builders.chats(root) / f"session-2026-01-27T15-21-{name}.jsonl", data)
    return root / ".gemini"


@pytest.mark.parametrize("variable", ["GEMINI_DIR", "GEMINI_CLI_HOME", "GEMINI_SESSIONS_DIR", "POLLUX_HOME", "--home"])
def test_named_home_replaces_homes_archived_earlier(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("POLLUX_HOME")
    _home_with_session(Path.home(), "aaaaaaaa-1111-4111-8111-111111111111")
    other = _home_with_session(tmp_path / "other", "bbbbbbbb-1111-4111-8111-111111111111")
    assert ids(run("ls").out) == ["aaaaaaaa"]
    arguments: tuple[str, ...] = ()
    if variable == "--home":
        arguments = ("--home", str(other))
    else:
        monkeypatch.setenv(variable, str(other / "tmp" if variable == "GEMINI_SESSIONS_DIR" else other))
    assert ids(run("ls", *arguments).out) == ["bbbbbbbb"]
    assert run("usage", "--json", *arguments).json["billed"]["calls"] == 1
    assert run("stats", "--json", *arguments).json["totals"]["sessions"] == 1
    if not arguments:
        monkeypatch.delenv(variable)
    assert ids(run("ls").out) == ["aaaaaaaa"]
    assert "1 session of other homes: add --all-homes" in run("show", "bbbbbbbb").err
    assert ids(run("ls", "--all-homes").out) == ["aaaaaaaa", "bbbbbbbb"]
    assert run("usage", "--json", "--all-homes").json["billed"]["calls"] == 2


@pytest.mark.parametrize("other", [("--home", "."), ("--no-archive",)])
def test_all_homes_refuses_options_that_contradict_it(run: Runner, tmp_path: Path, other: tuple[str, ...]) -> None:
    ended = run("ls", "--all-homes", *other, home=tmp_path)
    assert ended.status == 2
    assert "--all-homes" in ended.err


def test_similar_known_project_does_not_stop_the_search(run: Runner, tmp_path: Path, project: Path) -> None:
    old = project.with_name("webshop-old")
    old.mkdir()
    hashed(tmp_path, str(old.resolve()), number=2)
    digest = project_hash(str(old.resolve()))
    builders.put(tmp_path / ".gemini" / "tmp" / digest / ".project_root", str(old.resolve()).encode())
    assert ids(run("ls", "--project", "webshop", home=tmp_path).out) == ["6ece72a0"]


def test_folders_are_searched_four_levels_deep(run: Runner, tmp_path: Path, project: Path) -> None:
    deep = project.parent / "a" / "b" / "c" / "deepshop"
    deep.mkdir(parents=True)
    hashed(tmp_path, str(deep.resolve()), number=3)
    assert ids(run("ls", "--project", "deepshop", home=tmp_path).out) == ["6ece72a3"]


@pytest.mark.parametrize("how", [(), ("--no-archive",)], ids=["archive", "memory"])
def test_current_folder_names_its_project_in_every_command(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: tuple[str, ...]
) -> None:
    here = tmp_path / "odd" / "place" / "shop"
    (here / "src").mkdir(parents=True)
    hashed(tmp_path / "home", str(here.resolve()))
    monkeypatch.chdir(here / "src")
    listed = run("ls", "--json", *how, home=tmp_path / "home").json["sessions"]
    assert listed[0]["project"]["path"] == str(here.resolve())
    assert str(here) in run("resume", "6ece72a0").out
    assert run("stats", "--by", "project", "--json", *how).json["projects"][0]["name"] == "shop"


@pytest.mark.usefixtures("project")
def test_no_archive_stores_nothing(run: Runner, tmp_path: Path) -> None:
    run("ls", "--project", "webshop", "--no-archive", home=tmp_path)
    run("projects", "--scan", "--no-archive")
    run("usage", "--no-archive")
    assert [path for path in Path.home().rglob("*") if path.is_file()] == []


def test_commands_work_in_a_deleted_folder(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert run("ls").status == 0
    assert run("usage").status == 0


def test_answer_is_one_snapshot_while_another_process_writes(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_with_calls(tmp_path, 0)
    before = run("ls", "--json", home=tmp_path).json
    value_problems = failures.value_problems
    is_changed = []

    def meanwhile(database: sqlite3.Connection) -> object:
        found = value_problems(database)
        with closing(sqlite3.connect(project_memory.memory_path().with_name("archive.db"))) as other:
            other.executescript(
                "UPDATE sessions SET title = 'changed'; DELETE FROM session_files; DELETE FROM versions"
            )
        is_changed.append(True)
        return found

    monkeypatch.setattr(failures, "value_problems", meanwhile)
    assert run("ls", "--json").json == before
    assert is_changed
