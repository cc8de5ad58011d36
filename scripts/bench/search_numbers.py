"""The numbers of `search`, as they are stored beside the home that was measured."""

from __future__ import annotations

from pathlib import Path

import msgspec
from scripts.bench.trees import BUILD

MILLION = 1_000_000


class Built(msgspec.Struct, frozen=True):
    """What it took to read the home or to build an index of it."""

    wall: float
    cpu: float
    largest_process: int
    """Bytes."""
    size: int = 0
    """Bytes on disk."""


class Times(msgspec.Struct, frozen=True):
    """Seconds of each query, in the order of the queries; those that were left out are missing."""

    seconds: list[float]
    kinds: list[str] = []
    n_failed: int = 0
    cpu: list[float] = []
    """Processor seconds of each query; empty if they were not taken."""

    def at(self, share: float) -> float:
        """Return the time that this share of the queries did not exceed."""
        return _quantile(self.seconds, share)

    def cpu_at(self, share: float) -> float:
        """Return the processor time that this share of the queries did not exceed."""
        return _quantile(self.cpu, share)


class SearchNumbers(msgspec.Struct, frozen=True):
    """All that was measured, by step; a step that did not run is missing."""

    n_messages: int
    n_sessions: int
    text_bytes: int
    file_bytes: int
    built: dict[str, Built] = {}
    times: dict[str, Times] = {}
    missing: dict[str, str] = {}
    """Programs that could not be measured, and why."""
    at: dict[str, str] = {}
    """When each step ran."""
    load: dict[str, float] = {}
    """How many processes wanted to run at the end of each step; more than there are cores makes times worse."""


def _quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))] if ordered else 0.0


def load_numbers(n_messages: int = MILLION) -> SearchNumbers | None:
    """Return what `python -m scripts.bench.search` measured last; None if it never ran."""
    place = numbers_file(n_messages)
    return msgspec.json.decode(place.read_bytes(), type=SearchNumbers) if place.exists() else None


def numbers_file(n_messages: int) -> Path:
    """Return the file with the numbers of a home of this size."""
    return BUILD / f"search-{n_messages}.json"
