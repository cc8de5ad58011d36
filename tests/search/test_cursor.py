"""Cursors: opaque, small, and only good for their own search."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.errors import InvalidCursorError
from pollux.search.cursor import (
    START,
    Cursor,
    Position,
    decode_cursor,
    encode_cursor,
    search_digest,
)
from pollux.search.rank import TimeRange

_NUMBERS = st.floats(allow_nan=False)
_POSITIONS = st.builds(
    Position,
    st.sampled_from([0, 1]),
    st.none() | st.tuples(_NUMBERS, st.text(st.characters(exclude_categories=["Cs"]))),
    st.none() | st.tuples(_NUMBERS, _NUMBERS, st.text(st.characters(exclude_categories=["Cs"]))),
)


@given(_POSITIONS, st.none() | st.integers(0, 1 << 60))
def test_a_cursor_returns_unchanged(position: Position, top: int | None) -> None:
    cursor = Cursor("digest", position, TimeRange(1, 2), top)
    text = encode_cursor(cursor)
    assert text.isascii()
    assert decode_cursor(text, "digest") == cursor


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor(text, "digest")


def test_a_cursor_belongs_to_its_search() -> None:
    cursor = encode_cursor(Cursor(search_digest("a", 1), START, TimeRange(1, 2), None))
    assert decode_cursor(cursor, search_digest("a", 1)).position == START
    with pytest.raises(InvalidCursorError, match="belongs to another search"):
        decode_cursor(cursor, search_digest("b", 1))


def test_a_query_with_lone_surrogates_has_a_digest() -> None:
    assert search_digest("\ud800") != search_digest("\ud801")
