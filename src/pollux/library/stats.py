"""Prompts, answers, tool calls, files and programs, counted."""
# ruff: noqa: PLC0415  imported when the question is asked

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pollux.library.filters import Announce, ignore_note, sessions_of_project
from pollux.reports.filters import Filter

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.reports.stats import Statistics

TABLES = ("tool", "model", "project", "session", "day", "week", "month", "filetype", "program")
"""What statistics can be grouped by."""


class StatsQuery(msgspec.Struct, frozen=True):
    """What to count."""

    by: str | None = None
    """One of `TABLES` for one whole table, None for all in brief."""
    filter: Filter = Filter()
    with_tables: bool = True
    """Whether the answer in brief has tables, and not only totals."""


def stats_report(snapshot: Snapshot, query: StatsQuery, announce: Announce = ignore_note) -> Statistics:
    """Count what happened in the sessions asked for."""
    from pollux.reports.stats import SECTIONS, USUAL, statistics
    from pollux.reports.stats_sql import EVERYTHING, read

    wanted = query.filter
    ids = sessions_of_project(snapshot, wanted.project, announce)
    needs = SECTIONS[query.by].needs if query.by else EVERYTHING
    parts = read(snapshot.database, wanted.since, wanted.until, needs=needs, only=ids, model=wanted.model)
    problems = snapshot.problems(ids)
    problems.sort(key=lambda problem: (problem.file or "", problem.line or 0, problem.code))
    zone, zone_name = snapshot.config.zone()
    return statistics(
        parts,
        snapshot.projects(),
        query.by,
        others=USUAL if query.with_tables else (),
        zone=zone,
        timezone=zone_name,
        problems=tuple(problems),
    )
