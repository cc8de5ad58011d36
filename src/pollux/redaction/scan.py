"""Text → what is to be replaced in it, and by which rule."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from pollux.redaction import encoded
from pollux.redaction.anchors import GATED, NEEDLES, RARE, Finder, Needles, Place
from pollux.redaction.disguises import readings
from pollux.redaction.rule import Kind, Rule
from pollux.redaction.rules import ENCODED, HOST, RULES, USER

_RUN = b"a" * 20
_CLASSES = bytes(ord("a") if chr(code) in "_-+/" or (code < 128 and chr(code).isalnum()) else 32 for code in range(256))
"""Maps letters, digits and `_ - + /` to one character, and all others to a blank."""
_has_needle = re.compile("|".join(map(re.escape, (*NEEDLES, *RARE, *GATED))).encode()).search
_LONG, _JUNK = 1000, 8
"""What is no secret, and yet so long or so full of signs of equality, holds none: else all of it were tried again and
again."""
_REACH = 40
"""So far to the left of a run its anchor may stand."""
_DEPTH = 3
"""Base64 within base64 is read so many times."""
_RANK = {rule.id: rank for rank, rule in enumerate(RULES)}


PSEUDONYM = re.compile(r"\[redacted:[a-z0-9-]+#[0-9]+\]")


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


@cache
def _people() -> Needles:
    return Needles(rule for rule in RULES if rule.anchors and rule.word in {USER.word, HOST.word})


def is_plain(text: str, names: Names) -> bool:
    """Tell of a short text, faster than a scan does, that nothing can be found in it."""
    if "\\" in text or "%" in text or "\x1b" in text:
        return False
    plain = text.encode("latin-1", "replace")
    if _has_needle(plain.lower()):
        return False
    finder = _finders()[1]
    is_empty = all(
        not finder.next(text, max(start - _REACH, 0), end)[1] and encoded.blob(text, start, end) is None
        for start, end in _runs(plain)
    )
    return is_empty and next(names.find(text), None) is None


def _runs(plain: bytes) -> Iterator[tuple[int, int]]:
    """Yield where long runs of letters, digits and `_ - + /` begin and end."""
    classes = plain.translate(_CLASSES)
    start = classes.find(_RUN)
    while start >= 0:
        end = classes.find(b" ", start)
        end = end if end >= 0 else len(classes)
        yield start, end
        start = classes.find(_RUN, end)


def people(text: str) -> Iterator[Found]:
    """Yield the users and hosts that a text tells of, and nothing else: much faster than a scan."""
    done: dict[Rule, int] = {}
    for place in _people().places(text.encode("latin-1", "replace").lower()):
        if found := _tried(text, place, done):
            yield found


def scan(text: str, names: Names, seams: Sequence[int] = (), depth: int = _DEPTH) -> Scan:
    """Find all that is to be replaced in a text; `seams` are the places where two pieces meet."""
    found: list[Found] = []
    binary: list[int] = []
    for number, reading in enumerate(readings(text, seams)):
        for one in _matches(reading.text, names, depth, [] if number else binary):
            start, end = reading.origin(one.start, one.end)
            found.append(one._replace(start=start, end=end))
    if found and "[redacted:" in text:
        found = _beside(found, [match.span() for match in PSEUDONYM.finditer(text)])
    return Scan(_apart(found) if found else (), binary)


def _matches(text: str, names: Names, depth: int, binary: list[int]) -> Iterator[Found]:
    """Yield all matches in one reading of a text; they may overlap."""
    needles, finder = _finders()
    plain = text.encode("latin-1", "replace")
    done: dict[Rule, int] = {}
    for place in needles.places(plain.lower()):
        if found := _tried(text, place, done):
            yield found
    for start, end in _runs(plain):
        at, inner, outer = max(start - _REACH, 0), end, end
        while at < end:
            at, places = finder.next(text, at, end)
            for place in places:
                if found := _tried(text, place, done):
                    yield found
                    inner, outer = found.start + _REACH, found.end - _REACH
            at = outer if inner <= at < outer else at  # nothing begins in the middle of a long one
        yield from _hidden(text, start, end, names, depth, binary)
    yield from names.find(text)


def _tried(text: str, place: Place, done: dict[Rule, int]) -> Found | None:
    """Try one rule at one place, unless it is in what the rule has already found, or taken for junk."""
    at, behind, rule = place
    if behind <= done.get(rule, 0) or (match := rule.pattern.match(text, at)) is None:
        return None
    start, end = match.span("secret")
    if rule.left_pattern is not None:
        left = rule.left_pattern.match(text[max(at - rule.left_reach, 0) : at][::-1])
        if left is None:
            return None
        start, end = at - left.end(), max(end, at) if start < end else at
    value = text[start:end]
    if rule.check is None or rule.check(value, match):
        done[rule] = end
        return Found(start, end, rule, value, "sure" in match.re.groupindex and match["sure"] is not None)
    if len(value) > _LONG or value.count("=") + value.count(":") > _JUNK:
        done[rule] = end
    return None


def _hidden(text: str, start: int, end: int, names: Names, depth: int, binary: list[int]) -> Iterator[Found]:
    """Look into base64."""
    if depth == 0 or (blob := encoded.blob(text, start, end)) is None:
        return
    if blob.text is None:
        binary.append(blob.end - blob.start)
    elif scan(blob.text, names, depth=depth - 1).found:
        yield Found(blob.start, blob.end, ENCODED, text[blob.start : blob.end])


def _beside(found: Iterable[Found], pseudonyms: Sequence[tuple[int, int]]) -> list[Found]:
    """Leave out what is redacted already."""
    return [one for one in found if not _is_in(one, pseudonyms)]


def _is_in(found: Found, spans: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a part overlaps one of some spans, which are in order."""
    after = bisect_left(spans, (found.end, 0))
    return after > 0 and spans[after - 1][1] > found.start


def _apart(found: Sequence[Found]) -> list[Found]:
    """Leave one of several that overlap; a name in a secret, or around one, is none."""
    secrets = _merged(one for one in found if one.rule.kind is Kind.SECRET)
    taken = [(one.start, one.end) for one in secrets]
    names = _merged(one for one in found if one.rule.kind is not Kind.SECRET and not _is_in(one, taken))
    return sorted((*secrets, *names), key=lambda one: one.start)


def _merged(found: Iterable[Found]) -> list[Found]:
    """Leave that which holds the others, named after the first rule of those as long; if neither does, they are one."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda one: (one.start, -one.end, _RANK[one.rule.id])):
        last = kept[-1] if kept else None
        if last is None or one.start >= last.end:
            kept.append(one)
        elif one.end > last.end:
            better = min(last, one, key=lambda each: _RANK[each.rule.id])
            kept[-1] = better._replace(start=last.start, end=one.end)
    return kept
