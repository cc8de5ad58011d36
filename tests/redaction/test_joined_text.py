"""Texts are joined, and replacements are distributed over them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.redaction.joined_text import JoinedText, join_screen


@pytest.mark.parametrize(
    ("pieces", "spans", "expected"),
    [
        (JoinedText(["abcdef"]), [(1, 3)], ["aXdef"]),
        (JoinedText(["abc", "def"]), [(2, 4)], ["abX", "ef"]),
        (JoinedText(["abc", "def"]), [(3, 4)], ["abc", "Xef"]),
        (JoinedText(["ab", "cd", "ef"]), [(1, 5)], ["aX", "", "f"]),
        (JoinedText(["ab", "cd"], "--"), [(1, 5)], ["aX", "d"]),
        (JoinedText(["ab", "cd"], "--"), [(0, 1), (5, 6)], ["Xb", "cX"]),
        (JoinedText(["ab", "cd"]), [(0, 1), (1, 3), (3, 4)], ["XX", "X"]),
        (JoinedText(["", "ab", ""]), [(0, 2)], ["", "X", ""]),
    ],
)
def test_replacement_is_where_the_span_starts(
    pieces: JoinedText, spans: list[tuple[int, int]], expected: list[str]
) -> None:
    assert pieces.replace(spans, ["X"] * len(spans)).texts == expected


@given(st.lists(st.text(max_size=5), min_size=1, max_size=6), st.sampled_from(["", "\n", ": "]))
def test_text_and_seams(texts: list[str], gap: str) -> None:
    pieces = JoinedText(texts, gap)
    assert pieces.text == gap.join(texts)
    assert [pieces.text[at : at + len(text)] for at, text in zip(pieces.starts, texts, strict=True)] == texts
    assert len(pieces.seams) == (0 if gap else len(texts) - 1)


def test_full_line_of_a_screen_continues_in_the_next() -> None:
    pieces = join_screen([["$ cat"], [], ["x" * 30, "y" * 30], ["z"], ["end"]])
    assert pieces.text == f"$ cat\n{'x' * 30}{'y' * 30}z\nend"


def test_line_that_ends_in_a_blank_does_not_continue() -> None:
    assert join_screen([["x" * 59 + " "], ["z"]]).text == f"{'x' * 59} \nz"
