"""Model calls that several sessions of an archive hold: `sessions.ownership` decides which session owns each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from pollux.sessions.ownership import find_owners, holder

_SHARED = "SELECT message_id FROM model_calls {which} GROUP BY message_id HAVING count(*) > 1"
_OF_SESSIONS = """
    WHERE message_id IN (SELECT message_id FROM model_calls WHERE session_id IN (SELECT value FROM json_each(?)))
"""
_DANGLING = """
    SELECT message_id FROM model_calls AS c WHERE copy_of IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM model_calls AS owner WHERE owner.session_id = c.copy_of AND owner.message_id = c.message_id
    )
"""
"""Calls whose owner does not hold them any more."""
_HOLDERS = """
    SELECT session_id, message_id, tok_input, tok_cached, tok_output, tok_thoughts, tok_tool, tok_total, copy_of,
        started_us,
        NOT EXISTS (SELECT 1 FROM session_files AS f WHERE f.session_id = sessions.session_id AND f.role = 'main'),
        NOT EXISTS (
            SELECT 1 FROM session_files AS f WHERE f.session_id = sessions.session_id
                AND f.file_version_id NOT IN (SELECT version_id FROM imported)
        )
    FROM model_calls JOIN sessions USING (session_id) WHERE message_id IN (SELECT value FROM json_each(?))
"""


def mark_copies(database: sqlite3.Connection, sessions: Iterable[str] | None = None) -> None:
    """Write the owner of each call that several sessions hold: of all calls, or of those that some sessions hold."""
    if sessions is None:
        shared = database.execute(_SHARED.format(which="")).fetchall()
    else:
        shared = database.execute(_SHARED.format(which=_OF_SESSIONS), (_json(list(sessions)),)).fetchall()
    shared += database.execute(_DANGLING).fetchall()
    if not shared:
        return
    rows = database.execute(_HOLDERS, (_json([row[0] for row in shared]),)).fetchall()
    claims = []
    for session_id, *call, _, started_us, is_loaded, is_imported in rows:
        session = holder(session_id, started_us, is_loaded=is_loaded, is_imported=is_imported)
        claims.append((session, tuple(call)))
    owners = find_owners(claims)
    changes = []
    for row, (session, call) in zip(rows, claims, strict=True):
        owner = None if owners[call] == session else owners[call].session_id
        if owner != row[8]:
            changes.append((owner, session.session_id, call[0]))
    database.executemany("UPDATE model_calls SET copy_of = ? WHERE session_id = ? AND message_id = ?", changes)


def _json(ids: list[str]) -> str:
    return msgspec.json.encode(ids).decode()
