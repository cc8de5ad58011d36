from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pollux.text.times import client_timestamp, from_microseconds, microseconds, parse_time

AT = datetime(2026, 11, 15, 19, 30, 1, 250_000, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["2026-11-15T19:30:01.250Z", "2026-11-15T19:30:01.250", "2026-11-15T20:30:01.250+01:00", "20261115T193001.250Z"],
)
def test_a_time_is_read_as_utc(text: str) -> None:
    found = parse_time(text)
    assert found == AT
    assert found.tzinfo is UTC


@pytest.mark.parametrize("value", [None, 1_794_772_150, "", "yesterday", "2026-13-01T00:00:00Z", [], {}, True])
def test_what_is_no_time_has_none(value: object) -> None:
    assert parse_time(value) is None


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_a_time_beyond_the_calendar_is_none(text: str) -> None:
    assert parse_time(text) is None


def test_a_time_is_written_as_the_client_does() -> None:
    assert client_timestamp(AT) == "2026-11-15T19:30:01.250Z"
    assert client_timestamp(AT.astimezone(timezone(timedelta(hours=2)))) == "2026-11-15T19:30:01.250Z"


@given(st.datetimes(timezones=st.just(UTC)))
def test_written_and_read_again(at: datetime) -> None:
    assert parse_time(client_timestamp(at)) == at.replace(microsecond=at.microsecond // 1000 * 1000)


@given(st.text())
def test_no_text_raises(text: str) -> None:
    parse_time(text)


@given(st.datetimes(timezones=st.just(UTC)))
@example(datetime.max.replace(tzinfo=UTC))
@example(datetime.min.replace(tzinfo=UTC))
def test_microseconds_are_exact(at: datetime) -> None:
    assert from_microseconds(microseconds(at)) == at
