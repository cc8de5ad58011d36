"""Model calls that several sessions hold: each belongs to one of them, so that no report counts it twice.

A session that the client loaded from another repeats its messages, tokens and all. The owner is a session of which
this machine has read a file itself, before one that came from another archive; then one that was not loaded from
another; then the one that began first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

import msgspec

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
    SELECT message_id, session_id, tok_total, copy_of FROM model_calls JOIN sessions USING (session_id)
    WHERE message_id IN (SELECT value FROM json_each(?))
    ORDER BY
        message_id,
        NOT EXISTS (
            SELECT 1 FROM session_files AS f WHERE f.session_id = sessions.session_id
                AND f.file_version_id NOT IN (SELECT version_id FROM imported)
        ),
        NOT EXISTS (SELECT 1 FROM session_files AS f WHERE f.session_id = sessions.session_id AND f.role = 'main'),
        started_us IS NULL, started_us, session_id
"""


def mark_copies(database: sqlite3.Connection, sessions: Iterable[str] | None = None) -> None:
    """Say of each call that several sessions hold whose it is; of those that some sessions hold, or of all."""
    if sessions is None:
        shared = database.execute(_SHARED.format(which="")).fetchall()
    else:
        shared = database.execute(_SHARED.format(which=_OF_SESSIONS), (_json(list(sessions)),)).fetchall()
    shared += database.execute(_DANGLING).fetchall()
    if not shared:
        return
    holders = database.execute(_HOLDERS, (_json([row[0] for row in shared]),)).fetchall()
    database.executemany(
        "UPDATE model_calls SET copy_of = ? WHERE session_id = ? AND message_id = ?",
        [change for _, rows in groupby(holders, itemgetter(0)) for change in _changes(list(rows))],
    )


def _changes(rows: list[tuple[str, str, int, str | None]]) -> list[tuple[str | None, str, str]]:
    """Leave a message's calls to their owners; a session that counts another total has made a call of its own."""
    owners: dict[int, str] = {}
    changes = []
    for message_id, session_id, total, before in rows:
        owner = owners.setdefault(total, session_id)
        copy_of = None if owner == session_id else owner
        if copy_of != before:
            changes.append((copy_of, session_id, message_id))
    return changes


def _json(ids: list[str]) -> str:
    return msgspec.json.encode(ids).decode()
