"""Search a text for everything to be replaced, and cache the texts that contain nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from pollux.redaction import encoded
from pollux.redaction.anchors import RunAnchors, TextAnchors, to_latin, to_lower
from pollux.redaction.disguises import Decoding, decodings, is_disguised, joined_decodings
from pollux.redaction.matches import RuleMatch, resolve_overlaps, try_rule, try_rules
from pollux.redaction.names import KnownNames
from pollux.redaction.rule import Rule
from pollux.redaction.rules import ENCODED, RULES
from pollux.redaction.wrapping import (
    MIN_RUN,
    LineBreak,
    line_breaks,
    long_runs,
    outline,
    without_complete_lines,
)

_ANCHOR_REACH = 40
"""How far to the left of a run its anchor may be."""
_LONG_TEXT = 8 << 20
"""Texts of so many characters are not searched for broken lines."""
_DEPTH = 3
"""How often base64 within base64 is decoded."""
_CACHE_CHARS = 2 << 20
_CACHED_TEXT = 50
"""What a cached text costs besides its characters."""


class TextCache(set[str]):
    """A set of texts that is emptied when it holds too many characters."""

    n_chars = 0

    def keep(self, text: str) -> None:
        """Add a text."""
        self.add(text)
        self.n_chars += len(text) + _CACHED_TEXT
        if self.n_chars > _CACHE_CHARS:
            self.clear()
            self.n_chars = 0


PLAIN = TextCache()
"""Texts in which no rule matches; sessions repeat many of them."""


@lru_cache(2)
def clean_texts(names: frozenset[str]) -> TextCache:
    """Return the cache of texts that contain none of these names either."""
    del names
    return TextCache()


def clear_caches() -> None:
    """Forget all texts."""
    PLAIN.clear()
    PLAIN.n_chars = 0
    clean_texts.cache_clear()


class ScanResult(NamedTuple):
    """The matches in a text, and what could not be read."""

    matches: Sequence[RuleMatch]
    """From left to right, without overlaps."""
    binary: Sequence[int] = ()
    """Sizes of base64 blobs that are not text."""


_NOTHING = ScanResult(())


class _Outlined(NamedTuple):
    """A text, and the runs in it."""

    text: str
    latin: bytes
    shape: bytes
    runs: Sequence[tuple[int, int]] | None
    """Where long runs start and end; None for a very long text, which may have millions."""


def scan(text: str, names: KnownNames, seams: Sequence[int] = (), depth: int = _DEPTH) -> ScanResult:
    """Return everything to be replaced in a text; `seams` are the positions where two joined texts meet."""
    blobs: list[encoded.Blob] = []
    if text in PLAIN:
        matches = _search_decodings(text, None, names, seams, (), depth, blobs) if seams else [*names.find(text)]
    else:
        outlined = _outlined(text)
        has_lines = outlined.runs is not None and "\n" in text
        breaks = line_breaks(outlined.latin, outlined.shape, outlined.runs or ()) if has_lines else ()
        if seams or breaks or is_disguised(text):
            matches = _search_decodings(text, outlined, names, seams, breaks, depth, blobs)
        else:
            matches = _apply_rules(outlined, names, depth, blobs)
            if depth and not matches and not blobs:
                PLAIN.keep(text)
            matches += names.find(text)
    if not matches and not blobs:
        return _NOTHING
    return ScanResult(resolve_overlaps(matches, text), [blob.end - blob.start for blob in blobs if blob.text is None])


def _outlined(text: str) -> _Outlined:
    latin = to_latin(text)
    if len(text) < MIN_RUN:
        return _Outlined(text, latin, b"", ())
    shape = outline(latin)
    return _Outlined(text, latin, shape, [*long_runs(shape)] if len(text) < _LONG_TEXT else None)


def _search_decodings(
    text: str,
    outlined: _Outlined | None,
    names: KnownNames,
    seams: Sequence[int],
    breaks: Sequence[LineBreak],
    depth: int,
    blobs: list[encoded.Blob],
) -> list[RuleMatch]:
    """Return the matches in all decodings of a text; the base64 in the first of them is added to `blobs`."""
    matches: list[RuleMatch] = []
    for number, decoding in enumerate(decodings(text, seams)):
        matches += _search_decoding(decoding, outlined, names, depth, [] if number else blobs)
    if seams and outlined and not breaks and not matches and not blobs and depth and not is_disguised(text):
        PLAIN.keep(text)
    if breaks:
        joined: list[RuleMatch] = []
        for decoding in joined_decodings(text, breaks):
            joined += _search_decoding(decoding, outlined, names, depth, [])
        matches += without_complete_lines(joined, matches, text, breaks)
    return matches


def _search_decoding(
    decoding: Decoding, outlined: _Outlined | None, names: KnownNames, depth: int, blobs: list[encoded.Blob]
) -> Iterator[RuleMatch]:
    """Yield the matches in a decoding, with their positions in the original text."""
    text = decoding.text
    matches: list[RuleMatch] = []
    if text not in PLAIN:
        is_original = outlined is not None and text is outlined.text
        matches = _apply_rules(outlined if outlined and is_original else _outlined(text), names, depth, blobs)
    for match in (*matches, *names.find(text)):
        start, end = decoding.origin(match.start, match.end)
        yield match._replace(start=start, end=end)


@cache
def _anchors() -> tuple[TextAnchors, RunAnchors]:
    rules = [rule for rule in RULES if rule.anchors]
    return TextAnchors(rule for rule in rules if not rule.in_run), RunAnchors(rule for rule in rules if rule.in_run)


def _apply_rules(outlined: _Outlined, names: KnownNames, depth: int, blobs: list[encoded.Blob]) -> list[RuleMatch]:
    """Return the matches of the rules in a decoding, which may overlap."""
    text = outlined.text
    text_anchors, run_anchors = _anchors()
    low = text.lower() if text.isascii() else to_lower(outlined.latin)
    matches: list[RuleMatch] = []
    for hits in text_anchors.hits(low):
        matches += try_rules(text, hits)
    searched: dict[Rule, int] = {}
    for start, end in long_runs(outlined.shape) if outlined.runs is None else outlined.runs:
        at, inner, outer = max(start - _ANCHOR_REACH, 0), end, end
        while at < end:
            at, run_hits = run_anchors.next(text, at, end)
            for hit in run_hits:
                match = try_rule(text, hit, searched)
                if match:
                    matches.append(match)
                    inner, outer = match.start + _ANCHOR_REACH, match.end - _ANCHOR_REACH
            at = outer if inner <= at < outer else at  # no secret starts in the middle of a long one
        blob = encoded.read_blob(text, start, end) if depth else None
        if blob:
            blobs.append(blob)
            if blob.text is not None and scan(blob.text, names, depth=depth - 1).matches:
                matches.append(RuleMatch(blob.start, blob.end, ENCODED, text[blob.start : blob.end]))
    return matches
