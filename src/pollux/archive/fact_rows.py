"""Sessions → the rows of their facts.

A session's rows are written anew only where something is new: each message row says which recordings it was made from,
and where those are the same only order and fate can have changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pollux.archive.schema import OF_MESSAGES
from pollux.archive.touches import Found, call_rows
from pollux.formats import lenient
from pollux.formats.short import has_mark, value_at
from pollux.formats.source import Span
from pollux.model import Problem, Session
from pollux.text.times import instant, microseconds
from pollux.text.unicode import sound

if TYPE_CHECKING:
    from pollux.sessions.grouping import Group, Placed
    from pollux.sessions.replay.entries import Entry

_pack = msgspec.msgpack.Encoder(enc_hook=str).encode


def write(database: sqlite3.Connection, group: Group, session: Session, bundle: str) -> None:
    """Write the rows of one session."""
    _write_session(database, group, session, bundle)
    _write_messages(database, group)
    _write_model_calls(database, group, session)


def copy(database: sqlite3.Connection, found: Mapping[str, list[tuple[Any, ...]]]) -> None:
    """Write rows that were made elsewhere; those of a session that is here already are read again with it (`joins`)."""
    for table, new in found.items():
        if table == "projects":
            for row in new:
                _write_project(database, row)
        else:
            _insert(database, table, new)


def write_problems(database: sqlite3.Connection, version_id: int, problems: Iterable[Problem]) -> None:
    """Write what is wrong with one file."""
    database.execute("DELETE FROM problems WHERE file_version_id = ?", (version_id,))
    database.executemany(
        "INSERT INTO problems VALUES (?, ?, ?, ?, ?)",
        [(version_id, n, one.code, one.line, sound(one.message)) for n, one in enumerate(problems)],
    )


def _write_session(database: sqlite3.Connection, group: Group, session: Session, bundle: str) -> None:
    counts, fates = session.counts, session.fates
    _insert(
        database,
        "sessions",
        [
            (
                session.id,
                session.kind,
                session.parent,
                session.parent_call,
                session.project.hash,
                session.title,
                session.title_from,
                microseconds(session.started),
                microseconds(session.ended),
                microseconds(session.updated),
                session.first_prompt,
                session.last_prompt,
                counts.get("user", 0),
                counts.get("gemini", 0),
                session.tool_calls,
                counts.get("error", 0),
                fates.get("rewound", 0),
                fates.get("compressed", 0),
                _json(session.models),
                session.generation,
                _json(session.extra),
                bundle,
                _body(session),
            )
        ],
    )
    database.execute("DELETE FROM session_files WHERE session_id = ?", (session.id,))
    rows = [
        (session.id, one.version_id, one.role, one.reading.format, len(one.reading.replay.problems))
        for one in group.files
    ]
    _insert(database, "session_files", rows)
    project = session.project
    if project.hash:
        _write_project(database, (project.hash, project.path, project.slug, project.how, int(project.proven), None))


def _body(session: Session) -> bytes:
    """Pack what has no column of its own, and is not as it always is."""
    values = msgspec.structs.asdict(session)
    new = {key: one for key, one in values.items() if key not in _COLUMNS and one != _USUAL.get(key)}
    try:
        return _pack(new)
    except UnicodeEncodeError:  # a file's name that is not UTF-8
        return _pack(lenient.decode(lenient.encode(msgspec.to_builtins(new, enc_hook=str))))


_COLUMNS = frozenset({"calls", "children", "title", "first_prompt", "last_prompt"})
_USUAL = {one.name: one.default for one in msgspec.structs.fields(Session) if one.default is not msgspec.NODEFAULT}


def _write_project(database: sqlite3.Connection, new: tuple[Any, ...]) -> None:
    """Write the best that any session knows of a project, whichever comes last."""
    old = database.execute("SELECT * FROM projects WHERE project_hash = ?", (new[0],)).fetchone()
    _insert(database, "projects", [max(new, old or new, key=_worth)])


def _worth(row: tuple[Any, ...]) -> tuple[Any, ...]:
    _, path, slug, how_known, proven, _ = row
    return proven, path is not None, slug is not None, path or "", slug or "", how_known or ""


def _write_messages(database: sqlite3.Connection, group: Group) -> None:
    before = {
        row[0]: row[1:]
        for row in database.execute(
            "SELECT message_id, file_version_id, words_line, calls_line, seq, fate, origin FROM messages "
            "WHERE session_id = ?",
            (group.id,),
        )
    }
    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in OF_MESSAGES}
    for seq, (placed, entry) in enumerate(group.timeline):
        mark = _mark(placed, entry)
        old = before.pop(entry.id, None)
        if old and old[:3] == mark:
            if old[3:] != (seq, entry.fate, entry.origin):
                _move_message(database, group.id, entry, seq)
            continue
        if old:
            _delete_message(database, group.id, entry.id)
        _add_message(rows, group.id, placed, entry, seq)
    for gone in before:
        _delete_message(database, group.id, gone)
    for table, new in rows.items():
        _insert(database, table, sorted(new, key=lambda row: row[:4]))


def _mark(placed: Placed, entry: Entry) -> tuple[int, int, int | None]:
    """Tell from which recordings a row is made: where they stand in their file."""
    return placed.version_id, entry.content.line, entry.calls_from.line if entry.calls_from else None


def _move_message(database: sqlite3.Connection, session_id: str, entry: Entry, seq: int) -> None:
    database.execute(
        "UPDATE messages SET seq = ?, fate = ?, origin = ? WHERE session_id = ? AND message_id = ?",
        (seq, entry.fate, entry.origin, session_id, entry.id),
    )
    database.execute(
        "UPDATE tool_calls SET fate = ? WHERE session_id = ? AND message_id = ?", (entry.fate, session_id, entry.id)
    )


def _delete_message(database: sqlite3.Connection, session_id: str, message_id: str) -> None:
    for table in OF_MESSAGES:
        database.execute(f"DELETE FROM {table} WHERE session_id = ? AND message_id = ?", (session_id, message_id))  # noqa: S608


def _add_message(
    rows: dict[str, list[tuple[Any, ...]]],
    session_id: str,
    placed: Placed,
    entry: Entry,
    seq: int,
) -> None:
    at_us = microseconds(instant(entry.at))
    n_chars = entry.content.n_chars
    key = (session_id, entry.id)
    facts = (entry.kind, entry.origin, entry.fate, at_us, entry.model, n_chars)
    version_id, *lines = _mark(placed, entry)
    rows["messages"].append((*key, seq, *facts, version_id, entry.line, *lines))
    if not entry.calls_from:
        return
    ids = {call.id for call in entry.calls}
    is_shared = entry.calls != entry.calls_from.calls  # with messages that made some of the calls recorded there
    own = (found for found in _call_rows(placed, entry.calls_from.span) if not is_shared or found.call[0] in ids)
    for idx, found in enumerate(own):
        rows["tool_calls"].append((*key, idx, *found.call, entry.fate))
        rows["shell_commands"] += [(*key, idx, n, *command) for n, command in enumerate(found.commands)]
        rows["file_touches"] += [(*key, idx, *touch) for touch in found.touches]
        place = (version_id, entry.calls_from.line)
        rows["value_problems"] += [(*key, idx, n, *place, what) for n, what in enumerate(found.left_out)]


def _call_rows(placed: Placed, span: Span) -> list[Found]:
    source = placed.reading.source
    data, short = value_at(source, span)
    found = list(call_rows(data, short))
    if short and has_mark(found):  # an id is never cut
        return list(call_rows(source.slice(span)))
    return found


def _write_model_calls(database: sqlite3.Connection, group: Group, session: Session) -> None:
    """Write the calls that are new; the others keep the price that was found for them."""
    versions = {one: file.version_id for file in reversed(group.files) for one in file.reading.replay.calls}
    database.execute(
        "UPDATE model_calls SET copy_of = NULL WHERE session_id = ? AND copy_of IS NOT NULL", (session.id,)
    )
    before = {row[1]: row for row in database.execute(_CALLS, (session.id,))}
    rows = []
    for call in session.calls:
        tokens = call.tokens
        counts = (tokens.input, tokens.cached, tokens.output, tokens.thoughts, tokens.tool, tokens.total)
        key = (session.id, call.message_id, microseconds(call.at), call.model, call.fate)
        place = (versions[call.message_id], call.line)
        row = (*key, *counts, tokens.is_consistent)
        if before.pop(call.message_id, None) != (*row, *place):
            rows.append((*row, None, None, *place, None))
    gone = [(session.id, one) for one in before]
    database.executemany("DELETE FROM model_calls WHERE session_id = ? AND message_id = ?", gone)
    _insert(database, "model_calls", sorted(rows))


_CALLS = """
    SELECT session_id, message_id, at_us, model, fate, tok_input, tok_cached, tok_output, tok_thoughts, tok_tool,
        tok_total, tok_consistent, file_version_id, line
    FROM model_calls WHERE session_id = ?
"""


def _insert(database: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        database.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608  a name from our table


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return "{}"
