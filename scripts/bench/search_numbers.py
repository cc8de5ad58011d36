"""The measurements of `search`, stored next to the home that was measured."""

from __future__ import annotations

from pathlib import Path

import msgspec
from scripts.bench.trees import BUILD

MILLION = 1_000_000


class Built(msgspec.Struct, frozen=True):
    """The time, memory and space for reading the home or indexing it."""

    wall: float
    cpu: float
    largest_process: int
    """Bytes."""
    size: int = 0
    """Bytes on disk."""


class Times(msgspec.Struct, frozen=True):
    """Seconds of each query that ran, in the order of the queries."""

    seconds: list[float]
    kinds: list[str] = []
    n_failed: int = 0
    cpu: list[float] = []
    """CPU seconds of each query; empty if they were not measured."""

    def at(self, share: float) -> float:
        """Return the time that this share of the queries did not exceed."""
        return _quantile(self.seconds, share)

    def cpu_at(self, share: float) -> float:
        """Return the processor time that this share of the queries did not exceed."""
        return _quantile(self.cpu, share)


class SearchNumbers(msgspec.Struct, frozen=True):
    """All measurements, by step; a step that did not run is missing."""

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
    """The load average at the end of each step; above the number of cores, all times are longer."""
    remark: str = ""
    """A sentence about this run, such as the speed of the machine."""


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
