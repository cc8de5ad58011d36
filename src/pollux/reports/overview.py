"""The first look: what there is, what is new, and what the client is going to delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from pollux.model import ModelCall, Session, Tokens
from pollux.reports.periods import local
from pollux.reports.projects import project_key
from pollux.views.contracts import total

RETENTION = timedelta(days=30)
"""After this long without use the client deletes a session, unless its settings say otherwise."""
_DAYS = 14


@dataclass(frozen=True, slots=True)
class Overview:
    """What a first look shows."""

    n_sessions: int
    n_subagents: int
    n_projects: int
    n_prompts: int
    tokens: Tokens
    n_calls: int
    first: datetime | None
    days: tuple[tuple[date, int], ...]
    """Tokens of the last days, oldest first."""
    due: int
    """Sessions that the client deletes at its next start."""
    soon: int
    """Sessions that become due within a week."""
    n_gone: int
    """Sessions that the client has deleted, and the archive has kept."""
    n_problems: int
    is_exact: bool = False
    """Whether the client's settings were asked; else only the age was."""


def overview(
    sessions: Sequence[Session],
    n_problems: int,
    *,
    now: datetime,
    zone: tzinfo | None = None,
    deleted: tuple[int, int] | None = None,
) -> Overview:
    """Sum all sessions up; how many will be deleted next and soon is guessed by age where it is not known."""
    mains = [one for one in sessions if one.kind == "main" and not one.is_stub]
    calls = [call for one in sessions for call in one.calls]
    ages = [now - one.updated for one in mains if one.updated and not one.gone]
    return Overview(
        n_sessions=len(mains),
        n_subagents=sum(one.kind == "subagent" for one in sessions),
        n_projects=len({project_key(one.project) for one in mains}),
        n_prompts=sum(one.counts.get("user", 0) for one in mains),
        tokens=total(calls),
        n_calls=len(calls),
        first=min((one.started for one in mains if one.started), default=None),
        days=_days(calls, now.astimezone(zone).date(), zone),
        due=deleted[0] if deleted else sum(age >= RETENTION for age in ages),
        soon=deleted[1] if deleted else sum(RETENTION - timedelta(days=7) <= age < RETENTION for age in ages),
        n_gone=sum(one.gone for one in mains),
        n_problems=n_problems,
        is_exact=deleted is not None,
    )


def _days(calls: Sequence[ModelCall], today: date, zone: tzinfo | None) -> tuple[tuple[date, int], ...]:
    days = {today - timedelta(days=back): 0 for back in reversed(range(_DAYS))}
    for call in calls:
        day = local(call.at, zone).date() if call.at else None
        if day in days:
            days[day] += call.tokens.total
    return tuple(days.items())
