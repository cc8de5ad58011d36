"""The projects that have sessions."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

import msgspec

from pollux.model import Problem, Project
from pollux.reports.freshness import Freshness
from pollux.reports.sessions import SessionQuery
from pollux.text.times import from_microseconds


class ProjectRow(msgspec.Struct, frozen=True):
    """One project and its usage."""

    project: Project
    n_sessions: int
    n_prompts: int
    n_tokens: int
    last: datetime | None
    nanousd: int = 0
    """Cost, without calls that have no price."""


class ProjectList(msgspec.Struct, frozen=True):
    """The projects that have sessions, the last used first."""

    rows: tuple[ProjectRow, ...]
    moved: Mapping[str, str]
    """Missing folders, each with the only other known folder of the same name."""
    n_unknown: int
    """Projects without a proven path, before a scan."""
    n_found: int
    """Projects among them that a scan has found."""
    problems: tuple[Problem, ...]
    freshness: Freshness


class _Member(msgspec.Struct, frozen=True):
    project: Project
    is_listed: bool
    n_prompts: int
    n_tokens: int
    nanousd: int
    last_used_us: int | None


def project_rows(
    database: sqlite3.Connection, projects: Mapping[str, Project], query: SessionQuery
) -> tuple[ProjectRow, ...]:
    """Return the projects of the sessions that match a query, the last used first.

    A project with two folders is counted once. A subagent belongs to the project of its root session, regardless of its
    own path, and adds only its tokens.

    Args:
        database: with the fact tables.
        projects: the project of each session.
        query: the sessions to count; sessions without messages only add their time of last use.

    """
    where, values = query.where()
    sessions = database.execute(
        f"""
        SELECT session_id, root_session_id, kind = 'main' AND NOT is_stub, n_user, last_used_us,
            (SELECT coalesce(sum(tok_total), 0) FROM session_usage AS sums WHERE sums.session_id = sessions.session_id),
            (SELECT coalesce(sum(cost_nanousd), 0) FROM session_usage AS sums
             WHERE sums.session_id = sessions.session_id)
        FROM sessions WHERE {where} ORDER BY session_id
        """,  # noqa: S608  ours
        values,
    )
    members: dict[str, list[_Member]] = defaultdict(list)
    for session_id, root_id, is_listed, n_prompts, last_used_us, n_tokens, nanousd in sessions:
        project = projects.get(session_id, Project())
        key = projects.get(root_id, project).key
        members[key].append(_Member(project, bool(is_listed), n_prompts, n_tokens, nanousd, last_used_us))
    rows = [_row(each) for each in members.values() if any(member.is_listed for member in each)]
    return tuple(sorted(rows, key=lambda row: (-row.last.timestamp() if row.last else 0.0, row.project.name)))


def _row(members: list[_Member]) -> ProjectRow:
    listed = [member for member in members if member.is_listed]
    projects = [member.project for member in listed]
    times = [member.last_used_us for member in members if member.last_used_us is not None]
    return ProjectRow(
        max(projects, key=lambda project: (project.proven, project.slug is not None)),
        len(listed),
        sum(member.n_prompts for member in listed),
        sum(member.n_tokens for member in members),
        from_microseconds(max(times)) if times else None,
        sum(member.nanousd for member in members),
    )
