"""Decodings of a text, in which a disguised secret shows.

Colours, invisible characters, line breaks and the seams between parts cut secrets to pieces; JSON, URLs, HTML and
programs write some of their characters as escapes. A decoding is the text without one of these disguises, and maps
every position back to the original text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from typing import TypeAlias

# One pattern for each kind of escape: a pattern that starts with a certain character is searched much faster.
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""A colour or another control sequence of a terminal."""
_WRITTEN_CONTROL = re.compile(r"\\\\{0,15}+(?:u001[bB]|x1[bB]|033|e)\[[0-9;]*+m")
"""A colour as a program writes it."""
_CHARACTER = re.compile(r"\\\\{0,15}+(?:u00([2-7][0-9A-Fa-f])|x([2-7][0-9A-Fa-f])|/)")
"""A printable ASCII character as JSON or a program escapes it."""
_PERCENT = re.compile(r"%([2-7][0-9A-Fa-f]|0[9AaDd])")
"""The same in a URL, and the tabs and line ends of a text in a URL."""
_FORM = re.compile(r"(?<=[^\s+])\+(?=[^\s+])|%([2-7][0-9A-Fa-f]|0[9AaDd])")
"""The same in a form or a query, where a plus sign is a blank."""
_QUERY = re.compile(r"\?(?:[\w.-]{1,64}=[^\s&#+]{0,200}&){0,8}[\w.-]{1,64}=[^\s&#+]{0,200}\+")
"""A query with such a plus sign."""
_UNQUOTED = {
    spelled: chr(code)
    for code in (0x09, 0x0A, 0x0D, *range(0x20, 0x80))
    for spelled in {f"{code:02x}", f"{code:02X}", f"{code:02x}".title()}
}
_NAMED_ENTITIES = dict(
    zip(
        "amp quot apos lt gt equals colon comma period sol bsol lowbar commat plus num dollar percnt excl quest ast"
        " verbar grave Hat lpar rpar lsqb rsqb lcub rcub".split(),
        "&\"'<>=:,./\\_@+#$%!?*|`^()[]{}",
        strict=True,
    )
)
_ENTITY = re.compile(
    r"&(?:#0{0,4}(9|1[03]|1[0-2]\d|[3-9]\d)|#[xX]0{0,4}([9AaDd]|[2-7][0-9A-Fa-f])"
    rf"|({'|'.join(_NAMED_ENTITIES)}));"
)
"""The same in HTML or XML."""
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
"""Soft hyphen, zero-width space, non-joiner and joiner, word joiner, byte order mark."""
_INVISIBLE_RUN = re.compile(f"[{_INVISIBLE}]+")
_DEPTH = 4
"""How often escapes within escapes are undone."""
_AROUND = 400
"""If escapes or seams are few, only so many characters before and after each are decoded."""
_GAP = "\x1f"
"""A blank to all patterns that does not occur in texts."""

Edit: TypeAlias = tuple[int, int, str]
"""Start and end of a part of a text, and its replacement."""


