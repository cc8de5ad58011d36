"""The sessions of the fact tables: pages of a list, single sessions, and their sums with subagents."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from pollux.archive.load_sessions import AMONG, ids_as_json, project_of
from pollux.archive.schema import TABLES
from pollux.model import Cost, FileRef, Problem, Project, Session, Tokens, Usage
from pollux.reports.freshness import Freshness
from pollux.text.times import microseconds

_ORDER = "ORDER BY last_used_us DESC, session_id"
"""As in the index; sessions without a time come last."""
_SUM_COLUMNS = TABLES["session_usage"].names[2:]
_SUMS = f"SELECT session_id, is_active, {', '.join(_SUM_COLUMNS)} FROM session_usage"  # noqa: S608  ours
_NO_USAGE = Usage()
_FEW = 100
"""Sessions up to which their numbers are counted one by one."""
_NEVER = "-9e999"
"""Minus infinity in SQL: sessions without a time come last."""


class SessionQuery(msgspec.Struct, frozen=True):
    """Which sessions a list shows, as conditions on the `sessions` table."""

    ids: Collection[str] | None = None
    """None for all."""
    since: datetime | None = None
    until: datetime | None = None
    model: str | None = None
    subagents: bool = False
    empty: bool = False

    def where(self) -> tuple[str, list[object]]:
        """Return the SQL condition and its parameters."""
        conditions, values = ["1"], list[object]()
        if not self.subagents:
            conditions.append("kind = 'main'")
        if not self.empty:
            conditions.append("is_stub = 0")
        if self.ids is not None:
            conditions.append(AMONG)
            values.append(ids_as_json(self.ids))
        if self.since:
            conditions.append("coalesce(ended_us, started_us) >= ?")
            values.append(microseconds(self.since))
        if self.until:
            conditions.append("coalesce(started_us, ended_us) < ?")
            values.append(microseconds(self.until))
        if self.model is not None:
            conditions.append("EXISTS (SELECT 1 FROM json_each(models) WHERE instr(lower(value), ?))")
            values.append(self.model.lower())
        return " AND ".join(conditions), values


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One session in a list: what it is about and what it cost, without its messages."""

    id: str
    kind: str
    """`main` or `subagent`."""
    parent_id: str | None
    root_id: str
    number: int | None
    """The 2 of `@2`; None for a session that a plain list does not show."""
    title: str
    first_prompt: str
    project: Project
    started: datetime | None
    ended: datetime | None
    updated: datetime | None
    last_used: datetime | None
    prompts: int
    counts: Mapping[str, int]
    """Messages of the timeline by kind."""
    fates: Mapping[str, int]
    tool_calls: int
    models: tuple[str, ...]
    files: tuple[FileRef, ...]
    usage: Usage
    """With subagents."""
    own_usage: Usage
    active: Usage
    """The part of `usage` whose messages are still part of the conversations."""
    is_stub: bool
    deleted: bool
    """Whether the client has deleted it; the archive has not."""
    problems: tuple[Problem, ...]

    @property
    def short_id(self) -> str:
        """The ID in eight characters, for display."""
        from pollux.sessions.reader import short_id_of  # noqa: PLC0415  large, and only needed for display

        return short_id_of(self.id)


class Page(msgspec.Struct, frozen=True):
    """Which part of a list to return."""

    limit: int | None = 50
    """None for no limit."""
    after: str | None = None
    """The `next` of the previous page."""


class SessionPage(msgspec.Struct, frozen=True):
    """Part of a list of sessions."""

    rows: tuple[SessionRow, ...]
    next: str | None
    """The `Page.after` of the next page; None at the end."""
    total: int
    """Sessions that match the filter, on all pages."""
    listed: int
    """Sessions that a list without a filter shows."""
    problems: tuple[Problem, ...]
    """Problems of these sessions, of files without a readable session, and of the homes."""
    freshness: Freshness
    hint: str = ""
    """A sentence for the user if there are no rows."""
    notes: tuple[str, ...] = ()
    """Sentences for the user about the search for a query."""


class SavedPage(msgspec.Struct, frozen=True):
    """Conversations that `/chat save` stored."""

    rows: tuple[Session, ...]
    problems: tuple[Problem, ...]


