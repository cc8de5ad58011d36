"""Integers that every table, file and encoder can hold: signed, 64 bits.

JSON has no such limit, so a session file may hold larger ones. In metadata they become the double that the client
reads, elsewhere no value; both are reported as a problem.
"""

from __future__ import annotations

import json
from math import isfinite

from pollux.model import Json

LARGEST = (1 << 63) - 1
SMALLEST = -LARGEST - 1
COUNTED = 1 << 31
"""More than anything that is counted and added up, so that the sums fit too; SQLite refuses larger ones."""
_DIGITS = len(str(LARGEST))


def fits(value: int) -> bool:
    """Return whether an integer has at most 64 bits."""
    return SMALLEST <= value <= LARGEST


def clamped(value: int) -> int:
    """Return the integer of 64 bits that is nearest to a value."""
    return min(max(value, SMALLEST), LARGEST)


def parse_integer(digits: str | bytes) -> int | None:
    """Return the integer that some digits write, or nothing if it needs more than 64 bits.

    `int` raises an error for more than 4,300 digits, so they are counted first.
    """
    text = digits.decode() if isinstance(digits, bytes) else digits
    magnitude = text.lstrip("-").lstrip("0")
    if len(magnitude) > _DIGITS:
        return None
    value = int(magnitude or "0")
    value = -value if text.startswith("-") else value
    return value if fits(value) else None


def has_large_integer(value: Json) -> bool:
    """Return whether a JSON value holds an integer that needs more than 64 bits."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, int):
            if not fits(inner):
                return True
        elif isinstance(inner, dict):
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
    return False


def with_doubles(value: Json) -> Json:
    """Return a JSON value with the nearest double in place of each integer that needs more than 64 bits.

    The client knows no other numbers. One that is too large for a double as well becomes `None`.
    """
    try:
        found: Json = json.loads(json.dumps(value), parse_int=_integer_or_double)
    except (RecursionError, ValueError):  # nested too deeply to be written
        return None
    return found


def _integer_or_double(digits: str) -> int | float | None:
    value = parse_integer(digits)
    if value is not None:
        return value
    double = float(digits)
    return double if isfinite(double) else None
