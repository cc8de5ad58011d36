"""Each value has one sequence of bytes, as in the vectors of RFC 8785 and RFC 8949 and in independent libraries."""

from __future__ import annotations

import json
import struct
from importlib.metadata import version

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import values

from pollux.proofs import canonical
from pollux.proofs.canonical import NotCanonicalError, cbor_bytes, json_bytes, json_value

# RFC 8785, appendix B: the bits of a double, and its text.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}

# RFC 8949, appendix A, as far as JSON has such values.
CBOR = {
    "00": 0,
    "17": 23,
    "1818": 24,
    "1903e8": 1000,
    "1a000f4240": 1000000,
    "1b000000e8d4a51000": 1000000000000,
    "1bffffffffffffffff": 18446744073709551615,
    "20": -1,
    "3903e7": -1000,
    "f90000": 0.0,
    "f98000": -0.0,
    "f93c00": 1.0,
    "fb3ff199999999999a": 1.1,
    "f93e00": 1.5,
    "f97bff": 65504.0,
    "fa47c35000": 100000.0,
    "fb7e37e43c8800759c": 1.0e300,
    "f90001": 5.960464477539063e-8,
    "f4": False,
    "f6": None,
    "60": "",
    "62c3bc": "\u00fc",
    "64f0908591": "\U00010151",
    "80": [],
    "8301820203820405": [1, [2, 3], [4, 5]],
    "a26161016162820203": {"b": [2, 3], "a": 1},
    "c249010000000000000000": 18446744073709551616,
    "3bffffffffffffffff": -18446744073709551616,
    "c349010000000000000000": -18446744073709551617,
    "f97e00": float("nan"),
    "f97c00": float("inf"),
    "f9fc00": float("-inf"),
    "fa7f7fffff": 3.4028234663852886e38,
    "4401020304": b"\x01\x02\x03\x04",
}


@pytest.mark.parametrize(("bits", "written"), NUMBERS.items())
def test_numbers_are_written_as_in_rfc_8785(bits: str, written: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert json_bytes(value).decode() == written


def test_sample_is_written_as_in_rfc_8785() -> None:
    sample = (
        rb"""{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],"""
        rb""""string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"""
    )
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )
    assert json_bytes(json_value(sample)).decode() == expected


def test_members_are_sorted_by_utf_16_units() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    expected = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(json_bytes(dict.fromkeys(names, 0)))) == expected


@given(values)
def test_json_equals_that_of_an_independent_library(value: object) -> None:
    judge = pytest.importorskip("rfc8785", reason="the independent judge of RFC 8785 is not installed")
    try:
        expected = judge.dumps(value)
    except judge.CanonicalizationError:
        return  # values that only the rules of Pollux cover
    assert json_bytes(value) == expected  # type: ignore[arg-type]


@given(values)
def test_canonical_json_is_stable(value: object) -> None:
    data = json_bytes(value)  # type: ignore[arg-type]
    assert json_bytes(json_value(data)) == data
    assert json_value(json.dumps(value, indent=3).encode()) == value


def test_values_rejected_by_rfc_8785_have_one_form() -> None:
    assert json_bytes([2**70, -(2**63)]) == b"[1180591620717411303424,-9223372036854775808]"
    assert json_bytes({"\ud83d": "a\udc00"}) == rb'{"\ud83d":"a\udc00"}'
    assert json_value(json_bytes({"\ud83d": "a\udc00"})) == {"\ud83d": "a\udc00"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [-float("inf")], {"a": b"bytes"}, object()])
def test_values_without_a_json_form_are_rejected(value: object) -> None:
    with pytest.raises(NotCanonicalError, match="no canonical encoding"):
        json_bytes(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [b"", b"{", b"NaN", b"[Infinity]", b"\xff", b'{"a":1} x', b"[" * 100_000])
def test_malformed_json_is_rejected(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        json_value(data)


def test_values_nested_too_deeply_are_rejected() -> None:
    value: object = 0
    for _ in range(100_000):
        value = [value]
    with pytest.raises(NotCanonicalError, match="nested"):
        json_bytes(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(("data", "value"), CBOR.items())
def test_values_are_encoded_as_in_rfc_8949(data: str, value: object) -> None:
    assert cbor_bytes(value).hex() == data


@given(st.dictionaries(st.text(max_size=300) | st.integers(), st.none(), max_size=8))
def test_keys_are_sorted_as_in_rfc_8949(value: dict[str | int, None]) -> None:
    keys = [cbor_bytes(record) for record in cbor2.loads(cbor_bytes(value))]
    assert keys == sorted(keys)


@pytest.mark.parametrize("value", ["\ud800", object()])
def test_values_without_a_cbor_form_are_rejected(value: object) -> None:
    with pytest.raises(NotCanonicalError, match="no canonical encoding"):
        cbor_bytes([value])


@given(st.floats(allow_nan=False, allow_infinity=False, width=16))
def test_floats_are_encoded_in_the_shortest_form(value: float) -> None:
    """`cbor2` before 6 does not shorten floats of the upper half of the range, and must not be used."""
    assert cbor_bytes(value) == b"\xf9" + struct.pack(">e", value)


items = st.recursive(
    values | st.binary(max_size=30) | st.integers(-(2**80), 2**80) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=30), inner, max_size=4),
)


@given(items)
def test_cbor_equals_that_of_an_independent_library(value: object) -> None:
    if int(version("cbor2").split(".")[0]) < 6:
        pytest.skip("this library writes some floats too long")
    assert cbor_bytes(value) == cbor2.dumps(value, canonical=True)


def test_tags_are_encoded() -> None:
    value = cbor2.CBORTag(18, [b"", {}, None, b"x" * 300])
    assert cbor_bytes(value) == cbor2.dumps(value)


def test_cbor_nested_too_deeply_is_rejected() -> None:
    value: object = 0
    for _ in range(100_000):
        value = [value]
    with pytest.raises(NotCanonicalError, match="nested"):
        cbor_bytes(value)


def test_hash_is_that_of_the_canonical_bytes() -> None:
    assert canonical.sha256(b"abc").hex().startswith("ba7816bf8f01cfea")
