"""Suggest other queries if a word of a query is in no text: words of the index that differ by one edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pollux.search.terms import Query, Word, leaves
from pollux.search.tokenizer import match_word

Lookup = Callable[[str, int], int]
"""Returns how many rows match an expression, counted up to a number."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SHORTEST, _LONGEST = 4, 32
"""Lengths of words for which an edit is likely to be a typing error."""
_COUNTED = 2000
_MOST = 3


class Correction(NamedTuple):
    """A word of a query that is in no text, and similar words that are."""

    start: int
    """Its position in the query."""
    end: int
    words: list[str]
    """The most frequent first."""


def suggestions(query: Query, lookup: Lookup) -> tuple[str, ...]:
    """Return queries with similar words in place of those that are in no text, best first.

    For one such word there are up to three; several words are replaced by the most frequent similar ones.
    """
    corrections = [*_corrections(query, lookup)]
    if not corrections:
        return ()
    if len(corrections) == 1:
        ((start, end, words),) = corrections
        return tuple(f"{query.text[:start]}{word}{query.text[end:]}" for word in words)
    text = query.text
    for start, end, words in sorted(corrections, reverse=True):
        text = f"{text[:start]}{words[0]}{text[end:]}"
    return (text,)


def _corrections(query: Query, lookup: Lookup) -> Iterator[Correction]:
    for word, is_wanted in leaves(query.node):
        if not is_wanted or not isinstance(word, Word) or word.is_prefix or not _can_be_mistyped(word.text):
            continue
        start, end = word.at, word.at + len(word.text)
        expression = match_word(word.text)
        if expression is None or lookup(expression, 1) or query.text[start:end] != word.text:
            continue
        if similar := similar_words(word.text, lookup):
            yield Correction(start, end, similar)


def similar_words(word: str, lookup: Lookup) -> list[str]:
    """Return up to three indexed words that differ from a word by one edit, the most frequent first."""
    counted = []
    for edit in dict.fromkeys(edits(word.lower())):
        expression = f'"{edit}"'  # a word in lower case is one token
        if lookup(expression, 1):
            counted.append((-lookup(expression, _COUNTED), edit))
    return [edit for _, edit in sorted(counted)[:_MOST]]


def edits(word: str) -> Iterator[str]:
    """Yield the words that one missing, additional, wrong or exchanged letter makes of a word."""
    for position in range(len(word)):
        yield word[:position] + word[position + 1 :]
        yield word[:position] + word[position + 1 : position + 2] + word[position] + word[position + 2 :]
    for position in range(len(word) + 1):
        for letter in _LETTERS:
            yield word[:position] + letter + word[position:]
            yield word[:position] + letter + word[position + 1 :]


def _can_be_mistyped(word: str) -> bool:
    return _SHORTEST <= len(word) <= _LONGEST and word.isascii() and word.isalpha()
