"""The bytes of one file: read once from front to back, and again by span when a message is wanted."""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self

_BLOCK = 4 << 20
_HEAD = 64 << 10


class Span(NamedTuple):
    """Where a JSON value stands in its file, in bytes."""

    start: int
    end: int


class Line(NamedTuple):
    """One line without its end."""

    number: int
    start: int
    data: bytes


class Source:
    """A file, or bytes that came from elsewhere; never more than a block and one line in memory at a time."""

    def __init__(self, path: Path, *, data: bytes | None = None, modified: datetime | None = None) -> None:
        """Open a file, or take the bytes given as its contents."""
        self.path = path
        self._data = data
        self._file = None if data is not None else path.open("rb", buffering=0)
        if self._file is not None:
            weakref.finalize(self, self._file.close)  # many sources are simply let go
        stat = None if self._file is None else os.fstat(self._file.fileno())
        self.size = len(data or b"") if stat is None else stat.st_size
        self.modified = modified or datetime.fromtimestamp(stat.st_mtime if stat else 0, UTC)

    def close(self) -> None:
        """Give the file back."""
        if self._file:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def head(self) -> bytes:
        """Return the first bytes, enough to tell the generation."""
        return self.slice(Span(0, _HEAD))

    def slice(self, span: Span) -> bytes:
        """Return the bytes of a span; fewer if the file has shrunk meanwhile."""
        if self._data is not None:
            return self._data[span.start : span.end]
        assert self._file is not None
        return _pread(self._file.fileno(), span.end - span.start, span.start)

    def whole(self) -> bytes:
        """Return everything; only for formats that cannot be read piece by piece."""
        return b"".join(self.blocks())

    def blocks(self) -> Iterator[bytes]:
        """Yield the file in large pieces."""
        if self._data is not None:
            yield self._data
            return
        assert self._file is not None
        offset = 0
        while block := _pread(self._file.fileno(), _BLOCK, offset):
            yield block
            offset += len(block)

    def lines(self) -> Iterator[Line]:
        r"""Yield the lines as the client's reader cuts them: at `\n`, `\r\n` and a lone `\r`."""
        number, start, rest = 0, 0, b""
        for block in self.blocks():
            last = block.rfind(b"\n") + 1
            if not last:
                rest += block
                continue
            data = rest + block[:last] if rest else block[:last]
            rest = block[last:]
            position = 0
            while position < len(data):
                end = data.index(b"\n", position)
                number += 1
                yield from _cut(Line(number, start + position, data[position:end]))
                position = end + 1
            start += len(data)
        if rest:
            yield from _cut(Line(number + 1, start, rest))

    def sha256(self) -> str:
        """Return the digest of the whole file."""
        digest = hashlib.sha256()
        for block in self.blocks():
            digest.update(block)
        return digest.hexdigest()


def _pread(fd: int, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, size, offset)
    os.lseek(fd, offset, os.SEEK_SET)  # Windows has no pread
    return os.read(fd, size)


def _cut(line: Line) -> Iterator[Line]:
    if b"\r" not in line.data:
        yield line
        return
    start = line.start
    for piece in line.data.split(b"\r"):
        yield Line(line.number, start, piece)
        start += len(piece) + 1
