"""Quarters of an hour, UTC → the hours, days, weeks and months of a place.

Every time zone in use is some quarters of an hour away from UTC and changes its clocks at one. So a sum per quarter can
be folded into the periods of any of them without looking at the calls again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from operator import itemgetter
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
    timed: list[tuple[int, _T]] = []
    timeless: list[_T] = []
    for quarter_us, row in rows:
        if quarter_us is None:
            timeless.append(row)
        else:
            timed.append((quarter_us, row))
    timed.sort(key=itemgetter(0))
    found: dict[str | None, list[_T]] = {}
    for name, start, end in _runs(by, [quarter_us for quarter_us, _ in timed], zone):
        found.setdefault(name, []).extend([row for _, row in timed[start:end]])
    if timeless:
        found[None] = timeless
    return found


def _runs(by: str, quarters: Sequence[int], zone: tzinfo | None) -> Iterator[tuple[str, int, int]]:
    """Name the periods of many quarters, in their order: each name with where it begins and where it ends.

    A clock that is as far from UTC when a day ends as when it began was so all day; then all quarters of that day up to
    the midnight of the place have the same name, and all after it, too.
    """
    start = 0
    while start < len(quarters):
        first = quarters[start]
        until = first + QUARTER_US if by == "hour" else _end_of_day(first, zone)
        end = bisect_left(quarters, until, start)
        yield period(by, first, zone), start, end
        start = end


def _end_of_day(quarter_us: int, zone: tzinfo | None) -> int:
    """Return until when the clock of a place surely shows the same day: the end of the quarter at the least."""
    day = quarter_us // _DAY_US
    begins = _EPOCH + timedelta(days=day)
    offset, later = (local(at, zone).utcoffset() for at in (begins, begins + _TO_LAST_QUARTER))
    if offset != later:
        return quarter_us + QUARTER_US
    shift = offset // _MICROSECOND if offset else 0
    midnight = ((quarter_us + shift) // _DAY_US + 1) * _DAY_US - shift
    return min(midnight, (day + 1) * _DAY_US)


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
