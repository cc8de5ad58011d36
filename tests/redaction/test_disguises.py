"""Readings of a text, and where their characters come from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.redaction.disguises import readings

_PIECES = (
    "a",
    "bc",
    " ",
    "\n",
    "%41",
    "%2F",
    "%",
    "%4",
    "\\u0041",
    "\\x41",
    "\\/",
    "\\\\",
    "\\",
    "\x1b[31m",
    "\x1b]x\x07",
    "é",
)
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=30).map("".join)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", ["plain"]),
        ("a\x1b[1;31mb\x1b[0mc", ["abc", "a\x1fb\x1fc"]),
        ("a\x1b]0;title\x07b", ["ab", "a\x1fb"]),
        ("a\\u001b[31mb", ["ab", "a\x1fb"]),
        ("a%3Db", ["a%3Db", "a=b"]),
        ("a%3db", ["a%3db", "a=b"]),
        ("a%253Db", ["a%253Db", "a%3Db", "a=b"]),
        ("a\\u003db", ["a\\u003db", "a=b"]),
        ("a\\\\\\u003db", ["a\\\\\\u003db", "a=b"]),
        ("a\\/b", ["a\\/b", "a/b"]),
        ("a%0Ab %zz 100%", ["a%0Ab %zz 100%"]),
        ("%5Cu0041", ["%5Cu0041", "\\u0041", "A"]),
    ],
)
def test_readings(text: str, expected: list[str]) -> None:
    assert [reading.text for reading in readings(text)] == expected


def test_seams() -> None:
    assert [reading.text for reading in readings("abcdef", [2, 4])] == ["abcdef", "ab\x1fcd\x1fef"]


def test_only_what_is_near_an_escape_is_read_again() -> None:
    text = f"{'x' * 5000}%41{'y' * 5000}%42{'z' * 5000}"
    _, again = readings(text)
    assert again.text == f"\x1f{'x' * 400}A{'y' * 400}\x1f{'y' * 400}B{'z' * 400}\x1f"
    at = again.text.index("A")
    assert again.origin(at, at + 1) == (5000, 5003)
    assert again.origin(at - 1, at + 2) == (4999, 5004)


def test_only_what_is_near_a_seam_is_read_again() -> None:
    whole, again = readings(f"{'x' * 5000}{'y' * 5000}", [5000])
    assert whole.text == f"{'x' * 5000}{'y' * 5000}"
    assert again.text == f"\x1f{'x' * 400}\x1f{'y' * 400}\x1f"
    assert again.origin(402, 404) == (5000, 5002)


@given(TEXTS, st.lists(st.integers(min_value=0, max_value=60), max_size=4))
def test_every_character_comes_from_somewhere(text: str, cuts: list[int]) -> None:
    seams = sorted({min(cut, len(text)) for cut in cuts})
    for reading in readings(text, seams):
        last = 0
        for at, char in enumerate(reading.text):
            start, end = reading.origin(at, at + 1)
            assert 0 <= start <= end <= len(text)
            assert start >= last
            last = start
            if char != "\x1f" and end - start == 1:
                assert text[start:end] == char
