"""Texts that belong together, and what is cut from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.redaction.joined_text import Pieces, screen


@pytest.mark.parametrize(
    ("pieces", "spans", "expected"),
    [
        (Pieces(["abcdef"]), [(1, 3)], ["aXdef"]),
        (Pieces(["abc", "def"]), [(2, 4)], ["abX", "ef"]),
        (Pieces(["abc", "def"]), [(3, 4)], ["abc", "Xef"]),
        (Pieces(["ab", "cd", "ef"]), [(1, 5)], ["aX", "", "f"]),
        (Pieces(["ab", "cd"], "--"), [(1, 5)], ["aX", "d"]),
        (Pieces(["ab", "cd"], "--"), [(0, 1), (5, 6)], ["Xb", "cX"]),
        (Pieces(["ab", "cd"]), [(0, 1), (1, 3), (3, 4)], ["XX", "X"]),
        (Pieces(["", "ab", ""]), [(0, 2)], ["", "X", ""]),
    ],
)
def test_a_word_stands_where_a_span_begins(pieces: Pieces, spans: list[tuple[int, int]], expected: list[str]) -> None:
    assert pieces.replaced(spans, ["X"] * len(spans)).texts == expected


@given(st.lists(st.text(max_size=5), min_size=1, max_size=6), st.sampled_from(["", "\n", ": "]))
def test_the_whole_and_its_seams(texts: list[str], gap: str) -> None:
    pieces = Pieces(texts, gap)
    assert pieces.whole == gap.join(texts)
    assert [pieces.whole[at : at + len(text)] for at, text in zip(pieces.starts, texts, strict=True)] == texts
    assert len(pieces.seams) == (0 if gap else len(texts) - 1)


def test_a_full_line_of_a_screen_goes_on_in_the_next() -> None:
    pieces = screen([["$ cat"], [], ["x" * 30, "y" * 30], ["z"], ["end"]])
    assert pieces.whole == f"$ cat\n{'x' * 30}{'y' * 30}z\nend"


def test_a_line_that_ends_in_a_blank_does_not() -> None:
    assert screen([["x" * 59 + " "], ["z"]]).whole == f"{'x' * 59} \nz"
