"""What is written as CSV is read back as it was, and no row begins with a formula."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.text.csv_text import harmless, row

texts = st.text(st.sampled_from("ab,\"'\r\n\t =+-@\x0b\x85\u2028\uff1d") | st.characters(codec="utf-8"), max_size=8)


def read_back(text: str) -> list[list[str]]:
    return [*csv.reader(io.StringIO(text, newline=""), strict=True)]


@given(st.lists(st.lists(texts, min_size=2, max_size=4), max_size=4))
def test_rows_are_read_back_as_they_were(rows: list[list[str]]) -> None:
    assert read_back("".join(map(row, rows))) == rows


@given(st.lists(texts, min_size=2, max_size=4))
def test_a_cell_is_no_formula_in_whatever_row_a_reader_sees(cells: list[str]) -> None:
    for found in read_back(row([harmless(cell) for cell in cells])):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d")) for cell in found)


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_a_line_end_inside_a_cell_is_quoted(end: str) -> None:
    assert row([f"model{end}=1+1", "x"]) == f'"model{end}=1+1",x\n'


@pytest.mark.parametrize(
    ("value", "cell"),
    [(None, ""), (-5, "-5"), (0.5, "0.5"), (True, "True"), ("plain text", "plain text"), ('a "b"', '"a ""b"""')],
)
def test_a_value_as_a_cell(value: object, cell: str) -> None:
    assert row([value, "x"]) == f"{cell},x\n"
