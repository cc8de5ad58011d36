from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tests.web.client import Site, demo_site

from pollux.library.config import DEMO_HOME, Config, configure
from pollux.library.library import Library
from pollux.sessions import parallel
from pollux.web import first_reading
from pollux.web.first_reading import FirstReading, sync_command
from pollux.web.routing import Reading, page


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
