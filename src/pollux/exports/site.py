"""The contents of an index of exported sessions: sessions by project, their usage, and the usage of each day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta

from pollux.exports import ExportedSession
from pollux.model import ModelCall, Project, Session, Usage
from pollux.prices import Prices, usage_of

MOST_DAYS = 366
"""Days in a chart; older sessions are in the list only."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A session in the index, with the usage of its subagents included."""

    session: Session
    name: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class ProjectGroup:
    """The sessions of a project, newest first."""

    project: Project
    rows: tuple[IndexRow, ...]
    usage: Usage


@dataclass(frozen=True, slots=True)
class Site:
    """The contents of an index."""

    groups: tuple[ProjectGroup, ...]
    """The project with the newest session first."""
    usage: Usage
    days: tuple[tuple[date, Usage], ...]
    """Every day from the first to the last, in UTC."""

    @property
    def n_sessions(self) -> int:
        """Return the number of sessions."""
        return sum(len(group.rows) for group in self.groups)


def build_site(written: Sequence[ExportedSession], prices: Prices) -> Site:
    """Group the sessions of a folder by project and add up their usage."""
    rows_by_project: dict[str, list[IndexRow]] = defaultdict(list)
    for export in sorted(written, key=_newest_first):
        row = IndexRow(export.session, export.name, usage_of(_calls(export), prices))
        rows_by_project[export.session.project.key].append(row)
    groups = tuple(
        ProjectGroup(rows[0].session.project, tuple(rows), sum((row.usage for row in rows), Usage()))
        for rows in rows_by_project.values()
    )
    calls = (call for export in written for call in _calls(export))
    return Site(groups, sum((group.usage for group in groups), Usage()), _days(calls, prices))


def _calls(export: ExportedSession) -> Iterable[ModelCall]:
    for session in (export.session, *export.agents):
        yield from session.calls


def _newest_first(export: ExportedSession) -> tuple[float, str]:
    at = export.session.last_used
    return -at.timestamp() if at else 0.0, export.name


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
