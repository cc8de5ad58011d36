"""Lists, sums and forecasts of many sessions read as much as they show, and give what all sessions together give."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.builders import gemini, header, log, put, tokens, user

from pollux.library import freshness, search, status, stored_forecast
from pollux.library.config import DEMO_HOME, configure
from pollux.library.library import Library
from pollux.reports.filters import ALL, Filter
from pollux.reports.projects import project_rows
from pollux.reports.sessions import Page, SessionQuery, SessionRow
from pollux.search import candidates, corpus, facets
from pollux.search.candidates import Proposals
from pollux.search.corpus import NewestSessions
from pollux.search.facets import CountSessions, FacetSource
from pollux.search.index import SearchIndex
from pollux.search.terms import Query
from pollux.search.values import Facets

NOW = datetime(2026, 12, 20, 12, tzinfo=UTC)
EVERY = SessionQuery(subagents=True, empty=True)
FEW, MANY = 40, 240
SUMS: dict[str, Callable[[SessionRow], int]] = {
    "cost": lambda row: row.usage.cost.nanousd,
    "tokens": lambda row: row.usage.tokens.total,
}


def opened(home: Path, folder: Path) -> Library:
    library = Library(configure(named_homes=[home], archive=folder / "archive.db", clock=lambda: NOW))
    library.refresh(add_up=True)
    return library


def write_home(home: Path, n_sessions: int) -> Path:
    """Write sessions of one call each in two projects; every tenth has no call, and each has a subagent or none."""
    for number in range(n_sessions):
        project = f"/srv/project-{number % 2}"
        folder = home / ".gemini" / "tmp" / f"project-{number % 2}"
        put(folder / ".project_root", project.encode())
        at = f"{datetime(2026, 10, 1, tzinfo=UTC) + timedelta(hours=3 * number):%Y-%m-%dT%H:%M:%S}.000Z"
        session_id = f"{number:08x}-1111-4222-8333-444455556666"
        more = {"projectHash": sha256(project.encode()).hexdigest(), "startTime": at, "lastUpdated": at}
        turn = [user(f"u{number}", "ask") | {"timestamp": at}]
        if number % 10:
            count = tokens(1_000 * (1 + number % 7))
            turn.append(gemini(f"g{number}", "answer", tokens=count) | {"timestamp": at})
        put(folder / "chats" / f"session-2026-10-01T00-00-{number:08x}.jsonl", log(header(session_id, **more), *turn))
    return home


@pytest.fixture(scope="module", params=["demo", "many"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("many")
    home = DEMO_HOME if request.param == "demo" else write_home(folder / "home", MANY)
    with opened(home, folder) as opened_library:
        yield opened_library


@pytest.mark.parametrize("sort", SUMS)
@pytest.mark.parametrize("wanted", [ALL, Filter(subagents=True, empty=True), Filter(project="project-1")])
def test_pages_by_sum_are_the_list_in_its_order(library: Library, sort: str, wanted: Filter) -> None:
    if wanted.project and wanted.project not in {*library.project_names().values()}:
        pytest.skip("a project of the other home")
    every = library.sessions(wanted, Page(None)).rows
    expected = sorted(every, key=lambda row: -SUMS[sort](row))  # stable: of equal ones, the last used
    assert [row.id for row in library.sessions(wanted, Page(None), sort=sort).rows] == [row.id for row in expected]
    for after in range(0, len(every), max(1, len(every) // 4)):
        page = library.sessions(wanted, Page(3, str(after)), sort=sort)
        assert [row.id for row in page.rows] == [row.id for row in expected[after : after + 3]]


def test_projects_from_indexes_are_those_of_all_sessions(library: Library) -> None:
    with library.snapshot() as snapshot:
        known = snapshot.known_projects()
        ids = [row[0] for row in snapshot.database.execute("SELECT session_id FROM sessions")]
        from_sessions = SessionQuery(ids, subagents=True, empty=True)
        assert project_rows(snapshot.database, known, EVERY) == project_rows(snapshot.database, known, from_sessions)


def test_first_deletions_do_not_depend_on_how_they_are_looked_up(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = library.health(n_expiring=7)
    assert first.n_next + first.n_soon + first.n_later == sum(
        1 for row in library.status(ALL).rows if row.deletion is not None and not row.session.is_stub
    )
    monkeypatch.setattr(stored_forecast, "_FEW", 0)
    assert library.health(n_expiring=7).expiring == first.expiring
    labels = library.deletions()
    some = {session_id: label for session_id, label in labels.items() if session_id in [*labels][:2]}
    assert library.deletions([*some]) == some
    monkeypatch.setattr(status, "current_forecast", lambda _snapshot: None)
    monkeypatch.setattr(status, "stored_forecast", None)  # only the folders of these sessions are needed
    assert library.deletions([*some, "unknown"]) == some


def n_steps(library: Library, ask: Callable[[], object]) -> int:
    """Return the number of instructions of SQLite's machine that a call takes, in tens."""
    steps: list[int] = []
    with library.snapshot() as snapshot:
        snapshot.database.set_progress_handler(lambda: steps.append(1), 10)
    ask()
    with library.snapshot() as snapshot:
        snapshot.database.set_progress_handler(None, 0)
    return len(steps)


