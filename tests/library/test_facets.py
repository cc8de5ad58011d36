"""Facets of a search: every number is what a search that is narrowed by it finds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from tests.builders import HASH, call, chats, gemini, header, log, put, rewind, tokens, user

from pollux.library.config import DEMO_HOME, configure
from pollux.library.filters import Filter, parse_filter
from pollux.library.library import Library
from pollux.library.values import Facets, Page
from pollux.search import facets as counting

ALL = Page(500)
QUERIES = (
    "alerts",
    "the",
    "QUIET two hours",
    "alert OR alarm",
    "alerts -mail",
    '"low cloud"',
    "tid*",
    "SKY-118",
    "alerts tool:shell",
    "QUIET fate:dropped",
    "re:/al.rm/",
    "tool:shell",
    "cost:>0.01",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with Library(configure(named_homes=[DEMO_HOME], archive=tmp_path_factory.mktemp("facets") / "archive.db")) as made:
        made.sync()
        yield made


@pytest.fixture(autouse=True)
def nothing_is_remembered(library: Library) -> None:
    library._remembered._kept = (None, {})  # tests change what counts as many


def _sessions(library: Library, query: str, fields: str = "", wanted: Filter | None = None) -> int:
    return len(library.search(query, ALL, fields=fields, wanted=wanted or Filter()).sessions)


def _month(library: Library, key: str) -> Filter:
    first = date.fromisoformat(f"{key}-01")
    after = (first + timedelta(days=32)).replace(day=1)
    config = library.config
    return parse_filter(since=first.isoformat(), until=after.isoformat(), now=config.clock(), zone=config.zone()[0])


def _check(library: Library, query: str, facets: Facets) -> int:
    """Check each number of the facets by a search; return how many there are."""
    n_checked = 0
    for field, values in (("in", facets.parts), ("fate", facets.fates), ("tool", facets.tools)):
        for value in values:
            if value.n_sessions is not None:
                found = _sessions(library, query, f'{field}:"{value.key}"')
                assert (field, value.key, value.n_sessions) == (field, value.key, found)
                n_checked += 1
    filters = [(value, Filter(project=value.key)) for value in facets.projects]
    filters += [(value, Filter(model=value.key)) for value in facets.models]
    filters += [(value, _month(library, value.key)) for value in facets.months]
    for value, wanted in filters:
        assert (value.key, value.n_sessions) == (value.key, _sessions(library, query, wanted=wanted))
        n_checked += 1
    return n_checked


@pytest.mark.parametrize("query", QUERIES)
def test_every_number_is_what_the_narrowed_search_finds(library: Library, query: str) -> None:
    page = library.search(query, facets=True)
    assert page.facets is not None
    assert page.facets.is_complete
    assert page.facets.n_counted == _sessions(library, query)
    assert _check(library, query, page.facets) > 3


@pytest.mark.parametrize("query", ["alerts", "the", "QUIET two hours"])
def test_words_have_a_number_for_every_value(library: Library, query: str) -> None:
    facets = library.search(query, facets=True).facets
    assert facets is not None
    for values in (facets.parts, facets.fates, facets.tools, facets.projects, facets.models, facets.months):
        assert values
        assert None not in {value.n_sessions for value in values}
        assert 0 not in {value.n_sessions for value in values}


def test_facets_count_all_pages(library: Library) -> None:
    first = library.search("the", Page(2), facets=True)
    second = library.search("the", Page(2, first.next), facets=True)
    assert first.next is not None
    assert first.facets is not None
    assert first.facets == second.facets
    assert first.facets.n_counted > 10


def test_nothing_found_has_no_facets(library: Library) -> None:
    assert library.search("nothinglikethis", facets=True).facets is None
    assert library.search("alerts").facets is None


def test_many_sessions_are_counted_from_the_newest_on(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_SESSIONS", 3)
    page = library.search("the", facets=True)
    facets = page.facets
    assert facets is not None
    assert (facets.n_counted, facets.is_complete) == (3, False)
    newest = library.search("the", Page(3), sort="newest").sessions
    models = {model for session in newest for model in session.row.models}
    assert {value.key for value in facets.models} == models
    assert {value.n_sessions for value in (*facets.parts, *facets.fates)} == {None}


def test_parts_of_many_sessions_have_no_numbers(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_SEARCHED", 3)
    facets = library.search("the", facets=True).facets
    assert facets is not None
    assert facets.is_complete
    assert {value.n_sessions for value in (*facets.parts, *facets.fates)} == {None}
    assert None not in {value.n_sessions for value in (*facets.projects, *facets.models, *facets.tools)}


def test_words_and_a_call_in_the_same_part_are_found_by_a_query_of_several_messages(library: Library) -> None:
    query = "QUIET two hours"
    ids = {hits.row.id for hits in library.search(query, ALL).sessions}
    with_call = {hits.row.id for hits in library.search("tool:replace", ALL).sessions}
    narrowed = library.search(query, ALL, fields="tool:replace", hits_per_session=50).sessions
    assert {hits.row.id for hits in narrowed} == ids & with_call
    for hits in narrowed:
        parts = [(hit.number, hit.part) for hit in hits.hits]
        assert len(parts) == len(set(parts))


def test_fields_narrow_both_sides_of_an_or(library: Library) -> None:
    both = {hits.row.id for hits in library.search("alert OR alarm", ALL, fields="project:tide").sessions}
    one = {hits.row.id for hits in library.search("alarm", ALL, fields="project:tide").sessions}
    other = {hits.row.id for hits in library.search("alert", ALL, fields="project:tide").sessions}
    assert both == one | other
    assert all(
        hits.row.project.name == "tide-tables"
        for hits in library.search("alert OR alarm", ALL, fields="project:tide").sessions
    )


def test_a_query_that_is_being_typed_finds_words_by_their_start(library: Library) -> None:
    assert library.search("aler").sessions == ()
    assert library.search("aler", is_typing=True).sessions


def test_facets_without_an_archive(tmp_path: Path) -> None:
    put(
        chats(tmp_path, HASH) / "session-2026-11-15T19-30-0a1b2c3d.jsonl",
        log(
            header(),
            user("u1", "alpha beta"),
            gemini("g1", "alpha", model="gemini-3-pro", tokens=tokens(), toolCalls=[call("c1", "read_file")]),
            user("u2", "alpha again"),
            gemini("g2", "alpha"),
            rewind("u2"),
        ),
    )
    with Library(configure(named_homes=[tmp_path], archive=None)) as library:
        page = library.search("alpha", facets=True)
    assert len(page.sessions) == 1
    assert page.facets is not None
    assert [(value.key, value.n_sessions) for value in page.facets.models] == [("gemini-3-pro", 1)]
    assert [(value.key, value.n_sessions) for value in page.facets.tools] == [("read_file", 1)]
