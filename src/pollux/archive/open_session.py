"""The archive's sessions: all that were ever kept, also those that the client has deleted."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping

from pollux.archive import failures
from pollux.archive.load_sessions import damaged_rows, load_sessions
from pollux.archive.readings import compare_versions, source_of, taken_up
from pollux.errors import PolluxError
from pollux.model import Problem, Session
from pollux.sessions.grouping import Group
from pollux.sessions.locate import Located
from pollux.sessions.reader import History, from_readings, in_order
from pollux.sessions.replay.reading import Reading

_NO_MEMORY: Mapping[str, str] = {}


def history(
    database: sqlite3.Connection,
    located: Located,
    problems: tuple[Problem, ...] = (),
    *,
    only: Collection[str] | None = None,
    memory: Mapping[str, str] = _NO_MEMORY,
) -> History:
    """Return the sessions of an archive, newest first.

    Args:
        database: the archive's.
        located: what is on the disk now.
        problems: those that belong to no session; files that cannot be derived are added.
        only: the IDs of the sessions wanted, or None for all.
        memory: paths that were proven since the facts were written.

    """
    loaded = load_sessions(database, only, memory)
    homes = None if only is None else [str(home.root) for home in located.homes]
    every = [*problems, *loaded.problems, *failures.problems(database, homes)]
    return History(located, in_order(loaded.sessions), tuple(dict.fromkeys(every)))


def opened(database: sqlite3.Connection, session: Session) -> Group:
    """Open an archived session so that its messages can be read, with the fates that its facts have.

    Bytes that were archived since its facts were derived are left out: a refresh writes the two one after the other.
    """
    rows = database.execute(
        "SELECT versions.file_id, file_version_id, readings.kept, snapshot FROM session_files "
        "JOIN readings ON version_id = file_version_id LEFT JOIN versions ON versions.id = file_version_id "
        "WHERE session_id = ? ORDER BY versions.file_id, versions.number",
        (session.id,),
    ).fetchall()
    (n_files,) = database.execute("SELECT count(*) FROM session_files WHERE session_id = ?", (session.id,)).fetchone()
    if len(rows) != n_files or not rows:
        raise PolluxError(f"{damaged_rows(session.id).message}.")
    by_file: dict[int, list[Reading]] = defaultdict(list)
    for file_id, version_id, n_bytes, snapshot in rows:
        by_file[file_id].append(taken_up(source_of(database, version_id, n_bytes), snapshot))
    for versions in by_file.values():
        compare_versions(versions)
    return from_readings(session, [reading for versions in by_file.values() for reading in versions])


def contents(database: sqlite3.Connection) -> dict[str, list[tuple[int, int]]]:
    """Return which versions of files a session was read from, and how long each is."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    rows = database.execute(
        "SELECT session_id, file_version_id, kept FROM session_files JOIN versions ON versions.id = file_version_id "
        "ORDER BY file_version_id"
    )
    for session_id, version_id, kept in rows:
        found[session_id].append((version_id, kept))
    return found
