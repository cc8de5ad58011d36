"""The projects that have sessions."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from pollux.archive.load_sessions import ids_as_json
from pollux.archive.schema import has_other_prices
from pollux.model import Cost, Problem, Project, Tokens, Usage
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
    nanousd: int | None = 0
    """The cost of the calls that have a price; None if there are calls but none has a price."""


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


class KnownProjects(msgspec.Struct, frozen=True):
    """The projects of all sessions."""

    by_hash: Mapping[str, Project]
    lone: Mapping[str, Project]
    """The projects of sessions without a hash, by session."""

    def of(self, project_hash: str | None, session_id: str | None) -> Project:
        """Return the project of a hash, or that of a session without one."""
        if project_hash is None:
            return self.lone.get(session_id or "", Project())
        return self.by_hash.get(project_hash) or Project(project_hash)


class _Part(msgspec.Struct, frozen=True):
    """Sums of sessions with the same hash, whose root sessions have the same hash, too."""

    project: Project
    is_listed: bool
    n_sessions: int
    n_prompts: int
    last_used_us: int | None


_EVERY = SessionQuery(subagents=True, empty=True)
_ROOT_HASH = """
    CASE WHEN root_session_id = session_id THEN project_hash ELSE (
        SELECT root.project_hash FROM sessions AS root WHERE root.session_id = sessions.root_session_id
    ) END
"""
_ROOT_WITHOUT = f"CASE WHEN {_ROOT_HASH} IS NULL THEN root_session_id END"


_PARTS = f"""
    SELECT {_ROOT_HASH}, {_ROOT_WITHOUT}, project_hash, CASE WHEN project_hash IS NULL THEN session_id END,
        kind = 'main' AND NOT is_stub, count(*), sum(n_user), max(last_used_us)
    FROM sessions WHERE {{where}} GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608  ours
_IS_USUAL = "kind = 'main' AND is_stub = 0 AND root_session_id = session_id AND project_hash NOTNULL"
_USUAL_PARTS = f"""
    SELECT project_hash, NULL, project_hash, NULL, 1, count(*), sum(n_user), max(last_used_us)
    FROM sessions INDEXED BY sessions_by_project WHERE {_IS_USUAL} GROUP BY project_hash
"""  # noqa: S608  ours
_UNUSUAL = f"""
    session_id IN (
        SELECT session_id FROM sessions WHERE kind = 'subagent'
        UNION SELECT session_id FROM sessions WHERE parent_session_id NOTNULL
        UNION SELECT session_id FROM sessions WHERE is_stub = 1
        UNION SELECT session_id FROM sessions WHERE project_hash IS NULL
    ) AND NOT ({_IS_USUAL})
"""  # noqa: S608  ours
"""The sessions that are not in the index of the usual ones; each kind of them has an index of its own."""
_SUMS = f"""
    SELECT {_ROOT_HASH}, {_ROOT_WITHOUT}, sum(tok_total), sum(cost_nanousd), sum(calls), sum(unpriced_calls)
    FROM {{tables}} USING (session_id) WHERE {{where}} GROUP BY 1, 2
"""  # noqa: S608  ours
_SUMS_BY_HASH = """
    SELECT project_hash, NULL, sum(tok_total), sum(cost_nanousd), sum(calls), sum(unpriced_calls)
    FROM session_spans INDEXED BY spans_by_project WHERE project_hash NOTNULL GROUP BY project_hash
"""
_MOVED_SUMS = """
    SELECT project_hash, NULL, -tok_total, -cost_nanousd, -calls, -unpriced_calls FROM session_spans
    WHERE project_hash NOTNULL AND session_id IN (
        SELECT session_id FROM sessions WHERE parent_session_id NOTNULL AND root_session_id <> session_id
    )
"""
"""The sums of subagents, which belong to the project of their root session."""
_OF_ROOTS = _SUMS.format(
    tables="""
        sessions CROSS JOIN (
            SELECT session_id, tok_total, cost_nanousd, calls, unpriced_calls FROM session_spans
        )
    """,
    where="""
        session_id IN (
            SELECT session_id FROM sessions WHERE parent_session_id NOTNULL AND root_session_id <> session_id
            UNION SELECT session_id FROM sessions WHERE project_hash IS NULL
        )
    """,
)
"""The same, by the project of the root session, and the sums of sessions without a hash."""


