"""Hostile queries get an answer or one clear sentence, and none of them runs without a limit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.builders import at, chats, header, log, put, user
from tests.search.hostile import HOSTILE
from tests.search.judged_home import write_home
from tests.search.judging import opened_library

from pollux.errors import PolluxError
from pollux.library import search
from pollux.library.filters import ignore_note
from pollux.library.freshness import no_report
from pollux.library.library import Library
from pollux.reports.filters import ALL
from pollux.reports.sessions import Page
from pollux.search.values import HitPage

_OF_SQLITE = re.compile(r"fts5|sqlite|syntax error|malformed|no such|parser stack|unterminated", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")

_MOST_LOOKS = 60
"""The limits of all steps of a search together, in looks at `StepClock`, and some more to notice that one is over."""

each_query = pytest.mark.parametrize("query", [pytest.param(text, id=name) for name, text in HOSTILE.items()])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("hostile")
    with opened_library([write_home(folder / "home")], folder) as library:
        yield library


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """Many messages with the words of all hostile queries, so that each of them would have much to do."""
    folder = tmp_path_factory.mktemp("large")
    words = " ".join(sorted({word for query in HOSTILE.values() for word in re.findall(r"\w+", query)} | {"the", "of"}))
    text = words.encode("utf-8", "replace").decode()[:20_000]
    for number in range(40):
        session = f"{number:08}-0000-4000-8000-000000000000"
        messages = [user(f"u{n}", f"{text} {number} {n} {'a ' * 200}", second=n) for n in range(20)]
        records = header(session, startTime=at(number)), *messages
        put(chats(folder / "home") / f"session-2026-11-15T19-{number:02}-{session[:8]}.jsonl", log(*records))
    with opened_library([folder / "home" / ".gemini"], folder) as library:
        yield library


def answer(library: Library, query: str, *, scan: bool = False) -> HitPage | str:
    try:
        return library.search(query, scan=scan)
    except PolluxError as error:
        return str(error)


@each_query
@pytest.mark.parametrize("scan", [False, True], ids=["index", "scan"])
def test_query_is_answered_or_refused(library: Library, query: str, scan: bool) -> None:  # noqa: FBT001
    answered = answer(library, query, scan=scan)
    if isinstance(answered, HitPage):
        assert answered.query == query
        return
    assert answered.endswith((".", "?", "!"))
    assert len(answered) < 400
    assert not _OF_SQLITE.search(answered.replace(query, ""))
    assert not _CONTROL.search(answered)


@each_query
def test_next_query_works(library: Library, query: str) -> None:
    """A query that was stopped leaves no limit, lock or half-read statement behind."""
    answer(library, query)
    page = library.search("kumquat")
    assert [session.n_hits for session in page.sessions] == [2]


class StepClock:
    """A clock that moves by a tenth of a second whenever somebody looks at it."""

    def __init__(self) -> None:
        self.n_looks = 0

    def __call__(self) -> float:
        self.n_looks += 1
        return self.n_looks / 10


def search_with(library: Library, query: str, clock: StepClock) -> HitPage:
    parsed = search.parse(library.config, query)
    with library.snapshot(tools=True) as snapshot:
        options = search.SearchOptions(seconds=clock)
        return search.search_page(snapshot, parsed, ALL, Page(20), options, no_report, ignore_note)


@each_query
def test_no_query_outlives_its_deadlines(large: Library, query: str) -> None:
    """However much there is to search, a search ends a few looks after its time is over."""
    clock = StepClock()
    with suppress(PolluxError):
        search_with(large, query, clock)
    assert clock.n_looks < _MOST_LOOKS


@pytest.mark.parametrize("query", ["re:/e/", "the* OR pro* OR con* OR ret*", '"the of the"'])
def test_stopped_search_says_so(large: Library, query: str) -> None:
    page = search_with(large, query, StepClock())
    assert any(note.startswith("Stopped after") for note in page.notes) or page.next is None


@pytest.mark.parametrize(
    ("pattern", "is_slow"), [("(a+)+$", False), ("(a|aa)+$", True), ("(a|a?)+$", False), ("(.*a){20}$", False)]
)
def test_pattern_that_never_ends_is_stopped(tmp_path: Path, pattern: str, is_slow: bool) -> None:  # noqa: FBT001
    home = tmp_path / "home"
    for number in range(6):
        session = f"0000000{number}-0000-4000-8000-000000000000"
        records = header(session), user("u1", "a" * 40 + "!"), user("u2", "ordinary words")
        put(chats(home) / f"session-2026-11-15T19-3{number}-{session[:8]}.jsonl", log(*records))
    with opened_library([home / ".gemini"], tmp_path) as library:
        answered = answer(library, f"re:/{pattern}/")
        if isinstance(answered, HitPage):
            assert not answered.sessions
            assert any("takes too long" in note for note in answered.notes) == is_slow
        else:
            assert "takes too long" in answered
        assert [session.n_hits for session in library.search("ordinary").sessions] == [1] * 6
