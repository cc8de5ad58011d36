from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from pollux.text.numbers import Currency, count, duration, relative_time, short_age, size


@pytest.mark.parametrize(
    ("number", "words", "octets"),
    [
        (0, "0", "0 B"),
        (999, "999", "999 B"),
        (1000, "1.0k", "1.0 kB"),
        (12_345, "12.3k", "12.3 kB"),
        (123_456, "123k", "123 kB"),
        (999_999, "1.0M", "1.0 MB"),
        (4_500_000, "4.5M", "4.5 MB"),
        (7_000_000_000, "7.0B", "7.0 GB"),
        (5_000_000_000_000, "5,000B", "5.0 TB"),
        (-1500, "-1.5k", "-1.5 kB"),
    ],
)
def test_numbers_in_three_digits(number: int, words: str, octets: str) -> None:
    assert (count(number), size(number)) == (words, octets)


@pytest.mark.parametrize(
    ("distance", "past", "future"),
    [
        (timedelta(seconds=5), "just now", "in a moment"),
        (timedelta(minutes=1), "1 minute ago", "in 1 minute"),
        (timedelta(hours=5), "5 hours ago", "in 5 hours"),
        (timedelta(days=3), "3 days ago", "in 3 days"),
        (timedelta(days=15), "2 weeks ago", "in 2 weeks"),
        (timedelta(days=65), "2 months ago", "in 2 months"),
        (timedelta(days=800), "2 years ago", "in 2 years"),
    ],
)
def test_ago(distance: timedelta, past: str, future: str) -> None:
    now = datetime(2026, 11, 15, tzinfo=UTC)
    assert (relative_time(now - distance, now), relative_time(now + distance, now)) == (past, future)


@pytest.mark.parametrize(
    ("distance", "words"),
    [
        (timedelta(days=-1), "0min"),
        (timedelta(minutes=90), "90min"),
        (timedelta(hours=3), "3h"),
        (timedelta(days=2), "2d"),
        (timedelta(days=45), "6w"),
        (timedelta(days=430), "14mo"),
    ],
)
def test_age(distance: timedelta, words: str) -> None:
    now = datetime(2026, 11, 15, tzinfo=UTC)
    assert short_age(now - distance, now) == words


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(seconds=-1), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(minutes=12), "12 min"),
        (timedelta(hours=3, minutes=5), "3 h 5 min"),
        (timedelta(days=2, hours=1), "2 d 1 h"),
    ],
)
def test_lasted(span: timedelta, words: str) -> None:
    assert duration(span) == words


@pytest.mark.parametrize(
    ("nanousd", "shown"),
    [
        *((0, "$0.00"), (1, "$0.00000000100"), (513_000, "$0.000513"), (27_853_750, "$0.0279")),
        *((547_500_000, "$0.548"), (1_234_567_890, "$1.23"), (1_190_292_765_330, "$1,190.29"), (None, "no price")),
    ],
)
def test_money_has_enough_digits(nanousd: int | None, shown: str) -> None:
    assert Currency().show(nanousd) == shown


def test_money_has_its_currency() -> None:
    assert Currency("EUR", Decimal("0.92")).show(10**9) == "€0.920"
    assert Currency("CHF", Decimal("1.5")).show(10**9) == "CHF 1.50"
