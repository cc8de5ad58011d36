from __future__ import annotations

import pytest

from pollux.model import Json
from pollux.text.numbers import LARGEST, SMALLEST, clamped, fits, has_large_integer, parse_integer, with_doubles


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ("0", 0),
        ("-0", 0),
        ("42", 42),
        (b"-7", -7),
        (str(LARGEST), LARGEST),
        (str(SMALLEST), SMALLEST),
        (str(LARGEST + 1), None),
        (str(SMALLEST - 1), None),
        ("9" * 5000, None),
        (b"-" + b"9" * 5000, None),
        ("-" + "0" * 5000, 0),
        ("0" * 5000 + "7", 7),
    ],
)
def test_digits_become_an_integer_of_64_bits_or_nothing(digits: str | bytes, expected: int | None) -> None:
    assert parse_integer(digits) == expected


def test_large_integers_become_doubles_wherever_they_stand() -> None:
    value: dict[str, Json] = {"a": [1, {"b": 2**64}], "c": -(2**63), "d": "text", "e": [True, None, 1.5]}
    assert has_large_integer(value)
    left = with_doubles(value)
    assert left == value | {"a": [1, {"b": 2.0**64}]}
    assert with_doubles([10**400]) == [None]
    assert not has_large_integer(left)


def test_nesting_does_not_stop_the_search() -> None:
    value: Json = [2**64]
    for _ in range(50_000):
        value = [value]
    assert has_large_integer(value)
    assert with_doubles(value) is None


def test_nearest_integer_that_fits() -> None:
    assert [clamped(one) for one in (0, 2**70, -(2**70))] == [0, LARGEST, SMALLEST]
    assert fits(LARGEST)
    assert not fits(LARGEST + 1)