FIRST_PAGE = Page()


class _Sums(msgspec.Struct, frozen=True):
    active: Usage = _NO_USAGE
    dropped: Usage = _NO_USAGE

    @property
    def billed(self) -> Usage:
        return self.active + self.dropped


def count(database: sqlite3.Connection, query: SessionQuery) -> int:
    """Return the number of sessions that match a query."""
    where, values = query.where()
    number: int = database.execute(f"SELECT count(*) FROM sessions WHERE {where}", values).fetchone()[0]  # noqa: S608  ours
    return number


def page(database: sqlite3.Connection, query: SessionQuery, *, limit: int | None = None, offset: int = 0) -> list[str]:
    """Return the IDs of the sessions that match a query, the last used first."""
    where, values = query.where()
    rows = database.execute(
        f"SELECT session_id FROM sessions WHERE {where} {_ORDER} LIMIT ? OFFSET ?",  # noqa: S608  ours
        [*values, -1 if limit is None else limit, offset],
    )
    return [row[0] for row in rows]


def in_order(database: sqlite3.Connection, query: SessionQuery) -> Iterator[str]:
    """Yield the IDs of the sessions that match a query, the last used first; those that are not taken cost nothing."""
    where, values = query.where()
    for row in database.execute(f"SELECT session_id FROM sessions WHERE {where} {_ORDER}", values):  # noqa: S608  ours
        yield row[0]


def numbers(database: sqlite3.Connection, ids: Collection[str], scope: Collection[str] | None) -> dict[str, int]:
    """Return the numbers of sessions in the plain list of a scope, from 1."""
    if scope is None and len(ids) <= _FEW:
        return _counted_numbers(database, ids)
    where, values = SessionQuery(scope).where()
    remaining = set(ids)
    listed = database.execute(f"SELECT session_id FROM sessions WHERE {where} {_ORDER}", values)  # noqa: S608  ours
    numbered = {}
    for number, (session_id,) in enumerate(listed, 1):
        if session_id in remaining:
            numbered[session_id] = number
            remaining.remove(session_id)
            if not remaining:
                break
    return numbered


def _counted_numbers(database: sqlite3.Connection, ids: Collection[str]) -> dict[str, int]:
    """Return the numbers of a few sessions; SQLite counts the sessions between them faster than we can read those."""
    where, _ = SessionQuery().where()
    rows = database.execute(
        f"""
        WITH wanted AS (
            SELECT session_id, last_used_us AS used_us, coalesce(last_used_us, {_NEVER}) AS place
            FROM sessions WHERE {AMONG} AND {where}
        ), ordered AS (
            SELECT *, coalesce(lag(place) OVER (ORDER BY place DESC, session_id), 9e999) AS previous FROM wanted
        )
        SELECT
            ordered.session_id,
            (SELECT count(*) FROM sessions WHERE {where} AND last_used_us > place AND last_used_us <= previous),
            (
                SELECT count(*) FROM sessions
                WHERE {where} AND last_used_us IS used_us AND sessions.session_id <= ordered.session_id
            )
        FROM ordered ORDER BY place DESC, ordered.session_id
        """,  # noqa: S608  ours
        (ids_as_json(ids),),
    )
    numbered = {}
    n_later = 0
    for session_id, n_between, n_same_time in rows:
        n_later += n_between
        numbered[session_id] = n_later + n_same_time
    return numbered


def neighbours(
    database: sqlite3.Connection, session_id: str, scope: Collection[str] | None
) -> tuple[str | None, str | None]:
    """Return the listed sessions of the same project that were used before and after a session."""
    where, values = SessionQuery(scope).where()
    place = "(SELECT project_hash, coalesce(last_used_us, 0) FROM sessions WHERE session_id = ?)"
    neighbour_ids: list[str | None] = []
    for sign, direction in (("<", "DESC"), (">", "ASC")):
        row = database.execute(
            f"""
            WITH here(project, at) AS {place}
            SELECT session_id FROM sessions, here
            WHERE {where} AND project_hash IS here.project
                AND (coalesce(last_used_us, 0), session_id) {sign} (here.at, ?)
            ORDER BY coalesce(last_used_us, 0) {direction}, session_id {direction} LIMIT 1
            """,  # noqa: S608  ours
            [session_id, *values, session_id],
        ).fetchone()
        neighbour_ids.append(row[0] if row else None)
    return neighbour_ids[0], neighbour_ids[1]


