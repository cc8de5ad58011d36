from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import values

from pollux.formats.lenient import BOM, decode, encode, fragments, leading_fields, mask
from pollux.formats.source import Span


def fragment_texts(data: bytes) -> list[bytes]:
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
def test_values_that_javascript_accepts_are_decoded(data: bytes, expected: object) -> None:
    assert decode(data) == expected


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"NaN", b"[Infinity]", b'["a\nb"]', b"{'a':1}", b"[1,]", BOM + b"{}", b"01", b'"\\x"', b"[" * 5000],
)
def test_invalid_json_raises(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode(data)


def test_deeply_nested_invalid_text_raises() -> None:
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
def test_mask_changes_no_positions(data: bytes, expected: bytes) -> None:
    assert mask(data) == expected
    assert len(mask(data)) == len(data)


@given(st.binary())
def test_masked_bytes_are_text_of_the_same_length(data: bytes) -> None:
    masked = mask(data)
    masked.decode()
    assert len(masked) == len(data)


def test_encode_replaces_lone_surrogates() -> None:
    assert encode({"a": "ä\ud83d"}) == '{"a":"ä?"}'.encode()


def test_fragments_are_complete_records() -> None:
    data = b'x{"id":"a"}{"id":{"id":1},"n":[{"id":2}]} {"$set":{}}, {"sessionId":"s"} {"$rewindTo":"a"}{"other":1}'
    assert fragment_texts(data) == [
        b'{"id":"a"}',
        b'{"id":{"id":1},"n":[{"id":2}]}',
        b'{"$set":{}}',
        b'{"sessionId":"s"}',
        b'{"$rewindTo":"a"}',
    ]


def test_half_a_record_does_not_hide_the_next() -> None:
    assert fragment_texts(b'{"id":"a","content":"half of i{"id":"b"}') == [b'{"id":"b"}']
    assert fragment_texts(b'{"id":"a","list":[{"id":"b"},{"id":"c"') == [b'{"id":"b"}']


def test_fragments_start_at_a_given_position() -> None:
    assert [*fragments(b'{"id":1}{"id":2}', 1)] == [Span(8, 16)]


def test_fragments_stop_after_1000_attempts() -> None:
    assert fragment_texts(b'{"id":' * 999 + b' {"id":1}') == [b'{"id":1}']
    assert fragment_texts(b'{"id":' * 1000 + b' {"id":1}') == []


@given(st.lists(st.dictionaries(st.text(max_size=3), values, max_size=2), max_size=4), st.text("xyz,[", max_size=3))
def test_records_between_garbage_are_found(bodies: list[dict[str, Any]], garbage: str) -> None:
    records = [encode({"id": "a", **body}) for body in bodies]
    expected = [record for record in records if record.startswith(b'{"id":')]
    assert fragment_texts(garbage.encode().join([b"", *expected])) == expected


def test_leading_fields_of_a_torn_header_are_read() -> None:
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
