"""A short text in place of a long JSON value, so that one huge message costs neither its size nor a wrong count.

The scan walks the bytes in pieces. Strings beyond a limit keep their beginning and their end; a mark stands for what
was cut out, with its exact length and digest. Messages in a list (`$set`, a header, a document) are not copied at all:
the scan says where each begins and ends, and the reader takes them one by one. What is left is ordinary JSON, and the
decoder that reads it checks it.
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
"""No file can hold a mark of this process, since it is different each time; and no mark leaves this process."""
_MARK = re.compile(rf"<cut {_NONCE}:([0-9a-f]{{8}})>")
_MARK_IN_BYTES = re.compile(_MARK.pattern.encode())
_MARK_LENGTH = len(f"<cut {_NONCE}:00000000>")

_PIECE = 1 << 20

_RUN = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
"""Everything up to a bracket, or to a string that does not end in this piece."""
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
"""Characters of a string, as far as they are whole; a pair of surrogates is one."""
_LONGEST_UNIT = 12
_HALF = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,2}\Z")
"""The beginning of a character, perhaps all of it."""

_decode_array = msgspec.json.Decoder(list[Any]).decode
_decode_string = msgspec.json.Decoder(str).decode

MASKED = b"<tool_output_masked>"
_WATCHED = (MASKED,)
"""Texts that decide something; for each cut it is noted which of them it took out."""
_LONGEST_WATCHED = max(map(len, _WATCHED)) - 1


LEFT_OUT = "Pollux left out"


class _Limit(NamedTuple):
    longest: int
    head: int = 0
    tail: int = 0


_LIMITS = (
    _Limit(1 << 20, 64 << 10, 4 << 10),  # longer than anything that a model or a person says
    _Limit(64 << 10, 16 << 10, 4 << 10),
    _Limit(16 << 10, 12 << 10, 1 << 10),  # still the first thousand characters, however they are escaped
)
"""In this order, until the text is short."""
_NO_LIMIT = _Limit(sys.maxsize)


class InexactError(Exception):
    """A short text does not say what is asked for; the whole one does."""


class Cut(NamedTuple):
    """What was taken out of a string."""

    end: int
    """Where its mark ends in the short text."""
    n_bytes: int
    n_chars: int
    digest: str
    watched: frozenset[bytes]


class Element(NamedTuple):
    """Where a message of a list stands."""

    span: Span
    n_lines: int
    """Line ends before it."""


class Short(msgspec.Struct, frozen=True):
    """A short text, and what is needed to tell exactly what it stands for."""

    text: bytes
    start: int
    cuts: tuple[Cut, ...] = ()
    elements: tuple[Element, ...] = ()
    """Of the list of messages; in the text each is `{}`."""
    n_lists: int = 0
    has_lists: bool = False
    """Whether lists of messages were left out of the text."""

    def messages(self, array: bytes) -> tuple[Element, ...]:
        """Return where the messages of a list stand.

        Raises `InexactError` if the text has more lists than one, or something else than objects in it.
        """
        if self.n_lists != 1 or _decode_array(array) != [{}] * len(self.elements):
            raise InexactError
        return self.elements

    def span(self, start: int, end: int) -> Span:
        """Return where a part of the text stands in the file."""
        return Span(self._place(start), self._place(end))

    def _place(self, offset: int) -> int:
        ends = [cut.end for cut in self.cuts]
        lengths = [0, *accumulate(cut.n_bytes - _MARK_LENGTH for cut in self.cuts)]
        return self.start + offset + lengths[bisect_right(ends, offset)]

    def n_chars(self, text: str) -> int:
        """Return the length of the whole text that a decoded one stands for."""
        return len(text) + sum(cut.n_chars - _MARK_LENGTH for cut in self._cuts_in(text))

    def n_bytes(self, data: bytes) -> int:
        """Return the length of the whole JSON value that a short one stands for."""
        found = (self.cuts[int(match[1], 16)] for match in _MARK_IN_BYTES.finditer(data))
        return len(data) + sum(cut.n_bytes - _MARK_LENGTH for cut in found)

    def exact(self, text: str) -> str:
        """Return a text that is equal for equal whole texts only."""
        return _MARK.sub(lambda match: f"\0{self._cut(match).n_chars}:{self._cut(match).digest}\0", text)

    def plain(self, text: str) -> str:
        """Return what is left of a text, with an ellipsis for each cut."""
        return _MARK.sub("…", text)

    def has_cut_out(self, watched: bytes, data: bytes) -> bool:
        """Return whether one of the watched texts was cut out of a value."""
        found = (self.cuts[int(match[1], 16)] for match in _MARK_IN_BYTES.finditer(data))
        return any(watched in cut.watched for cut in found)

    def told(self, value: Any) -> Any:  # noqa: ANN401  the decoding edge
        """Return a decoded value in which a sentence stands for each cut, and no attachment has half of its bytes."""
        if isinstance(value, str):
            return _MARK.sub(lambda match: _sentence(self._cut(match)), value)
        if isinstance(value, list):
            return [self.told(one) for one in value]
        if isinstance(value, dict):
            return {self.told(key): self._member(key, one) for key, one in value.items()}
        return value

    def _member(self, key: str, value: Any) -> Any:  # noqa: ANN401
        data = value.get("data") if key == "inlineData" and isinstance(value, dict) else None
        if isinstance(data, str) and has_mark(data):
            return value | {"data": LeftOut(data[-2:], self.n_chars(data))}
        return self.told(value)

    def _cuts_in(self, text: str) -> Iterator[Cut]:
        return (self._cut(match) for match in _MARK.finditer(text))

    def _cut(self, match: re.Match[str]) -> Cut:
        return self.cuts[int(match[1], 16)]


class LeftOut(str):
    """The end of a long text whose rest was left out."""

    __slots__ = ("length",)
    length: int

    def __new__(cls, end: str, length: int) -> Self:
        """Make one; the length is that of the whole text."""
        made = super().__new__(cls, end)
        made.length = length
        return made


def has_mark(value: object) -> bool:
    """Return whether something was cut out of a text, or of a text somewhere in a value."""
    return _NONCE in (value if isinstance(value, str) else repr(value))


def value_at(source: Source, span: Span) -> tuple[bytes, Short | None]:
    """Return the bytes of a value, or a short text where there are too many of them."""
    short = shorten(source, span) if span.end - span.start > LONG else None
    return (short.text, short) if short else (source.slice(span), None)


def shorten(source: Source, span: Span, *, has_lists: bool = False, exactly: bool = False) -> Short | None:
    """Return a short text for a value; nothing if it has too many parts for that.

    Args:
        source: the file.
        span: the value.
        has_lists: whether to leave the elements of a list of messages out of the text.
        exactly: whether to keep everything outside of such a list, however long.

    """
    for limit in (_NO_LIMIT,) if exactly else _LIMITS:
        if short := _Scan(source, span, limit, has_lists=has_lists).run():
            return short
    return None


class _Scan:
    """One walk through a value."""

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
        """How deep the elements of the list at hand stand; 0 outside of a list."""
        self._element: Element | None = None
        """The element at hand: its bytes are passed over."""

    def run(self) -> Short | None:
        """Walk through all of it; return nothing if the text gets too long."""
        position = self._span.start
        size = min(self._limit.longest, _PIECE)  # so that a string that ends in its piece is never too long
        while position < self._span.end:
            piece = self._source.slice(Span(position, min(position + size, self._span.end)))
            if not piece:
                break  # the file has shrunk meanwhile
            position += self._walk(piece, position)
            if self._n_out > LONG and self._limit is not _NO_LIMIT:
                return None
        text = b"".join(self._out)
        cuts, elements = tuple(self._cuts), tuple(self._elements)
        return Short(text, self._span.start, cuts, elements, self._n_lists, self._has_lists)

    def _walk(self, piece: bytes, position: int) -> int:
        """Walk through one piece, and return how far that went: a string that does not end in it is left."""
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
            key = _LIST_KEY.search(b"".join(one[-_KEY_ROOM:] for one in self._out[-3:]))
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
        """Pass over a string that begins here, and return its length with its quotes."""
        start = position + 1
        end = _string_end(self._source, Span(start, self._span.end))
        whole = Span(position, min(end + 1, self._span.end))
        if self._element is None:
            if whole.end - whole.start > self._limit.longest:
                self._cut_string(start, end)
                self._put(self._source.slice(Span(end, whole.end)))
            else:
                self._put(self._source.slice(whole))
        return whole.end - position

    def _cut_string(self, start: int, end: int) -> None:
        """Put the beginning and the end of a string, and count what is between them."""
        self._put(b'"')
        head = self._source.slice(Span(start, start + self._limit.head))
        head = head[: _boundary(head)]
        self._put(head)
        cut_from = position = start + len(head)
        digest = hashlib.blake2b(digest_size=16)
        n_chars, is_sound = 0, True
        watched: set[bytes] = set()
        before = head[-_LONGEST_WATCHED:]
        stop = end - self._limit.tail
        while piece := self._source.slice(Span(position, max(position, min(position + _PIECE, stop)))):
            length = _boundary(piece)
            if len(piece) - length > _LONGEST_UNIT:
                is_sound = False  # no such escape
                length = len(piece)
            if not length:
                break
            piece = piece[:length]
            text = _decoded(piece)
            is_sound = is_sound and text is not None
            n_chars += len(text or "")
            digest.update((text or "").encode("utf-8", "surrogatepass"))
            watched.update(_watched(before, piece))
            before = piece[-_LONGEST_WATCHED:]
            position += length
        tail = self._source.slice(Span(position, end))
        watched.update(one for one in _WATCHED if one in before[1 - len(one) :] + tail[: len(one) - 1])
        mark = f"<cut {_NONCE}:{len(self._cuts):08x}>".encode() if is_sound else b"\0" * _MARK_LENGTH
        self._put(mark)
        cut = Cut(self._n_out, position - cut_from, n_chars, digest.hexdigest(), frozenset(watched))
        self._cuts.append(cut)
        self._put(tail)


def _string_end(source: Source, span: Span) -> int:
    """Return where the string ends whose characters begin a span: at its quote, or with the span."""
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
    """Return how many bytes of a string's characters are whole ones."""
    end = _end_of(_UNITS, piece, 0)
    half = _HALF.search(piece, max(0, end - _LONGEST_UNIT), end)
    return half.start() if half else end


def _watched(before: bytes, piece: bytes) -> list[bytes]:
    """Return the watched texts that end in a piece."""
    return [one for one in _WATCHED if one in before[1 - len(one) :] + piece]


def _decoded(piece: bytes) -> str | None:
    for data in (piece, None):
        try:
            return _decode_string(b'"' + (lenient.mask(piece) if data is None else data) + b'"')
        except ValueError:  # a UnicodeDecodeError is one, too
            continue
    return None


def _end_of(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    match = pattern.match(data, at)
    assert match  # each of these patterns fits an empty text
    return match.end()


def _sentence(cut: Cut) -> str:
    return f"\n[{LEFT_OUT} {cut.n_chars:,} characters here; `pollux export ID --format json` writes them all]\n"
