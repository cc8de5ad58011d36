"""Every judged query finds exactly the parts that a reader would name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.search.judged_home import write_home
from tests.search.judging import JUDGED, expected_names, hit_names, opened_library, search_all

from pollux.library.config import DEMO_HOME
from pollux.library.library import Library
from pollux.search import corpus, fact_tests
from pollux.search.values import HitPage

_NOT_PLAIN = ("demo", "scan", "suggestion")
_SHORT_ID = 8
PLAIN = [
    pytest.param(query, expected, id=f"{kind}-{query}")
    for kind, queries in JUDGED.items()
    if kind not in _NOT_PLAIN
    for query, expected in queries.items()
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("judged")
    with opened_library([write_home(folder / "home")], folder) as library:
        yield library


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with opened_library([DEMO_HOME / ".gemini"], tmp_path_factory.mktemp("demo")) as library:
        yield library


def test_set_is_large_enough() -> None:
    assert sum(len(queries) for queries in JUDGED.values()) >= 200


@pytest.mark.parametrize(("query", "expected"), PLAIN)
def test_query_finds_what_it_must(library: Library, query: str, expected: str) -> None:
    page = search_all(library, query)
    assert hit_names(page) == expected_names(expected)
    check_highlights(page)


@pytest.mark.parametrize(("query", "expected"), PLAIN)
def test_query_finds_the_same_if_all_its_fields_are_broad(
    library: Library, query: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an archive where thousands of sessions pass each test of a field."""
    for module in (fact_tests, corpus):
        monkeypatch.setattr(module, "MANY", 0)
    assert hit_names(search_all(library, query)) == expected_names(expected)


@pytest.mark.parametrize(("query", "expected"), JUDGED["demo"].items())
def test_query_finds_what_it_must_in_the_demo(demo: Library, query: str, expected: str) -> None:
    page = search_all(demo, query)
    keys = {session.row.id: session.row.id[:_SHORT_ID] for session in page.sessions}
    assert hit_names(page, keys) == expected_names(expected)
    check_highlights(page)


@pytest.mark.parametrize(("query", "expected"), JUDGED["scan"].items())
def test_scan_finds_what_it_must(library: Library, query: str, expected: str) -> None:
    assert hit_names(search_all(library, query, scan=True)) == expected_names(expected)


@pytest.mark.parametrize(("query", "expected"), JUDGED["suggestion"].items())
def test_misspelt_word_is_corrected(library: Library, query: str, expected: str) -> None:
    page = search_all(library, query)
    assert not page.sessions
    assert expected in page.suggestions


def check_highlights(page: HitPage) -> None:
    """Check that every hit shows a line of text, and that its highlights lie inside it."""
    for session in page.sessions:
        for hit in session.hits:
            assert hit.snippets
            for snippet in hit.snippets:
                assert all(0 <= span.start < span.end <= len(snippet.text) for span in snippet.spans)
                assert "\n" not in snippet.text
