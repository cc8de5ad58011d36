"""Read CBOR (RFC 8949) from strangers: envelopes, seals and keys.

`cbor2` turns tags into dates, decimals, regular expressions and shared references, and lets the last of two members
with the same name win. None of that may happen before a signature is checked, so these few structures are read here.
Integers have at most 64 bits, tags stay tags, and a map that names a member twice is refused.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _OTHER = range(8)
_INDEFINITE, _RESERVED = 31, 28
_BREAK = 0xFF
_DEPTH = 64
_CONSTANTS: dict[int, bool | None] = {20: False, 21: True, 22: None}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}
_FIRST_SIZE = 24
"""Up to 23 a number stands in the first byte; from 24 on the low bits say how many bytes hold it."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A value with a CBOR tag."""

    tag: int
    value: Any


@dataclass(frozen=True, slots=True)
class Simple:
    """A simple value other than true, false and null."""

    number: int


def read(data: bytes) -> Any:  # noqa: ANN401  any CBOR
    """Parse one item. Raises `ValueError` where it is not well-formed, names a member twice or has bytes after it."""
    reader = _Reader(data)
    value = reader.item()
    if reader.place != len(data):
        raise ValueError(f"{len(data) - reader.place} bytes come after its end")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.place = 0
        self._data = data

    def item(self, depth: int = 0) -> Any:  # noqa: ANN401
        if depth > _DEPTH:
            raise ValueError("its values are nested too deeply")
        first = self._take(1)[0]
        kind, low = first >> 5, first & 31
        if low == _INDEFINITE:
            return self._indefinite(kind, depth)
        if kind == _OTHER:
            return self._other(low)
        number = self._number(low)
        if kind == _UNSIGNED:
            return number
        if kind == _NEGATIVE:
            return -1 - number
        if kind == _BYTES:
            return self._take(number)
        if kind == _TEXT:
            return self._take(number).decode()
        if kind == _TAG:
            return Tag(number, self.item(depth + 1))
        if kind == _ARRAY:
            self._need(number)
            return [self.item(depth + 1) for _ in range(number)]
        self._need(2 * number)
        members: dict[int | str | bytes, Any] = {}
        for _ in range(number):
            self._member(members, depth)
        return members

    def _indefinite(self, kind: int, depth: int) -> Any:  # noqa: ANN401
        if kind in (_BYTES, _TEXT):
            return self._chunks(kind)
        if kind == _ARRAY:
            values = []
            while not self._is_break():
                values.append(self.item(depth + 1))
            return values
        if kind == _MAP:
            members: dict[int | str | bytes, Any] = {}
            while not self._is_break():
                self._member(members, depth)
            return members
        raise ValueError(f"byte {self.place - 1} begins no item")

    def _chunks(self, kind: int) -> bytes | str:
        chunks = []
        while not self._is_break():
            first = self._take(1)[0]
            if first >> 5 != kind or first & 31 == _INDEFINITE:
                raise ValueError(f"byte {self.place - 1} begins no part of a string")
            chunks.append(self._take(self._number(first & 31)))
        return b"".join(chunks) if kind == _BYTES else "".join(chunk.decode() for chunk in chunks)

    def _member(self, members: dict[int | str | bytes, Any], depth: int) -> None:
        name = self.item(depth + 1)
        # Python takes 1, 1.0 and True for the same name, so names of other types are refused.
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
        self._need(count)
        self.place += count
        return self._data[self.place - count : self.place]

    def _need(self, count: int) -> None:
        """Raise unless so many bytes are left; every item has at least one."""
        if count > len(self._data) - self.place:
            raise ValueError("it ends too early")
