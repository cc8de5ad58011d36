"""Our values as JSON text."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pollux.model import Tokens
from pollux.text import json_text

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=10,
)


@given(VALUES)
def test_any_value_comes_back(value: object) -> None:
    data = json_text.encode(value)
    assert json.loads(data) == value
    assert b"\n" not in data


def test_half_a_character_is_an_escape_and_the_rest_stays_text() -> None:
    assert json_text.encode({"title": "ü\ud83d"}) == '{"title":"ü\\ud83d"}'.encode()
    assert json_text.encode(Tokens(input=1)).startswith(b'{"input":1,')
