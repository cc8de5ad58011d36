"""The overview counts sessions, prompts and tokens."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

from pollux.archive.memory import in_memory
from pollux.model import Fate, ModelCall, Project, Session, Tokens
from pollux.reports.overview import Overview, overview

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
        calls=(ModelCall(id_, id_, at, None, Fate.ACTIVE, Tokens(total=10), "f", 1),),
        is_stub=is_stub,
    )


def overview_of(*sessions: Session, ids: Collection[str] | None = None, zone: tzinfo | None = None) -> Overview:
    with closing(in_memory(sessions, [])) as database:
        return overview(database, ids, now=NOW, zone=zone)


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
    view = overview_of(*sessions)
    assert (view.n_sessions, view.n_subagents, view.n_projects, view.n_prompts) == (4, 1, 2, 4)
    assert (view.usage.tokens.total, view.usage.calls) == (60, 6)
    assert view.first == NOW - days(30)


def test_only_the_sessions_of_a_scope_are_counted() -> None:
    view = overview_of(session("here", days(1)), session("elsewhere", days(40), slug="other"), ids={"here"})
    assert (view.n_sessions, view.n_projects, view.n_prompts, view.usage.tokens.total) == (1, 1, 1, 10)
    assert view.first == NOW - days(1)
    assert sum(tokens for _, tokens in view.days) == 10


def test_days_are_those_of_the_time_zone() -> None:
    view = overview_of(session("late", timedelta(hours=13)))
    assert len(view.days) == 14
    assert view.days[-2:] == ((date(2026, 11, 14), 10), (date(2026, 11, 15), 0))
    zone = timezone(timedelta(hours=2))
    assert overview_of(session("late", timedelta(hours=13)), zone=zone).days[-1] == (date(2026, 11, 15), 10)


def test_overview_without_sessions_is_zero() -> None:
    view = overview_of()
    assert (view.n_sessions, view.first, view.n_deleted) == (0, None, 0)
