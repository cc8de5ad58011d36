"""A folder of transcripts as a whole: its sessions by project, what they used, and on which days."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta

from pollux.exports import Written
from pollux.model import ModelCall, Project, Session, Usage
from pollux.prices import Prices, usage_of

MOST_DAYS = 366
"""Days that a chart shows; what is older is in the list."""


@dataclass(frozen=True, slots=True)
class Row:
    """A session in the list, with what it and its subagents used."""

    session: Session
    name: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Shelf:
    """The sessions of a project, the newest first."""

    project: Project
    rows: tuple[Row, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class Site:
    """All that an index tells."""

    shelves: tuple[Shelf, ...]
    """Those with the newest sessions first."""
    usage: Usage
    days: tuple[tuple[date, Usage], ...]
    """Every day from the first to the last, in UTC."""

    @property
    def n_sessions(self) -> int:
        """How many there are."""
        return sum(len(shelf.rows) for shelf in self.shelves)


def site_of(written: Sequence[Written], prices: Prices) -> Site:
    """Put the sessions of a folder in order."""
    shelves: dict[str, list[Row]] = defaultdict(list)
    for one in sorted(written, key=_newest_first):
        row = Row(one.session, one.name, usage_of(_calls(one), prices))
        shelves[one.session.project.key].append(row)
    made = tuple(
        Shelf(rows[0].session.project, tuple(rows), _sum(row.usage for row in rows)) for rows in shelves.values()
    )
    calls = (call for one in written for call in _calls(one))
    return Site(made, _sum(shelf.usage for shelf in made), _days(calls, prices))


def _calls(one: Written) -> Iterable[ModelCall]:
    return (call for session in (one.session, *one.agents) for call in session.calls)


def _newest_first(one: Written) -> tuple[float, str]:
    at = one.session.last_used
    return -at.timestamp() if at else 0.0, one.name


def _sum(usages: Iterable[Usage]) -> Usage:
    return sum(usages, Usage())


def _days(calls: Iterable[ModelCall], prices: Prices) -> tuple[tuple[date, Usage], ...]:
    by_day: dict[date, list[ModelCall]] = defaultdict(list)
    for call in calls:
        if call.at:
            by_day[call.at.astimezone(UTC).date()].append(call)
    if not by_day:
        return ()
    last = max(by_day)
    n_days = min((last - min(by_day)).days + 1, MOST_DAYS)
    days = (last - timedelta(days=back) for back in reversed(range(n_days)))
    return tuple((day, usage_of(by_day.get(day, ()), prices)) for day in days)