ASKED: dict[str, tuple[Callable[[Library], object], int]] = {
    "sessions": (lambda library: library.sessions(page=Page(5)), 1),
    "sessions by cost": (lambda library: library.sessions(page=Page(5), sort="cost"), 1),
    "projects": (lambda library: library.projects(), 4),
    "overview": (lambda library: library.dashboard(), 9),
    "health": (lambda library: library.health(n_expiring=5), 5),
}
"""What is asked, and for how many tens of instructions each more session may stand."""


@pytest.mark.parametrize("name", ASKED)
def test_first_pages_hardly_depend_on_the_number_of_sessions(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "_WORTH_STORING", 0)
    ask, most = ASKED[name]
    counts = []
    for n_sessions in (FEW, MANY):
        folder = tmp_path / str(n_sessions)
        with opened(write_home(folder / "home", n_sessions), folder) as opened_library:
            ask(opened_library)  # stores the forecast
            opened_library._remembered._kept = (None, {})
            counts.append(n_steps(opened_library, partial(ask, opened_library)))
    assert (counts[1] - counts[0]) / (MANY - FEW) <= most, counts


@pytest.mark.parametrize("query", ["ask", "answer", "the", "answer model:gemini", "ask -answer"])
@pytest.mark.parametrize("sort", ["relevance", "newest", "oldest"])
def test_sessions_of_a_common_word_are_those_of_all_sessions_with_it(
    library: Library, monkeypatch: pytest.MonkeyPatch, query: str, sort: str
) -> None:
    monkeypatch.setattr(candidates, "WORD_ROWS", 7)
    monkeypatch.setattr(corpus, "_FIRST_WALKED", 5)
    monkeypatch.setattr(facets, "MOST_SESSIONS", 15)
    monkeypatch.setattr(search, "_FACET_SECONDS", 600)

    def pages() -> Iterator[tuple[list[str], object]]:
        after: str | None = None
        while after is not None or not page_numbers:
            page_numbers.append(1)
            found = library.search(query, Page(9, after), sort=sort, facets=True)
            yield [hits.row.id for hits in found.sessions], found.facets
            after = found.next

    page_numbers: list[int] = []
    walked = list(pages())
    monkeypatch.setattr(Proposals, "common_word", None)
    page_numbers.clear()
    assert walked == list(pages())


def test_a_common_word_names_few_of_the_sessions_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "_FIRST_WALKED", 10)
    monkeypatch.setattr(facets, "MOST_SESSIONS", 10)
    monkeypatch.setattr(SearchIndex, "sessions_with", None)
    n_named: list[int] = []
    among = SearchIndex.sessions_among

    def counting(index: SearchIndex, match: str, ids: Collection[str]) -> set[str]:
        n_named.append(len(ids))
        return among(index, match, ids)

    monkeypatch.setattr(SearchIndex, "sessions_among", counting)
    with opened(write_home(tmp_path / "home", MANY), tmp_path) as library:
        found = library.search("ask", Page(5), facets=True)
        assert found.facets is not None
        assert (found.facets.n_counted, found.facets.is_complete) == (10, False)
        assert sum(n_named) <= 40


def test_facets_of_many_sessions_are_counted_once_until_the_archive_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_counted: list[int] = []
    count = facets.count_facets

    def counting(source: FacetSource, query: Query, newest: NewestSessions, count_: CountSessions) -> Facets:
        n_counted.append(len(newest.ids))
        return count(source, query, newest, count_)

    monkeypatch.setattr(facets, "count_facets", counting)
    home = write_home(tmp_path / "home", MANY)
    with opened(home, tmp_path) as library:
        first = library.search("ask", Page(5), facets=True)
        second = library.search("ask", Page(5, first.next), facets=True)
        assert first.facets == second.facets
        assert n_counted == [MANY]
        library.search("ask", Page(5), facets=True, wanted=Filter(project="project-1"))
        assert n_counted == [MANY, MANY // 2]
        write_home(home, MANY + 1)
        library.refresh()
        changed = library.search("ask", Page(5), facets=True).facets
        assert changed is not None
        assert changed.n_counted == MANY + 1


def test_facets_without_some_numbers_for_lack_of_time_are_counted_again(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    def numbers() -> set[int | None]:
        found = library.search("ask OR alerts", Page(500), wanted=Filter(since=NOW - timedelta(days=60)), facets=True)
        assert found.facets is not None
        return {value.n_sessions for value in found.facets.parts}

    monkeypatch.setattr(search, "_FACET_SECONDS", 0)
    assert None in numbers()
    monkeypatch.undo()
    assert None not in numbers()


def test_sync_without_changes_needs_no_second_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = write_home(tmp_path / "home", 3)
    with opened(home, tmp_path) as library:
        n_refreshes = []
        real = freshness.refresh

        def counted(*values: Any, **options: Any) -> object:  # noqa: ANN401
            n_refreshes.append(1)
            return real(*values, **options)

        monkeypatch.setattr(freshness, "refresh", counted)
        library.sync()
        assert (library.sessions().total, len(n_refreshes)) == (3, 0)
        write_home(home, 4)
        library.sync()
        assert (library.sessions().total, len(n_refreshes)) == (4, 1)
