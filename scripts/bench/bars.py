"""The limits that Pollux has to meet, compared with the measurements."""

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
    """The measurements that are compared with bars."""

    many: Mapping[str, Measured]
    """Works on the home with many files, by key."""
    one: Mapping[str, Measured]
    """Works on the home with one very long session, by key."""
    files_bytes: int
    archive_bytes: int
    turn_seconds: float
    """Time of a refresh after the very long session has grown by a turn, without the start of a process."""
    search: SearchNumbers | None = None
    """The last measurements of `python -m scripts.bench.search`."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A limit and the measurement; `is_met` is None if nothing could be measured."""

    work: str
    bar: str
    measured: str
    is_met: bool | None


def bars(results: Results) -> Iterator[Bar]:
    """Yield all bars."""
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
    whole_read = one["big usage"].best
    yield Bar(
        "a very long session grew by a turn",
        f"≤ {_TURN:.0%} of reading it whole",
        f"{results.turn_seconds / whole_read:.0%} ({results.turn_seconds:.3f} s, {whole_read:.2f} s)",
        results.turn_seconds <= _TURN * whole_read,
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


def _ratio(work: str, ours: Measured, theirs: Measured | None, limit: float, reference: str) -> Bar:
    bar = f"≤ {limit:g} × {reference}"
    if theirs is None:
        return Bar(work, bar, "the peer was not measured", None)
    ratio = ours.best / theirs.best
    return Bar(work, bar, f"{ratio:.2f} × ({ours.best:.2f} s, {theirs.best:.2f} s)", ratio <= limit)


def _memory(work: str, limit: int, *ours: Measured) -> Bar:
    bar, peaks = f"≤ {limit} MB per process", [result.peak.largest for result in ours if result.peak]
    if not peaks:
        return Bar(work, bar, "only measured on Linux", None)
    largest = max(peaks) / _MB
    return Bar(work, bar, f"{largest:.0f} MB", largest <= limit)
