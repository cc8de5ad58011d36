"""Text → what is to be replaced in it, and by which rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from pollux.redaction import encoded
from pollux.redaction.anchors import Finder
from pollux.redaction.disguises import is_disguised, readings
from pollux.redaction.found import Found, all_tried, tried
from pollux.redaction.kept import PLAIN
from pollux.redaction.needles import Needles, lowered
from pollux.redaction.overlaps import apart
from pollux.redaction.rule import Rule
from pollux.redaction.rules import ENCODED, RULES

_LEAST = 20
_RUN = b"a" * _LEAST
_CLASSES = bytes(ord("a") if chr(code) in "_-+/" or (code < 128 and chr(code).isalnum()) else 32 for code in range(256))
"""Maps letters, digits and `_ - + /` to one character, and all others to a blank."""
_REACH = 40
"""So far to the left of a run its anchor may stand."""
_DEPTH = 3
"""Base64 within base64 is read so many times."""


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


_NOTHING = Scan(())


@cache
def _finders() -> tuple[Needles, Finder]:
    rules = [rule for rule in RULES if rule.anchors]
    return Needles(rule for rule in rules if not rule.in_run), Finder(rule for rule in rules if rule.in_run)


def scan(text: str, names: Names, seams: Sequence[int] = (), depth: int = _DEPTH) -> Scan:
    """Find all that is to be replaced in a text; `seams` are the places where two pieces meet."""
    blobs: list[encoded.Blob] = []
    if seams or is_disguised(text):
        found = [*_in_readings(text, names, seams, depth, blobs)]
    else:
        found = [*_matches(text, names, depth, blobs), *names.find(text)]
    if not found and not blobs:
        return _NOTHING
    return Scan(apart(found, text), [blob.end - blob.start for blob in blobs if blob.text is None])


def _in_readings(
    text: str, names: Names, seams: Sequence[int], depth: int, blobs: list[encoded.Blob]
) -> Iterator[Found]:
    """Yield all matches in the readings of a text; blobs are told of the first of them."""
    for number, reading in enumerate(readings(text, seams)):
        for one in (*_matches(reading.text, names, depth, [] if number else blobs), *names.find(reading.text)):
            start, end = reading.origin(one.start, one.end)
            yield one._replace(start=start, end=end)


def _matches(text: str, names: Names, depth: int, blobs: list[encoded.Blob]) -> list[Found]:
    """List what the rules find in one reading of a text; matches may overlap."""
    if text in PLAIN:
        return []
    needles, finder = _finders()
    matches = [found for places in needles.places(lowered(text)) for found in all_tried(text, places)]
    done: dict[Rule, int] = {}
    for start, end in _runs(text) if len(text) >= _LEAST else ():
        at, inner, outer = max(start - _REACH, 0), end, end
        while at < end:
            at, places = finder.next(text, at, end)
            for place in places:
                if found := tried(text, place, done):
                    matches.append(found)
                    inner, outer = found.start + _REACH, found.end - _REACH
            at = outer if inner <= at < outer else at  # nothing begins in the middle of a long one
        if depth and (blob := encoded.blob(text, start, end)):
            blobs.append(blob)
            if blob.text is not None and scan(blob.text, names, depth=depth - 1).found:
                matches.append(Found(blob.start, blob.end, ENCODED, text[blob.start : blob.end]))
    if depth and not matches and not blobs and not is_disguised(text):
        PLAIN.keep(text)
    return matches


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where long runs of letters, digits and `_ - + /` begin and end."""
    classes = text.encode("latin-1", "replace").translate(_CLASSES)
    start = classes.find(_RUN)
    while start >= 0:
        end = classes.find(b" ", start)
        end = end if end >= 0 else len(classes)
        yield start, end
        start = classes.find(_RUN, end)
