"""Filters select sessions by time, project and other fields."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from pollux.errors import InvalidFilterError, ProjectNotFoundError
from pollux.model import Project, Session
from pollux.reports.filters import Filter, filter_sessions, parse_age, parse_date

NOW = datetime(2026, 11, 15, 1, 30, tzinfo=UTC)
TOKYO = timezone(timedelta(hours=9))
NEW_YORK = timezone(timedelta(hours=-5))


def day(number: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, 11, number, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-01", day(1)),
        ("20261101", day(1)),
        (" 2026-11-01 14:30 ", day(1, 14, 30)),
        ("2026-11-01T14:30+02:00", day(1, 12, 30)),
        ("2026-11-01T14:30Z", day(1, 14, 30)),
        ("today", day(15)),
        ("Yesterday", day(14)),
        ("7d", day(8, 1, 30)),
        ("2 h", day(14, 23, 30)),
        ("1w", day(8, 1, 30)),
        ("30min", day(15, 1)),
    ],
)
def test_moments_are_parsed(text: str, expected: datetime) -> None:
    assert parse_date("--since", text, now=NOW) == expected


def test_days_begin_in_the_time_zone_of_the_user() -> None:
    assert parse_date("--since", "today", now=NOW, zone=TOKYO) == day(14, 15)
    assert parse_date("--since", "today", now=NOW, zone=NEW_YORK) == day(14, 5)
    assert parse_date("--since", "2026-11-01 14:30", now=NOW, zone=TOKYO) == day(1, 5, 30)


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "2026-11-01 25:00", "99999999999d", "9" * 5000 + "d"])
def test_invalid_filter_is_reported(text: str) -> None:
    with pytest.raises(InvalidFilterError, match=r"Invalid value for --since: .* Use"):
        parse_date("--since", text, now=NOW)


def test_spans_are_parsed() -> None:
    assert parse_age("--last", "12H", now=NOW) == NOW - timedelta(hours=12)
    with pytest.raises(InvalidFilterError, match=r"Invalid value for --last: 'x'\. Use 7d"):
        parse_age("--last", "x", now=NOW)


def session(id_: str, first: datetime | None, last: datetime | None, **more: object) -> Session:
    fields: dict[str, object] = {"project": Project(path="/src/webapp"), "models": ("gemini-2.5-pro",)}
    return Session(id=id_, kind="main", started=first, ended=last, **fields | more)  # type: ignore[arg-type]


SESSIONS = (
    session("old", day(1), day(2)),
    session("long", day(1), day(9)),
    session("new", day(8), day(9), models=("gemini-3-flash",)),
    session("begun", day(5), None, project=Project(path="/src/other")),
    session("timeless", None, None, models=()),
)


@pytest.mark.parametrize(
    ("filter_", "ids"),
    [
        (Filter(), ["old", "long", "new", "begun", "timeless"]),
        (Filter(since=day(3)), ["long", "new", "begun"]),
        (Filter(until=day(3)), ["old", "long"]),
        (Filter(since=day(3), until=day(6)), ["long", "begun"]),
        (Filter(model="FLASH"), ["new"]),
        (Filter(project="other"), ["begun"]),
        (Filter(project="webapp", since=day(3)), ["long", "new"]),
    ],
)
def test_filter_selects_matching_sessions(filter_: Filter, ids: list[str]) -> None:
    sessions = filter_sessions(SESSIONS, filter_, cwd=Path("/"), user_home=Path("/home/u"))
    assert [session.id for session in sessions] == ids


def test_unknown_project_is_reported_unless_there_are_no_sessions() -> None:
    with pytest.raises(ProjectNotFoundError):
        filter_sessions(SESSIONS, Filter(project="nope"), cwd=Path("/"), user_home=Path("/home/u"))
    assert filter_sessions((), Filter(project="nope"), cwd=Path("/"), user_home=Path("/home/u")) == ()
