from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import values

from pollux.formats.lenient import BOM, decode, encode, fragments, leading_fields, mask
from pollux.formats.source import Span


def found_in(data: bytes) -> list[bytes]:
    return [data[span.start : span.end] for span in fragments(data)]


@given(values)
def test_all_json_is_decoded(value: Any) -> None:  # noqa: ANN401
    for ascii_only in (True, False):
        data = json.dumps(value, ensure_ascii=ascii_only).encode()
        assert decode(data) == json.loads(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'"\\ud83d"', "\ud83d"),
        (b'"\\ud83d\\ude00"', "😀"),
        (b'"a\xffb"', "a\ufffdb"),
        (b"1e999", None),
        (b"-1e999", None),
        (b"[1.5, 9999999999999999999999, 1e999]", [1.5, 9999999999999999999999, None]),
        (b"9" * 4301, None),
        (b"[" + b"9" * 30 + b',"\xff"]', [10**30 - 1, "\ufffd"]),
    ],
)
def test_what_javascript_takes(data: bytes, expected: object) -> None:
    assert decode(data) == expected


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"NaN", b"[Infinity]", b'["a\nb"]', b"{'a':1}", b"[1,]", BOM + b"{}", b"01", b'"\\x"', b"[" * 5000],
)
def test_what_is_no_json_raises(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode(data)


def test_broken_text_that_is_nested_too_deeply_raises() -> None:
    with pytest.raises(ValueError, match="too deeply"):
        decode(b'["\xff",' + b"[" * 5000 + b"]" * 5001)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'"\\ud83d\\ude00"', b'"\\ud83d\\ude00"'),
        (b'"\\ud83dx"', b'"\\ufffdx"'),
        (b'"\\uDE00\\uD83D"', b'"\\ufffd\\ufffd"'),
        (b'"\\\\ud83d"', b'"\\\\ud83d"'),
        (b'"a\xffb\xc3\xa4"', b'"a?b\xc3\xa4"'),
        (b'"\xe2\x82"', b'"??"'),
    ],
)
def test_mask_keeps_every_byte_in_its_place(data: bytes, expected: bytes) -> None:
    assert mask(data) == expected
    assert len(mask(data)) == len(data)


@given(st.binary())
def test_what_is_masked_is_text_of_the_same_length(data: bytes) -> None:
    masked = mask(data)
    masked.decode()
    assert len(masked) == len(data)


def test_encode_replaces_what_is_no_character() -> None:
    assert encode({"a": "ä\ud83d"}) == '{"a":"ä?"}'.encode()


def test_fragments_are_whole_records() -> None:
    data = b'x{"id":"a"}{"id":{"id":1},"n":[{"id":2}]} {"$set":{}}, {"sessionId":"s"} {"$rewindTo":"a"}{"other":1}'
    assert found_in(data) == [
        b'{"id":"a"}',
        b'{"id":{"id":1},"n":[{"id":2}]}',
        b'{"$set":{}}',
        b'{"sessionId":"s"}',
        b'{"$rewindTo":"a"}',
    ]


def test_half_a_record_hides_none_behind_it() -> None:
    assert found_in(b'{"id":"a","content":"half of i{"id":"b"}') == [b'{"id":"b"}']
    assert found_in(b'{"id":"a","list":[{"id":"b"},{"id":"c"') == [b'{"id":"b"}']


def test_fragments_can_begin_later() -> None:
    assert [*fragments(b'{"id":1}{"id":2}', 1)] == [Span(8, 16)]


def test_fragments_give_up_in_the_end() -> None:
    assert found_in(b'{"id":' * 999 + b' {"id":1}') == [b'{"id":1}']
    assert found_in(b'{"id":' * 1000 + b' {"id":1}') == []


@given(st.lists(st.dictionaries(st.text(max_size=3), values, max_size=2), max_size=4), st.text("xyz,[", max_size=3))
def test_records_between_garbage_are_found(bodies: list[dict[str, Any]], garbage: str) -> None:
    records = [encode({"id": "a", **body}) for body in bodies]
    whole = [one for one in records if one.startswith(b'{"id":')]
    assert found_in(garbage.encode().join([b"", *whole])) == whole


def test_leading_fields_of_a_torn_header() -> None:
    assert leading_fields(b'{"sessionId":"s","projectHash":"h","startTime":"2026') == {
        "sessionId": "s",
        "projectHash": "h",
    }
    assert leading_fields(b' { "directories": ["/a"], "kind": "main", "other": 1, "summary": "x"') == {
        "directories": ["/a"],
        "kind": "main",
    }
    assert leading_fields(b'{"id":"a"') == {}
    assert leading_fields(b'{"summary":' + b"[" * 5000) == {}
    assert leading_fields(b'{"summary":"\xff","kind":') == {"summary": "\ufffd"}
