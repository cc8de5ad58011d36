"""The bytes of one file: read once from front to back, and again by span when a message is wanted.

Memory does not grow with a line: one that is longer than `LONG` is not read but only told by its place, and
`formats.short` makes a short text of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import weakref
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import NamedTuple, Self

from pollux.disk.regular_files import open_regular

_BLOCK = 4 << 20
HEAD = 64 << 10
"""Bytes in which a file says what it is, and whose."""
_LOOK_BACK = 1 << 20
LONG = 8 << 20
"""Bytes of a line or message that are read at once; of a longer one only a short text is made."""
_RETURNS = re.compile(rb"\r")


class Span(NamedTuple):
    """Where a JSON value stands in its file, in bytes."""

    start: int
    end: int


class Line(NamedTuple):
    """One line without its end."""

    number: int
    start: int
    data: bytes


class LongLine(NamedTuple):
    """The place of a line that is too long to be read at once."""

    number: int
    span: Span
    source: Source

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.span.start

    @property
    def data(self) -> bytes:
        """All of it, however long."""
        return self.source.slice(self.span)


class Source:
    """A file, or bytes from elsewhere, of which it holds a few blocks at a time."""

    def __init__(
        self,
        path: Path,
        *,
        data: bytes | None = None,
        read: Callable[[int, int], bytes] | None = None,
        size: int = 0,
        modified: datetime | None = None,
        is_import: bool = False,
    ) -> None:
        """Open a file, or take its contents: as bytes, or as a function that returns those between two offsets.

        `is_import` says that the bytes came from another archive and that this machine never read the file itself.
        """
        self.path = path
        self.modified = modified or datetime.fromtimestamp(0, UTC)
        self.is_import = is_import
        self.size = len(data) if data is not None else size
        self._file: FileIO | None = None
        self._read: Callable[[int, int], bytes]
        if data is not None:
            self._read = lambda start, end: data[start:end]
        elif read is not None:
            self._read = read
        else:
            self._open(path)

    def _open(self, path: Path) -> None:
        self._file = file = open_regular(path)
        weakref.finalize(self, file.close)  # many sources are simply let go
        stat = os.fstat(file.fileno())
        self.size = stat.st_size
        self.modified = datetime.fromtimestamp(stat.st_mtime, UTC)
        self._read = lambda start, end: _pread(file.fileno(), end - start, start)

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
        return self.slice(Span(0, HEAD))

    def slice(self, span: Span) -> bytes:
        """Return the bytes of a span; fewer if the file has shrunk meanwhile."""
        return self._read(span.start, span.end)

    def contains(self, text: bytes, span: Span) -> bool:
        """Return whether a short text stands somewhere in a span."""
        before = b""
        for block in self.blocks(*span):
            if text in before + block:
                return True
            before = block[1 - len(text) :]
        return False

    def whole(self) -> bytes:
        """Return everything; only for formats that cannot be read piece by piece."""
        return b"".join(self.blocks())

    def blocks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes between two places in large pieces."""
        while block := self._read(start, start + _BLOCK if end is None else min(start + _BLOCK, end)):
            yield block
            start += len(block)

    def lines(self, start: int = 0, number: int = 0) -> Iterator[Line | LongLine]:
        r"""Yield the lines as the client's reader cuts them: at `\n`, `\r\n` and a lone `\r`.

        Args:
            start: where to begin, just behind a `\n`.
            number: how many lines there are before that.

        """
        rest: list[bytes] = []
        n_rest = 0
        position = start
        while block := self._read(position, position + _BLOCK):
            position += len(block)
            last = block.rfind(b"\n") + 1
            if not last:
                rest.append(block)
                n_rest += len(block)
                if n_rest > LONG:
                    rest, n_rest, number = [], 0, number + 1
                    start = yield from self._long_line(start, number)
                    position = start
                continue
            data = b"".join([*rest, block[:last]])
            rest, n_rest = [block[last:]], len(block) - last
            at = 0
            while at < len(data):
                end = data.index(b"\n", at)
                number += 1
                line = Line(number, start + at, data[at:end])
                if b"\r" in line.data:
                    yield from _cut(line)
                else:
                    yield line
                at = end + 1
            start += len(data)
        if tail := b"".join(rest):
            yield from _cut(Line(number + 1, start, tail))

    def _long_line(self, start: int, number: int) -> Generator[Line | LongLine, None, int]:
        r"""Yield the parts of a long line between its `\r`, and return where the next line begins."""
        position = start
        for block in self.blocks(start):
            stop = block.find(b"\n")
            for match in _RETURNS.finditer(block, 0, stop if stop >= 0 else len(block)):
                yield self._part(number, Span(start, position + match.start()))
                start = position + match.end()
            if stop >= 0:
                yield self._part(number, Span(start, position + stop))
                return position + stop + 1
            position += len(block)
        yield self._part(number, Span(start, position))
        return position

    def _part(self, number: int, span: Span) -> Line | LongLine:
        if span.end - span.start > LONG:
            return LongLine(number, span, self)
        return Line(number, span.start, self.slice(span))

    def sha256(self) -> str:
        """Return the digest of the whole file."""
        digest = hashlib.sha256()
        for block in self.blocks():
            digest.update(block)
        return digest.hexdigest()


def end_of_lines(source: Source, start: int) -> int:
    """Return the end of the last whole line after a place in a file; that place where there is none."""
    position = source.size
    while position > start:
        begin = max(start, position - _LOOK_BACK)
        newline = source.slice(Span(begin, position)).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        position = begin
    return start


def _pread(fd: int, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, size, offset)
    os.lseek(fd, offset, os.SEEK_SET)  # Windows has no pread
    return os.read(fd, size)


def _cut(line: Line) -> Iterator[Line]:
    start = line.start
    for piece in line.data.split(b"\r"):
        yield Line(line.number, start, piece)
        start += len(piece) + 1
