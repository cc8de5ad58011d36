"""Security test 19 of the viewer: the archive is locked, gone, replaced, damaged or newer while the viewer runs."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.builders import chats, gemini, header, log, put, tokens, user
from tests.web.client import Answer, Site, demo_site

from pollux.archive.lock import WriterLock
from pollux.library.config import configure
from pollux.library.library import Library

PAGES = ("sessions", "projects", "health", "search?q=hello", "s/latest", "api/sessions", "api/usage")


def write_session(home: Path, number: int) -> None:
    session = f"{number:08x}-0000-4000-8000-000000000000"
    data = log(header(session), user(content=f"hello {number}"), gemini(f"g{number}", tokens=tokens()))
    put(chats(home) / f"session-2026-11-15T19-30-{number:08x}.jsonl", data)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write_session(tmp_path / "home", 1)
    return tmp_path / "home"


@pytest.fixture
def archive(tmp_path: Path, home: Path) -> Path:
    """Return an archive that has the session."""
    path = tmp_path / "archive.db"
    with Library(configure(named_homes=[home], archive=path)) as library:
        library.sync()
    return path


@pytest.fixture
def site(home: Path, archive: Path) -> Iterator[Site]:
    with demo_site(archive, home=home) as site:
        yield site


def check_said(answer: Answer, path: Path) -> None:
    assert answer.status == 503
    assert path.name in answer.text
    assert "Traceback" not in answer.text


def remove(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        if file.is_file() and not file.name.endswith(".lock"):
            file.unlink()


def overwrite(path: Path) -> None:
    remove(path)
    path.write_bytes(b"this is no database, but long enough to look like one" * 10)


def make_newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 9999")
    database.close()


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("change", [overwrite, make_newer])
def test_an_unusable_archive_is_a_page_that_says_so(
    site: Site, archive: Path, page: str, change: Callable[[Path], None]
) -> None:
    assert site.get(page).status == 200
    change(archive)
    for _ in range(2):
        check_said(site.get(page), archive)
    assert not site.failures


@pytest.mark.parametrize("page", PAGES)
def test_a_removed_archive_is_created_again(site: Site, archive: Path, page: str) -> None:
    assert site.get(page).status == 200
    remove(archive)
    assert site.get(page).status == 200
    assert archive.exists()
    assert not site.failures


def test_a_replaced_archive_is_read(site: Site, archive: Path, home: Path, tmp_path: Path) -> None:
    write_session(home, 2)
    other = tmp_path / "other.db"
    with Library(configure(named_homes=[home], archive=other)) as library:
        library.sync()
    assert "hello 2" in site.get("sessions").text  # the first page refreshes
    write_session(home, 3)
    with Library(configure(named_homes=[home], archive=other)) as library:
        library.sync()
    remove(archive)
    shutil.move(other, archive)
    assert "hello 3" in site.get("sessions").text


def test_a_compacted_archive_is_read(site: Site, archive: Path, home: Path) -> None:
    before = site.get("sessions")
    assert before.status == 200
    with Library(configure(named_homes=[home], archive=archive)) as library:
        library.archive.compact()
    assert site.get("sessions").text == before.text
    write_session(home, 3)
    with Library(configure(named_homes=[home], archive=archive)) as library:
        library.sync()
    assert "hello 3" in site.get("sessions").text
    assert not site.failures


def test_one_thread_reads_the_file_that_took_the_place_of_another(archive: Path, home: Path, tmp_path: Path) -> None:
    with Library(configure(named_homes=[home], archive=archive)) as library:
        assert library.sessions().total == 1
        write_session(home, 2)
        other = tmp_path / "other.db"
        with Library(configure(named_homes=[home], archive=other)) as writer:
            writer.sync()
        remove(archive)
        shutil.move(other, archive)
        assert library.sessions().total == 2


@pytest.mark.parametrize("page", PAGES)
def test_a_locked_archive_is_read(site: Site, archive: Path, home: Path, page: str) -> None:
    lock = WriterLock(archive)
    assert lock.take()
    write_session(home, 2)
    try:
        assert site.get(page).status == 200
        assert "writing" in site.viewer.library.freshness().note
    finally:
        lock.release()


def test_a_locked_database_is_read(site: Site, archive: Path) -> None:
    assert site.get("sessions").status == 200
    with sqlite3.connect(archive, isolation_level=None) as database:
        database.execute("BEGIN IMMEDIATE")
        assert site.get("sessions").status == 200
        database.execute("ROLLBACK")
    database.close()
