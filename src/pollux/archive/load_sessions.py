"""Load archived sessions from the fact tables."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pollux.archive import failures
from pollux.archive.inventory import original_path
from pollux.model import Fate, ModelCall, Problem, Project, Session, Tokens
from pollux.sessions.projects.resolve import with_path_of
from pollux.text.escape import escape_surrogates
from pollux.text.times import from_microseconds

_decode = msgspec.msgpack.Decoder(Session, dec_hook=lambda kind, value: kind(value)).decode
_FATES = {str(fate): fate for fate in Fate}
AMONG = "session_id IN (SELECT replace(value, char(65535), char(0)) FROM json_each(?))"
"""An SQL condition on session IDs; its parameter is the result of `ids_as_json`."""


class _ProjectOnly(msgspec.Struct):
    """The project of a packed session."""

    project: Project = Project()


_decode_project: Callable[[bytes], _ProjectOnly] = msgspec.msgpack.Decoder(_ProjectOnly).decode


class Loaded(msgspec.Struct, frozen=True):
    """Sessions, and a problem for each session whose rows are damaged."""

    sessions: tuple[Session, ...]
    problems: tuple[Problem, ...] = ()


def load_sessions(
    database: sqlite3.Connection,
    ids: Collection[str] | None,
    memory: Mapping[str, str] | None = None,
    *,
    with_calls: bool = True,
) -> Loaded:
    """Return sessions with their model calls and problems, in the order of the IDs, or all of them.

    Args:
        database: the archive's.
        ids: the sessions to load, or None for all.
        memory: project paths that were proven since the facts were written.
        with_calls: whether to load the model calls, which takes most of the time.

    """
    which, values = ("1", ()) if ids is None else (AMONG, (ids_as_json(ids),))
    calls: Mapping[str, list[ModelCall]] = {}
    damaged: set[object] = set()
    if with_calls:
        calls, damaged = _calls(database, which, values)
    value_problems: dict[str, list[Problem]] = defaultdict(list)
    for session_id, problem in failures.value_problems(database):
        value_problems[session_id].append(problem)
    sessions: dict[str, Session] = {}
    rows = database.execute(
        f"""
        SELECT session_id, title, first_prompt, last_prompt, is_deleted, extra, projects.project_hash, slug, path,
            source, proven
        FROM sessions LEFT JOIN projects ON projects.project_hash = sessions.project_hash WHERE {which}
        """,  # noqa: S608  ours
        values,
    )
    for session_id, title, first_prompt, last_prompt, is_deleted, body, *project_row in rows:
        session = _decoded(session_id, body)
        texts = (title, first_prompt, last_prompt)
        if session is None or session_id in damaged or not all(isinstance(text, str) for text in texts):
            damaged.add(session_id)
            continue
        sessions[session_id] = msgspec.structs.replace(
            session,
            project=with_known_path(_project(session.project, project_row), memory or {}),
            title=title,
            first_prompt=first_prompt,
            last_prompt=last_prompt,
            calls=tuple(calls.get(session_id, ())),
            children=(),
            deleted=bool(is_deleted),
            problems=(*session.problems, *value_problems.get(session_id, ())),
        )
    for session_id, children in _children(database, which, values).items():
        if session_id in sessions:
            sessions[session_id] = msgspec.structs.replace(sessions[session_id], children=tuple(children))
    order = sessions if ids is None else [session_id for session_id in ids if session_id in sessions]
    return Loaded(
        tuple(sessions[session_id] for session_id in order),
        tuple(damaged_rows(session_id) for session_id in sorted(damaged, key=str)),
    )


def ids_as_json(ids: Iterable[str]) -> str:
    """Return the parameter of `AMONG`. NUL is replaced by U+FFFF, because SQLite ends a JSON text at NUL."""
    return msgspec.json.encode([session_id.replace("\0", "\uffff") for session_id in ids]).decode()


def sessions_with_file(database: sqlite3.Connection, reference: str) -> list[str]:
    """Return the IDs of the sessions that were read from a file with this path, name or stem."""
    name = reference.replace("\\", "/").rpartition("/")[2]
    rows = database.execute(
        """
        SELECT session_files.session_id, files.home, files.path
        FROM files JOIN versions ON versions.file_id = files.id
        JOIN session_files ON session_files.file_version_id = versions.id
        WHERE instr(files.path, ?)
        """,
        (name,),
    )
    ids: dict[str, None] = {}
    for session_id, home, path in rows:
        place = original_path(home, path)
        if reference in (place.stem, place.name, str(place)):
            ids[session_id] = None
    return list(ids)


def _project(own: Project, row: list[Any]) -> Project:
    """Return the project of a session with the path that `projects` has for its hash, unless that row is damaged."""
    digest, slug, path, how, proven = row
    if digest is None or not all(text is None or isinstance(text, str) for text in (slug, path, how)):
        return own
    return with_path_of(own, Project(digest, slug, path, how, bool(proven)))


class ArchivedFile(NamedTuple):
    """A file with bytes in the archive."""

    id: int
    path: str
    """Relative to its home."""
    version_id: int
    """Its newest version."""


def file_at(database: sqlite3.Connection, path: Path) -> ArchivedFile | None:
    """Return the file that was archived from a path; of several machines, the one that was seen last."""
    name = escape_surrogates(path.name)
    pattern = name.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    rows = database.execute(
        """
        SELECT id, path, version_id, home FROM files
        WHERE version_id IS NOT NULL AND forgotten_us IS NULL AND (path = ?1 OR path LIKE ?2 ESCAPE '!')
        ORDER BY last_us DESC
        """,
        (name, f"%/{pattern}"),
    ).fetchall()
    original = Path(escape_surrogates(str(path)))
    for file_id, relative_path, version_id, home in rows:
        if original_path(home, relative_path) == original:
            return ArchivedFile(file_id, relative_path, version_id)
    return None


def with_known_path(project: Project, memory: Mapping[str, str]) -> Project:
    """Return a project with the path that was proven for its hash, unless its own path is proven."""
    path = None if project.proven else memory.get(project.hash or "")
    return msgspec.structs.replace(project, path=path, source="memory", proven=True) if path else project


def damaged_rows(session_id: object) -> Problem:
    """Return the problem of a session whose rows are damaged."""
    return Problem(
        "damaged-facts",
        f"The rows of session {session_id} in the archive are damaged, so it is left out; `pollux verify --repair` "
        "derives them again from the archived bytes",
    )


def _decoded(session_id: object, body: bytes) -> Session | None:
    try:
        session = _decode(body)
    except (ValueError, TypeError):
        return None
    return session if session.id == session_id else None


def _children(database: sqlite3.Connection, which: str, values: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the subagents that each session started itself, in order of their start; members of a cycle are none."""
    children: dict[str, list[str]] = defaultdict(list)
    rows = database.execute(
        f"""
        SELECT parent_session_id, session_id FROM sessions
        WHERE parent_session_id IN (SELECT session_id FROM sessions WHERE {which}) AND root_session_id != session_id
        ORDER BY started_us IS NOT NULL, started_us, session_id
        """,  # noqa: S608  ours
        values,
    )
    for parent_id, session_id in rows:
        children[parent_id].append(session_id)
    return children


