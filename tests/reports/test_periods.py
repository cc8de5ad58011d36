"""Quarters of an hour are assigned to the periods of any time zone, also when clocks change."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from pollux.model import Project, Session
from pollux.reports.periods import PERIODS, QUARTER_US, fold, local, monday, period, start_of_day
from pollux.views.session_text import period as words

BERLIN = ZoneInfo("Europe/Berlin")


def quarter(*at: int) -> int:
    return round(datetime(*at, tzinfo=UTC).timestamp() * 1_000_000)  # type: ignore[arg-type,misc]


def lengths(by: str, start: int, days: int, zone: ZoneInfo) -> Counter[str | None]:
    """Return the number of quarters of each period in some days of UTC."""
    rows = ((start + n * QUARTER_US, n) for n in range(days * 96))
    return Counter({key: len(members) for key, members in fold(by, rows, zone).items()})


@pytest.mark.parametrize(
    ("start", "day", "hours"),
    [((2026, 3, 28), "2026-03-29", 23), ((2026, 10, 24), "2026-10-25", 25), ((2026, 6, 1), "2026-06-02", 24)],
)
def test_day_has_23_24_or_25_hours(start: tuple[int, int, int], day: str, hours: int) -> None:
    assert lengths("day", quarter(*start), 3, BERLIN)[day] == 4 * hours


@pytest.mark.parametrize(("zone", "quarters"), [("Australia/Lord_Howe", 98), ("Asia/Kathmandu", 96)])
def test_days_of_unusual_time_zones_are_complete(zone: str, quarters: int) -> None:
    assert lengths("day", quarter(2026, 4, 3), 4, ZoneInfo(zone))["2026-04-05"] == quarters


@pytest.mark.parametrize(
    ("by", "first", "last"), [("day", "0001-01-01", "9999-12-31"), ("month", "0001-01", "9999-12")]
)
def test_ends_of_the_calendar_are_the_same_everywhere(by: str, first: str, last: str) -> None:
    """A session file may contain any time."""
    assert period(by, quarter(1, 1, 1), ZoneInfo("America/New_York")) == first
    assert period(by, quarter(9999, 12, 31, 23, 45), BERLIN) == last


def test_times_at_the_ends_of_the_calendar_are_valid() -> None:
    begin, end = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)
    assert (local(begin, ZoneInfo("America/New_York")), local(end, BERLIN)) == (begin, end)
    assert local(end, ZoneInfo("America/New_York")).hour == 18
    session = Session("s", "main", Project(), started=begin, ended=end)
    assert words(session, ZoneInfo("America/New_York")).startswith("Mon 1 Jan 1, 00:00 to Fri 31 Dec 9999, 18:00")


def test_repeated_hour_is_two_periods() -> None:
    hours = lengths("hour", quarter(2026, 10, 25), 1, BERLIN)
    assert hours["2026-10-25T02:00+02:00"] == hours["2026-10-25T02:00+01:00"] == 4
    assert len(hours) == 24


def test_skipped_hour_is_not_a_period() -> None:
    assert not [key for key in lengths("hour", quarter(2026, 3, 28), 2, BERLIN) if key and "29T02" in key]


@pytest.mark.parametrize(
    ("by", "at", "expected"),
    [
        ("week", (2026, 12, 31, 22), "2026-W53"),
        ("week", (2027, 1, 3, 22, 45), "2026-W53"),
        ("week", (2027, 1, 3, 23), "2027-W01"),  # Monday in Berlin
        ("month", (2026, 11, 30, 22, 45), "2026-11"),
        ("month", (2026, 11, 30, 23), "2026-12"),
        ("day", (2026, 6, 30, 22), "2026-07-01"),
        ("hour", (2026, 6, 30, 22, 45), "2026-07-01T00:00+02:00"),
    ],
)
def test_period_is_that_of_the_time_zone(by: str, at: tuple[int, ...], expected: str) -> None:
    assert period(by, quarter(*at), BERLIN) == expected


def test_week_begins_on_monday() -> None:
    assert monday("2026-W53").isoformat() == "2026-12-28"
    assert {lengths("week", quarter(2026, 12, 27), 9, ZoneInfo("UTC"))["2026-W53"]} == {7 * 96}


def test_periods_are_sorted_by_time_and_unknown_times_are_last() -> None:
    rows = [(None, "x"), (quarter(2026, 2, 1), "b"), (quarter(2026, 1, 1), "a"), (quarter(2026, 2, 1), "c")]
    assert fold("month", rows, UTC) == {"2026-01": ["a"], "2026-02": ["b", "c"], None: ["x"]}


def test_default_zone_is_that_of_the_system() -> None:
    assert period("hour", quarter(2026, 1, 1, 5, 15)) == "2026-01-01T05:00+00:00"  # tests run in UTC


def test_day_begins_at_midnight_of_the_time_zone() -> None:
    now = datetime(2026, 10, 25, 22, 30, tzinfo=UTC)
    assert start_of_day(now, BERLIN) == datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert start_of_day(now + timedelta(hours=1), BERLIN) == datetime(2026, 10, 25, 23, tzinfo=UTC)
    assert start_of_day(now) == datetime(2026, 10, 25, tzinfo=UTC)


@pytest.mark.parametrize("by", PERIODS)
@pytest.mark.parametrize(
    "zone",
    ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca"],
)
def test_many_quarters_have_the_same_periods_as_single_ones(by: str, zone: str) -> None:
    place = ZoneInfo(zone)
    begin = int(datetime(2025, 12, 28, tzinfo=UTC).timestamp()) * 1_000_000 // QUARTER_US
    quarters = [number * QUARTER_US for number in range(begin, begin + 96 * 400, 1 if by == "hour" else 3)]
    folded = fold(by, ((quarter_us, quarter_us) for quarter_us in quarters), place)
    alone: dict[str | None, list[int]] = {}
    for quarter_us in quarters:
        alone.setdefault(period(by, quarter_us, place), []).append(quarter_us)
    assert folded == alone
    assert list(folded) == list(alone)


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
def test_quarters_at_the_ends_of_the_calendar_have_the_same_periods_as_single_ones(zone: str) -> None:
    place, last = ZoneInfo(zone), 253_402_300_799_000_000 // QUARTER_US
    first = -62_135_596_800_000_000 // QUARTER_US
    quarters = [number * QUARTER_US for at in (first, last - 200) for number in range(at, at + 201)]
    folded = fold("day", ((quarter_us, quarter_us) for quarter_us in quarters), place)
    assert {name: len(members) for name, members in folded.items()} == Counter(
        period("day", quarter_us, place) for quarter_us in quarters
    )
