"""A library looks after its archive: it syncs, forgets, verifies, restores, and answers from what is left."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests import builders

from pollux.archive import watch as archive_watch
from pollux.archive.index_file import index_path
from pollux.archive.store import open_archive
from pollux.errors import ArchiveError, PolluxError
from pollux.library.archive_tools import ForgetPlan
from pollux.library.config import UsageError, configure
from pollux.library.library import Library
from pollux.reports.filters import Filter
from pollux.reports.freshness import FreshnessState

FILE = f"{builders.NAME}.jsonl"
OTHER_FILE = f"session-2026-11-15T19-31-{builders.OTHER[:8]}.jsonl"


def write_session(root: Path, session_id: str = builders.SESSION, name: str = FILE, *records: object) -> Path:
    data = builders.log(builders.header(session_id), builders.user("u1", f"fix {session_id[:4]}"), *records)
    return builders.put(builders.chats(root) / name, data)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    write_session(tmp_path)
    with Library(configure(named_homes=[tmp_path], archive=tmp_path / "archive.db")) as library:
        yield library


def ids(library: Library) -> set[str]:
    return {row.id for row in library.sessions().rows}


def test_a_sync_makes_the_archive_and_the_next_question_sees_it(library: Library, tmp_path: Path) -> None:
    first = library.sync()
    assert (first.n_files, first.sessions, first.titles) == (2, (builders.SESSION,), {builders.SESSION: "fix 6ece"})
    assert ids(library) == {builders.SESSION}
    write_session(tmp_path, builders.OTHER, OTHER_FILE)
    assert library.sync().sessions == (builders.OTHER,)
    assert ids(library) == {builders.SESSION, builders.OTHER}


def test_a_sync_that_derives_nothing_only_copies(library: Library) -> None:
    report = library.sync(derive=False)
    assert (report.n_files, report.sessions) == (2, ())
    assert ids(library) == {builders.SESSION}


def test_a_sync_waits_for_another_writer(library: Library) -> None:
    notes: list[str] = []
    other = open_archive(library.archive.path)

    def waiting(note: str) -> None:
        notes.append(note)
        other.close()

    library.sync(waiting=waiting)
    assert [note.startswith("Waiting for ") for note in notes] == [True]


def test_a_sync_does_not_depend_on_the_price_file(tmp_path: Path) -> None:
    write_session(tmp_path, builders.SESSION, FILE, builders.gemini(tokens=builders.tokens()))
    prices = builders.put(tmp_path / "prices.toml", b"no prices")
    config = configure(named_homes=[tmp_path], archive=tmp_path / "archive.db", prices=prices)
    with Library(config) as library:
        assert library.sync().sessions == (builders.SESSION,)
        assert library.archive.forget([builders.SESSION]).sessions == [builders.SESSION]


def test_a_watch_syncs_at_every_change(library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changes(*_: object, **_options: object) -> Iterator[None]:
        yield
        write_session(tmp_path, builders.OTHER, OTHER_FILE)
        yield

    monkeypatch.setattr(archive_watch, "changes", changes)
    assert [report.sessions for report in library.watch()] == [(builders.SESSION,), (builders.OTHER,)]


def test_a_watch_tells_what_is_archived_before_it_is_indexed(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tab that follows a session must not wait for the index."""
    monkeypatch.setattr(archive_watch, "changes", lambda *_args, **_options: iter([None]))
    path = index_path(tmp_path / "archive.db")
    seen: list[tuple[str, bool]] = []

    def archived() -> None:
        seen.append((library.session(builders.SESSION).id, path.exists()))

    assert len([*library.watch(archived=archived)]) == 1
    assert seen == [(builders.SESSION, False)]
    assert path.exists()


def test_without_an_archive_there_is_nothing_to_look_after(tmp_path: Path) -> None:
    with Library(configure(named_homes=[tmp_path], archive=None)) as library:
        for question in (library.sync, library.watch, library.verify, library.archive.info, library.archive.compact):
            with pytest.raises(UsageError, match="leave --no-archive and POLLUX_ARCHIVE=- out"):
                question()
        with pytest.raises(UsageError, match="leave --no-archive out"):
            library.restore("latest")


def test_forgetting_shows_its_plan_first(library: Library) -> None:
    library.sync()
    plans: list[ForgetPlan] = []

    def refuse(plan: ForgetPlan) -> None:
        plans.append(plan)
        raise PolluxError("No.")

    with pytest.raises(PolluxError, match=r"No\."):
        library.archive.forget(["latest"], confirm=refuse)
    (plan,) = plans
    assert (plan.titles, plan.n_subagents, plan.n_files) == ({builders.SESSION: "fix 6ece"}, 0, 1)
    assert ids(library) == {builders.SESSION}
    assert library.archive.forget(["latest"]).sessions == [builders.SESSION]
    assert ids(library) == set()


def test_forgetting_reads_what_is_new_first(library: Library, tmp_path: Path) -> None:
    library.sync()
    write_session(tmp_path, builders.OTHER, OTHER_FILE)
    assert library.archive.forget([builders.OTHER[:8]]).sessions == [builders.OTHER]
    assert ids(library) == {builders.SESSION}


def test_questions_can_be_asked_while_the_archive_is_held(library: Library) -> None:
    library.sync()
    with library.writing() as snapshot:
        assert snapshot.archive
        assert snapshot.archive.is_writable
        assert ids(library) == {builders.SESSION}
        assert library.freshness().state == FreshnessState.CURRENT
    with open_archive(library.archive.path) as archive:
        assert archive.is_writable, "the lock was given back"


