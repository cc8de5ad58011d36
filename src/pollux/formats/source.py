"""Read the bytes of one file: once from start to end, and again by position when a message is needed.

Memory does not grow with the length of a line: of one longer than `LONG` only the position is returned, and
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

from pollux.disk.read import open_regular

_BLOCK = 4 << 20
HEAD = 64 << 10
"""Bytes at the start of a file that identify its generation and its session."""
_LOOK_BACK = 1 << 20
LONG = 8 << 20
"""Longest line or message that is read at once, in bytes; of a longer one only a short text is made."""
_RETURNS = re.compile(rb"\r")


class Span(NamedTuple):
    """The position of a JSON value in its file, in bytes."""

    start: int
    end: int


class Line(NamedTuple):
    """One line without its line end."""

    number: int
    start: int
    data: bytes


class LongLine(NamedTuple):
    """The position of a line that is too long to be read at once."""

    number: int
    span: Span
    source: Source

    @property
    def start(self) -> int:
        """Offset of the line."""
        return self.span.start

    @property
    def data(self) -> bytes:
        """The complete line."""
        return self.source.slice(self.span)


class Source:
    """A file or bytes from elsewhere, read in blocks."""

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
        """Open a file, or use its contents given as bytes or as a function that returns the bytes between two offsets.

        `is_import`: the bytes came from another archive, and this machine never read the file.
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
        weakref.finalize(self, file.close)  # many sources are never closed explicitly
        stat = os.fstat(file.fileno())
        self.size = stat.st_size
        self.modified = datetime.fromtimestamp(stat.st_mtime, UTC)
        self._read = lambda start, end: _pread(file.fileno(), end - start, start)

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._file:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def head(self) -> bytes:
        """Return the first bytes, enough to determine the generation."""
        return self.slice(Span(0, HEAD))

    def slice(self, span: Span) -> bytes:
        """Return the bytes of a span; fewer if the file has shrunk."""
        return self._read(span.start, span.end)

    def contains(self, text: bytes, span: Span) -> bool:
        """Return whether a span contains a short text."""
        before = b""
        for block in self.blocks(*span):
            if text in before + block:
                return True
            before = block[1 - len(text) :]
        return False

    def whole(self) -> bytes:
        """Return all bytes; only for formats that cannot be read in blocks."""
        return b"".join(self.blocks())

    def blocks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes between two offsets in large blocks."""
        while block := self._read(start, start + _BLOCK if end is None else min(start + _BLOCK, end)):
            yield block
            start += len(block)

    def lines(self, start: int = 0, number: int = 0) -> Iterator[Line | LongLine]:
        r"""Yield the lines as the client's reader splits them: at `\n`, `\r\n` and a lone `\r`.

        Args:
            start: offset of the first line, just after a `\n`.
            number: number of lines before it.

        """
        partial: list[bytes] = []
        n_partial = 0
        position = start
        while block := self._read(position, position + _BLOCK):
            position += len(block)
            last = block.rfind(b"\n") + 1
            if not last:
                partial.append(block)
                n_partial += len(block)
                if n_partial > LONG:
                    partial, n_partial, number = [], 0, number + 1
                    start = yield from self._long_line(start, number)
                    position = start
                continue
            data = b"".join([*partial, block[:last]])
            partial, n_partial = [block[last:]], len(block) - last
            has_returns = b"\r" in data
            at = 0
            while at < len(data):
                end = data.index(b"\n", at)
                number += 1
                line = Line(number, start + at, data[at:end])
                if has_returns and b"\r" in line.data:
                    yield from _cut(line)
                else:
                    yield line
                at = end + 1
            start += len(data)
        if tail := b"".join(partial):
            yield from _cut(Line(number + 1, start, tail))

    def _long_line(self, start: int, number: int) -> Generator[Line | LongLine, None, int]:
        r"""Yield the parts of a long line between its `\r`, and return the offset of the next line."""
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
        """Return the SHA-256 of the file."""
        digest = hashlib.sha256()
        for block in self.blocks():
            digest.update(block)
        return digest.hexdigest()


def end_of_lines(source: Source, start: int) -> int:
    """Return the end of the last complete line after an offset; the offset itself if there is none."""
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
