"""The bars that Pollux is held to, and whether it meets them: computed from what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scripts.bench.measure import Measured
from scripts.bench.search_numbers import SearchNumbers

_MB = 1 << 20
_SECOND, _TURN, _PART = 0.3, 0.05, 6
_HITS_MS, _SNIPPETS_MS = 30, 60


@dataclass(frozen=True, slots=True)
class Results:
    """All that the bars look at."""

    many: Mapping[str, Measured]
    """Of the tree of many files, by key."""
    one: Mapping[str, Measured]
    """Of the one very long session."""
    files_bytes: int
    archive_bytes: int
    turn_seconds: float
    """What one more turn costs in the very long session, inside the process."""
    search: SearchNumbers | None = None
    """What `python -m scripts.bench.search` measured last."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; without a verdict where nothing could be measured."""

    work: str
    bar: str
    found: str
    is_met: bool | None


def bars(results: Results) -> Iterator[Bar]:
    """Look at each."""
    many, one = results.many, results.one
    first = many["first"]
    yield _ratio("first look", first, many.get("first ccusage"), 0.5, "ccusage")
    yield _ratio("first look", first, many["cat"], 3, "`cat`")
    yield _memory("memory of the first look", 80, first)
    second = many["second"]
    yield Bar(
        "nothing changed since", f"≤ {_SECOND} s with interpreter start", f"{second.best:.2f} s", second.best <= _SECOND
    )
    yield _ratio("nothing changed since", second, many.get("second tokscale"), 0.5, "tokscale with its cache")
    whole = one["big usage"].best
    yield Bar(
        "a very long session grew by a turn",
        f"≤ {_TURN:.0%} of reading it whole",
        f"{results.turn_seconds / whole:.0%} ({results.turn_seconds:.3f} s, {whole:.2f} s)",
        results.turn_seconds <= _TURN * whole,
    )
    yield _ratio("first `sync`: raw bytes kept", many["keep"], first, 3, "the first look")
    yield _ratio("first `sync`: raw bytes kept, and all facts derived", many["sync"], first, 3, "the first look")
    part = round(results.files_bytes / results.archive_bytes, 2)
    yield Bar("size of the archive", f"≤ 1/{_PART} of the files", f"1/{part:.2f}", part >= _PART)
    yield _search(results.search)
    yield _memory(
        "one very long session", 300, *(one[key] for key in ("big usage", "big ls", "big show", "big export"))
    )


def _search(numbers: SearchNumbers | None) -> Bar:
    work, bar = "search over 1 M messages", f"p95 ≤ {_HITS_MS} ms, {_SNIPPETS_MS} ms with snippets"
    if numbers is None or not {"hits", "snippets"} <= numbers.times.keys():
        return Bar(work, bar, "not part of this run", None)
    hits, snippets = (numbers.times[key].at(0.95) * 1000 for key in ("hits", "snippets"))
    is_met = hits <= _HITS_MS and snippets <= _SNIPPETS_MS
    return Bar(work, bar, f"{hits:.0f} ms, {snippets:.0f} ms with snippets", is_met)


def _ratio(work: str, ours: Measured, theirs: Measured | None, limit: float, whose: str) -> Bar:
    words = f"≤ {limit:g} × {whose}"
    if theirs is None:
        return Bar(work, words, "nothing to compare with here", None)
    ratio = ours.best / theirs.best
    return Bar(work, words, f"{ratio:.2f} × ({ours.best:.2f} s, {theirs.best:.2f} s)", ratio <= limit)


def _memory(work: str, limit: int, *ours: Measured) -> Bar:
    words, peaks = f"≤ {limit} MB per process", [one.peak.largest for one in ours if one.peak]
    if not peaks:
        return Bar(work, words, "cannot be measured on this system", None)
    largest = max(peaks) / _MB
    return Bar(work, words, f"{largest:.0f} MB", largest <= limit)
