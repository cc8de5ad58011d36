"""Shorten long JSON values, so that a huge message needs little memory and is still counted exactly.

The bytes are scanned in pieces. Strings beyond a limit keep their start and end, with a mark in place of the part
between, whose exact length and digest are recorded. Messages in a list (`$set`, a header, a document) are not copied at
all: the scan returns their positions, and the caller reads them one by one. The result is ordinary JSON, which the
decoder validates.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple, Self

import msgspec

from pollux.formats import lenient
from pollux.formats.source import LONG, Source, Span

_NONCE = os.urandom(16).hex()
"""Random in each process, so that no file can contain a mark; marks never leave the process."""
_MARK = re.compile(rf"<cut {_NONCE}:([0-9a-f]{{8}})>")
_MARK_IN_BYTES = re.compile(_MARK.pattern.encode())
_MARK_LENGTH = len(f"<cut {_NONCE}:00000000>")

_PIECE = 1 << 20

_RUN = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
"""Everything up to a bracket, or up to a string that does not end in this piece."""
_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_LIST_KEY = re.compile(rb'[{,]\s*"(\$set|messages)"\s*:\s*\Z')
_KEY_ROOM = 100
_OPENING = frozenset(b"[{")
_QUOTE = ord('"')
_UNITS = re.compile(
    rb"(?:[^\\]++|\\[^u]"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}(?=[^\\]|\\[^u]|\\u(?![dD][c-fC-F])[0-9a-fA-F]{4})"
    rb"|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*+",
    re.DOTALL,
)
"""Complete characters of a string; a pair of surrogates is one character."""
_LONGEST_UNIT = 12
_HALF = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z")
"""The start of a character in UTF-8, perhaps all of it."""

_decode_array = msgspec.json.Decoder(list[Any]).decode
_decode_string = msgspec.json.Decoder(str).decode

MASKED = b"<tool_output_masked>"
_WATCHED = (MASKED,)
"""Texts that affect how a record is read; each cut records which of them it removed."""
_LONGEST_WATCHED = max(map(len, _WATCHED)) - 1


LEFT_OUT = "Pollux left out"


class _Limit(NamedTuple):
    longest: int
    head: int = 0
    tail: int = 0


_LIMITS = (
    _Limit(1 << 20, 64 << 10, 4 << 10),  # longer than any text of a model or a person
    _Limit(64 << 10, 16 << 10, 4 << 10),
    _Limit(16 << 10, 12 << 10, 1 << 10),  # still contains the first thousand characters, even if all are escaped
)
"""Tried in this order until the text is short enough."""
_NO_LIMIT = _Limit(sys.maxsize)


class InexactError(Exception):
    """A short text is not enough to answer exactly; the complete text has to be read."""


class Cut(NamedTuple):
    """The part that was removed from a string."""

    end: int
    """Offset of the end of its mark in the short text."""
    n_bytes: int
    n_chars: int
    digest: str
    watched: frozenset[bytes]


class Element(NamedTuple):
    """The position of a message in a list."""

    span: Span
    n_lines: int
    """Number of line ends before it."""


class Short(msgspec.Struct, frozen=True):
    """A short version of a long JSON text, with exact facts about the parts that were removed."""

    text: bytes
    start: int
    cuts: tuple[Cut, ...] = ()
    elements: tuple[Element, ...] = ()
    """The elements of the list of messages, each of which is `{}` in the text."""
    n_lists: int = 0
    has_lists: bool = False
    """Whether the elements of lists of messages were removed from the text."""

    def messages(self, array: bytes) -> tuple[Element, ...]:
        """Return the positions of the messages in a list.

        Raises `InexactError` if the text has more than one list, or a list with elements that are not objects.
        """
        if self.n_lists != 1 or _decode_array(array) != [{}] * len(self.elements):
            raise InexactError
        return self.elements

    def span(self, start: int, end: int) -> Span:
        """Return the span in the file of a part of the text."""
        return Span(self._place(start), self._place(end))

    def _place(self, offset: int) -> int:
        ends = [cut.end for cut in self.cuts]
        lengths = [0, *accumulate(cut.n_bytes - _MARK_LENGTH for cut in self.cuts)]
        return self.start + offset + lengths[bisect_right(ends, offset)]

    def n_chars(self, text: str) -> int:
        """Return the number of characters of a decoded text before it was cut."""
        return len(text) + sum(cut.n_chars - _MARK_LENGTH for cut in self._cuts_in(text))

    def n_bytes(self, data: bytes) -> int:
        """Return the number of bytes of a JSON value before it was cut."""
        return len(data) + sum(cut.n_bytes - _MARK_LENGTH for cut in self._cuts_in_bytes(data))

    def exact(self, text: str) -> str:
        """Return a text that is equal for two texts only if they were equal before they were cut."""
        return _MARK.sub(lambda match: f"\0{self._cut(match).n_chars}:{self._cut(match).digest}\0", text)

    def plain(self, text: str) -> str:
        """Return a text with an ellipsis for each cut."""
        return _MARK.sub("…", text)

    def has_cut_out(self, watched: bytes, data: bytes) -> bool:
        """Return whether a watched text was cut out of a value."""
        return any(watched in cut.watched for cut in self._cuts_in_bytes(data))

    def with_notes(self, value: Any) -> Any:  # noqa: ANN401  the decoding edge
        """Return a decoded value with a note in place of each cut, and without partial data of attachments."""
        if isinstance(value, str):
            return _MARK.sub(lambda match: _sentence(self._cut(match)), value)
        if isinstance(value, list):
            return [self.with_notes(inner) for inner in value]
        if isinstance(value, dict):
            return {self.with_notes(key): self._member(key, inner) for key, inner in value.items()}
        return value

    def _member(self, key: str, value: Any) -> Any:  # noqa: ANN401
        data = value.get("data") if key == "inlineData" and isinstance(value, dict) else None
        if isinstance(data, str) and has_mark(data):
            return value | {"data": ElidedText(data[-2:], self.n_chars(data))}
        return self.with_notes(value)

    def _cuts_in(self, text: str) -> Iterator[Cut]:
        return (self._cut(match) for match in _MARK.finditer(text))

    def _cuts_in_bytes(self, data: bytes) -> Iterator[Cut]:
        return (self.cuts[int(match[1], 16)] for match in _MARK_IN_BYTES.finditer(data))

    def _cut(self, match: re.Match[str]) -> Cut:
        return self.cuts[int(match[1], 16)]


class ElidedText(str):
    """The end of a long text, of which the part before was removed."""

    __slots__ = ("length",)
    length: int

    def __new__(cls, end: str, length: int) -> Self:
        """Create a text with the number of characters that it had before."""
        text = super().__new__(cls, end)
        text.length = length
        return text


def has_mark(value: object) -> bool:
    """Return whether a text, or any text in a value, was cut."""
    return _NONCE in (value if isinstance(value, str) else repr(value))


def value_at(source: Source, span: Span) -> tuple[bytes, Short | None]:
    """Return the bytes of a value, or a short text if there are more than `LONG` bytes."""
    short = shorten(source, span) if span.end - span.start > LONG else None
    return (short.text, short) if short else (source.slice(span), None)


def shorten(source: Source, span: Span, *, has_lists: bool = False, exactly: bool = False) -> Short | None:
    """Return a short text for a value; None if it has too many parts to become short.

    Args:
        source: the file.
        span: the value.
        has_lists: remove the elements of a list of messages from the text.
        exactly: keep everything outside such a list at any length.

    """
    for limit in (_NO_LIMIT,) if exactly else _LIMITS:
        if short := _Scan(source, span, limit, has_lists=has_lists).run():
            return short
    return None


class _Scan:
    def __init__(self, source: Source, span: Span, limit: _Limit, *, has_lists: bool) -> None:
        self._source = source
        self._span = span
        self._limit = limit
        self._has_lists = has_lists
        self._out: list[bytes] = []
        self._n_out = 0
        self._cuts: list[Cut] = []
        self._elements: list[Element] = []
        self._n_lists = 0
        self._n_lines = 0
        self._depth = 0
        self._is_in_set = False
        self._list_depth = 0
        """Nesting depth of the elements of the current list; 0 outside a list."""
        self._element: Element | None = None
        """The current element, whose bytes are skipped."""

    def run(self) -> Short | None:
        """Return the short text; None if it gets too long."""
        position = self._span.start
        size = min(self._limit.longest, _PIECE)  # so that a string that ends in its piece is never too long
        while position < self._span.end:
            piece = self._source.slice(Span(position, min(position + size, self._span.end)))
            if not piece:
                break  # the file has shrunk since
            position += self._walk(piece, position)
            if self._n_out > LONG and self._limit is not _NO_LIMIT:
                return None
        text = b"".join(self._out)
        cuts, elements = tuple(self._cuts), tuple(self._elements)
        return Short(text, self._span.start, cuts, elements, self._n_lists, self._has_lists)

    def _walk(self, piece: bytes, position: int) -> int:
        """Process one piece and return the number of bytes used; a string that does not end in it is left."""
        at = 0
        while at < len(piece):
            end = _end_of(_RUN, piece, at)
            if self._has_lists:
                self._n_lines += piece.count(b"\n", at, end)
            if self._element is None:
                self._put(piece[at:end])
            if end == len(piece):
                break
            if piece[end] == _QUOTE:
                return end or self._long_string(position)
            if piece[end] in _OPENING:
                self._open(piece[end : end + 1], position + end)
            else:
                self._close(piece[end : end + 1], position + end + 1)
            at = end + 1
        return len(piece)

    def _put(self, data: bytes) -> None:
        self._out.append(data)
        self._n_out += len(data)

    def _open(self, bracket: bytes, place: int) -> None:
        depth = self._depth
        self._depth += 1
        if self._element is not None:
            return
        if self._list_depth and depth == self._list_depth:
            self._element = Element(Span(place, place), self._n_lines)
            return
        if self._has_lists and (depth == 1 or (depth == 2 and self._is_in_set)):  # noqa: PLR2004  {"$set": {"messages"
            key = _LIST_KEY.search(b"".join(piece[-_KEY_ROOM:] for piece in self._out[-3:]))
            if key and key[1] == b"messages" and bracket == b"[":
                self._n_lists += 1
                self._list_depth = self._depth
            elif depth == 1:
                self._is_in_set = key is not None and key[1] == b"$set"
        self._put(bracket)

    def _close(self, bracket: bytes, place: int) -> None:
        self._depth -= 1
        if self._element is not None:
            if self._depth == self._list_depth:
                self._elements.append(Element(Span(self._element.span.start, place), self._element.n_lines))
                self._element = None
                self._put(b"{}")
            return
        if self._depth < self._list_depth:
            self._list_depth = 0
        self._put(bracket)

    def _long_string(self, position: int) -> int:
        """Add a string that starts here, cut if it is too long, and return its length with its quotes."""
        start = position + 1
        end = _string_end(self._source, Span(start, self._span.end))
        quoted = Span(position, min(end + 1, self._span.end))
        if self._element is None:
            if quoted.end - quoted.start > self._limit.longest:
                self._cut_string(start, end)
                self._put(self._source.slice(Span(end, quoted.end)))
            else:
                self._put(self._source.slice(quoted))
        return quoted.end - position

    def _cut_string(self, start: int, end: int) -> None:
        """Add the start and the end of a string, and record a `Cut` for the part between."""
        self._put(b'"')
        head = self._source.slice(Span(start, start + self._limit.head))
        head = head[: _boundary(head)]
        self._put(head)
        cut_from = position = start + len(head)
        digest = hashlib.blake2b(digest_size=16)
        n_chars, is_valid = 0, True
        watched: set[bytes] = set()
        before = head[-_LONGEST_WATCHED:]
        stop = end - self._limit.tail
        while piece := self._source.slice(Span(position, max(position, min(position + _PIECE, stop)))):
            length = _boundary(piece)
            if len(piece) - length > _LONGEST_UNIT:
                is_valid = False  # not a valid escape
                length = len(piece)
            if not length:
                break
            piece = piece[:length]
            text = _decoded(piece)
            is_valid = is_valid and text is not None
            n_chars += len(text or "")
            digest.update((text or "").encode("utf-8", "surrogatepass"))
            watched.update(_watched(before, piece))
            before = piece[-_LONGEST_WATCHED:]
            position += length
        tail = self._source.slice(Span(position, end))
        watched.update(word for word in _WATCHED if word in before[1 - len(word) :] + tail[: len(word) - 1])
        mark = f"<cut {_NONCE}:{len(self._cuts):08x}>".encode() if is_valid else b"\0" * _MARK_LENGTH
        self._put(mark)
        cut = Cut(self._n_out, position - cut_from, n_chars, digest.hexdigest(), frozenset(watched))
        self._cuts.append(cut)
        self._put(tail)


def _string_end(source: Source, span: Span) -> int:
    """Return the end of the string whose characters start a span: its closing quote, or the end of the span."""
    position = span.start
    while piece := source.slice(Span(position, min(position + _PIECE, span.end))):
        end = _end_of(_STRING, piece, 0)
        if end < len(piece) and piece[end] == _QUOTE:
            return position + end
        if not end:
            break  # a lone backslash ends the span
        position += end
    return span.end


def _boundary(piece: bytes) -> int:
    """Return the number of bytes up to the end of the last complete character."""
    end = _end_of(_UNITS, piece, 0)
    half = _HALF.search(piece, max(0, end - _LONGEST_UNIT), end)
    return half.start() if half else end


def _watched(before: bytes, piece: bytes) -> list[bytes]:
    return [word for word in _WATCHED if word in before[1 - len(word) :] + piece]


def _decoded(piece: bytes) -> str | None:
    for data in (piece, None):
        try:
            return _decode_string(b'"' + (lenient.mask(piece) if data is None else data) + b'"')
        except ValueError:  # includes UnicodeDecodeError
            continue
    return None


def _end_of(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    match = pattern.match(data, at)
    assert match  # all of these patterns match an empty text
    return match.end()


def _sentence(cut: Cut) -> str:
    return f"\n[{LEFT_OUT} {cut.n_chars:,} characters here; `pollux export ID --format json` writes all of them]\n"
