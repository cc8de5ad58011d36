"""Other readings of a text, in which a disguised secret shows.

Colours, invisible characters, line breaks and the seams between parts cut secrets to pieces; JSON, URLs, HTML and
programs write some of their characters as escapes. A reading is the text without one of these, and it maps every
position back to the original text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from typing import TypeAlias

# One pattern for each kind of escape: a pattern that begins with a certain character is searched much faster.
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""A colour or another order to a terminal."""
_WRITTEN_CONTROL = re.compile(r"\\\\{0,15}+(?:u001[bB]|x1[bB]|033|e)\[[0-9;]*+m")
"""A colour as a program writes it."""
_CHARACTER = re.compile(r"\\\\{0,15}+(?:u00([2-7][0-9A-Fa-f])|x([2-7][0-9A-Fa-f])|/)")
"""A printable ASCII character as JSON or a program writes it."""
_PERCENT = re.compile(r"%([2-7][0-9A-Fa-f]|0[9AaDd])")
"""The same in a URL, and the tabs and line ends of a text that was put into one."""
_FORM = re.compile(r"(?<=[^\s+])\+(?=[^\s+])|%([2-7][0-9A-Fa-f]|0[9AaDd])")
"""The same in a form or a query, where a plus sign stands for a blank."""
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
"""Escapes within escapes are undone so many times."""
_AROUND = 400
"""Of a text with few escapes or seams only so much before and behind each is read again."""
_GAP = "\x1f"
"""A blank to all patterns, but none that stands in texts."""

Put: TypeAlias = tuple[int, int, str]
"""Begin and end of a part, and what is put instead."""


