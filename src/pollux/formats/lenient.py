"""JSON as the client's runtime takes it, where the fast decoder is stricter, and what can be saved from broken JSON."""

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
BOM_PROBLEM = Problem("byte-order-mark", "the file begins with a byte order mark, which the client cannot read", line=1)

_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|\\.",
    re.DOTALL,
)
_RECORD = re.compile(rb'\{\s*"(?:id|\$set|\$rewindTo|sessionId)"\s*:')
_KEY = re.compile(r'\s*[{,]\s*("(?:sessionId|projectHash|startTime|lastUpdated|kind|summary|directories)")\s*:\s*')
_TRIES = 1000  # each costs time in proportion to what stands before it
_BROKEN = {0xDC00 + byte: "?" for byte in range(0x80, 0x100)}


def decode(data: bytes) -> Any:  # noqa: ANN401  the decoding edge
    """Decode a JSON value, with lone surrogates and broken UTF-8 where JavaScript accepts them.

    Raises `ValueError` for what is not JSON.
    """
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
    """Replace lone surrogates and broken UTF-8, so that the fast decoder takes what JavaScript takes.

    Byte for byte: every value keeps its place, and the truth is still in the file.
    """
    masked = _ESCAPE.sub(lambda match: b"\\ufffd" if match[1] else match[0], data)
    try:
        masked.decode("utf-8")
    except UnicodeDecodeError:
        return masked.decode("utf-8", "surrogateescape").translate(_BROKEN).encode("utf-8")
    return masked


def encode(value: object) -> bytes:
    """Encode for the typed decoder, lone surrogates replaced."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def fragments(data: bytes, start: int = 0) -> Iterator[Span]:
    """Find the complete records inside a line or file that is not valid as a whole.

    Half a record with another one glued to it is the usual case. Objects nested in a found one are not found again.
    """
    text = data.decode("latin-1")  # one character a byte, so that positions are offsets
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
    """Read the metadata at the beginning of an object that is cut short; empty unless it begins with some."""
    text = data.decode("utf-8", "replace")
    found: dict[str, Json] = {}
    position = 0
    while match := _KEY.match(text, position):
        try:
            found[json.loads(match[1])], position = _DECODER.raw_decode(text, match.end())
        except (ValueError, RecursionError):
            break
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= _DIGITS else None


def _float(digits: str) -> float | None:
    return found if isfinite(found := float(digits)) else None


_DIGITS = 4300
"""More are too many for Python; to JavaScript they are infinity, which it writes as `null`."""
_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_refuse)
