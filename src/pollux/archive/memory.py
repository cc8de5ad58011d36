"""The facts that the reports on usage need: looked up in an archive, or made in memory of sessions that are in none."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from pollux.archive.failures import concerns_everybody, value_problems
from pollux.archive.inventory import place_of
from pollux.archive.migrations import savepoint
from pollux.errors import UnreadableFileError
from pollux.model import ModelCall, Problem, Project, Session
from pollux.reports.usage_sql import TimePart, time_parts
from pollux.sessions.replay.reading import cannot_derive, reason_of
from pollux.text.times import instant, microseconds

if TYPE_CHECKING:
    from datetime import datetime

    from pollux.reports.usage_quick import Counted
    from pollux.sessions.grouping import Group

_TABLES = """
    CREATE TABLE facts_meta (key TEXT PRIMARY KEY, value TEXT);
    CREATE TABLE sessions (session_id TEXT PRIMARY KEY, kind, parent_session_id, project_hash, title, body);
    CREATE TABLE projects (project_hash TEXT PRIMARY KEY, path, slug, how_known, proven);
    CREATE TABLE tool_calls (session_id, message_id, label, status, at_us, fate);
    CREATE TABLE model_calls ({calls}, PRIMARY KEY (session_id, message_id)) WITHOUT ROWID;
"""
_CALL_COLUMNS = """
    session_id, message_id, at_us, model, fate, tok_input, tok_cached, tok_output, tok_thoughts, tok_tool, tok_total,
    tok_consistent, cost_nanousd, price_id, copy_of
"""
_INSERT_COUNTED = f"INSERT INTO model_calls VALUES ({', '.join('?' * 14)}, NULL)"  # noqa: S608  only marks
_INSERT_CALL = f"INSERT OR IGNORE INTO model_calls VALUES ({', '.join('?' * 12)}, NULL, NULL, ?)"  # noqa: S608  only marks
_INSERT_PROJECT = """
    INSERT INTO projects VALUES (?, ?, ?, ?, ?) ON CONFLICT (project_hash) DO UPDATE
    SET path = excluded.path, slug = excluded.slug, how_known = excluded.how_known, proven = excluded.proven
    WHERE excluded.proven >= projects.proven AND (excluded.path IS NOT NULL OR projects.path IS NULL)
"""
"""Sessions of one project do not all know its path: what is known once is not forgotten."""


class _Body(msgspec.Struct):
    project: Project = Project()


_decode_project: Callable[[bytes], _Body] = msgspec.msgpack.Decoder(_Body).decode


def in_memory(
    sessions: Iterable[Session], problems: list[Problem], opened: Callable[[Session], Group] | None = None
) -> sqlite3.Connection:
    """Return the tables that the reports need, made of sessions that are in no archive.

    Args:
        sessions: to write.
        problems: gets those of sessions that cannot be opened or written.
        opened: opens a session, so that its tool calls are written too.

    """
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(_TABLES.format(calls=_CALL_COLUMNS))
    database.execute("BEGIN")
    for one in sessions:
        try:
            with savepoint(database):
                _insert_session(database, one)
                if opened:
                    _insert_tools(database, one, opened(one))
        except UnreadableFileError as error:  # gone since it was listed
            problems.append(Problem("unreadable-file", str(error)))
        except Exception as error:
            if concerns_everybody(error):
                raise
            problems += [cannot_derive(ref.path, reason_of(error)) for ref in one.files]
    database.execute("COMMIT")
    return database


def _insert_session(database: sqlite3.Connection, session: Session) -> None:
    project = session.project
    body = msgspec.msgpack.encode(_Body(project))
    row = (session.id, session.kind, session.parent, project.hash, session.title, body)
    database.execute("INSERT OR IGNORE INTO sessions VALUES (?, ?, ?, ?, ?, ?)", row)
    known = (project.hash, project.path, project.slug, project.how, project.proven)
    database.execute(_INSERT_PROJECT, known)
    database.executemany(_INSERT_CALL, [(*_call_row(call), None) for call in session.calls])


def times_of(
    sessions: Iterable[Counted], since: datetime | None = None, until: datetime | None = None
) -> list[TimePart]:
    """Run the report that asks for no session on calls that are in no archive."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.execute(f"CREATE TABLE model_calls ({_CALL_COLUMNS})")
        database.execute("BEGIN")
        database.executemany(_INSERT_COUNTED, (call for one in sessions for call in one.calls))
        return time_parts(database, since, until)


def session_projects(database: sqlite3.Connection, memory: Mapping[str, str]) -> dict[str, Project]:
    """Return the project of each session, with the paths that were proven since the facts were written."""
    rows = database.execute(
        "SELECT s.session_id, s.project_hash, p.slug, p.path, p.how_known, p.proven, "
        "CASE WHEN s.project_hash IS NULL THEN s.body END "
        "FROM sessions s LEFT JOIN projects p ON p.project_hash = s.project_hash"
    )
    found = {}
    for session_id, digest, slug, path, how, proven, body in rows:
        project = _decode_project(body).project if body else Project(digest, slug, path, how, bool(proven))
        known = None if project.proven else memory.get(digest or "")
        found[session_id] = Project(digest, slug, known, "memory", proven=True) if known else project
    return found


def file_problems(database: sqlite3.Connection) -> list[tuple[str, Problem]]:
    """Return the problems of each session: those of its files, and values that no column holds."""
    rows = database.execute(
        "SELECT session_files.session_id, problems.code, problems.message, files.home, files.path, problems.line "
        "FROM problems JOIN session_files ON session_files.file_version_id = problems.file_version_id "
        "JOIN versions ON versions.id = problems.file_version_id JOIN files ON files.id = versions.file_id "
        "ORDER BY files.home, files.path, problems.file_version_id, problems.n"
    )
    found = [
        (session_id, Problem(code, message, str(place_of(home, path)), line))
        for session_id, code, message, home, path, line in rows
    ]
    return found + value_problems(database)


def _call_row(call: ModelCall) -> tuple[object, ...]:
    one = call.tokens
    counts = (one.input, one.cached, one.output, one.thoughts, one.tool, one.total, one.is_consistent)
    return call.session_id, call.message_id, microseconds(call.at), call.model, call.fate, *counts


def _insert_tools(database: sqlite3.Connection, session: Session, group: Group) -> None:
    """Add the tool calls of a session; model calls that it only repeats are marked, as in an archive."""
    database.executemany("INSERT INTO tool_calls VALUES (?, ?, ?, ?, ?, ?)", _tool_call_rows(session, group))
    database.executemany(_INSERT_CALL, [(*_call_row(call), "another") for call in group.usage()])


def _tool_call_rows(session: Session, group: Group) -> Iterator[tuple[object, ...]]:
    from pollux.formats.tools import tool  # noqa: PLC0415  large, and for this report alone

    for entry in group.entries:
        for call in entry.calls:
            label = tool(call.name, call.display_name).label
            at_us = microseconds(instant(call.timestamp))
            yield session.id, entry.id, label, call.status or "pending", at_us, entry.fate