@dataclass(slots=True)
class Reading:
    """A text, and how it was made from another."""

    text: str
    made_from: Reading | None = None
    puts: Callable[[], Iterable[Put]] = tuple
    """What was put where, asked for only when something was found."""
    _places: list[tuple[int, int, int]] = field(default_factory=list)
    """Where in this text each piece begins, and where in the other it begins and ends."""

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Tell where in the original a part of this text begins and ends."""
        if self.made_from is None:
            return start, end
        places = self._places = self._places or [*_places(self.made_from.text, self.puts())]
        first = places[bisect_right(places, start, key=lambda place: place[0]) - 1]
        after = bisect_right(places, max(end - 1, start), key=lambda place: place[0])
        last = places[after - 1]
        is_whole = after < len(places) and end >= places[after][0]
        stop = last[2] if is_whole else last[1] + end - last[0]
        begin = first[1] + start - first[0]
        return self.made_from.origin(begin, max(stop, begin))


def is_disguised(text: str) -> bool:
    """Return whether a text may have more than one reading, apart from seams and broken lines."""
    if "\\" in text or "%" in text or "\x1b" in text:
        return True
    return (
        ("&" in text and _has_entities(text))
        or ("+" in text and _has_query(text))
        or (not text.isascii() and _has_invisible(text))
    )


def readings(text: str, seams: Sequence[int] = ()) -> Iterator[Reading]:
    """Yield the readings of a text.

    The first is the text itself, or, where seams or colours cut it, the text without them. Then come the text with a
    gap at each cut, the text without invisible characters, and each of these without escapes.
    """
    whole = Reading(text)
    control = _control(text)
    firsts = [_cut(whole, seams, control, ""), _cut(whole, seams, control, _GAP)] if seams or control else [whole]
    if _has_invisible(text):
        firsts.append(_without(whole, _spans(_INVISIBLE_RUN, text, "")))
    for reading in firsts:
        yield reading
        yield from _unescaped(reading)


def joined_readings(text: str, breaks: Iterable[tuple[int, int]]) -> Iterator[Reading]:
    """Yield a text without some of its line breaks, then without escapes."""
    joined = _without(Reading(text), [(start, end, "") for start, end in breaks])
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


def _without(whole: Reading, puts: Iterable[Put]) -> Reading:
    """Return the parts of a text that are near some cuts, without the cuts."""
    near = list(_near(puts, len(whole.text)))
    return Reading(_written(whole.text, near), whole, lambda: near)


def _control(text: str) -> re.Pattern[str] | None:
    if "\x1b" in text:
        return _CONTROL
    return _WRITTEN_CONTROL if "\\" in text and _WRITTEN_CONTROL.search(text) else None


def _cut(reading: Reading, seams: Sequence[int], control: re.Pattern[str] | None, instead: str) -> Reading:
    """Put something instead of all that cuts a text; a seam has no width."""
    if control and not seams:
        return Reading(control.sub(instead, reading.text), reading, partial(_spans, control, reading.text, instead))
    if not control:
        return _gapped(reading, seams) if instead else reading
    spans = [*_spans(control, reading.text, instead)]
    ends = [end for _, end, _ in spans]
    outside = (at for at in seams if not any(start < at < end for start, end, _ in spans[bisect_right(ends, at) :][:1]))
    puts = list(merge(((at, at, instead) for at in outside), spans))
    return Reading(_written(reading.text, puts), reading, lambda: puts)


def _gapped(reading: Reading, seams: Sequence[int]) -> Reading:
    """Put a gap where each seam is; if they are few, only what is near them is read again."""
    puts = [(at, at, _GAP) for at in seams]
    puts = puts if len(seams) * _AROUND > len(reading.text) else [*_near(puts, len(reading.text))]
    return Reading(_written(reading.text, puts), reading, lambda: puts)


def _spans(pattern: re.Pattern[str], text: str, instead: str) -> Iterator[Put]:
    return ((*match.span(), instead) for match in pattern.finditer(text))


def _unescaped(reading: Reading) -> Iterator[Reading]:
    """Yield what stands around escapes, decoded once, twice and so on, because escapes may be escaped again."""
    if "+" in reading.text and "%" not in reading.text and _has_query(reading.text):
        yield _decoded(reading, _FORM, "+")
    for _ in range(_DEPTH):
        text = reading.text
        if "%" in text and _PERCENT.search(text):
            if "+" in text:
                yield _decoded(reading, _FORM, "%")
            reading = _decoded(reading, _PERCENT, "%")
        elif "\\" in text and _CHARACTER.search(text):
            reading = _decoded(reading, _CHARACTER, "\\")
        elif _has_entities(text):
            reading = _decoded(reading, _ENTITY, "&")
        else:
            return
        yield reading


def _decoded(reading: Reading, pattern: re.Pattern[str], mark: str) -> Reading:
    text = reading.text
    if text.count(mark) * _AROUND > len(text):  # all of it is near one
        plain = _unquoted(text) if pattern is _PERCENT else pattern.sub(_DECODERS[pattern], text)
        return Reading(plain, reading, partial(_escapes, pattern, text))
    near = list(_near(_escapes(pattern, text), len(text)))
    return Reading(_written(text, near), reading, lambda: near)


def _escapes(pattern: re.Pattern[str], text: str) -> Iterator[Put]:
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


def _unquoted(text: str) -> str:
    """Undo percent escapes, several times faster than the pattern does."""
    first, *others = text.split("%")
    return first + "".join([_UNQUOTED.get(one[:2], "%" + one[:2]) + one[2:] for one in others])


def _near(escapes: Iterable[Put], length: int) -> Iterator[Put]:
    """Yield escapes, and a gap for all that is far from any of them."""
    at = -_AROUND
    for start, end, plain in escapes:
        if start - at > 2 * _AROUND:
            yield at + _AROUND, start - _AROUND, _GAP
        yield start, end, plain
        at = end
    if at + _AROUND < length:
        yield at + _AROUND, length, _GAP


def _written(text: str, puts: Iterable[Put]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end, put in puts:
        pieces += text[at:start], put
        at = max(at, end)
    return "".join((*pieces, text[at:]))


def _places(text: str, puts: Iterable[Put]) -> Iterator[tuple[int, int, int]]:
    length = at = 0
    for start, end, put in puts:
        for width, place in ((start - at, (length, at, start)), (len(put), (length + max(start - at, 0), start, end))):
            if width > 0:
                yield place
                length += width
        at = max(at, end)
    yield length, at, len(text)
