"""The archive's sessions: all that were ever kept, also those that the client has deleted."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping

import msgspec

from pollux.archive import failures
from pollux.archive.inventory import place_of
from pollux.archive.readings import compare_versions, source_of, taken_up
from pollux.errors import PolluxError
from pollux.model import Fate, ModelCall, Problem, Project, Session, Tokens
from pollux.sessions.grouping import Group
from pollux.sessions.locate import Located
from pollux.sessions.reader import History, from_readings, in_order
from pollux.sessions.replay.reading import Reading
from pollux.text.times import from_microseconds

_NO_MEMORY: Mapping[str, str] = {}
_decode = msgspec.msgpack.Decoder(Session, dec_hook=lambda kind, value: kind(value)).decode


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
    calls, damaged = _calls(database)
    left_out: dict[str, list[Problem]] = defaultdict(list)
    for session_id, problem in failures.value_problems(database):
        left_out[session_id].append(problem)
    sessions = []
    rows = database.execute("SELECT session_id, title, first_prompt, last_prompt, is_deleted, body FROM sessions")
    for session_id, title, first_prompt, last_prompt, is_deleted, body in rows:
        if only is not None and session_id not in only:
            continue
        session = _decoded(session_id, body)
        texts = (title, first_prompt, last_prompt)
        if session is None or session_id in damaged or not all(isinstance(text, str) for text in texts):
            damaged.add(session_id)
            continue
        sessions.append(
            msgspec.structs.replace(
                session,
                project=_recalled(session.project, memory),
                title=title,
                first_prompt=first_prompt,
                last_prompt=last_prompt,
                calls=tuple(calls.get(session_id, ())),
                gone=bool(is_deleted),
                problems=(*session.problems, *left_out.get(session_id, ())),
            )
        )
    homes = None if only is None else [str(home.root) for home in located.homes]
    others = [*map(_damage, sorted(damaged, key=str)), *failures.problems(database, homes)]
    return History(located, in_order(sessions), tuple(dict.fromkeys([*problems, *others])))


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
        raise PolluxError(f"{_damage(session.id).message}.")
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


def _recalled(project: Project, memory: Mapping[str, str]) -> Project:
    path = None if project.proven else memory.get(project.hash or "")
    return msgspec.structs.replace(project, path=path, how="memory", proven=True) if path else project


def _decoded(session_id: object, body: bytes) -> Session | None:
    """Return a session as its row has it, or nothing if the row is damaged."""
    try:
        session = _decode(body)
    except (ValueError, TypeError):
        return None
    return session if session.id == session_id else None


def _damage(session_id: object) -> Problem:
    words = f"The rows of session {session_id} in the archive are damaged, so it is left out"
    return Problem("damaged-facts", f"{words}; `pollux verify --repair` derives them anew from the archived bytes")


def _calls(database: sqlite3.Connection) -> tuple[dict[str, list[ModelCall]], set[object]]:
    """Return the model calls by session, each once, and the sessions of which a call cannot be read.

    What an import only repeats is not among them.
    """
    found: dict[str, list[ModelCall]] = defaultdict(list)
    damaged: set[object] = set()
    places = database.execute(
        "SELECT versions.id, CAST(files.home AS TEXT), CAST(files.path AS TEXT) "
        "FROM versions JOIN files ON files.id = versions.file_id"
    )
    files = {version_id: str(place_of(home, path)) for version_id, home, path in places}
    rows = database.execute(
        "SELECT session_id, message_id, at_us, model, fate, tok_input, tok_cached, tok_output, tok_thoughts, tok_tool, "
        "tok_total, file_version_id, line FROM model_calls WHERE copy_of IS NULL ORDER BY session_id, at_us, message_id"
    )
    for session_id, message_id, at_us, model, fate, *counts, version_id, line in rows:
        is_typed = isinstance(message_id, str) and isinstance(model, str | None) and isinstance(line, int)
        if not is_typed or not all(isinstance(count, int) for count in counts):
            damaged.add(session_id)
            continue
        try:
            call = (session_id, message_id, from_microseconds(at_us), model, _FATES[fate], Tokens(*counts))
            found[session_id].append(ModelCall(*call, file=files[version_id], line=line))
        except (LookupError, TypeError, ValueError, OverflowError, OSError):  # no such fate, version or time
            damaged.add(session_id)
    return found, damaged


_FATES = {str(fate): fate for fate in Fate}
