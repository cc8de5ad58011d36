"""Text → what is to be replaced in it, and by which rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple, Protocol

from pollux.redaction import encoded
from pollux.redaction.anchors import Finder
from pollux.redaction.clean_cache import PLAIN
from pollux.redaction.disguises import Reading, is_disguised, joined_readings, readings
from pollux.redaction.matches import Found, all_tried, tried
from pollux.redaction.needles import Needles, to_latin, to_lower
from pollux.redaction.overlaps import apart
from pollux.redaction.rule import Rule
from pollux.redaction.rules import ENCODED, RULES
from pollux.redaction.wrapping import LEAST_RUN, LineBreak, continued, line_breaks, long_runs, outline

_REACH = 40
"""So far to the left of a run its anchor may stand."""
_LONG_TEXT = 8 << 20
"""A text of so many characters is not searched for broken lines."""
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


class _Outlined(NamedTuple):
    """A text, and what is known of its form."""

    text: str
    latin: bytes
    shape: bytes
    runs: Sequence[tuple[int, int]] | None
    """Where long runs begin and end; in a very long text there may be millions of them, and they are not remembered."""


def scan(text: str, names: Names, seams: Sequence[int] = (), depth: int = _DEPTH) -> Scan:
    """Return all that is to be replaced in a text; `seams` are the places where two pieces meet."""
    blobs: list[encoded.Blob] = []
    if text in PLAIN:
        found = _in_readings(text, None, names, seams, (), depth, blobs) if seams else [*names.find(text)]
    else:
        whole = _outlined(text)
        breaks = line_breaks(whole.latin, whole.shape, whole.runs) if whole.runs is not None and "\n" in text else ()
        if seams or breaks or is_disguised(text):
            found = _in_readings(text, whole, names, seams, breaks, depth, blobs)
        else:
            found = _matches(whole, names, depth, blobs)
            if depth and not found and not blobs:
                PLAIN.keep(text)
            found += names.find(text)
    if not found and not blobs:
        return _NOTHING
    return Scan(apart(found, text), [blob.end - blob.start for blob in blobs if blob.text is None])


def _outlined(text: str) -> _Outlined:
    latin = to_latin(text)
    if len(text) < LEAST_RUN:
        return _Outlined(text, latin, b"", ())
    shape = outline(latin)
    return _Outlined(text, latin, shape, [*long_runs(shape)] if len(text) < _LONG_TEXT else None)


def _in_readings(
    text: str,
    whole: _Outlined | None,
    names: Names,
    seams: Sequence[int],
    breaks: Sequence[LineBreak],
    depth: int,
    blobs: list[encoded.Blob],
) -> list[Found]:
    """Return all matches in the readings of a text; `blobs` receives the base64 in the first of them."""
    found: list[Found] = []
    for number, reading in enumerate(readings(text, seams)):
        found += _in_reading(reading, whole, names, depth, [] if number else blobs)
    if seams and whole and not breaks and not found and not blobs and depth and not is_disguised(text):
        PLAIN.keep(text)
    if breaks:
        joined: list[Found] = []
        for reading in joined_readings(text, breaks):
            joined += _in_reading(reading, whole, names, depth, [])
        found += continued(joined, found, text, breaks)
    return found


def _in_reading(
    reading: Reading, whole: _Outlined | None, names: Names, depth: int, blobs: list[encoded.Blob]
) -> Iterator[Found]:
    """Yield all matches in one reading of a text, with their places in the text."""
    text = reading.text
    if text in PLAIN:
        matches = []
    else:
        matches = _matches(whole if whole and text is whole.text else _outlined(text), names, depth, blobs)
    for one in (*matches, *names.find(text)):
        start, end = reading.origin(one.start, one.end)
        yield one._replace(start=start, end=end)


def _matches(outlined: _Outlined, names: Names, depth: int, blobs: list[encoded.Blob]) -> list[Found]:
    """Return what the rules find in one reading of a text; matches may overlap."""
    text = outlined.text
    needles, finder = _finders()
    low = text.lower() if text.isascii() else to_lower(outlined.latin)
    matches = [found for places in needles.places(low) for found in all_tried(text, places)]
    done: dict[Rule, int] = {}
    for start, end in long_runs(outlined.shape) if outlined.runs is None else outlined.runs:
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
    return matches
