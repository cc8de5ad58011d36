"""Which sessions somebody means: project, time and model, parsed once for all front ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from pathlib import Path

import msgspec

from pollux.errors import BadFilterError, NoSuchProjectError
from pollux.model import Session

_SPAN = re.compile(r"(\d+)\s*(min|h|d|w|m|y)")
_SPANS = {
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
    """What is asked for; nothing given means all."""

    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    model: str | None = None
    subagents: bool = False
    """Whether a list shows subagents too."""
    empty: bool = False
    """Whether a list shows sessions without messages too."""


ALL = Filter()


def moment(option: str, text: str, *, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Read a date, a time, a day's name or a span before now; without a zone it is the user's own."""
    words = text.strip().lower()
    if words in _DAYS:
        day = (now.astimezone(zone) - timedelta(days=_DAYS[words])).date()
        return _start_of(day, zone)
    if _SPAN.fullmatch(words):
        return before(option, text, now=now)
    try:
        if len(words) <= len("2026-11-01"):
            return _start_of(date.fromisoformat(words), zone)
        found = datetime.fromisoformat(text.strip())
    except (OverflowError, ValueError):
        raise BadFilterError(option, text, _EXAMPLES) from None
    return found if found.tzinfo else _in_zone(found, zone)


def before(option: str, text: str, *, now: datetime) -> datetime:
    """Go back by a length of time such as `7d`, `12h` or `2w`."""
    found = _SPAN.fullmatch(text.strip().lower())
    try:
        if found:
            return now - int(found[1]) * _SPANS[found[2]]
    except (OverflowError, ValueError):  # before the year 1, or thousands of digits
        pass
    raise BadFilterError(option, text, "7d, 12h, 2w or 3m")


def chosen(sessions: Iterable[Session], wanted: Filter, *, cwd: Path, user_home: Path) -> tuple[Session, ...]:
    """Keep the sessions that fit. Raises `NoSuchProjectError`."""
    found = tuple(sessions)
    if wanted.project is not None:
        found = _of_project(found, wanted.project, cwd, user_home)
    return tuple(one for one in found if _fits(one, wanted))


def _of_project(sessions: Sequence[Session], query: str, cwd: Path, user_home: Path) -> tuple[Session, ...]:
    known = tuple(dict.fromkeys(one.project for one in sessions))
    from pollux.sessions.projects import search  # noqa: PLC0415  slow to load, and seldom needed

    fitting = set(search.find(known, query, cwd, user_home))
    if not fitting and sessions:
        raise NoSuchProjectError(query)
    return tuple(one for one in sessions if one.project in fitting)


def _fits(session: Session, wanted: Filter) -> bool:
    first, last = session.started or session.ended, session.ended or session.started
    if wanted.since and (last is None or last < wanted.since):
        return False
    if wanted.until and (first is None or first >= wanted.until):
        return False
    return wanted.model is None or any(wanted.model.lower() in model.lower() for model in session.models)


def _start_of(day: date, zone: tzinfo | None) -> datetime:
    return _in_zone(datetime.combine(day, time()), zone)


def _in_zone(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.replace(tzinfo=zone).astimezone(UTC) if zone else naive.astimezone(UTC)
