"""Filters of sessions by project, time and model, and the parsing of dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path

import msgspec

from pollux.errors import InvalidFilterError, ProjectNotFoundError
from pollux.model import Session

_AGE = re.compile(r"(\d+)\s*(min|h|d|w|m|y)")
_UNITS = {
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "m": timedelta(days=30),
    "y": timedelta(days=365),
}
_DAYS = {"today": 0, "yesterday": 1}
_EXAMPLES = "2026-11-01, '2026-11-01 14:30', yesterday or 7d"


class Filter(msgspec.Struct, frozen=True):
    """Which sessions to return; all by default."""

    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    model: str | None = None
    subagents: bool = False
    """Whether to list subagents, too."""
    empty: bool = False
    """Whether to list sessions without messages, too."""


ALL = Filter()


def parse_date(option: str, text: str, *, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Parse a date, a time, `today`, `yesterday` or an age such as `7d`; without a zone, in the system's own."""
    value = text.strip().lower()
    if value in _DAYS:
        day = (now.astimezone(zone) - timedelta(days=_DAYS[value])).date()
        return _start_of(day, zone)
    if _AGE.fullmatch(value):
        return parse_age(option, text, now=now)
    try:
        if len(value) <= len("2026-11-01"):
            return _start_of(date.fromisoformat(value), zone)
        time_ = datetime.fromisoformat(text.strip())
    except (OverflowError, ValueError):
        raise InvalidFilterError(option, text, _EXAMPLES) from None
    return time_ if time_.tzinfo else _in_zone(time_, zone)


def parse_age(option: str, text: str, *, now: datetime) -> datetime:
    """Return the time that is an age such as `7d`, `12h` or `2w` before now."""
    match = _AGE.fullmatch(text.strip().lower())
    try:
        if match:
            return now - int(match[1]) * _UNITS[match[2]]
    except (OverflowError, ValueError):  # before the year 1, or thousands of digits
        pass
    raise InvalidFilterError(option, text, "7d, 12h, 2w or 3m")


def filter_sessions(sessions: Iterable[Session], filter_: Filter, *, cwd: Path, user_home: Path) -> tuple[Session, ...]:
    """Return the sessions that match. Raises `ProjectNotFoundError`."""
    sessions = tuple(sessions)
    if filter_.project is not None:
        sessions = _of_project(sessions, filter_.project, cwd, user_home)
    return tuple(session for session in sessions if _matches(session, filter_))


def _of_project(sessions: Sequence[Session], query: str, cwd: Path, user_home: Path) -> tuple[Session, ...]:
    from pollux.sessions.projects import search  # noqa: PLC0415  slow to import, and rarely needed

    projects = tuple(dict.fromkeys(session.project for session in sessions))
    matches = set(search.find(projects, query, cwd, user_home))
    if not matches and sessions:
        raise ProjectNotFoundError(query)
    return tuple(session for session in sessions if session.project in matches)


def _matches(session: Session, filter_: Filter) -> bool:
    first, last = session.started or session.ended, session.ended or session.started
    if filter_.since and (last is None or last < filter_.since):
        return False
    if filter_.until and (first is None or first >= filter_.until):
        return False
    return filter_.model is None or any(filter_.model.lower() in model.lower() for model in session.models)


def _start_of(day: date, zone: tzinfo | None) -> datetime:
    return _in_zone(datetime.combine(day, time()), zone)


def _in_zone(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.replace(tzinfo=zone).astimezone(UTC) if zone else naive.astimezone(UTC)
