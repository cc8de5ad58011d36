from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from tests.builders import chats, gemini, header, log, put, tokens, user
from tests.web.client import Site, demo_site
from tests.web.viewing import LABEL, Viewed

from pollux.library.config import DEMO_HOME, Config, configure
from pollux.library.library import Library
from pollux.sessions import parallel
from pollux.web import first_reading
from pollux.web.app import create_app
from pollux.web.first_reading import FirstReading, sync_command
from pollux.web.routing import Reading, Viewer, page


def count(_request: Request, library: Library) -> Response:
    return PlainTextResponse(str(library.sessions().total))


ROUTES = (Route("/count", page(count)), Route("/api/count", page(count)))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with demo_site(tmp_path / "archive.db", [ROUTES]) as site:
        yield site


def n_sessions(archive: Path) -> str:
    with Library(configure(named_homes=[DEMO_HOME], archive=archive)) as library:
        return str(library.sessions().total)


@pytest.mark.parametrize("limit", [1, 1 << 40])
def test_a_new_archive_is_filled_while_the_server_runs(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    started: list[list[str]] = []

    def noted_command(config: Config) -> list[str]:
        started.append(sync_command(config))
        return started[0]

    monkeypatch.setattr(first_reading, "MANY_BYTES", limit)
    monkeypatch.setattr(first_reading, "sync_command", noted_command)
    reading = FirstReading(site.viewer)
    assert not site.viewer.settled.is_set()
    reading.start()
    reading.join()
    assert len(started) == (limit == 1)
    assert site.viewer.settled.is_set()
    assert site.viewer.reading is None
    assert site.viewer.library.has_state
    assert not site.viewer.library.freshness().note
    assert site.get("count").text == n_sessions(tmp_path / "expected.db")


def test_a_page_says_how_far_the_reading_is(site: Site) -> None:
    site.viewer.reading = Reading(38, 100)
    answer = site.get("count")
    assert answer.status == 503
    assert "38 % done" in answer.text
    assert answer.headers["refresh"] == "1"
    document = json.loads(site.get("api/count").body)
    assert (document["schema"], document["code"]) == ("pollux.error/1", "still-reading")


def test_pages_show_what_has_been_read_so_far(site: Site, tmp_path: Path) -> None:
    expected = n_sessions(tmp_path / "archive.db")
    site.viewer.reading = Reading(38, 100)
    assert site.viewer.library.read_as_it_is()
    assert "still being read" in site.viewer.library.freshness().note
    assert site.get("count").text == expected


@pytest.mark.parametrize("path", ["", "sessions", "usage?last=all", "projects", "files", "health", "api/status"])
def test_no_page_reads_the_files_that_another_process_is_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A page would otherwise wait as long as that process runs."""
    home, archive = tmp_path / "home", tmp_path / "archive.db"
    _write_session(home, 1)
    with Library(configure(named_homes=[home], archive=archive)) as library:
        library.sync()
    for number in range(2, 5):
        _write_session(home, number)

    def refuse(path: Path) -> None:
        message = f"A page has read {path.name}"
        raise AssertionError(message)

    with viewing_as_it_is(home, archive) as viewed:
        monkeypatch.setattr("pollux.sessions.replay.reading.read", refuse)
        text = viewed.get(path)
    assert "question 1" in text or path in ("usage?last=all", "projects", "files")
    assert "question 2" not in text


def test_what_is_read_so_far_says_what_the_client_deletes(tmp_path: Path) -> None:
    home, archive = tmp_path / "home", tmp_path / "archive.db"
    _write_session(home, 1)
    with Library(configure(named_homes=[home], archive=archive, clock=long_after)) as library:
        library.sync()
        complete = library.overview().overview
    _write_session(home, 2)
    with viewing_as_it_is(home, archive) as viewed:
        partial = viewed.library.overview().overview
    assert (partial.due, partial.n_sessions) == (complete.due, complete.n_sessions) == (1, 1)
    assert partial.n_unarchived == 1
    with Library(configure(named_homes=[home], archive=archive, clock=long_after)) as library:
        assert library.overview().overview.due == 2


def long_after() -> datetime:
    return datetime(2027, 3, 1, tzinfo=UTC)


@contextmanager
def viewing_as_it_is(home: Path, archive: Path) -> Iterator[Viewed]:
    """Yield a viewer of an archive that another process is filling."""
    with Library(configure(named_homes=[home], archive=archive, clock=long_after)) as library:
        assert library.read_as_it_is()
        viewer = Viewer(library, LABEL, long_after, reading=Reading(1, 2))
        app = create_app(viewer)
        yield Viewed(TestClient(app, base_url="http://127.0.0.1:2990"), library, app)


def _write_session(home: Path, number: int) -> None:
    session = f"{number:08x}-0000-4000-8000-000000000000"
    records = (user("u1", f"question {number}"), gemini("g1", "an answer", tokens=tokens()))
    put(chats(home) / f"session-2026-11-15T19-30-{number:08x}.jsonl", log(header(session), *records))


def test_an_archive_without_sessions_is_not_read_as_it_is(site: Site, tmp_path: Path) -> None:
    assert not site.viewer.library.read_as_it_is()
    (tmp_path / "archive.db").write_bytes(b"no database")
    assert not site.viewer.library.read_as_it_is()


def test_a_reading_that_fails_leaves_the_error_to_the_pages(site: Site, tmp_path: Path) -> None:
    (tmp_path / "archive.db").write_bytes(b"no database at all")
    reading = FirstReading(site.viewer)
    reading.start()
    reading.join()
    answer = site.get("count")
    assert answer.status == 503
    assert "is not a valid archive" in answer.text
    assert site.viewer.settled.is_set()


def test_a_process_with_threads_never_forks(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    decisions: list[bool] = []
    can_fork = parallel._can_fork

    def decide() -> bool:
        decisions.append(can_fork())
        return decisions[-1]

    def fork() -> int:
        raise AssertionError

    monkeypatch.setattr(parallel, "_can_fork", decide)
    monkeypatch.setattr("pollux.archive.ingest._WORKERS_FROM", (0, 0))
    monkeypatch.setattr(os, "fork", fork)
    assert site.get("count").status == 200
    assert decisions
    assert not any(decisions)
