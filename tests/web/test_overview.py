"""The first page: its sentences and numbers, its weight, and what hostile sessions cannot do to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest
from starlette.testclient import TestClient
from tests.builders import chats, gemini, header, line, log, put, rewind, user
from tests.web.markup_reader import MarkupReader, check_policy

from pollux.library.config import DEMO_HOME, configure
from pollux.library.library import Library
from pollux.web.app import create_app
from pollux.web.routing import Reading, Viewer

NOW = datetime(2026, 11, 16, 14, tzinfo=UTC)
HOSTILE = '</a></script><script>alert(1)</script><img src=x onerror=alert(1)>" style="x\u202e\x00[red]'


@contextmanager
def viewer(home: Path, archive: Path | None, now: datetime = NOW) -> Iterator[tuple[TestClient, Viewer]]:
    """Open the viewer of a home."""
    config = configure(named_homes=[home], archive=archive, zone="UTC", environ={}, clock=lambda: now)
    with Library(config) as library:
        state = Viewer(library, "label12345", lambda: now)
        yield TestClient(create_app(state), base_url="http://127.0.0.1"), state


def overview(home: Path, archive: Path | None, now: datetime = NOW) -> str:
    with viewer(home, archive, now) as (client, _):
        response = client.get("/label12345/")
    assert response.status_code == 200
    check_policy(response.text)
    return response.text


def session_id(number: int) -> str:
    return f"{number:08x}-1111-4222-8333-444455556666"


def write_session(home: Path, number: int, day: datetime, words: str = "ask", **more: object) -> None:
    """Write a session with one prompt and one answer."""
    stamp = day.isoformat().replace("+00:00", "Z")
    counts = {"input": 9000, "output": 40, "cached": 4000, "thoughts": 10, "tool": 0, "total": 9050}
    turn = [
        user(f"u{number}", words) | {"timestamp": stamp},
        gemini(f"g{number}", "answer", tokens=counts) | {"timestamp": stamp} | more,
    ]
    name = f"session-{day:%Y-%m-%dT%H-%M}-{session_id(number)[:8]}.jsonl"
    put(chats(home) / name, log(header(session_id(number), startTime=stamp, lastUpdated=stamp), *turn))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> str:
    return overview(DEMO_HOME, tmp_path_factory.mktemp("demo") / "archive.db")


def test_the_headline_says_how_much_there_is_and_whether_it_is_archived(demo: str) -> None:
    page = MarkupReader(demo)
    assert page.texts["h1"] == ["Twenty sessions in five projects, all archived."]
    assert (
        "Gemini CLI deletes nine of them at its next start, and one more within a week. Your archive keeps them."
        in "".join(page.texts["p"])
    )
    assert page.texts["dd"][:4] == ["55", "119", "1.4M", "$0.72 $0.05 dropped"]


def test_numbers_are_those_of_the_library(demo: str, tmp_path: Path) -> None:
    config = configure(named_homes=[DEMO_HOME], archive=tmp_path / "a.db", zone="UTC", environ={}, clock=lambda: NOW)
    with Library(config) as library:
        board, projects = library.dashboard(), library.projects()
    page = MarkupReader(demo)
    [days_table, table, costs] = page.tables
    assert [days_table[0], len(days_table)] == [["Day", "Tokens", "Billed"], len(board.days) + 1]
    assert costs[0] == ["Day", "Billed"]
    assert [row[0] for row in table[1:]] == [row.project.name for row in projects.rows]
    assert [row[1] for row in table[1:]] == [str(row.n_sessions) for row in projects.rows]
    amounts = [row.nanousd for row in board.projects if row.nanousd is not None]
    assert len(amounts) == len(board.projects)
    assert sum(amounts) == board.overview.usage.cost.nanousd
    assert len(page.all("svg", "strip")) == len(board.newest) == 9
    days = [link for link in page.all("a") if " tokens" in link.get("aria-label", "")]
    assert len(days) == len(board.days)
    assert sum(day.billed.tokens.total for day in board.days) <= board.overview.usage.tokens.total


def test_recent_sessions_link_to_their_pages(demo: str) -> None:
    links = [link["href"] for link in MarkupReader(demo).all("a") if "data-stop" in link]
    assert len(links) == 9
    assert links[0] == "/label12345/s/0363a0b0"


def test_reasons_say_why_the_client_deletes_a_session(demo: str) -> None:
    why = [text for text in MarkupReader(demo).texts["li"] if "At the next start" in text]
    assert len(why) == 6
    assert any("stub left by --resume" in text for text in why)
    assert any("missing header" in text for text in why)
    assert any("unused for 30 days" in text for text in why)


def test_sessions_that_are_due_at_once_are_so_on_a_clock_that_runs(tmp_path: Path) -> None:
    times = (NOW + timedelta(milliseconds=number) for number in count())
    config = configure(
        named_homes=[DEMO_HOME], archive=tmp_path / "a.db", zone="UTC", environ={}, clock=lambda: next(times)
    )
    with Library(config) as library:
        board = library.dashboard()
    assert board.n_tomorrow == 0
    assert all(session.due <= board.now for session in board.expiring)


def test_the_page_is_light(demo: str) -> None:
    assert len(demo.encode()) <= 30_000
    assert len(MarkupReader(demo).elements) <= 650


def test_a_home_without_sessions_says_where_it_looked(tmp_path: Path) -> None:
    (tmp_path / "home" / ".gemini" / "tmp").mkdir(parents=True)
    text = overview(tmp_path / "home", tmp_path / "archive.db")
    assert "No Gemini CLI sessions yet." in text
    assert "pollux demo web" in text
    assert str(tmp_path / "home" / ".gemini") in text


def test_without_an_archive_the_page_says_that_nothing_is_kept(tmp_path: Path) -> None:
    write_session(tmp_path, 1, NOW - timedelta(days=40))
    page = MarkupReader(overview(tmp_path, None))
    assert page.texts["h1"] == ["One session in one project, none archived."]
    assert "Run pollux sync to keep them." in "".join(page.texts["p"])
    assert page.all("path", "off")


def test_a_model_without_a_price_costs_nothing_that_is_known(tmp_path: Path) -> None:
    write_session(tmp_path, 1, NOW - timedelta(days=2), model="local/llama")
    text = overview(tmp_path, tmp_path / "archive.db")
    assert '<span>local/llama</span><span class="num">no price</span>' in text


def test_the_first_run_shows_how_far_it_is(tmp_path: Path) -> None:
    write_session(tmp_path, 1, NOW)
    with viewer(tmp_path, tmp_path / "archive.db") as (client, state):
        state.library.refresh()
        state.reading = Reading(380, 1000)
        text = client.get("/label12345/").text
    page = MarkupReader(text)
    assert page.all("progress") == [{"value": "38", "max": "100", "aria-label": "Read"}]
    assert [attributes for _, attributes in page.elements if "data-reload" in attributes]
    assert "One session" in text


def test_hostile_sessions_change_nothing_but_words(tmp_path: Path) -> None:
    for number, words in enumerate((HOSTILE, HOSTILE * 50, "javascript:alert(1)", "%s {} $(id) `id`")):
        write_session(tmp_path, number, NOW - timedelta(days=number), words, model=HOSTILE)
    folder = tmp_path / ".gemini" / "tmp" / "webapp"
    (folder / ".project_root").write_text("/srv/<b onmouseover=alert(1)>\n", encoding="utf-8")
    text = overview(tmp_path, tmp_path / "archive.db")
    page = MarkupReader(text)
    assert not page.all("img")
    assert not page.all("b", "x")
    assert len(page.all("script")) == 2  # ours
    assert "\u202e" not in text
    assert "\x00" not in text
    assert "alert(1)" in text  # as words


def test_odd_values_of_a_session_have_a_place(tmp_path: Path) -> None:
    put(
        chats(tmp_path) / "session-2026-11-15T19-30-aaaaaaaa.jsonl",
        log(header(), user("u1", ""), gemini("g1", "x", model=None)),
    )
    put(chats(tmp_path) / "session-2026-11-15T19-31-bbbbbbbb.jsonl", b"\x00\xff{not json\n" + line({"sessionId": "b"}))
    turn = (user("u1", "first"), gemini("g1", "x", tokens={"input": 1 << 40, "total": 1 << 62}), rewind("u1"))
    put(
        chats(tmp_path) / "session-2026-11-15T19-32-cccccccc.jsonl",
        log(header("cccccccc-1"), *turn, user("u2", "again")),
    )
    text = overview(tmp_path, tmp_path / "archive.db")
    assert "dropped" in text


def test_a_busy_year_stays_within_the_budget(tmp_path: Path) -> None:
    for number in range(360):
        write_session(tmp_path, number, NOW - timedelta(days=number), f"Question {number} about the tides of the day")
    text = overview(tmp_path, tmp_path / "archive.db")
    assert len(text.encode()) <= 60_000
    assert len(MarkupReader(text).elements) <= 1500


def test_a_year_of_bright_days_has_a_link_for_each_week(tmp_path: Path) -> None:
    counts = {"input": 200_000, "output": 40, "cached": 4000, "thoughts": 10, "tool": 0, "total": 200_050}
    for number in range(360):
        write_session(tmp_path, number, NOW - timedelta(days=number), f"Question {number}", tokens=counts)
    text = overview(tmp_path, tmp_path / "archive.db")
    assert len(text.encode()) <= 60_000
    weeks = [link for link in MarkupReader(text).all("a") if "sessions?since=" in link["href"]]
    assert len(weeks) == 53


def test_the_number_of_statements_does_not_grow_with_the_sessions(tmp_path: Path) -> None:
    counts = []
    for n_sessions in (12, 60):
        home = tmp_path / str(n_sessions)
        for number in range(n_sessions):
            write_session(home, number, NOW - timedelta(days=number % 20))
        with viewer(home, home / "archive.db") as (client, state):
            client.get("/label12345/")
            counts.append(_statements(state.library))
    assert counts[0] == counts[1]
    assert counts[0] <= 80


def _statements(library: Library) -> int:
    """Count the SQL statements of the page's numbers."""
    statements: list[str] = []
    real = sqlite3.connect

    def connect(*args: object, **options: object) -> sqlite3.Connection:
        database: sqlite3.Connection = real(*args, **options)  # type: ignore[call-overload]
        database.set_trace_callback(statements.append)
        return database

    with library.snapshot() as snapshot:
        snapshot.database.set_trace_callback(statements.append)
    with patch("sqlite3.connect", connect):
        library.dashboard()
    with library.snapshot() as snapshot:
        snapshot.database.set_trace_callback(None)
    return len(statements)


def test_a_second_look_reads_only_what_may_have_changed(tmp_path: Path) -> None:
    write_session(tmp_path, 1, NOW)
    with viewer(tmp_path, tmp_path / "archive.db") as (client, state):
        first = _statements(state.library)
        assert _statements(state.library) < first
        before = client.get("/label12345/").text
        write_session(tmp_path, 2, NOW, "a new question")
        with state.library.stale():
            pass
        after = client.get("/label12345/").text
    assert "One session in one project" in before
    assert "Two sessions in one project" in after
    assert "a new question" in after
    day = next(link for link in MarkupReader(after).all("a") if " tokens" in link.get("aria-label", ""))
    assert "18.1k tokens" in day["aria-label"]
    assert MarkupReader(after).tables[1][1][1:3] == ["2", "18.1k"]
