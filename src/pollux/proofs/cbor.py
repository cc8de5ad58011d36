"""Write deterministic CBOR (RFC 8949, section 4.2.1), and read CBOR from untrusted files.

Pollux writes CBOR itself because signed bytes must not depend on the version of a library: `cbor2` sorts keys by an
older rule, and before version 6 it writes some floats longer than necessary.

Pollux also reads envelopes, seals and keys itself. `cbor2` turns tags into dates, decimals, regular expressions and
shared references, and lets the last of two members with the same name win; neither may happen before a signature is
checked. Here integers have at most 64 bits, tags stay tags, and a map that repeats a name is rejected.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

UNSIGNED, NEGATIVE, BYTES, TEXT, ARRAY, MAP, TAG, _OTHER = range(8)
"""Major types."""
_FALSE, _TRUE, _NULL = b"\xf4", b"\xf5", b"\xf6"
_CONSTANTS: dict[int, bool | None] = {20: False, 21: True, 22: None}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}
_DOUBLE = 27
_NAN = b"\xf9\x7e\x00"
_FIRST_SIZE = 24
"""Numbers up to 23 are part of the first byte; from 24 on, its low bits give the number of bytes that follow."""
_INDEFINITE, _RESERVED = 31, 28
_BREAK = 0xFF
_MAX_DEPTH = 64
_POSITIVE_BIG, _NEGATIVE_BIG = 2, 3
"""Tags of integers that need more than eight bytes."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A value with a CBOR tag."""

    tag: int
    value: Any


