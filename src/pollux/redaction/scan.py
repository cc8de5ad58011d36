"""Text → what is to be replaced in it, and by which rule."""

from __future__ import annotations

import re

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from pollux.redaction import encoded
from pollux.redaction.anchors import GATED, NEEDLES, RARE, Finder, Needles, Place
from pollux.redaction.disguises import readings
from pollux.redaction.rule import Rule
from pollux.redaction.rules import ENCODED, RULES

_RUN = b"a" * 20
_CLASSES = bytes(ord("a") if chr(code) in "_-+/" or (code < 128 and chr(code).isalnum()) else 32 for code in range(256))
"""Maps letters, digits and `_ - + /` to one character, and all others to a blank."""
_has_needle = re.compile("|".join(map(re.escape, (*NEEDLES, *RARE, *GATED))).encode()).search
_REACH = 40
"""So far to the left of a run its anchor may stand."""
_DEPTH = 3
"""Base64 within base64 is read so many times."""
_RANK = {rule.id: rank for rank, rule in enumerate(RULES)}


class Found(NamedTuple):
    """A part of a text that is to be replaced."""

    start: int
    end: int
    rule: Rule
    value: str
    is_sure: bool = False
    """Whether the name that was found can be looked for elsewhere."""


class Names(Protocol):
    """Knows names that are to be replaced wherever they stand as words."""

    def find(self, text: str) -> Iterator[Found]:
        """Yield the names in a text."""


class Scan(NamedTuple):
    """What was found in a text, and what could not be read."""

    found: Sequence[Found]
    """From the left to the right; none overlaps another."""
    binary: Sequence[int] = ()
    """Sizes of the base64 blobs that are no text."""


@cache
def _finders() -> tuple[Needles, Finder]:
    rules = [rule for rule in RULES if rule.anchors]
    return Needles(rule for rule in rules if not rule.in_run), Finder(rule for rule in rules if rule.in_run)


def is_plain(text: str, names: Names) -> bool:
    """Tell of a short text, faster than a scan does, that nothing can be found in it."""
    if "\\" in text or "%" in text or "\x1b" in text:
        return False
    plain = text.encode("latin-1", "replace")
    return (
        not _has_needle(plain.lower())
        and (len(plain) < len(_RUN) or _RUN not in plain.translate(_CLASSES))
        and next(names.find(text), None) is None
    )


def scan(text: str, names: Names, seams: Sequence[int] = (), depth: int = _DEPTH) -> Scan:
    """Find all that is to be replaced in a text; `seams` are the places where two pieces meet."""
    found: list[Found] = []
    binary: list[int] = []
    for number, reading in enumerate(readings(text, seams)):
        for one in _matches(reading.text, names, depth, [] if number else binary):
            start, end = reading.origin(one.start, one.end)
            found.append(one._replace(start=start, end=end))
    return Scan(_apart(found) if found else (), binary)


def _matches(text: str, names: Names, depth: int, binary: list[int]) -> Iterator[Found]:
    """Yield all matches in one reading of a text; they may overlap."""
    needles, finder = _finders()
    plain = text.encode("latin-1", "replace")
    for place in needles.places(plain.lower()):
        yield from _tried(text, place)
    classes = plain.translate(_CLASSES)
    start = classes.find(_RUN)
    while start >= 0:
        end = classes.find(b" ", start)
        end = end if end >= 0 else len(classes)
        for place in finder.places(text, max(start - _REACH, 0), end):
            yield from _tried(text, place)
        yield from _hidden(text, start, end, names, depth, binary)
        start = classes.find(_RUN, end)
    yield from names.find(text)


def _tried(text: str, place: Place) -> Iterator[Found]:
    """Try one rule at one place."""
    at, rule = place
    match = rule.pattern.match(text, at) if at >= 0 else None
    if match is None:
        return
    start, end = match.span("secret")
    if rule.left_pattern is not None:
        left = rule.left_pattern.match(text[max(at - rule.left_reach, 0) : at][::-1])
        if left is None:
            return
        start = at - left.end("secret" if "secret" in left.re.groupindex else 0)
    value = text[start:end]
    if rule.check is None or rule.check(value, match):
        yield Found(start, end, rule, value, "sure" in match.re.groupindex and match["sure"] is not None)


def _hidden(text: str, start: int, end: int, names: Names, depth: int, binary: list[int]) -> Iterator[Found]:
    """Look into base64."""
    if depth == 0 or (blob := encoded.blob(text, start, end)) is None:
        return
    if blob.text is None:
        binary.append(blob.end - blob.start)
    elif scan(blob.text, names, depth=depth - 1).found:
        yield Found(blob.start, blob.end, ENCODED, text[blob.start : blob.end])


def _apart(found: Iterable[Found]) -> list[Found]:
    """Leave one of several that overlap: the one that holds the others, named after the first rule of those as long."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end, _RANK[one.rule.id])):
        last = kept[-1] if kept else None
        if last is None or one.start >= last.end:
            kept.append(one)
        elif one.end > last.end:  # neither holds the other
            better = min(last, one, key=lambda each: _RANK[each.rule.id])
            kept[-1] = better._replace(start=last.start, end=one.end)
    return kept
