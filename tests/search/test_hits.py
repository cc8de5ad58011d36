"""Snippets of a hit."""

from __future__ import annotations

from pollux.search.highlight import Needle, find_spans
from pollux.search.hits import snippets
from pollux.search.values import TextSpan


def spans(text: str, *words: str) -> list[list[TextSpan]]:
    return [find_spans(text, Needle(word)) for word in words]


def test_the_place_with_most_words_comes_first() -> None:
    text = f"alpha {'x ' * 300} beta {'x ' * 300} alpha beta {'x ' * 300} beta"
    made = snippets(text, spans(text, "alpha", "beta"))
    assert [len(snippet.spans) for snippet in made] == [2, 1, 1]
    assert made[1].text.startswith("alpha")
    assert not made[1].has_before


def test_snippets_do_not_overlap() -> None:
    text = " ".join(f"word{number} needle" for number in range(200))
    made = snippets(text, spans(text, "needle"))
    shown = [word for snippet in made for word in snippet.text.split() if word.startswith("word")]
    assert len(shown) == len(set(shown))
    for snippet in made:
        assert [snippet.text[start:end] for start, end in snippet.spans] == ["needle"] * snippet.text.count("needle")


def test_a_text_without_highlights_begins_at_its_start() -> None:
    (snippet,) = snippets("some words " * 100, [])
    assert snippet.text.startswith("some words")
    assert snippet.spans == ()
    assert snippet.has_after


def test_many_highlights_are_no_trouble() -> None:
    text = "a b " * 100_000
    groups = [[TextSpan(4 * number, 4 * number + 1) for number in range(50_000)]]
    assert len(snippets(text, groups)) <= 3
