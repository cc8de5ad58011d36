"""Suggestions for words that are in no text."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from pollux.search import typos
from pollux.search.query import parse_query
from pollux.search.tokenizer import match_word

NOW = datetime(2026, 11, 15, tzinfo=UTC)
WORDS = {"kubernetes": 5, "middleware": 1, "authentication": 40, "nest": 2, "next": 300, "test": 1000, "text": 7}


def suggest(query: str, words: Mapping[str, int] = WORDS) -> tuple[str, ...]:
    rows = {match_word(word): count for word, count in words.items()}
    return typos.suggestions(parse_query(query, now=NOW), lambda match, limit: min(limit, rows.get(match, 0)))


@pytest.mark.parametrize(
    ("query", "suggestions"),
    [
        ("kuberntes", ("kubernetes",)),
        ("kubernetess", ("kubernetes",)),
        ("kubernetse", ("kubernetes",)),
        ("kubernetas", ("kubernetes",)),
        ("Midleware", ("middleware",)),
        ("nezt", ("next", "nest")),
        ("tesxt", ("test", "text")),
        ("in:prompt (authentcation OR x) -y", ("in:prompt (authentication OR x) -y",)),
        ("test midleware", ("test middleware",)),
        ("kubernetes", ()),
        ("-kuberntes test", ()),
        ("kubern*", ()),
        ('"kuberntes"', ()),
        ("tst", ()),
        ("kubrntes kubrnetes", ("kubrntes kubernetes",)),
        ("midleware nezt and kuberntes", ("middleware next and kubernetes",)),
        ("zzzzzz", ()),
        ("连接超时", ()),
        ("re:/kuberntes/", ()),
    ],
)
def test_suggestions(query: str, suggestions: tuple[str, ...]) -> None:
    assert suggest(query) == suggestions


def test_only_three_are_suggested() -> None:
    words = {f"tes{letter}": number for number, letter in enumerate("abcdef", 1)}
    assert suggest("tesz", words) == ("tesf", "tese", "tesd")


def test_every_edit_differs_by_one_letter() -> None:
    rng = random.Random(16)  # noqa: S311  not a secret
    for _ in range(50):
        word = "".join(rng.choices("abcxyz", k=rng.randint(1, 8)))
        for edit in typos.edits(word):
            assert abs(len(edit) - len(word)) <= 1
            assert word in {*typos.edits(edit), edit}
