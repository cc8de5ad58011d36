"""Every word of every part of the demo and of the corpus finds its part, or the part is known to be cut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import regex
from tests.corpus.trees import Tree, every_release
from tests.search.judged_home import write_home
from tests.search.judging import opened_library

from pollux.library.config import DEMO_HOME
from pollux.library.library import Library
from pollux.search.highlight import Needle, find_spans
from pollux.search.index import Place, SearchIndex, open_index
from pollux.search.parts import PartText, limited, message_parts
from pollux.search.tokenizer import match_word

_ALL_ROWS = 10_000_000
_SEQUENCE = regex.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Colours and movements of a terminal's cursor."""
_RUN = regex.compile(r"[\p{L}\p{N}_](?:[\p{L}\p{N}_\p{M}]|\p{Cf}(?=[\p{L}\p{N}_]))*")
_EDGES = regex.compile(r"^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_\p{M}]+$")
_highlighted: set[tuple[str, str]] = set()
"""Words and texts that were compared; the releases of the corpus repeat each other."""


def words_of(text: str) -> set[str]:
    """Return what a reader takes for the words of a text: runs of letters and digits, and what is between spaces."""
    plain = _SEQUENCE.sub(" ", text)
    return {*_RUN.findall(plain), *(_EDGES.sub("", word) for word in plain.split())} - {""}


def parts_of(library: Library) -> Iterator[tuple[Place, PartText]]:
    """Yield every part of every session, subagents included, with its place."""
    with library.snapshot() as snapshot:
        sessions = [
            session_id for (session_id,) in snapshot.database.execute("SELECT DISTINCT session_id FROM messages")
        ]
    for session_id in sessions:
        for seq, message in enumerate(library.messages(session_id)):
            for part in message_parts(message):
                yield Place(session_id, seq, part.kind), part


def missing_words(index: SearchIndex, parts: Iterable[tuple[Place, PartText]]) -> tuple[list[str], int]:
    """Return the words that do not find a part that has them, and the number of words that were looked for."""
    places: defaultdict[str, set[Place]] = defaultdict(set)
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for place, part in parts:
        is_cut = limited(part)[1]
        for word in words_of(part.text):
            texts[word].add(part.text)
            if not is_cut:
                places[word].add(place)
    missing: list[str] = []
    for word, expected in places.items():
        match = match_word(word)
        if match is None:
            missing += [f"{word!r} cannot be searched for"] if _RUN.search(word.replace("_", "")) else []
            continue
        rows = index.rows(match, limit=_ALL_ROWS)
        if not expected <= {*index.places(rows).values()}:
            missing.append(f"{word!r} is not in the index of {min(expected - {*index.places(rows).values()})}")
        for text in texts[word]:
            if (word, text) not in _highlighted:
                _highlighted.add((word, text))
                if not find_spans(text, Needle(word), limit=1):
                    missing.append(f"{word!r} is not highlighted in {text[:80]!r}")
    return missing, len(places)


def check(homes: Iterable[Path], folder: Path) -> int:
    with opened_library(homes, folder) as library, library.snapshot() as snapshot:
        index = open_index(folder / "archive.db", snapshot.database)
        assert index is not None
        missing, n_words = missing_words(index, parts_of(library))
    assert missing == []
    return n_words


def test_words_of_the_demo_find_their_parts(tmp_path: Path) -> None:
    assert check([DEMO_HOME / ".gemini"], tmp_path) > 1_000


def test_words_of_the_judged_home_find_their_parts(tmp_path: Path) -> None:
    assert check([write_home(tmp_path / "home")], tmp_path) > 300


@every_release
def test_words_of_the_corpus_find_their_parts(trees: list[Tree], tmp_path: Path) -> None:
    homes = [tree.folder / "gemini" for tree in trees if (tree.folder / "gemini").is_dir()]
    if not any(tree.files for tree in trees):
        pytest.skip("this release stored no sessions")
    assert check(homes, tmp_path) > 20
