"""What a program says was billed, in words that all of them have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_MICRO = 1e-6


@dataclass(frozen=True, slots=True)
class Billed:
    """Tokens as they are billed, and money; nothing where a program does not say."""

    fresh: int | None = None
    """Prompt tokens that were not cached, with those of tools."""
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
        """Take them from counts as the API makes them: input with cached, output without thoughts."""
        cached, output, thoughts, tool = (counts[name] for name in ("cached", "output", "thoughts", "tool"))
        return cls(counts["input"] - cached + tool, cached, output, thoughts, output + thoughts, tool, dollars)


def is_right(said: float | None, true: float | None) -> bool:
    """Tell whether a number is the true one; money may be rounded to a millionth of a dollar, and silence is no lie."""
    if said is None or true is None:
        return True
    return said == true if isinstance(said, int) else abs(said - true) <= _MICRO + abs(true) * 1e-9