def project_rows(database: sqlite3.Connection, known: KnownProjects, query: SessionQuery) -> tuple[ProjectRow, ...]:
    """Return the projects of the sessions that match a query, the last used first.

    A project with two folders is counted once. A subagent belongs to the project of its root session, regardless of its
    own path, and adds only its tokens. Sessions without messages only add their time of last use.
    """
    where, values = query.where()
    if query == _EVERY:
        rows = [*database.execute(_USUAL_PARTS), *database.execute(_PARTS.format(where=_UNUSUAL))]
    else:
        rows = database.execute(_PARTS.format(where=where), values).fetchall()
    parts: dict[str, list[_Part]] = defaultdict(list)
    for root_hash, root_id, project_hash, session_id, is_listed, n_sessions, n_prompts, last_used_us in rows:
        if not isinstance(n_prompts, int):
            raise TypeError(f"{n_prompts} prompts")  # SQLite adds up damaged rows, too
        project = known.of(project_hash, session_id)
        part = _Part(project, bool(is_listed), n_sessions, n_prompts, last_used_us)
        parts[known.of(root_hash, root_id).key].append(part)
    sums = _sums(database, known, query)
    made = [_row(each, sums[key]) for key, each in parts.items() if any(part.is_listed for part in each)]
    return tuple(sorted(made, key=lambda row: (-row.last.timestamp() if row.last else 0.0, row.project.name)))


def _sums(database: sqlite3.Connection, known: KnownProjects, query: SessionQuery) -> Mapping[str, Usage]:
    """Return the usage of each project, by its key; that of all sessions from an index of their sums."""
    if query == _EVERY and not has_other_prices(database):
        rows = [row for sql in (_SUMS_BY_HASH, _MOVED_SUMS, _OF_ROOTS) for row in database.execute(sql)]
    else:
        where, values = query.where()
        rows = database.execute(
            _SUMS.format(tables="session_usage CROSS JOIN sessions", where=where), values
        ).fetchall()
    sums: dict[str, Usage] = defaultdict(Usage)
    for root_hash, root_id, n_tokens, nanousd, n_calls, n_unpriced in rows:
        key = known.of(root_hash, root_id).key
        sums[key] += Usage(n_calls, Tokens(total=n_tokens), Cost(nanousd, n_unpriced))
    return sums


def _row(parts: list[_Part], usage: Usage) -> ProjectRow:
    listed = [part for part in parts if part.is_listed]
    projects = [part.project for part in listed]
    times = [part.last_used_us for part in parts if part.last_used_us is not None]
    return ProjectRow(
        max(projects, key=lambda project: (project.proven, project.slug is not None)),
        sum(part.n_sessions for part in listed),
        sum(part.n_prompts for part in listed),
        usage.tokens.total,
        from_microseconds(max(times)) if times else None,
        usage.cost_nanousd,
    )


def used_hashes(database: sqlite3.Connection) -> list[str]:
    """Return the hashes of the projects of all sessions, each found by a step in an index."""
    rows = database.execute(
        """
        WITH RECURSIVE used(hash) AS (
            SELECT min(project_hash) FROM sessions
            UNION ALL
            SELECT (SELECT min(project_hash) FROM sessions WHERE project_hash > used.hash) FROM used
            WHERE used.hash NOTNULL
        )
        SELECT hash FROM used WHERE hash NOTNULL
        """
    )
    return [row[0] for row in rows]


def sessions_with_hashes(database: sqlite3.Connection, hashes: Iterable[str]) -> list[str]:
    """Return the sessions of some projects."""
    rows = database.execute(
        "SELECT session_id FROM sessions WHERE project_hash IN (SELECT value FROM json_each(?))",
        (ids_as_json(hashes),),
    )
    return [row[0] for row in rows]
