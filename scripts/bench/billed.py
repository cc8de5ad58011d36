"""The usage that a program reports, in the terms that all programs share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MICRO = 1e-6


@dataclass(frozen=True, slots=True)
class Billed:
    """Billed tokens and money; None where a program does not report a number."""

    fresh: int | None = None
    """Prompt tokens that were not cached, including those of tools."""
    cached: int | None = None
    output: int | None = None
    """Without thoughts."""
    thoughts: int | None = None
    answered: int | None = None
    """Output and thoughts together."""
    tool: int | None = None
    dollars: float | None = None

    @classmethod
    def of_counts(cls, counts: Mapping[str, Any], dollars: float) -> Billed:
        """Convert the counts of the API, where input includes cached tokens and output excludes thoughts."""
        cached, output, thoughts, tool = (counts[name] for name in ("cached", "output", "thoughts", "tool"))
        return cls(counts["input"] - cached + tool, cached, output, thoughts, output + thoughts, tool, dollars)


def is_right(reported: float | None, true: float | None) -> bool:
    """Return whether a number is right or missing; money may be rounded to a millionth of a dollar."""
    if reported is None or true is None:
        return True
    return reported == true if isinstance(reported, int) else abs(reported - true) <= _MICRO + abs(true) * 1e-9