def test_threads_ask_while_another_syncs(library: Library) -> None:
    library.sync()
    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(ids, library) for _ in range(40)]
        for _ in range(20):
            library.sync()
        assert [answer.result() for answer in answers] == [{builders.SESSION}] * 40


def test_another_writer_is_refused_not_waited_for(library: Library) -> None:
    library.sync()
    with open_archive(library.archive.path):
        for change in (lambda: library.archive.forget(["latest"]), lambda: library.verify(repair=True)):
            with pytest.raises(PolluxError, match=r"cannot be changed now: .* is writing to it"):
                change()


def test_what_is_missing_is_not_made(library: Library) -> None:
    for question in (library.archive.info, library.verify, lambda: library.archive.forget(["latest"])):
        with pytest.raises(PolluxError, match=r"There is no archive at .*; `pollux sync` makes one"):
            question()
    assert not library.archive.path.exists()


def test_an_import_is_seen_by_the_next_question(library: Library, tmp_path: Path) -> None:
    library.sync()
    other = tmp_path / "other"
    write_session(other, builders.OTHER, OTHER_FILE)
    with Library(configure(named_homes=[other], archive=other / "archive.db")) as source:
        source.sync()
    with Library(configure(archive=library.archive.path)) as own:
        imported = own.archive.import_(other / "archive.db")
        assert (imported.result.n_versions, imported.n_adopted, imported.other) == (2, 0, other / "archive.db")
    for wrong, sentence in ((tmp_path / "none.db", "does not exist"), (library.archive.path, "is the archive itself")):
        with pytest.raises(UsageError, match=sentence):
            library.archive.import_(wrong)


def test_a_backup_names_what_it_replaces(library: Library, tmp_path: Path) -> None:
    library.sync()
    folder = tmp_path / "backups"
    folder.mkdir()
    names = ["archive.db", "archive.db-wal", "archive.db-shm"]
    assert [path.name for path in library.archive.backup_files(folder)] == names
    assert library.archive.backup(folder).path == folder / "archive.db"
    with pytest.raises(PolluxError, match="exists already"):
        library.archive.backup(folder)


def test_wrong_facts_are_repaired(library: Library) -> None:
    library.sync()
    with open_archive(library.archive.path) as archive:
        archive.database.execute("UPDATE sessions SET title = 'forged'")
    assert not library.verify().is_ok
    assert library.verify(repair=True).is_ok
    assert library.verify(deep=True).is_ok
    assert [row.title for row in library.sessions().rows] == ["fix 6ece"]


def test_damaged_rows_explain_an_exception(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.sync()
    with open_archive(library.archive.path) as archive:
        archive.database.execute("UPDATE sessions SET n_user = 'many'")
    with pytest.raises(PolluxError, match=r"is damaged \(.*Run `pollux verify --repair`"):
        library.projects()
    monkeypatch.setattr("pollux.library.projects.project_rows", lambda *_: dict[str, int]()["none"])
    library.verify(repair=True)
    with pytest.raises(KeyError):
        library.projects()


def test_a_deleted_session_is_restored(library: Library, tmp_path: Path) -> None:
    library.sync()
    path = builders.chats(tmp_path) / FILE
    path.unlink()
    planned = library.restore("latest", dry_run=True)
    assert (planned.is_written, len(planned.plan.files), planned.plan.main.exists()) == (False, 1, False)
    restored = library.restore("latest")
    assert (restored.is_written, restored.plan.main.exists()) == (True, True)
    assert restored.command is not None
    assert f"--resume={builders.SESSION}" in restored.command
    assert [warning for warning in restored.warnings if "does not exist" in warning or "is unknown" in warning]
    with pytest.raises(UsageError, match="is a folder, not a session"):
        library.restore(str(tmp_path))
    with pytest.raises(UsageError, match=r"--to .* is no folder"):
        library.restore("latest", to=tmp_path / "none")


def test_problems_are_those_of_the_sessions_chosen(library: Library, tmp_path: Path) -> None:
    write_session(tmp_path, builders.OTHER, OTHER_FILE, b"{torn")
    assert len(library.problems()) == 1
    assert library.problems(Filter(model="none-such")) == ()


def test_the_doctor_examines_the_files(library: Library, tmp_path: Path) -> None:
    write_session(tmp_path, builders.OTHER, OTHER_FILE, builders.user("u2", newField=1))
    health = library.doctor()
    assert (len(health.history.sessions), health.unknown["fields"], health.problems) == (2, {"newField": 1}, [])


def test_projects_are_counted_from_the_tables(library: Library, tmp_path: Path) -> None:
    (row,) = library.projects().rows
    assert (row.n_sessions, row.n_prompts, row.n_tokens) == (1, 1, 0)
    write_session(tmp_path, builders.OTHER, OTHER_FILE, builders.gemini(tokens=builders.tokens(7)))
    library.refresh()
    (row,) = library.projects().rows
    assert (row.n_sessions, row.n_prompts) == (2, 2)
    assert row.n_tokens > 0
    assert library.projects(Filter(model="none-such")).rows == ()


def test_a_home_that_comes_later_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLLUX_HOME", str(tmp_path / "home"))
    with Library(configure(archive=tmp_path / "archive.db")) as library:
        assert library.sync().sessions == ()
        write_session(tmp_path / "home")
        assert library.sync().sessions == (builders.SESSION,)
        shutil.rmtree(tmp_path / "home")
        assert library.sync().sessions == ()


def test_other_file_is_reported(tmp_path: Path) -> None:
    notes = builders.put(tmp_path / "notes.txt", b"do not forget\n")
    with Library(configure(named_homes=[tmp_path], archive=notes)) as library, pytest.raises(ArchiveError):
        library.sync()
