"""Deterministic CBOR (RFC 8949, section 4.2.1): shortest numbers, definite lengths, keys in bytewise order.

Written here, since what is signed must not depend on the version of a library: `cbor2` sorts keys by an older rule, and
before version 6 it makes some floats longer than they need be. What reads CBOR is `cbor2`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG = range(7)
_FALSE, _TRUE, _NULL = b"\xf4", b"\xf5", b"\xf6"
_FLOATS = ((">e", b"\xf9"), (">f", b"\xfa"), (">d", b"\xfb"))
_NAN = b"\xf9\x7e\x00"
_SHORT = 24
"""Below it, a number stands in the first byte."""
_POSITIVE_BIG, _NEGATIVE_BIG = 2, 3
"""Tags of integers that need more than eight bytes."""


@runtime_checkable
class Tagged(Protocol):
    """A value with a tag, such as `cbor2.CBORTag`."""

    tag: int
    value: object


def write(value: object, pieces: list[bytes]) -> None:
    """Write a value to the end of some pieces. Raises `TypeError` for what CBOR does not hold."""
    if isinstance(value, str):
        data = value.encode()
        pieces += (head(_TEXT, len(data)), data)
    elif isinstance(value, Mapping):
        _write_map(value, pieces)
    elif isinstance(value, list | tuple):
        pieces.append(head(_ARRAY, len(value)))
        for one in value:
            write(one, pieces)
    elif value is None:
        pieces.append(_NULL)
    elif isinstance(value, bool):
        pieces.append(_TRUE if value else _FALSE)
    elif isinstance(value, int):
        pieces.append(_integer(value))
    elif isinstance(value, float):
        pieces.append(_float(value))
    elif isinstance(value, bytes):
        pieces += (head(_BYTES, len(value)), value)
    elif isinstance(value, Tagged):
        pieces.append(head(_TAG, value.tag))
        write(value.value, pieces)
    else:
        raise TypeError(f"{type(value).__name__} is no kind of CBOR")


def head(kind: int, number: int) -> bytes:
    """Write the beginning of an item: what it is, and a number in as few bytes as it needs."""
    if number < _SHORT:
        return bytes([kind << 5 | number])
    size = next(size for size in (1, 2, 4, 8) if number < 1 << 8 * size)
    return bytes([kind << 5 | _SHORT + size.bit_length() - 1]) + number.to_bytes(size, "big")


def _write_map(value: Mapping[object, object], pieces: list[bytes]) -> None:
    members = []
    for key, one in value.items():
        name: list[bytes] = []
        write(key, name)
        members.append((b"".join(name), one))
    pieces.append(head(_MAP, len(members)))
    for written, one in sorted(members, key=lambda pair: pair[0]):
        pieces.append(written)
        write(one, pieces)


def _integer(value: int) -> bytes:
    kind, number = (_UNSIGNED, value) if value >= 0 else (_NEGATIVE, -1 - value)
    if number < 1 << 64:
        return head(kind, number)
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return head(_TAG, _POSITIVE_BIG if value >= 0 else _NEGATIVE_BIG) + head(_BYTES, len(data)) + data


def _float(value: float) -> bytes:
    if math.isnan(value):
        return _NAN
    for form, first in _FLOATS[:-1]:
        try:
            data = struct.pack(form, value)
        except OverflowError:
            continue
        if struct.unpack(form, data)[0] == value:
            return first + data
    form, first = _FLOATS[-1]
    return first + struct.pack(form, value)
