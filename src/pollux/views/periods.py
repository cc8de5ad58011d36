"""Quarters of an hour, UTC → the hours, days, weeks and months of a place.

Every time zone in use is some quarters of an hour away from UTC and changes its clocks at one. So a sum per quarter can
be folded into the periods of any of them without looking at the calls again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import groupby
from typing import TypeVar

QUARTER_US = 900_000_000
"""Microseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_US = 86_400_000_000
_TO_LAST_QUARTER = timedelta(hours=23, minutes=45)
_MICROSECOND = timedelta(microseconds=1)
_T = TypeVar("_T")


def period(by: str, quarter_us: int, zone: tzinfo | None = None) -> str:
    """Name the period that a quarter of an hour falls into; without a zone, in the system's own.

    An hour has its distance from UTC in its name: when clocks are put back, one comes twice.
    """
    return _NAMES[by](local(_EPOCH + timedelta(microseconds=quarter_us), zone))


def local(at: datetime, zone: tzinfo | None = None) -> datetime:
    """Tell a time as a place does; the first and the last day of the calendar are the same everywhere."""
    try:
        return at.astimezone(zone)
    except OverflowError:  # a file may say anything
        return at


def fold(by: str, rows: Iterable[tuple[int | None, _T]], zone: tzinfo | None = None) -> dict[str | None, list[_T]]:
    """Put rows together by the period of their quarter, earliest first; what has no time comes last, under no name."""
    quarters: dict[int | None, list[_T]] = {}
    for quarter_us, row in rows:
        quarters.setdefault(quarter_us, []).append(row)
    timeless = quarters.pop(None, None)
    found: dict[str | None, list[_T]] = {}
    for quarter_us, name in _named(by, sorted(one for one in quarters if one is not None), zone):
        found.setdefault(name, []).extend(quarters[quarter_us])
    if timeless:
        found[None] = timeless
    return found


def _named(by: str, quarters: Iterable[int], zone: tzinfo | None) -> Iterator[tuple[int, str]]:
    """Name the periods of many quarters, in their order.

    A clock that is as far from UTC when a day ends as when it began was so all day: then all quarters of a day of the
    place have the name of the first.
    """
    names: dict[int, str] = {}
    for day, members in groupby(quarters, lambda one: one // _DAY_US):
        begins = _EPOCH + timedelta(days=day)
        offset, later = (local(at, zone).utcoffset() for at in (begins, begins + _TO_LAST_QUARTER))
        is_steady = offset == later and by != "hour"
        shift = offset // _MICROSECOND if offset else 0
        for one in members:
            there = (one + shift) // _DAY_US
            if not is_steady:
                yield one, period(by, one, zone)
            elif there in names:
                yield one, names[there]
            else:
                yield one, names.setdefault(there, period(by, one, zone))


def start_of_day(at: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the first moment of a day in a place; where clocks skip midnight, the first that there is."""
    day = at.astimezone(zone).date()
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001  the zone comes next
    return (midnight.replace(tzinfo=zone) if zone else midnight).astimezone(UTC)


def _hour(at: datetime) -> str:
    return at.replace(minute=0).isoformat(timespec="minutes")


def _week(at: datetime) -> str:
    year, week, _ = at.isocalendar()
    return f"{year}-W{week:02}"


_NAMES: dict[str, Callable[[datetime], str]] = {
    "hour": _hour,
    "day": lambda at: at.date().isoformat(),
    "week": _week,
    "month": lambda at: at.date().isoformat()[:7],
}
PERIODS = tuple(_NAMES)


def monday(week: str) -> date:
    """Return the day on which a week begins."""
    year, _, number = week.partition("-W")
    return date.fromisocalendar(int(year), int(number), 1)