@dataclass(slots=True)
class Decoding:
    """A text, and how it was made from another."""

    text: str
    source: Decoding | None = None
    edits: Callable[[], Iterable[Edit]] = tuple
    """Computes the edits that made the text; called only after a match."""
    _pieces: list[tuple[int, int, int]] = field(default_factory=list)
    """Where each piece starts in this text, and where it starts and ends in the source."""

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return where a part of this text starts and ends in the original text."""
        if self.source is None:
            return start, end
        pieces = self._pieces = self._pieces or [*_pieces(self.source.text, self.edits())]
        first = pieces[bisect_right(pieces, start, key=lambda piece: piece[0]) - 1]
        after = bisect_right(pieces, max(end - 1, start), key=lambda piece: piece[0])
        last = pieces[after - 1]
        is_complete = after < len(pieces) and end >= pieces[after][0]
        source_end = last[2] if is_complete else last[1] + end - last[0]
        source_start = first[1] + start - first[0]
        return self.source.origin(source_start, max(source_end, source_start))


def is_disguised(text: str) -> bool:
    """Return whether a text may have more than one decoding, apart from seams and broken lines."""
    if "\\" in text or "%" in text or "\x1b" in text:
        return True
    return (
        ("&" in text and _has_entities(text))
        or ("+" in text and _has_query(text))
        or (not text.isascii() and _has_invisible(text))
    )


def decodings(text: str, seams: Sequence[int] = ()) -> Iterator[Decoding]:
    """Yield the decodings of a text.

    The first is the text itself or, where seams or colours cut it, the text without them. Then come the text with a gap
    at each cut, the text without invisible characters, and each of these without escapes.
    """
    original = Decoding(text)
    control = _control(text)
    firsts = [original]
    if seams or control:
        firsts = [_cut(original, seams, control, ""), _cut(original, seams, control, _GAP)]
    if _has_invisible(text):
        firsts.append(_edit_nearby(original, _edits(_INVISIBLE_RUN, text, "")))
    for decoding in firsts:
        yield decoding
        yield from _unescaped(decoding)


def joined_decodings(text: str, breaks: Iterable[tuple[int, int]]) -> Iterator[Decoding]:
    """Yield a text without some of its line breaks, then also without escapes."""
    joined = _edit_nearby(Decoding(text), [(start, end, "") for start, end in breaks])
    yield joined
    yield from _unescaped(joined)


def _has_entities(text: str) -> bool:
    return "&" in text and _ENTITY.search(text) is not None


def _has_query(text: str) -> bool:
    return "?" in text and _QUERY.search(text) is not None


def _has_invisible(text: str) -> bool:
    if text.isascii():
        return False
    for char in _INVISIBLE:  # noqa: SIM110  a loop is twice as fast
        if char in text:
            return True
    return False


def _control(text: str) -> re.Pattern[str] | None:
    if "\x1b" in text:
        return _CONTROL
    return _WRITTEN_CONTROL if "\\" in text and _WRITTEN_CONTROL.search(text) else None


def _cut(source: Decoding, seams: Sequence[int], control: re.Pattern[str] | None, replacement: str) -> Decoding:
    """Replace everything that cuts a text; a seam has no width."""
    text = source.text
    if control and not seams:
        return Decoding(control.sub(replacement, text), source, partial(_edits, control, text, replacement))
    if not control:
        return _with_gaps(source, seams) if replacement else source
    spans = [*_edits(control, text, replacement)]
    ends = [end for _, end, _ in spans]
    outside: list[Edit] = []
    for seam in seams:
        following = spans[bisect_right(ends, seam) :][:1]
        if not any(start < seam < end for start, end, _ in following):
            outside.append((seam, seam, replacement))
    edits = list(merge(outside, spans))
    return Decoding(_apply(text, edits), source, lambda: edits)


def _with_gaps(source: Decoding, seams: Sequence[int]) -> Decoding:
    """Insert a gap at each seam; if seams are few, only the text near them is decoded."""
    gaps = [(seam, seam, _GAP) for seam in seams]
    if len(seams) * _AROUND <= len(source.text):
        return _edit_nearby(source, gaps)
    return Decoding(_apply(source.text, gaps), source, lambda: gaps)


def _edit_nearby(source: Decoding, edits: Iterable[Edit]) -> Decoding:
    """Apply edits, and replace the text that is far from all of them by gaps."""
    nearby = list(_skip_distant(edits, len(source.text)))
    return Decoding(_apply(source.text, nearby), source, lambda: nearby)


def _edits(pattern: re.Pattern[str], text: str, replacement: str) -> Iterator[Edit]:
    return ((*match.span(), replacement) for match in pattern.finditer(text))


def _unescaped(decoding: Decoding) -> Iterator[Decoding]:
    """Yield a text with its escapes undone once, twice and so on, because escapes may be escaped again."""
    if "+" in decoding.text and "%" not in decoding.text and _has_query(decoding.text):
        yield _unescape(decoding, _FORM, "+")
    for _ in range(_DEPTH):
        text = decoding.text
        if "%" in text and _PERCENT.search(text):
            if "+" in text:
                yield _unescape(decoding, _FORM, "%")
            decoding = _unescape(decoding, _PERCENT, "%")
        elif "\\" in text and _CHARACTER.search(text):
            decoding = _unescape(decoding, _CHARACTER, "\\")
        elif _has_entities(text):
            decoding = _unescape(decoding, _ENTITY, "&")
        else:
            return
        yield decoding


def _unescape(source: Decoding, pattern: re.Pattern[str], mark: str) -> Decoding:
    text = source.text
    if text.count(mark) * _AROUND > len(text):  # all of the text is near an escape
        plain = _unquote(text) if pattern is _PERCENT else pattern.sub(_DECODERS[pattern], text)
        return Decoding(plain, source, partial(_unescapes, pattern, text))
    return _edit_nearby(source, _unescapes(pattern, text))


def _unescapes(pattern: re.Pattern[str], text: str) -> Iterator[Edit]:
    decode = _DECODERS[pattern]
    return ((*match.span(), decode(match)) for match in pattern.finditer(text))


def _decode_character(match: re.Match[str]) -> str:
    return chr(int(match[match.lastindex], 16)) if match.lastindex else "/"


def _decode_percent(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else " "


def _decode_entity(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return _NAMED_ENTITIES[name]
    return chr(int(decimal)) if decimal else chr(int(hexadecimal, 16))


_DECODERS = {
    _CHARACTER: _decode_character,
    _PERCENT: _decode_percent,
    _FORM: _decode_percent,
    _ENTITY: _decode_entity,
}


def _unquote(text: str) -> str:
    """Undo percent escapes, several times faster than the pattern does."""
    first, *others = text.split("%")
    return first + "".join([_UNQUOTED.get(part[:2], "%" + part[:2]) + part[2:] for part in others])


def _skip_distant(edits: Iterable[Edit], length: int) -> Iterator[Edit]:
    """Yield edits, with a gap in place of all text that is far from any of them."""
    at = -_AROUND
    for start, end, replacement in edits:
        if start - at > 2 * _AROUND:
            yield at + _AROUND, start - _AROUND, _GAP
        yield start, end, replacement
        at = end
    if at + _AROUND < length:
        yield at + _AROUND, length, _GAP


def _apply(text: str, edits: Iterable[Edit]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, replacement in edits:
        parts += text[at:start], replacement
        at = max(at, end)
    return "".join((*parts, text[at:]))


def _pieces(text: str, edits: Iterable[Edit]) -> Iterator[tuple[int, int, int]]:
    """Yield where each piece of an edited text starts in it, and where it starts and ends in the source."""
    length = at = 0
    for start, end, replacement in edits:
        if start > at:
            yield length, at, start
            length += start - at
        if replacement:
            yield length, start, end
            length += len(replacement)
        at = max(at, end)
    yield length, at, len(text)
