"""The files that tool calls read or changed: one row for each file of a project, and every touch of one file.

The client records a path as the model wrote it, absolute or relative to the project. Below the project's folder both
are the same file, whose name is the relative path.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from datetime import datetime

import msgspec

from pollux.archive.load_sessions import ids_as_json
from pollux.text.times import from_microseconds

_NAME = r"""
    CASE WHEN substr(item.path, 1, length(project.path) + 1) IN (project.path || '/', project.path || '\')
        THEN substr(item.path, length(project.path) + 2) ELSE item.path END
"""
_TOUCHES = """
    FROM file_touches AS item
    CROSS JOIN tool_calls AS call USING (session_id, message_id, idx)
    CROSS JOIN messages AS message USING (session_id, message_id)
    CROSS JOIN sessions AS session USING (session_id)
    LEFT JOIN projects AS project USING (project_hash)
    WHERE message.is_own AND call.status = 'success'
"""
"""Reads and changes that succeeded; the order of the joins is fixed, so that touches are the outer loop."""
_AMONG = "AND session_id IN (SELECT replace(value, char(65535), char(0)) FROM json_each(:ids))"


class FileUse(msgspec.Struct, frozen=True):
    """How often the sessions of a project have read and changed a file."""

    path: str
    """Relative to the folder of the project, if it is below it."""
    n_reads: int
    n_changes: int
    lines_added: int | None
    """None if no change says so."""
    lines_removed: int | None
    n_sessions: int
    last: datetime | None
    """When it was last touched."""
    session_id: str
    """One of the sessions, for their project."""


class FileTouch(msgspec.Struct, frozen=True):
    """One read or change of a file."""

    path: str
    """As recorded."""
    op: str
    at: datetime | None
    session_id: str
    message_id: str
    number: int
    """The message's position in the session's timeline; the first is 0."""
    idx: int
    """The position of the tool call in the message."""
    lines_added: int | None
    lines_removed: int | None
    fate: str


def file_uses(database: sqlite3.Connection, ids: Collection[str] | None) -> tuple[FileUse, ...]:
    """Return all files that some sessions have touched, or all sessions if None; the last touched first."""
    rows = database.execute(
        f"""
        SELECT {_NAME} AS name, sum(item.op = 'read'), sum(item.op <> 'read'), sum(lines_added), sum(lines_removed),
            count(DISTINCT session_id), max(message.at_us) AS last_us, max(session_id)
        {_TOUCHES} {_among(ids)} GROUP BY name, session.project_hash ORDER BY last_us DESC, name
        """,
        {"ids": ids_as_json(ids or ())},
    )
    uses = []
    for path, n_reads, n_changes, added, removed, n_sessions, last_us, session_id in rows:
        last = from_microseconds(last_us)
        uses.append(FileUse(path, n_reads, n_changes, added, removed, n_sessions, last, session_id))
    return tuple(uses)


def file_touches(
    database: sqlite3.Connection, path: str, ids: Collection[str] | None, *, limit: int | None, offset: int
) -> tuple[tuple[FileTouch, ...], int]:
    """Return the touches of a file, the newest first, and how many there are in all.

    Args:
        database: with the fact tables.
        path: absolute, or relative to the folder of a project.
        ids: sessions to which the list is limited, or None for all.
        limit: the number of touches to return, or None for all.
        offset: the number of touches to pass over.

    """
    is_same = f"(item.path = :path OR {_NAME} = :path OR project.path || '/' || item.path = :path)"
    where = f"{_TOUCHES} {_among(ids)} AND {is_same}"
    values = {"path": path, "ids": ids_as_json(ids or ()), "limit": -1 if limit is None else limit, "offset": offset}
    (total,) = database.execute(f"SELECT count(*) {where}", values).fetchone()
    rows = database.execute(
        f"""
        SELECT item.path, item.op, message.at_us, session_id, message_id, message.seq, idx, lines_added, lines_removed,
            message.fate
        {where} ORDER BY message.at_us DESC, session_id, message.seq DESC, idx DESC LIMIT :limit OFFSET :offset
        """,
        values,
    )
    return tuple(FileTouch(name, op, from_microseconds(at_us), *place) for name, op, at_us, *place in rows), total


def _among(ids: Collection[str] | None) -> str:
    return "" if ids is None else _AMONG
