"""The sessions of an archive, including those that the client has deleted, and their messages."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping

from pollux.archive import failures
from pollux.archive.load_sessions import damaged_rows, load_sessions
from pollux.archive.readings import compare_versions, load_reading, source_of
from pollux.errors import PolluxError
from pollux.model import Problem, Session
from pollux.sessions.grouping import OpenSession
from pollux.sessions.locate import HomeScan
from pollux.sessions.reader import History, from_readings, sort_sessions
from pollux.sessions.replay.reading import FileReading

_NO_MEMORY: Mapping[str, str] = {}


def history(
    database: sqlite3.Connection,
    located: HomeScan,
    problems: tuple[Problem, ...] = (),
    *,
    only: Collection[str] | None = None,
    memory: Mapping[str, str] = _NO_MEMORY,
) -> History:
    """Return the sessions of an archive, newest first.

    Args:
        database: the archive's.
        located: the files on disk.
        problems: problems without a session; those of files that cannot be derived are added.
        only: the IDs of the sessions to return, or None for all.
        memory: project paths that were proven since the facts were written.

    """
    loaded = load_sessions(database, only, memory)
    homes = None if only is None else [str(home.root) for home in located.homes]
    all_problems = [*problems, *loaded.problems, *failures.problems(database, homes)]
    return History(located, sort_sessions(loaded.sessions), tuple(dict.fromkeys(all_problems)))


def open_session(database: sqlite3.Connection, session: Session) -> OpenSession:
    """Open an archived session so that its messages can be read, with the same fates as in its facts.

    Bytes that are archived but not derived yet are left out, so that messages and facts agree.
    """
    rows = database.execute(
        "SELECT versions.file_id, file_version_id, readings.n_bytes, snapshot FROM session_files "
        "JOIN readings ON version_id = file_version_id LEFT JOIN versions ON versions.id = file_version_id "
        "WHERE session_id = ? ORDER BY versions.file_id, versions.number",
        (session.id,),
    ).fetchall()
    (n_files,) = database.execute("SELECT count(*) FROM session_files WHERE session_id = ?", (session.id,)).fetchone()
    if len(rows) != n_files or not rows:
        raise PolluxError(f"{damaged_rows(session.id).message}.")
    by_file: dict[int, dict[int, FileReading]] = defaultdict(dict)
    for file_id, version_id, n_bytes, snapshot in rows:
        by_file[file_id][version_id] = load_reading(source_of(database, version_id, n_bytes), snapshot)
    readings: dict[int, FileReading] = {}
    for versions in by_file.values():
        compare_versions([*versions.values()])
        readings |= versions
    group = from_readings(session, readings.values())
    version_ids = [*readings]
    for placed in group.files:
        placed.version_id = version_ids[placed.version_id]  # so far its place among the readings
    return group


def contents(database: sqlite3.Connection) -> dict[str, list[tuple[int, int]]]:
    """Return the ID and length of the file versions that each session was read from."""
    versions: dict[str, list[tuple[int, int]]] = defaultdict(list)
    rows = database.execute(
        "SELECT session_id, file_version_id, archived_bytes "
        "FROM session_files JOIN versions ON versions.id = file_version_id ORDER BY file_version_id"
    )
    for session_id, version_id, length in rows:
        versions[session_id].append((version_id, length))
    return versions
