"""The first look."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

from pollux.model import Fate, ModelCall, Project, Session, Tokens
from pollux.reports.overview import overview

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def session(
    id_: str, age: timedelta | None, *, kind: str = "main", is_stub: bool = False, slug: str = "web"
) -> Session:
    at = NOW - age if age is not None else None
    return Session(
        id=id_,
        kind=kind,
        project=Project(slug=slug),
        started=at,
        updated=at,
        counts={"user": 1},
        calls=(ModelCall(id_, id_, at, None, Fate.ACTIVE, Tokens(total=10)),),
        is_stub=is_stub,
    )


def days(number: float) -> timedelta:
    return timedelta(days=number)


def test_everything_is_counted_once() -> None:
    sessions = [
        session("new", days(1)),
        session("soon", days(24), slug="other"),
        session("due", days(30)),
        session("timeless", None),
        session("agent", days(1), kind="subagent"),
        session("stub", days(1), is_stub=True),
    ]
    view = overview(sessions, 3, now=NOW)
    assert (view.n_sessions, view.n_subagents, view.n_projects, view.n_prompts) == (4, 1, 2, 4)
    assert (view.tokens.total, view.n_calls, view.n_problems) == (60, 6, 3)
    assert (view.due, view.soon) == (1, 1)
    assert view.first == NOW - days(30)


def test_days_are_the_users_own() -> None:
    view = overview([session("late", timedelta(hours=13))], 0, now=NOW)
    assert len(view.days) == 14
    assert view.days[-2:] == ((date(2026, 11, 14), 10), (date(2026, 11, 15), 0))
    zone = timezone(timedelta(hours=2))
    assert overview([session("late", timedelta(hours=13))], 0, now=NOW, zone=zone).days[-1] == (date(2026, 11, 15), 10)


def test_nothing_is_something_too() -> None:
    view = overview([], 0, now=NOW)
    assert (view.n_sessions, view.first, view.due) == (0, None, 0)
