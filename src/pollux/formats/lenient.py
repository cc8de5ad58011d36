"""Decode JSON as leniently as the client's runtime does, and recover what is intact in broken JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

import msgspec

from pollux.formats.source import Span
from pollux.model import Json, Problem

BOM = b"\xef\xbb\xbf"
BOM_PROBLEM = Problem("byte-order-mark", "the file starts with a byte order mark, which the client cannot read", line=1)

_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|\\.",
    re.DOTALL,
)
_RECORD = re.compile(rb'\{\s*"(?:id|\$set|\$rewindTo|sessionId)"\s*:')
_KEY = re.compile(r'\s*[{,]\s*("(?:sessionId|projectHash|startTime|lastUpdated|kind|summary|directories)")\s*:\s*')
_TRIES = 1000  # each costs time proportional to the text before it
_BROKEN = {0xDC00 + byte: "?" for byte in range(0x80, 0x100)}


def decode(data: bytes) -> Any:  # noqa: ANN401  the decoding edge
    """Decode a JSON value; like JavaScript, accept lone surrogates and broken UTF-8. Raises `ValueError`."""
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return _DECODER.decode(data.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def mask(data: bytes) -> bytes:
    """Replace lone surrogates and broken UTF-8, so that the fast decoder accepts what JavaScript accepts.

    Each replacement has the same length, so that the offsets of values do not change.
    """
    masked = _ESCAPE.sub(lambda match: b"\\ufffd" if match[1] else match[0], data)
    try:
        masked.decode("utf-8")
    except UnicodeDecodeError:
        return masked.decode("utf-8", "surrogateescape").translate(_BROKEN).encode("utf-8")
    return masked


def encode(value: object) -> bytes:
    """Encode a value as JSON, with lone surrogates replaced."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def fragments(data: bytes, start: int = 0) -> Iterator[Span]:
    """Yield the complete records inside an invalid line or file; records inside a record are not yielded again.

    Mostly the line is a partial record directly followed by a complete one.
    """
    text = data.decode("latin-1")  # one character per byte, so that positions are offsets
    position, n_failed = start, 0
    while n_failed < _TRIES and (match := _RECORD.search(data, position)):
        try:
            _, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position = match.start() + 1
            n_failed += 1
            continue
        yield Span(match.start(), end)
        position = end


def leading_fields(data: bytes) -> dict[str, Json]:
    """Return the metadata at the start of a truncated object; {} if it starts with other fields."""
    text = data.decode("utf-8", "replace")
    fields: dict[str, Json] = {}
    position = 0
    while match := _KEY.match(text, position):
        try:
            fields[json.loads(match[1])], position = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            break
    return fields


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= _DIGITS else None


def _float(digits: str) -> float | None:
    value = float(digits)
    return value if isfinite(value) else None


_DIGITS = 4300
"""Python refuses to convert more; for JavaScript such a number is infinite, which it writes as `null`."""
_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_refuse)