def _calls(
    database: sqlite3.Connection, which: str, values: tuple[str, ...]
) -> tuple[dict[str, list[ModelCall]], set[object]]:
    """Return the model calls that each session owns, and the sessions with a damaged call."""
    calls: dict[str, list[ModelCall]] = defaultdict(list)
    damaged: set[object] = set()
    files: dict[int, str] = {}
    for version_id, home, path in _places(database, which, values):
        files[version_id] = str(original_path(home, path))
    rows = database.execute(
        f"""
        SELECT session_id, message_id, at_us, model, fate, tok_input, tok_cached, tok_output, tok_thoughts, tok_tool,
            tok_total, file_version_id, line
        FROM model_calls WHERE owner_session_id IS NULL AND {which} ORDER BY session_id, at_us, message_id
        """,  # noqa: S608  ours
        values,
    )
    for session_id, message_id, at_us, model, fate, *counts, version_id, line in rows:
        is_typed = isinstance(message_id, str) and isinstance(model, str | None) and isinstance(line, int)
        if not is_typed or not all(isinstance(count, int) for count in counts):
            damaged.add(session_id)
            continue
        try:
            call = (session_id, message_id, from_microseconds(at_us), model, _FATES[fate], Tokens(*counts))
            calls[session_id].append(ModelCall(*call, file=files[version_id], line=line))
        except (LookupError, TypeError, ValueError, OverflowError, OSError):  # no such fate, version or time
            damaged.add(session_id)
    return calls, damaged


def _places(database: sqlite3.Connection, which: str, values: tuple[str, ...]) -> Iterator[tuple[int, str, str]]:
    yield from database.execute(
        f"""
        SELECT versions.id, CAST(files.home AS TEXT), CAST(files.path AS TEXT)
        FROM versions JOIN files ON files.id = versions.file_id
        WHERE versions.id IN (SELECT file_version_id FROM model_calls WHERE {which})
        """,  # noqa: S608  ours
        values,
    )


def session_projects(
    database: sqlite3.Connection, memory: Mapping[str, str], ids: Collection[str] | None = None
) -> dict[str, Project]:
    """Return the project of each session, or of some, with the paths that were proven since the facts were written."""
    projects = projects_by_hash(database, memory)
    by_session = lone_projects(database, memory)
    which, values = ("1", ()) if ids is None else (AMONG, (ids_as_json(ids),))
    rows = database.execute(
        f"SELECT session_id, project_hash FROM sessions WHERE project_hash NOTNULL AND {which}",  # noqa: S608  ours
        values,
    ).fetchall()
    for session_id, digest in rows:
        project = projects.get(digest)
        if project is None:
            project = projects[digest] = _with_memory(Project(digest), memory)
        by_session[session_id] = project
    return by_session


def projects_by_hash(database: sqlite3.Connection, memory: Mapping[str, str]) -> dict[str, Project]:
    """Return each project by its hash, with the paths that were proven since the facts were written."""
    rows = database.execute("SELECT project_hash, slug, path, source, proven, NULL FROM projects")
    return {row[0]: _with_memory(project_of(*row), memory) for row in rows}


def lone_projects(database: sqlite3.Connection, memory: Mapping[str, str]) -> dict[str, Project]:
    """Return the projects of sessions without the hash of one, by session."""
    rows = database.execute("SELECT session_id, extra FROM sessions WHERE project_hash IS NULL").fetchall()
    none = (None,) * 5
    return {session_id: _with_memory(project_of(*none, body), memory) for session_id, body in rows}


def _with_memory(project: Project, memory: Mapping[str, str]) -> Project:
    path = None if project.proven else memory.get(project.hash or "")
    return Project(project.hash, project.slug, path, "memory", proven=True) if path else project


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
    problems = [
        (session_id, Problem(code, message, str(original_path(home, path)), line))
        for session_id, code, message, home, path, line in rows
    ]
    return problems + failures.value_problems(database)
