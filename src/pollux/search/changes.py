"""Find the sessions of an archive that its search index does not contain as they are now.

`session_changes` of the archive (`archive/schema.py`) numbers each write of a session and gives it a random token. The
index stores both for each session, so that a session is up to date if the tokens are equal. To find the changes without
comparing all sessions, the index also stores the newest numbers at the time when it was complete, as *anchors*: if one
of them still has its token, the archive has the same history up to there, and only later numbers need a comparison.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import NamedTuple

import msgspec

_FEW = 500
"""Up to this many sessions are looked up one by one."""


class Change(NamedTuple):
    """A session whose facts were written after it was indexed, or that is not indexed."""

    session_id: str
    is_comparable: bool
    """Whether an earlier state of this archive was indexed, so that records at the same place are the same."""
    is_indexed: bool
    """Whether the index contains an earlier state of the session."""


class IndexState(msgspec.Struct, frozen=True):
    """How an index differs from its archive."""

    changed: tuple[Change, ...]
    removed: tuple[str, ...]
    """Sessions in the index that the archive does not contain."""


class Anchor(msgspec.Struct, frozen=True, array_like=True):
    """The number and the token of a write of a session."""

    number: int
    token: bytes


class _Write(NamedTuple):
    """The last write of a session's facts, or the last that was indexed."""

    number: int
    token: bytes
    is_deleted: int


_decode_anchors = msgspec.msgpack.Decoder(list[Anchor]).decode


def compare(index: sqlite3.Connection, database: sqlite3.Connection) -> IndexState:
    """Return which sessions of an archive are not in its index as they are now."""
    common = _common_number(index, database)
    after = "1" if common is None else "number > ?"
    values = () if common is None else (common,)
    ours = _writes(index.execute(_INDEXED.format(which=after), values))
    theirs = _writes(database.execute(_CHANGES.format(which=after), values))
    if common is not None:
        for session_id in ours.keys() - theirs.keys():
            theirs |= _writes(database.execute(_CHANGES.format(which="session_id = ?"), (session_id,)))
        for session_id in theirs.keys() - ours.keys():
            ours |= _writes(index.execute(_INDEXED.format(which="session_id = ?"), (session_id,)))
    changed = []
    for session_id, write in theirs.items():
        old = ours.get(session_id)
        if not write.is_deleted and (old is None or old.token != write.token):
            is_comparable = common is not None and old is not None and old.number <= common
            changed.append(Change(session_id, is_comparable, old is not None))
    removed = [session_id for session_id in ours if session_id not in theirs or theirs[session_id].is_deleted]
    return IndexState(tuple(changed), tuple(removed))


_INDEXED = "SELECT session_id, number, token, 0 FROM sessions WHERE {which}"
_CHANGES = "SELECT session_id, number, token, is_deleted FROM session_changes WHERE {which}"


def anchors_of(database: sqlite3.Connection) -> bytes:
    """Return the newest writes of an archive, to be stored in an index that is complete."""
    rows = database.execute("SELECT number, token FROM session_changes ORDER BY number DESC LIMIT 64").fetchall()
    return msgspec.msgpack.encode([Anchor(*row) for row in rows])


def newest_first(database: sqlite3.Connection, ids: Collection[str]) -> list[str]:
    """Return those sessions of an archive that are among some IDs, last used first."""
    if len(ids) > _FEW:
        rows = database.execute("SELECT session_id FROM sessions ORDER BY last_used_us DESC, session_id").fetchall()
        return [session_id for (session_id,) in rows if session_id in ids]
    used = []
    for session_id in ids:
        row = database.execute("SELECT last_used_us FROM sessions WHERE session_id = ?", (session_id,)).fetchone()
        if row is not None:
            used.append((-(row[0] or 0), session_id))
    return [session_id for _, session_id in sorted(used)]


def _common_number(index: sqlite3.Connection, database: sqlite3.Connection) -> int | None:
    """Return the number of the last write that a complete index and the archive have in common."""
    row = index.execute("SELECT value FROM meta WHERE key = 'anchors'").fetchone()
    for anchor in _decode_anchors(row[0]) if row else ():
        token = database.execute("SELECT token FROM session_changes WHERE number = ?", (anchor.number,)).fetchone()
        if token is not None and token[0] == anchor.token:
            return anchor.number
    return None


def _writes(rows: sqlite3.Cursor) -> dict[str, _Write]:
    return {session_id: _Write(*values) for session_id, *values in rows}
