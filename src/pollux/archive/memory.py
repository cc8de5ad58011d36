"""The facts of sessions that are in no archive: the same tables in memory, written by what writes an archive's."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from pollux.archive import dependents, fact_rows, schema
from pollux.archive.failures import concerns_everybody, value_problems
from pollux.archive.inventory import place_of
from pollux.archive.migrations import migrate, savepoint
from pollux.archive.owners import mark_copies
from pollux.errors import UnreadableFileError
from pollux.model import Problem, Project, Session
from pollux.sessions.replay.reading import cannot_derive, reason_of
from pollux.text.unicode import sound

if TYPE_CHECKING:
    from pollux.sessions.grouping import Group
    from pollux.sessions.reader import Progress


class _Body(msgspec.Struct):
    project: Project = Project()


_decode_project: Callable[[bytes], _Body] = msgspec.msgpack.Decoder(_Body).decode


def in_memory(
    sessions: Sequence[Session],
    problems: list[Problem],
    opened: Callable[[Session], Group] | None = None,
    progress: Progress = lambda _done, _all: None,
) -> sqlite3.Connection:
    """Return a database with the tables of an archive, made of sessions that were read from files.

    Args:
        sessions: to write.
        problems: gets those of sessions that cannot be opened or written, and of values that no column holds.
        opened: opens a session, so that its messages and tool calls are written too.
        progress: is told how many sessions are written.

    """
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(database, ":memory:")
    schema.make_tables(database)
    files = _Files()
    database.execute("BEGIN")
    if opened:
        _write_opened(database, files, sessions, problems, opened, progress)
    else:
        _write(database, files, sessions, problems)
    files.write(database)
    schema.make_indexes(database)
    if opened:
        mark_copies(database)
    schema.note_new_calls(database)
    schema.note_owned(database)
    dependents.update_all(database)
    database.execute("COMMIT")
    problems += [problem for _, problem in value_problems(database)]
    return database


class _Files:
    """Files on the disk as rows of `files` and `versions`, numbered by their paths."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, path: str) -> int:
        """Return the number of the version that a file has now."""
        return self._numbers.setdefault(path, len(self._numbers) + 1)

    def write(self, database: sqlite3.Connection) -> None:
        rows = [(sound(path), number) for path, number in self._numbers.items()]
        database.executemany(_INSERT_FILE, rows)
        database.executemany(_INSERT_VERSION, rows)


_INSERT_FILE = """
    INSERT INTO files (path, id, version_id, machine, home, size, mtime_ns, inode, first_us, last_us)
    VALUES (?1, ?2, ?2, '', '', 0, 0, 0, 0, 0)
"""
_INSERT_VERSION = """
    INSERT INTO versions (file_id, id, number, kept, head, tail, mtime_ns, first_us) VALUES (?2, ?2, 1, 0, '', '', 0, 0)
"""


def _write(database: sqlite3.Connection, files: _Files, sessions: Sequence[Session], problems: list[Problem]) -> None:
    """Write what sessions themselves say; their model calls are those that they own.

    All at once is fast. If SQLite refuses a value, each session is written on its own, so that only one is missing.
    """
    rows: list[tuple[Session, dict[str, list[schema.Row]]]] = []
    together: dict[str, list[schema.Row]] = {}
    for session in sessions:
        with _as_problems(session, problems):
            own = _rows(files, session)
            rows.append((session, own))
            for table, new in own.items():
                together.setdefault(table, []).extend(new)
    try:
        with savepoint(database):
            fact_rows.copy(database, together)
    except Exception as error:
        if concerns_everybody(error):
            raise
    else:
        return
    for session, own in rows:
        with _as_problems(session, problems), savepoint(database):
            fact_rows.copy(database, own)


def _rows(files: _Files, session: Session) -> dict[str, list[schema.Row]]:
    n_problems = Counter(problem.file for problem in session.problems)
    of_files = []
    for ref in session.files:
        path = str(ref.path)
        of_files.append((files.number(path), ref.role, ref.format, n_problems[path]))
    versions = {call.message_id: files.number(str(call.file)) for call in session.calls}
    return {**fact_rows.session_rows(session, of_files, ""), "model_calls": fact_rows.call_rows(session, versions)}


def _write_opened(
    database: sqlite3.Connection,
    files: _Files,
    sessions: Sequence[Session],
    problems: list[Problem],
    opened: Callable[[Session], Group],
    progress: Progress,
) -> None:
    """Write all facts of sessions; arguments of tool calls may be whole files, and no report needs them."""
    for number, session in enumerate(sessions, 1):
        with _as_problems(session, problems), savepoint(database):
            group = opened(session)
            for placed in group.files:
                placed.version_id = files.number(str(placed.reading.path))
            fact_rows.write(database, group, msgspec.structs.replace(session, calls=group.usage()), "")
            database.execute("UPDATE tool_calls SET args_json = '' WHERE session_id = ?", (session.id,))
        progress(number, len(sessions))


@contextmanager
def _as_problems(session: Session, problems: list[Problem]) -> Iterator[None]:
    """Report an error as a problem of the session; raise what concerns the whole database."""
    try:
        yield
    except UnreadableFileError as error:  # deleted since it was listed
        problems.append(Problem("unreadable-file", str(error)))
    except Exception as error:
        if concerns_everybody(error):
            raise
        problems += [cannot_derive(ref.path, reason_of(error)) for ref in session.files]


def session_projects(database: sqlite3.Connection, memory: Mapping[str, str]) -> dict[str, Project]:
    """Return the project of each session, with the paths that were proven since the facts were written."""
    rows = database.execute(
        "SELECT s.session_id, s.project_hash, p.slug, p.path, p.how_known, p.proven, "
        "CASE WHEN s.project_hash IS NULL THEN s.body END "
        "FROM sessions s LEFT JOIN projects p ON p.project_hash = s.project_hash"
    )
    found = {}
    for session_id, digest, slug, path, how, proven, body in rows:
        project = project_of(digest, slug, path, how, proven, body)
        known = None if project.proven else memory.get(digest or "")
        found[session_id] = Project(digest, slug, known, "memory", proven=True) if known else project
    return found


def project_of(
    digest: str | None, slug: str | None, path: str | None, how: str | None, proven: int | None, body: bytes | None
) -> Project:
    """Return the project of a session from its row of `projects`, or from the packed session if it has no hash."""
    return _decode_project(body).project if body else Project(digest, slug, path, how, bool(proven))


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
