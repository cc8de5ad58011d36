"""Parse the numbers, times and ranges of a query into intervals of integers."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta, tzinfo
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import msgspec

from pollux.errors import InvalidFilterError
from pollux.reports.filters import parse_age, parse_date
from pollux.text.numbers import clamped
from pollux.text.times import microseconds

_OPERATOR = re.compile(r"(>=|<=|>|<|=)?(.*)", re.DOTALL)
_NUMBER = re.compile(r"\$?(\d{1,15}(?:\.\d{0,9})?|\.\d{1,9})([kmb]?)", re.IGNORECASE | re.ASCII)
_SCALES = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_YEAR = re.compile(r"\d{4}", re.ASCII)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_AGE = re.compile(r"\d+\s*[a-z]+", re.IGNORECASE | re.ASCII)
_CLOCK = re.compile(r"[T ]\d\d(?::?(\d\d))?(?::?(\d\d))?([.,]\d+)?", re.IGNORECASE | re.ASCII)


class Bounds(msgspec.Struct, frozen=True):
    """The integers from `low` up to, but without, `high`; None is no bound."""

    low: int | None = None
    high: int | None = None


_Edges = Callable[[str], tuple[int, int]]
"""Returns the first integer of a value, and the first one after it; raises `ValueError`."""


def number_bounds(text: str, unit: int) -> Bounds:
    """Parse `5`, `>5`, `>=5`, `<5`, `<=5`, `2..5`, `2..` or `..5`, also with `k`, `M` and `B`. Raises `ValueError`."""

    def edges(value: str) -> tuple[int, int]:
        match = _NUMBER.fullmatch(value)
        if match is None:
            raise ValueError(value)
        number = Decimal(match[1]) * _SCALES[match[2].lower()] * unit
        first = int(number.to_integral_value(ROUND_CEILING))
        return clamped(first), clamped(int(number.to_integral_value(ROUND_FLOOR)) + 1)

    return _bounds(text, edges)


def time_bounds(text: str, *, now: datetime, zone: tzinfo | None) -> Bounds:
    """Parse a period such as `2026-01`, or a comparison or range of periods. Raises `ValueError`.

    `>2026-01` begins after the end of January, `>=2026-01` with its first moment, and `2026-01..2026-02` has 59 days.
    """

    def edges(value: str) -> tuple[int, int]:
        start, end = _period(value, now, zone)
        return _microseconds(start), _microseconds(end)

    return _bounds(text, edges)


def start_of(text: str, *, now: datetime, zone: tzinfo | None) -> int:
    """Return when a period begins, in microseconds; an age such as `7d` is that long ago. Raises `ValueError`."""
    if _AGE.fullmatch(text.strip()):
        return _microseconds(_date(text, now, zone))
    return _microseconds(_period(text, now, zone)[0])


def age_bounds(text: str, *, now: datetime) -> Bounds:
    """Parse an age such as `7d`: everything since then. Raises `ValueError`."""
    try:
        return Bounds(_microseconds(parse_age("last", text, now=now)))
    except InvalidFilterError:
        raise ValueError(text) from None


def _bounds(text: str, edges: _Edges) -> Bounds:
    first, dots, last = text.partition("..")
    if dots:
        low = edges(first)[0] if first else None
        high = edges(last)[1] if last else None
        if (low is None and high is None) or (low is not None and high is not None and high <= low):
            raise ValueError(text)
        return Bounds(low, high)
    match = _OPERATOR.fullmatch(text)
    assert match is not None  # it matches every text
    start, end = edges(match[2].strip())
    sides = {">": (end, None), ">=": (start, None), "<": (None, start), "<=": (None, end)}
    return Bounds(*sides.get(match[1], (start, end)))


def _period(text: str, now: datetime, zone: tzinfo | None) -> tuple[datetime, datetime]:
    """Return the first moment of a period, and the first one after it."""
    try:
        return _named_period(text, now, zone)
    except (OverflowError, OSError):  # outside of the calendar
        raise ValueError(text) from None


def _named_period(text: str, now: datetime, zone: tzinfo | None) -> tuple[datetime, datetime]:
    value = text.strip()
    if _YEAR.fullmatch(value):
        first, following = date(int(value), 1, 1), date(int(value) + 1, 1, 1)
        return _start_of_day(first, now, zone), _start_of_day(following, now, zone)
    if month := _MONTH.fullmatch(value):
        first = date(int(month[1]), int(month[2]), 1)
        following = (first + timedelta(days=31)).replace(day=1)
        return _start_of_day(first, now, zone), _start_of_day(following, now, zone)
    start = _date(value, now, zone)
    if clock := _CLOCK.search(value):
        return start, start + _precision(clock)
    first = start.astimezone(zone).date()  # an age stands for the day that long ago
    return _start_of_day(first, now, zone), _start_of_day(first + timedelta(days=1), now, zone)


def _precision(clock: re.Match[str]) -> timedelta:
    minute, second, fraction = clock.groups()
    if fraction:
        return timedelta(microseconds=1)
    if second:
        return timedelta(seconds=1)
    return timedelta(minutes=1) if minute else timedelta(hours=1)


def _start_of_day(day: date, now: datetime, zone: tzinfo | None) -> datetime:
    return _date(day.isoformat(), now, zone)


def _date(text: str, now: datetime, zone: tzinfo | None) -> datetime:
    try:
        return parse_date("", text, now=now, zone=zone)
    except (InvalidFilterError, OverflowError):
        raise ValueError(text) from None


def _microseconds(at: datetime) -> int:
    number = microseconds(at)
    assert number is not None  # only None has none
    return number
