"""Write the fact rows of a session.

Only new rows are written: each message row names the records it was made from. If those are unchanged, only what other
files of the session decide about it can have changed: its order, fate and time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from pollux.archive.schema import OF_MESSAGES, TABLES, Row, call_row
from pollux.archive.touches import message_rows
from pollux.formats import lenient
from pollux.model import ModelCall, Problem, Project, Session
from pollux.sessions.projects.resolve import certainty
from pollux.text.escape import escape_surrogates
from pollux.text.times import microseconds, parse_time

if TYPE_CHECKING:
    from pollux.sessions.grouping import LocatedReading, OpenSession
    from pollux.sessions.replay import TimelineEntry

_pack = msgspec.msgpack.Encoder(enc_hook=str).encode


def write(database: sqlite3.Connection, group: OpenSession, session: Session, bundle: str) -> None:
    """Write all rows of one session."""
    database.execute("DELETE FROM session_files WHERE session_id = ?", (session.id,))
    copy(database, session_rows(session, files_of(group), bundle))
    _write_messages(database, group)
    versions = {id_: placed.version_id for placed in reversed(group.files) for id_ in placed.reading.replay.calls}
    _write_calls(database, session, versions)


def copy(database: sqlite3.Connection, rows: Mapping[str, list[Row]]) -> None:
    """Insert or replace rows, given by table; of several rows of a project, the most informative one is stored."""
    for table, new in rows.items():
        if table == "projects":
            _write_projects(database, new)
        else:
            _insert(database, table, new)


def write_problems(database: sqlite3.Connection, version_id: int, problems: Iterable[Problem]) -> None:
    """Replace the problems of one file version."""
    database.execute("DELETE FROM problems WHERE file_version_id = ?", (version_id,))
    rows = [
        (version_id, n, problem.code, problem.line, escape_surrogates(problem.message))
        for n, problem in enumerate(problems)
    ]
    _insert(database, "problems", rows)


def files_of(group: OpenSession) -> list[Row]:
    """Return the version, role, format and number of problems of each file of a session."""
    return [
        (placed.version_id, placed.role, placed.reading.format, len(placed.reading.replay.problems))
        for placed in group.files
    ]


def session_rows(session: Session, files: Iterable[Row], bundle: str) -> dict[str, list[Row]]:
    """Return the rows of a session, of its files and of its project.

    A file is given as its version, role, format and number of problems.
    """
    project = session.project
    project_row = (project.hash, project.path, project.slug, project.source, int(project.proven), None)
    return {
        "sessions": [_session_row(session, bundle)],
        "session_files": [(session.id, *file) for file in files],
        "projects": [project_row] if project.hash else [],
    }


def _session_row(session: Session, bundle: str) -> Row:
    """Return the row of a session; `dependents` fills in root and deletion later."""
    counts, fates = session.counts, session.fates
    links = (session.kind, session.parent, session.parent_call, session.project.hash)
    times = (microseconds(session.started), microseconds(session.ended), microseconds(session.updated))
    messages = (counts.get("user", 0), counts.get("gemini", 0), session.tool_calls, counts.get("error", 0))
    dropped = (fates.get("rewound", 0), fates.get("compressed", 0))
    last_used = microseconds(session.ended or session.updated or session.started)
    return (
        *(session.id, *links, session.title, session.title_from, *times, session.first_prompt, session.last_prompt),
        *(*messages, *dropped, _json(session.models), session.generation, _json(session.extra)),
        *(session.id, last_used, session.is_stub, False, bundle, _extra(session)),
    )


def _extra(session: Session) -> bytes:
    """Pack the fields of a session that have no column and not their default value."""
    values = msgspec.structs.asdict(session)
    extra = {key: value for key, value in values.items() if key not in _COLUMNS and value != _DEFAULTS.get(key)}
    try:
        return _pack(extra)
    except UnicodeEncodeError:  # a file name that is not UTF-8
        return _pack(lenient.decode(lenient.encode(msgspec.to_builtins(extra, enc_hook=str))))


_COLUMNS = frozenset({"calls", "children", "title", "first_prompt", "last_prompt"})
_DEFAULTS = {
    field.name: field.default for field in msgspec.structs.fields(Session) if field.default is not msgspec.NODEFAULT
}


def _write_projects(database: sqlite3.Connection, rows: list[Row]) -> None:
    """Write the most informative row of each project, regardless of the order in which sessions are read."""
    hashes = msgspec.json.encode([row[0] for row in rows]).decode()
    stored = database.execute(
        "SELECT * FROM projects WHERE project_hash IN (SELECT value FROM json_each(?))", (hashes,)
    ).fetchall()
    best = {row[0]: row for row in stored}
    for row in rows:
        best[row[0]] = max(row, best.get(row[0], row), key=_worth)
    _insert(database, "projects", list(best.values()))


def _worth(row: Row) -> Row:
    project_hash, path, slug, source, proven, _ = row
    return certainty(Project(project_hash, slug, path, source, proven))


def rows_of_messages(group: OpenSession) -> dict[str, list[Row]]:
    """Return the rows of all messages of a session and of their tool calls, by table."""
    rows: dict[str, list[Row]] = {table: [] for table in OF_MESSAGES}
    for seq, (placed, entry) in enumerate(group.timeline):
        _add_message(rows, group.id, placed, entry, seq)
    return rows


def _write_messages(database: sqlite3.Connection, group: OpenSession) -> None:
    before = {
        row[0]: row[1:]
        for row in database.execute(
            "SELECT message_id, file_version_id, text_line, calls_line, seq, fate, origin, is_own, at_us "
            "FROM messages "
            "WHERE session_id = ?",
            (group.id,),
        )
    }
    rows: dict[str, list[Row]] = {table: [] for table in OF_MESSAGES}
    for seq, (placed, entry) in enumerate(group.timeline):
        mark = _mark(placed, entry)
        old = before.pop(entry.id, None)
        if old and old[:3] == mark:
            place = (seq, entry.fate, entry.origin, entry.is_own, microseconds(parse_time(entry.at)))
            if old[3:] != place:
                _move_message(database, group.id, entry.id, place)
            continue
        if old:
            _delete_message(database, group.id, entry.id)
        _add_message(rows, group.id, placed, entry, seq)
    for message_id in before:  # no longer in the session
        _delete_message(database, group.id, message_id)
    for table, new in rows.items():
        _insert(database, table, sorted(new, key=lambda row: row[:4]))


def _mark(placed: LocatedReading, entry: TimelineEntry) -> tuple[int, int, int | None]:
    """Return what a message row was made from: a file version, and the lines of its text and of its tool calls."""
    return placed.version_id, entry.content.line, placed.reading.calls_line(entry)


def _move_message(database: sqlite3.Connection, session_id: str, message_id: str, place: Row) -> None:
    """Write what other files of the session decide about a message: order, fate, origin, whether it is own, time."""
    database.execute(
        "UPDATE messages SET seq = ?, fate = ?, origin = ?, is_own = ?, at_us = ? "
        "WHERE session_id = ? AND message_id = ?",
        (*place, session_id, message_id),
    )
    database.execute(
        "UPDATE tool_calls SET fate = ? WHERE session_id = ? AND message_id = ?", (place[1], session_id, message_id)
    )


def _delete_message(database: sqlite3.Connection, session_id: str, message_id: str) -> None:
    for table in OF_MESSAGES:
        database.execute(f"DELETE FROM {table} WHERE session_id = ? AND message_id = ?", (session_id, message_id))  # noqa: S608


def _add_message(
    rows: dict[str, list[Row]], session_id: str, placed: LocatedReading, entry: TimelineEntry, seq: int
) -> None:
    at_us = microseconds(parse_time(entry.at))
    n_chars = entry.content.n_chars
    key = (session_id, entry.id)
    facts = (entry.kind, entry.origin, entry.fate, entry.is_own, at_us, entry.model, n_chars)
    version_id, *lines = _mark(placed, entry)
    rows["messages"].append((*key, seq, *facts, version_id, entry.line, *lines))
    for idx, call in enumerate(message_rows(placed.reading, entry)):
        rows["tool_calls"].append((*key, idx, *call.call, entry.fate))
        rows["shell_commands"] += [(*key, idx, n, *command) for n, command in enumerate(call.commands)]
        rows["file_touches"] += [(*key, idx, *touch) for touch in call.touches]
        place = (version_id, lines[1])
        rows["value_problems"] += [(*key, idx, n, *place, what) for n, what in enumerate(call.left_out)]


def _write_calls(database: sqlite3.Connection, session: Session, versions: Mapping[str, int]) -> None:
    """Write model calls that are new or changed; the others keep their price."""
    database.execute(
        "UPDATE model_calls SET owner_session_id = NULL WHERE session_id = ? AND owner_session_id IS NOT NULL",
        (session.id,),
    )
    before = {row[1]: row for row in database.execute(_CALLS, (session.id,))}
    rows = [row for row in call_rows(session, versions) if before.pop(row[1], None) != row]
    dropped = [(session.id, message_id) for message_id in before]
    database.executemany("DELETE FROM model_calls WHERE session_id = ? AND message_id = ?", dropped)
    _insert(database, "model_calls", sorted(rows))


def call_rows(session: Session, versions: Mapping[str, int]) -> list[Row]:
    """Return the rows of a session's model calls; `versions` has the file version of each message."""
    return [row_of_call(session.id, call, versions[call.message_id]) for call in session.calls]


def row_of_call(
    session_id: str,
    call: ModelCall,
    version_id: int,
    *,
    price: tuple[int | None, str | None] = (None, None),
    owner: str | None = None,
) -> Row:
    """Return the row of a model call in a session.

    `price` is a cost in nano-dollars and the ID of its price; `owner` is the session that counts the call, if that is
    another one.
    """
    key, place = (session_id, call.message_id), (version_id, call.line)
    return call_row(key, call.at, call.model, call.fate, call.tokens, price=price, place=place, owner=owner)


_CALLS = f"SELECT {TABLES['model_calls'].blanked} FROM model_calls WHERE session_id = ?"  # noqa: S608  our own names


def _insert(database: sqlite3.Connection, table: str, rows: list[Row]) -> None:
    if rows:
        database.executemany(TABLES[table].insert, rows)


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return "{}"
