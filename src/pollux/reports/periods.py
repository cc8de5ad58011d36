"""Fold quarters of an hour in UTC into hours, days, weeks and months of a time zone.

The UTC offset of every time zone in use is a multiple of a quarter of an hour and changes at one. So sums per quarter
can be folded into the periods of any zone without reading the calls again.
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
    """Return the name of the period that contains a quarter of an hour; without a zone, in the system's own.

    The name of an hour contains its UTC offset, because one hour occurs twice when clocks are set back.
    """
    return _NAMES[by](local(_EPOCH + timedelta(microseconds=quarter_us), zone))


def local(at: datetime, zone: tzinfo | None = None) -> datetime:
    """Return a time in a zone; unchanged if it is at the very beginning or end of the calendar."""
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at


def fold(by: str, rows: Iterable[tuple[int | None, _T]], zone: tzinfo | None = None) -> dict[str | None, list[_T]]:
    """Group rows by the period of their quarter, earliest first; rows without a time come last, under None."""
    timed: list[tuple[int, _T]] = []
    timeless: list[_T] = []
    for quarter_us, row in rows:
        if quarter_us is None:
            timeless.append(row)
        else:
            timed.append((quarter_us, row))
    timed.sort(key=itemgetter(0))
    groups: dict[str | None, list[_T]] = {}
    for name, start, end in _runs(by, [quarter_us for quarter_us, _ in timed], zone):
        groups.setdefault(name, []).extend([row for _, row in timed[start:end]])
    if timeless:
        groups[None] = timeless
    return groups


def _runs(by: str, quarters: Sequence[int], zone: tzinfo | None) -> Iterator[tuple[str, int, int]]:
    """Yield the periods of sorted quarters, each with the index of its first quarter and that after its last.

    A zone with the same UTC offset at the beginning and the end of a UTC day has it all day. Then all quarters before
    local midnight are in the same period, and so are all after it.
    """
    start = 0
    while start < len(quarters):
        first = quarters[start]
        until = first + QUARTER_US if by == "hour" else _end_of_day(first, zone)
        end = bisect_left(quarters, until, start)
        yield period(by, first, zone), start, end
        start = end


def _end_of_day(quarter_us: int, zone: tzinfo | None) -> int:
    """Return a time until which a zone certainly has the same date, at least the end of the quarter."""
    day = quarter_us // _DAY_US
    start = _EPOCH + timedelta(days=day)
    offset, later = (local(at, zone).utcoffset() for at in (start, start + _TO_LAST_QUARTER))
    if offset != later:
        return quarter_us + QUARTER_US
    shift = offset // _MICROSECOND if offset else 0
    midnight = ((quarter_us + shift) // _DAY_US + 1) * _DAY_US - shift
    return min(midnight, (day + 1) * _DAY_US)


def start_of_day(at: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the first moment of a day in a zone, also where clocks skip midnight."""
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
    """Return the first day of a week."""
    year, _, number = week.partition("-W")
    return date.fromisocalendar(int(year), int(number), 1)
