"""A record → bytes, piece by piece: RFC 8785 JSON or deterministic CBOR, the same bytes whoever writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pollux.exports.source import Subject
from pollux.exports.vac.record import record
from pollux.exports.vac.values import Many, Open
from pollux.proofs import canonical

_ARRAY, _MAP = 4, 5
_SHORT = 24
"""Below it, a count stands in the first byte."""


def render_json(subject: Subject) -> Iterator[bytes]:
    """Write a session as a record in JSON."""
    return json_pieces(record(subject))


def render_cbor(subject: Subject) -> Iterator[bytes]:
    """Write a session as a record in CBOR."""
    return cbor_pieces(record(subject))


def json_pieces(value: Any) -> Iterator[bytes]:  # noqa: ANN401  a record, or a part of one
    """Write a value by RFC 8785; entries are made one by one."""
    match value:
        case Many():
            yield b"["
            for number, one in enumerate(value.each()):
                yield b"," if number else b""
                yield from json_pieces(one)
            yield b"]"
        case list() if any(isinstance(one, Open) for one in value):
            yield from json_pieces(Many(len(value), value.__iter__))
        case Open():
            for number, key in enumerate(sorted(value)):  # our own names, all of them ASCII
                yield (b"," if number else b"{") + canonical.json_bytes(key) + b":"
                yield from json_pieces(value[key])
            yield b"}"
        case _:
            yield canonical.json_bytes(value)


def cbor_pieces(value: Any) -> Iterator[bytes]:  # noqa: ANN401
    """Write a value by RFC 8949, section 4.2.1; entries are made one by one."""
    match value:
        case Many():
            yield _head(_ARRAY, value.count)
            for one in value.each():
                yield from cbor_pieces(one)
        case list() if any(isinstance(one, Open) for one in value):
            yield from cbor_pieces(Many(len(value), value.__iter__))
        case Open():
            yield _head(_MAP, len(value))
            for key in sorted(value, key=canonical.cbor_bytes):
                yield canonical.cbor_bytes(key)
                yield from cbor_pieces(value[key])
        case _:
            yield canonical.cbor_bytes(value)


def _head(kind: int, count: int) -> bytes:
    """Write the beginning of an array or a map: what it is, and how much is in it."""
    if count < _SHORT:
        return bytes([kind << 5 | count])
    size = next(n for n in (1, 2, 4, 8) if count < 1 << 8 * n)
    return bytes([kind << 5 | _SHORT + size.bit_length() - 1]) + count.to_bytes(size, "big")