@runtime_checkable
class TaggedValue(Protocol):
    """A `Tag`, or `cbor2.CBORTag`."""

    tag: int
    value: object


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple value other than true, false and null."""

    number: int


def write_cbor(value: object, pieces: list[bytes]) -> None:
    """Append the encoding of a value to `pieces`. Raises `TypeError` for types that CBOR does not have."""
    if isinstance(value, str):
        data = value.encode()
        pieces += (head(TEXT, len(data)), data)
    elif isinstance(value, Mapping):
        _write_map(value, pieces)
    elif isinstance(value, list | tuple):
        pieces.append(head(ARRAY, len(value)))
        for item in value:
            write_cbor(item, pieces)
    elif value is None:
        pieces.append(_NULL)
    elif isinstance(value, bool):
        pieces.append(_TRUE if value else _FALSE)
    elif isinstance(value, int):
        pieces.append(_integer(value))
    elif isinstance(value, float):
        pieces.append(_float(value))
    elif isinstance(value, bytes):
        pieces += (head(BYTES, len(value)), value)
    elif isinstance(value, TaggedValue):
        pieces.append(head(TAG, value.tag))
        write_cbor(value.value, pieces)
    else:
        raise TypeError(f"CBOR has no type for {type(value).__name__}")


def head(major_type: int, number: int) -> bytes:
    """Return the first bytes of an item: its major type, and a value or length in as few bytes as possible."""
    if number < _FIRST_SIZE:
        return bytes([major_type << 5 | number])
    size = next(size for size in (1, 2, 4, 8) if number < 1 << 8 * size)
    return bytes([major_type << 5 | _FIRST_SIZE + size.bit_length() - 1]) + number.to_bytes(size, "big")


def read_cbor(data: bytes) -> Any:  # noqa: ANN401  any CBOR
    """Parse one item. Raises `ValueError` if it is malformed, repeats a name in a map or is followed by more bytes."""
    reader = _CborReader(data)
    value = reader.item()
    if reader.place != len(data):
        raise ValueError(f"{len(data) - reader.place} bytes come after its end")
    return value


def _write_map(value: Mapping[object, object], pieces: list[bytes]) -> None:
    members = []
    for key, item in value.items():
        key_pieces: list[bytes] = []
        write_cbor(key, key_pieces)
        members.append((b"".join(key_pieces), item))
    pieces.append(head(MAP, len(members)))
    for key_bytes, item in sorted(members, key=lambda member: member[0]):
        pieces.append(key_bytes)
        write_cbor(item, pieces)


def _integer(value: int) -> bytes:
    major_type, number = (UNSIGNED, value) if value >= 0 else (NEGATIVE, -1 - value)
    if number < 1 << 64:
        return head(major_type, number)
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return head(TAG, _POSITIVE_BIG if value >= 0 else _NEGATIVE_BIG) + head(BYTES, len(data)) + data


def _float(value: float) -> bytes:
    """Return the shortest encoding that holds the value exactly."""
    if math.isnan(value):
        return _NAN
    for low, form in _FLOATS.items():
        try:
            data = struct.pack(form, value)
        except OverflowError:
            continue
        if low == _DOUBLE or struct.unpack(form, data)[0] == value:
            return bytes([_OTHER << 5 | low]) + data
    raise AssertionError("a double holds every float")


class _CborReader:
    def __init__(self, data: bytes) -> None:
        self.place = 0
        self._data = data

    def item(self, depth: int = 0) -> Any:  # noqa: ANN401
        if depth > _MAX_DEPTH:
            raise ValueError("its values are nested too deeply")
        first = self._take(1)[0]
        major_type, low = first >> 5, first & 31
        if low == _INDEFINITE:
            return self._indefinite(major_type, depth)
        if major_type == _OTHER:
            return self._other(low)
        number = self._number(low)
        if major_type == UNSIGNED:
            return number
        if major_type == NEGATIVE:
            return -1 - number
        if major_type == BYTES:
            return self._take(number)
        if major_type == TEXT:
            return self._take(number).decode()
        if major_type == TAG:
            return Tag(number, self.item(depth + 1))
        if major_type == ARRAY:
            self._require(number)
            return [self.item(depth + 1) for _ in range(number)]
        self._require(2 * number)
        members: dict[int | str | bytes, Any] = {}
        for _ in range(number):
            self._member(members, depth)
        return members

    def _indefinite(self, major_type: int, depth: int) -> Any:  # noqa: ANN401
        if major_type in (BYTES, TEXT):
            return self._chunks(major_type)
        if major_type == ARRAY:
            values = []
            while not self._is_break():
                values.append(self.item(depth + 1))
            return values
        if major_type == MAP:
            members: dict[int | str | bytes, Any] = {}
            while not self._is_break():
                self._member(members, depth)
            return members
        raise ValueError(f"byte {self.place - 1} begins no item")

    def _chunks(self, major_type: int) -> bytes | str:
        chunks = []
        while not self._is_break():
            first = self._take(1)[0]
            if first >> 5 != major_type or first & 31 == _INDEFINITE:
                raise ValueError(f"byte {self.place - 1} begins no part of a string")
            chunks.append(self._take(self._number(first & 31)))
        return b"".join(chunks) if major_type == BYTES else "".join(chunk.decode() for chunk in chunks)

    def _member(self, members: dict[int | str | bytes, Any], depth: int) -> None:
        name = self.item(depth + 1)
        # As dictionary keys, 1, 1.0 and True are equal in Python, so floats and booleans are rejected.
        if isinstance(name, bool) or not isinstance(name, int | str | bytes):
            raise ValueError("a map has a member whose name is neither a number nor a text")  # noqa: TRY004
        if name in members:
            raise ValueError(f"a map has the member {name!r} twice")
        members[name] = self.item(depth + 1)

    def _other(self, low: int) -> Any:  # noqa: ANN401
        if low in _CONSTANTS:
            return _CONSTANTS[low]
        if low in _FLOATS:
            return struct.unpack(_FLOATS[low], self._take(struct.calcsize(_FLOATS[low])))[0]
        return Simple(self._number(low))

    def _number(self, low: int) -> int:
        if low < _FIRST_SIZE:
            return low
        if low >= _RESERVED:
            raise ValueError(f"byte {self.place - 1} begins no item")
        return int.from_bytes(self._take(1 << (low - _FIRST_SIZE)), "big")

    def _is_break(self) -> bool:
        if self._data[self.place : self.place + 1] != bytes([_BREAK]):
            return False
        self.place += 1
        return True

    def _take(self, count: int) -> bytes:
        self._require(count)
        self.place += count
        return self._data[self.place - count : self.place]

    def _require(self, count: int) -> None:
        """Raise unless at least `count` bytes are left."""
        if count > len(self._data) - self.place:
            raise ValueError("it ends too early")
