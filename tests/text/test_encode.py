"""What is written as JSON or CSV is read back as it was, and no row begins with a formula."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.model import Tokens
from pollux.text.encode import csv_row, encode, escape_formula

texts = st.text(st.sampled_from("ab,\"'\r\n\t =+-@\x0b\x85\u2028\uff1d") | st.characters(codec="utf-8"), max_size=8)


def read_back(text: str) -> list[list[str]]:
    return [*csv.reader(io.StringIO(text, newline=""), strict=True)]


@given(st.lists(st.lists(texts, min_size=2, max_size=4), max_size=4))
def test_rows_are_read_back_as_they_were(rows: list[list[str]]) -> None:
    assert read_back("".join(map(csv_row, rows))) == rows


@given(st.lists(texts, min_size=2, max_size=4))
def test_a_cell_is_no_formula_in_whatever_row_a_reader_sees(cells: list[str]) -> None:
    for found in read_back(csv_row([escape_formula(cell) for cell in cells])):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d")) for cell in found)


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_line_end_inside_a_cell_is_quoted(end: str) -> None:
    assert csv_row([f"model{end}=1+1", "x"]) == f'"model{end}=1+1",x\n'


@pytest.mark.parametrize(
    ("value", "cell"),
    [(None, ""), (-5, "-5"), (0.5, "0.5"), (True, "True"), ("plain text", "plain text"), ('a "b"', '"a ""b"""')],
)
def test_a_value_as_a_cell(value: object, cell: str) -> None:
    assert csv_row([value, "x"]) == f"{cell},x\n"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=10,
)


@given(VALUES)
def test_any_value_comes_back(value: object) -> None:
    data = encode(value)
    assert json.loads(data) == value
    assert b"\n" not in data


def test_half_a_character_is_an_escape_and_the_rest_stays_text() -> None:
    assert encode({"title": "ü\ud83d"}) == '{"title":"ü\\ud83d"}'.encode()
    assert encode(Tokens(input=1)).startswith(b'{"input":1,')
