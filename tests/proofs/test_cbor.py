"""CBOR from other programs is decoded, and malformed or repeated members are rejected."""

from __future__ import annotations

from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.proofs.canonical import cbor_bytes
from pollux.proofs.cbor import Simple, Tag, read_cbor

scalars = (
    st.integers(-(2**64), 2**64 - 1) | st.text(max_size=30) | st.binary(max_size=300) | st.booleans() | st.none()
) | st.floats(allow_nan=False)
items: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.integers(-9, 300) | st.text(max_size=9), inner),
)


@given(items)
def test_encoded_values_round_trip(value: object) -> None:
    assert read_cbor(cbor_bytes(value)) == value
    assert read_cbor(cbor2.dumps(value)) == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("9f0102ff", [1, 2]),
        ("bf0102ff", {1: 2}),
        ("5f41614162ff", b"ab"),
        ("7f61616162ff", "ab"),
        ("1800", 0),  # not the shortest form, which CBOR allows
        ("1b0000000000000001", 1),
        ("f7", Simple(23)),
        ("f8ff", Simple(255)),
        ("c11a5c000000", Tag(1, 0x5C000000)),  # stays a tag instead of a date
        ("c249010000000000000000", Tag(2, b"\x01" + bytes(8))),
        ("d8234128", Tag(35, b"(")),
    ],
)
def test_other_valid_forms_are_decoded(data: str, value: object) -> None:
    assert read_cbor(bytes.fromhex(data)) == value


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "ends too early"),
        ("1a0000", "ends too early"),
        ("9b7fffffffffffffff00", "ends too early"),
        ("bb7fffffffffffffff00", "ends too early"),
        ("5b7fffffffffffffff00", "ends too early"),
        ("0000", "1 bytes come after its end"),
        ("a201010102", "the member 1 twice"),
        ("bf01010102ff", "the member 1 twice"),
        ("a2f501f502", "neither a number nor a text"),
        ("a1f93c0000", "neither a number nor a text"),
        ("a1800000", "neither a number nor a text"),
        ("1c", "byte 0 begins no item"),
        ("ff", "byte 0 begins no item"),
        ("1f", "byte 0 begins no item"),
        ("5f6161ff", "byte 1 begins no part of a string"),
        ("5f5f4161ffff", "byte 1 begins no part of a string"),
        ("61ff", "utf-8"),
        ("81" * 70 + "00", "nested too deeply"),
        ("c1" * 70 + "00", "nested too deeply"),
    ],
)
def test_malformed_cbor_is_rejected(data: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_cbor(bytes.fromhex(data))