def among(database: sqlite3.Connection, ids: Iterable[str], query: SessionQuery) -> list[str]:
    """Return the sessions among some IDs that match a query, the last used first."""
    where, values = query.where()
    rows = database.execute(
        f"SELECT session_id FROM sessions WHERE {AMONG} AND {where} {_ORDER}",  # noqa: S608  ours
        [ids_as_json(ids), *values],
    )
    return [row[0] for row in rows]


def main_sessions(database: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Return the sessions among some IDs that are not subagents."""
    return among(database, ids, SessionQuery(empty=True))


def unreadable(database: sqlite3.Connection, scope: Collection[str] | None) -> list[str]:
    """Return the sessions without messages; their problems say why nothing could be read."""
    where, values = SessionQuery(scope, subagents=True, empty=True).where()
    rows = database.execute(f"SELECT session_id FROM sessions WHERE is_stub = 1 AND {where}", values)  # noqa: S608  ours
    return [row[0] for row in rows]


def with_prefix(database: sqlite3.Connection, prefix: str, query: SessionQuery) -> list[str]:
    """Return the IDs of sessions that match a query and start with a prefix, regardless of case."""
    where, values = query.where()
    pattern = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    rows = database.execute(
        f"SELECT session_id FROM sessions WHERE session_id LIKE ? ESCAPE '\\' AND {where} {_ORDER}",  # noqa: S608  ours
        [pattern, *values],
    )
    return [row[0] for row in rows]


def roots(database: sqlite3.Connection, ids: Iterable[str]) -> list[str]:
    """Return the root sessions of some sessions."""
    rows = database.execute(
        f"SELECT DISTINCT root_session_id FROM sessions WHERE {AMONG}",  # noqa: S608  ours
        (ids_as_json(ids),),
    )
    return [row[0] for row in rows]


def families(
    database: sqlite3.Connection, ids: Iterable[str], scope: Collection[str] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return each session with all its subagents in a scope, however deep; members of a cycle are no subagents."""
    members = {}
    for session_id in ids:
        rows = database.execute(
            """
            WITH RECURSIVE family(id) AS (
                VALUES (?)
                UNION
                SELECT child.session_id FROM family JOIN sessions AS child ON child.parent_session_id = family.id
                WHERE child.root_session_id <> child.session_id
            )
            SELECT id FROM family
            """,
            (session_id,),
        )
        members[session_id] = tuple(row[0] for row in rows if scope is None or row[0] in scope)
    return members


def rows(
    database: sqlite3.Connection, sessions: Iterable[Session], scope: Collection[str] | None = None
) -> tuple[SessionRow, ...]:
    """Return the list rows of loaded sessions."""
    sessions = tuple(sessions)
    ids = [session.id for session in sessions]
    members = families(database, ids, scope)
    sums = _sums(database, {member for family in members.values() for member in family})
    query = f"SELECT session_id, root_session_id FROM sessions WHERE {AMONG}"  # noqa: S608  ours
    roots = dict(database.execute(query, (ids_as_json(ids),)))
    numbered = numbers(database, ids, scope)
    made = []
    for session in sessions:
        family = [sums.get(member, _Sums()) for member in members[session.id]]
        made.append(
            SessionRow(
                id=session.id,
                kind=session.kind,
                parent_id=session.parent,
                root_id=roots.get(session.id, session.id),
                number=numbered.get(session.id),
                title=session.title,
                first_prompt=session.first_prompt,
                project=session.project,
                started=session.started,
                ended=session.ended,
                updated=session.updated,
                last_used=session.ended or session.updated or session.started,
                prompts=session.counts.get("user", 0),
                counts=session.counts,
                fates=session.fates,
                tool_calls=session.tool_calls,
                models=session.models,
                files=session.files,
                usage=sum((part.billed for part in family), _NO_USAGE),
                own_usage=sums.get(session.id, _Sums()).billed,
                active=sum((part.active for part in family), _NO_USAGE),
                is_stub=session.is_stub,
                deleted=session.deleted,
                problems=session.problems,
            )
        )
    return tuple(made)


def total_usage(database: sqlite3.Connection, scope: Collection[str] | None, *, only_active: bool = False) -> Usage:
    """Return the sum of all model calls of a scope, each counted once; optionally only of active messages."""
    where, values = ("1", []) if scope is None else (AMONG, [ids_as_json(scope)])
    where += " AND is_active = 1" if only_active else ""
    columns = ", ".join(f"coalesce(sum({name}), 0)" for name in _SUM_COLUMNS)
    sums = database.execute(f"SELECT {columns} FROM session_usage WHERE {where}", values).fetchone()  # noqa: S608  ours
    return usage_of_sums(list(sums))


def projects(database: sqlite3.Connection, query: SessionQuery, hashes: Collection[str] | None = None) -> set[Project]:
    """Return the projects of the sessions that match a query, or only those with some hashes or without one."""
    where, values = query.where()
    has_hash, known_values = "1", list[object]()
    if hashes is not None:
        has_hash, known_values = "project_hash IN (SELECT value FROM json_each(?))", [ids_as_json(hashes)]
    columns = "project_hash, slug, path, source, proven, NULL"
    is_used = f"EXISTS (SELECT 1 FROM sessions WHERE {where} AND project_hash = projects.project_hash)"  # noqa: S608
    rows = database.execute(f"SELECT {columns} FROM projects WHERE {has_hash} AND {is_used}", [*known_values, *values])  # noqa: S608
    projects = {project_of(*row) for row in rows}
    without_hash = f"SELECT extra FROM sessions WHERE {where} AND project_hash IS NULL"  # noqa: S608  ours
    projects |= {project_of(None, None, None, None, None, row[0]) for row in database.execute(without_hash, values)}
    return projects


def others_with_name(database: sqlite3.Connection, known: Iterable[Project]) -> list[str]:
    """Return the hashes of other projects that have the same names as some."""
    known = list(known)
    names, keys = {project.name for project in known}, {project.key for project in known}
    rows: list[tuple[str]] = []
    for path, slug in database.execute("SELECT DISTINCT path, slug FROM projects").fetchall():
        project = Project(None, slug, path)
        if project.key and project.key not in keys and project.name in names:
            query = "SELECT project_hash FROM projects WHERE path IS ? AND slug IS ?"
            rows += database.execute(query, (path, slug)).fetchall()
    for name in names:
        if name.startswith("["):  # perhaps the first digits of a hash
            query = "SELECT project_hash FROM projects WHERE project_hash BETWEEN ?1 AND ?1 || '~'"
            rows += database.execute(query, (name[1:-1],)).fetchall()
    return [project_hash for (project_hash,) in rows if project_hash not in keys]


def unproven_hashes(database: sqlite3.Connection, hashes: Iterable[str]) -> list[str]:
    """Return those of some hashes that belong to a project whose path is not proven."""
    query = "SELECT project_hash FROM projects WHERE project_hash IN (SELECT value FROM json_each(?)) AND NOT proven"
    return [row[0] for row in database.execute(query, (ids_as_json(hashes),))]


def _sums(database: sqlite3.Connection, ids: Collection[str]) -> dict[str, _Sums]:
    sums: dict[str, _Sums] = {}
    for session_id, is_active, *numbers_ in database.execute(f"{_SUMS} WHERE {AMONG}", (ids_as_json(ids),)):
        usage = usage_of_sums(numbers_)
        before = sums.get(session_id, _Sums())
        sums[session_id] = _Sums(usage, before.dropped) if is_active else _Sums(before.active, usage)
    return sums


def usage_of_sums(numbers_: list[int]) -> Usage:
    """Return the usage in the columns of a row of `session_usage` after its key."""
    calls, *tokens, nanousd, unpriced_calls = numbers_[:9]
    *unpriced, inconsistent = numbers_[9:]
    return Usage(calls, Tokens(*tokens), Cost(nanousd, unpriced_calls, Tokens(*unpriced)), inconsistent)
