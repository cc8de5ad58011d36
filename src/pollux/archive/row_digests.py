"""A SHA-256 of the rows of each session, with which `verify` detects cheaply that rows were changed.

It protects against accidents, not against someone who changes a row and its digest: only a comparison with the bytes
(`verify_facts`) proves the facts.

Rows of tool calls may contain whole files, so each message has a digest of its own for them, which is written once. The
digest of a session covers those digests and all other rows.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from pollux.archive import schema

_OF_CALLS = {
    "tool_calls": "ORDER BY message_id, idx",
    "shell_commands": "ORDER BY message_id, idx, n",
    "file_touches": "ORDER BY message_id, idx, path",
}
_OF_VERSIONS = "(SELECT file_version_id FROM session_files WHERE session_id = ?)"
_OF_SESSION = {
    "readings": f"version_id IN {_OF_VERSIONS} ORDER BY version_id",
    "problems": f"file_version_id IN {_OF_VERSIONS} ORDER BY file_version_id, n",
    "sessions": "session_id = ?",
    "session_files": "session_id = ? ORDER BY file_version_id",
    "messages": "session_id = ? ORDER BY message_id",
    "model_calls": "session_id = ? ORDER BY message_id",
    "call_digests": "session_id = ? ORDER BY message_id",
}
_FEW = 20
"""Up to this many new messages are hashed one by one; for more, all rows of the session are read."""
_encode = msgspec.msgpack.Encoder().encode


def write(database: sqlite3.Connection, session_id: str) -> None:
    """Write the digests of a session whose rows were just written."""
    rows = database.execute(_WITHOUT_DIGEST, (session_id,)).fetchall()
    new = [message_id for (message_id,) in rows]
    if len(new) <= _FEW:
        digests = {message_id: _digest_of_calls(database, session_id, message_id) for message_id in new}
    else:
        digests = _digests_of_calls(database, session_id)
    database.executemany(
        schema.TABLES["call_digests"].insert,
        [(session_id, message_id, digests.get(message_id, _EMPTY)) for message_id in sorted(new)],
    )
    digest = _digest_of_session(database, session_id)
    database.execute(schema.TABLES["session_digests"].insert, (session_id, digest))


def altered(database: sqlite3.Connection) -> Iterator[str]:
    """Yield the sessions whose rows were changed since they were written.

    Sessions that are about to be derived again are left out, since they may have rows of two readings.
    """
    pending = {row[0] for row in database.execute(_PENDING)}
    has_other_fates = {row[0] for row in database.execute(_OTHER_FATES)}
    rows = database.execute(
        "SELECT session_id, sha256 FROM sessions LEFT JOIN session_digests USING (session_id) ORDER BY session_id"
    ).fetchall()
    for session_id, sha256 in rows:
        is_same = session_id not in has_other_fates and _digest_of_session(database, session_id) == sha256
        if session_id not in pending and not (is_same and _has_its_calls(database, session_id)):
            yield session_id


_WITHOUT_DIGEST = """
    SELECT message_id FROM messages WHERE session_id = ?1 AND calls_line IS NOT NULL
        AND message_id NOT IN (SELECT message_id FROM call_digests WHERE session_id = ?1)
"""
_PENDING = """
    SELECT session_id FROM session_files JOIN versions ON versions.id = file_version_id
    LEFT JOIN readings ON readings.version_id = versions.id WHERE versions.archived_bytes IS NOT readings.n_bytes
"""
_OTHER_FATES = """
    SELECT DISTINCT session_id FROM tool_calls JOIN messages USING (session_id, message_id)
    WHERE tool_calls.fate <> messages.fate
"""
_EMPTY = hashlib.sha256().digest()


def _digest_of_session(database: sqlite3.Connection, session_id: str) -> bytes:
    digest = hashlib.sha256()
    for table, which in _OF_SESSION.items():
        query = f"SELECT {_columns(table)} FROM {table} WHERE {which}"  # noqa: S608  ours
        digest.update(_encode(database.execute(query, (session_id,)).fetchall()))
    return digest.digest()


def _has_its_calls(database: sqlite3.Connection, session_id: str) -> bool:
    rows = database.execute("SELECT message_id, sha256 FROM call_digests WHERE session_id = ?", (session_id,))
    written = {message_id: sha256 for message_id, sha256 in rows if sha256 != _EMPTY}
    return written == _digests_of_calls(database, session_id)


def _digests_of_calls(database: sqlite3.Connection, session_id: str) -> dict[str, bytes]:
    return _hashed(database, "session_id = ?", session_id)


def _digest_of_calls(database: sqlite3.Connection, session_id: str, message_id: str) -> bytes:
    return _hashed(database, "session_id = ? AND message_id = ?", session_id, message_id).get(message_id, _EMPTY)


def _hashed(database: sqlite3.Connection, which: str, *values: str) -> dict[str, bytes]:
    hashes: dict[str, Any] = defaultdict(hashlib.sha256)
    for table, order in _OF_CALLS.items():
        query = f"SELECT {_columns(table)} FROM {table} WHERE {which} {order}"  # noqa: S608  begins with message_id
        for row in database.execute(query, values):
            hashes[row[0]].update(_encode(row))
    return {message_id: digest.digest() for message_id, digest in hashes.items()}


@cache
def _columns(table: str) -> str:
    """Return the columns of a table that are hashed: all but the session ID and those that are filled in later."""
    columns = schema.TABLES[table].columns
    return ", ".join(column.name for column in columns if not column.is_later and column.name != "session_id")
