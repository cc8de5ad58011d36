"""Integers of 64 bits, and numbers, durations and money as text."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from math import isfinite

import msgspec

from pollux.model import Json

_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "CNY": "¥", "INR": "₹"}
_NANO = Decimal(10) ** -9


def count(number: int) -> str:
    """Return a number with about three digits: 999, 12.3k, 4.5M."""
    return _scaled(number, ("", "k", "M", "B"))


def size(number: int) -> str:
    """Return a number of bytes with about three digits: 999 B, 12.3 kB, 4.5 MB."""
    return _scaled(number, (" B", " kB", " MB", " GB", " TB"))


def _scaled(number: int, units: tuple[str, ...]) -> str:
    value, scale = float(number), 0
    while abs(value) >= 999.5 and scale < len(units) - 1:  # noqa: PLR2004
        value, scale = value / 1000, scale + 1
    if not scale:
        return f"{number}{units[0]}"
    return f"{value:.1f}{units[scale]}" if abs(value) < 99.95 else f"{value:,.0f}{units[scale]}"  # noqa: PLR2004


_SPANS = (
    (timedelta(days=365), "year"),
    (timedelta(days=30), "month"),
    (timedelta(days=7), "week"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
)


def relative_time(then: datetime, now: datetime) -> str:
    """Return a time relative to now, such as `3 days ago` or `in 2 hours`."""
    distance = abs(now - then)
    for span, name in _SPANS:
        if distance >= span:
            number = distance // span
            text = f"{number} {name}{'' if number == 1 else 's'}"
            return f"{text} ago" if then < now else f"in {text}"
    return "just now" if then <= now else "in a moment"


def short_age(then: datetime, now: datetime) -> str:
    """Return an age in few characters, for a column: 5min, 3h, 2d, 6w, 14mo."""
    distance = max(now - then, timedelta())
    for span, unit in _UNITS:
        if distance >= 2 * span:
            return f"{distance // span}{unit}"
    return f"{distance // timedelta(minutes=1)}min"


_UNITS = (
    (timedelta(days=30), "mo"),
    (timedelta(days=7), "w"),
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
)


def duration(span: timedelta) -> str:
    """Return a duration in its two largest units."""
    minutes = int(span.total_seconds()) // 60
    if minutes < 1:
        return f"{max(0, int(span.total_seconds()))} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


class Currency(msgspec.Struct, frozen=True):
    """A currency in which to display amounts, which are stored in dollars."""

    code: str = "USD"
    rate: Decimal = Decimal(1)
    """Price of one dollar."""

    @property
    def symbol(self) -> str:
        """The sign of the currency, or its code if it has none."""
        return _SYMBOLS.get(self.code, self.code)

    def show(self, nanousd: int | None) -> str:
        """Return an amount as text: with cents, or with three significant digits if it is less than 1."""
        if nanousd is None:
            return "no price"
        amount = nanousd * _NANO * self.rate
        digits = 2 if amount == 0 or abs(amount) >= 1 else max(2, 2 - amount.adjusted())
        gap = "" if self.code in _SYMBOLS else " "
        return f"{self.symbol}{gap}{amount:,.{digits}f}"


_UP_TO_TEN = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_UP_TO_TWENTY = (
    "eleven",
    "twelve",
    *(f"{stem}teen" for stem in ("thir", "four", "fif", "six", "seven", "eigh", "nine")),
)
_WORDS = (*_UP_TO_TEN, *_UP_TO_TWENTY, "twenty")


def number_word(number: int) -> str:
    """Return a number for a sentence: as a word up to twenty, else with digits."""
    return _WORDS[number] if 0 <= number < len(_WORDS) else f"{number:,}"


def dollars(nanousd: int | None, digits: int) -> str:
    """Return an amount with a fixed number of decimals, for a column."""
    if nanousd is None:
        return "no price"
    return f"${nanousd * _NANO:,.{digits}f}"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: 1 session, 2,000 sessions."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


LARGEST = (1 << 63) - 1
SMALLEST = -LARGEST - 1
COUNTED = 1 << 31
"""Limit of a count that is added up, so that sums have at most 64 bits."""
_DIGITS = len(str(LARGEST))


def fits(value: int) -> bool:
    """Return whether an integer has at most 64 bits."""
    return SMALLEST <= value <= LARGEST


def clamped(value: int) -> int:
    """Return the nearest integer of 64 bits."""
    return min(max(value, SMALLEST), LARGEST)


def parse_integer(digits: str | bytes) -> int | None:
    """Return the integer with these digits; None if it needs more than 64 bits.

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
    """Return whether a JSON value contains an integer that needs more than 64 bits."""
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
    """Return a JSON value with the nearest double instead of each integer that needs more than 64 bits.

    The client reads all numbers as doubles. A number that is too large for a double becomes `None`.
    """
    try:
        rounded: Json = json.loads(json.dumps(value), parse_int=_integer_or_double)
    except (RecursionError, ValueError):  # nested too deeply
        return None
    return rounded


def _integer_or_double(digits: str) -> int | float | None:
    value = parse_integer(digits)
    if value is not None:
        return value
    double = float(digits)
    return double if isfinite(double) else None
