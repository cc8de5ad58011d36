"""Queries over recorded sessions find what a slow and independent reading of all messages finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from tests.corpus.trees import SECOND, SELECTED, WHOLE, all_trees
from tests.search.judging import hit_names, opened_library, search_all
from tests.search.reference import (
    ReadMessage,
    contains_letters,
    contains_run,
    contains_words,
    may_find,
    must_find,
    read_messages,
)

from pollux.library.config import DEMO_HOME
from pollux.library.library import Library

_RELEASES = ("0.8.2", "0.24.5", "0.38.2", "0.47.0", "0.61.0")
"""One of each generation of files; the property of all words is tested with every release."""
Recorded = tuple[Library, list[ReadMessage]]

WORDS = (
    *("question", "board", "README", "ticket", "investigator", "colour", "steps", "Café", "cafe", "project", "pytest"),
    *("T-7", "app/board.py", "board.py", "index.js", "logo.png", "notes-api", "count()", "package.json", "sixty"),
    *("cancelled", "error", "write_file", "run_shell_command", "hook_context", "שלום", "🙏", "padded", "session-2026"),
    *("sidereal_time", "visibility.py", "longitude", "SKY-118", "greylisted", "M31", "Kuppelmotor", "Büro", "buro"),
    *("starlette", "ModuleNotFoundError", "E0425", "harmonics.rs", "C:\\Users\\mara", "decimal", "Buchungen", "451"),
    *("unwrap()", "0.4.42", "--release", "low-cloud:21:59", "nobodywrotethis", "zzzz", "29.530588853", "dome"),
)
PHRASES = (
    *(
        "question one",
        "add a count",
        "read the file",
        "long answer",
        "ticket t 7",
        "take three steps",
        "which project is",
    ),
    *("quiet period", "false alarms", "noon to noon", "wrong sign", "rm -rf", "cargo build --release", "no such words"),
    *("the dome", "as you like it", "File not found", "day crew", "two-line elements"),
)
RUNS = ("日本語", "要約", "メモ", "本", "日本語メモ", "語日", "検索", "東京", "観望会", "です", "の", "ました", "超时")
PATTERNS = (
    *(r"T-\d+", r"count\(\)", r"[Qq]uestion (one|two)", r"SKY-1\d8", r"\d{2}\.\d{5,}", r"low-cloud:\d\d"),
    *(r"board\.py", r"(?:rm|git) -\w+", r"nobody\d+wrote", r"日本.メモ", r"unwrap\(\)", r"E0\d{3}"),
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """The demo, and the sessions of some releases: of the corpus where there is one, else of the selection."""
    trees = [tree for folder in (WHOLE, SECOND) for tree in all_trees(folder)] or all_trees(SELECTED)
    homes = [tree.folder / "gemini" for tree in trees if tree.folder.parent.name in _RELEASES]
    folder = tmp_path_factory.mktemp("recorded")
    with opened_library([DEMO_HOME / ".gemini", *(home for home in homes if home.is_dir())], folder) as library:
        yield library, read_messages(library)


def check(recorded: Recorded, query: str, must: Callable[[str], bool], may: Callable[[str], bool]) -> None:
    library, messages = recorded
    page = search_all(library, query)
    names = hit_names(page, {})
    required = must_find(messages, must)
    assert required <= names, f"{len(required - names)} of {len(required)} parts are missing"
    allowed = may_find(messages, may)
    wrong = {name for name in names if name.partition(" ")[0] not in allowed and "/" in name}
    assert not wrong


@pytest.mark.parametrize("query", WORDS)
def test_word_is_found_wherever_it_is(recorded: Recorded, query: str) -> None:
    if not re.search(r"\w", query):
        check(recorded, query, contains_run(query), contains_run(query))
        return
    has_words = contains_words(query)
    is_bare = query[0].isalnum() and query[-1].isalnum()

    def plainly_has_it(text: str) -> bool:
        return has_words(text) and (is_bare or query.casefold() in text.casefold())

    check(recorded, query, plainly_has_it, contains_letters(query))


@pytest.mark.parametrize("query", PHRASES)
def test_phrase_is_found_wherever_it_is(recorded: Recorded, query: str) -> None:
    check(recorded, f'"{query}"', contains_words(query), contains_words(query))


@pytest.mark.parametrize("query", RUNS)
def test_run_of_characters_is_found_wherever_it_is(recorded: Recorded, query: str) -> None:
    check(recorded, query, contains_run(query), contains_run(query))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern_is_found_wherever_it_matches(recorded: Recorded, pattern: str) -> None:
    compiled = re.compile(pattern)

    def matches(text: str) -> bool:
        return compiled.search(text) is not None

    check(recorded, f"re:/{pattern}/", matches, matches)


@pytest.mark.parametrize("query", ["board", "ticket", "SKY-118", "日本語"])
def test_scan_finds_the_same_as_the_index(recorded: Recorded, query: str) -> None:
    library, _ = recorded
    indexed = hit_names(search_all(library, query), {})
    assert indexed <= hit_names(search_all(library, query, scan=True), {})
