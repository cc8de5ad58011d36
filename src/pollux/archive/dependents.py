"""Values in the rows of a session that depend on other rows.

- *Roots, deletion, sums*: a parent may be read after its subagent, a file may disappear, a call may get another owner
  or price. Triggers (`schema.py`) and `note_files` record which sessions are affected; `update` recomputes only those
  and their subagents.
- *Owners*: of the sessions that contain the same model call, `sessions.ownership` decides which one owns it.
- *Imports*: the table `imported` lists versions whose bytes came from another archive, so that this machine never read
  them from a disk. A refresh that finds the same bytes in the file on disk removes the mark.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

import msgspec

from pollux.archive.schema import COUNTS
from pollux.sessions.family import find_owners, find_roots, holder

_CHANGED = "(SELECT session_id FROM changed_sessions)"
_LINEAGE = """
    WITH RECURSIVE
        below(id) AS (
            SELECT session_id FROM changed_sessions
            UNION SELECT session_id FROM sessions JOIN below ON parent_session_id = below.id
        ),
        lineage(id) AS (
            SELECT id FROM below
            UNION SELECT parent_session_id FROM sessions JOIN lineage ON session_id = lineage.id
            WHERE parent_session_id IS NOT NULL
        )
    SELECT session_id, parent_session_id, root_session_id FROM sessions JOIN lineage ON session_id = lineage.id
"""
"""The changed sessions, their descendants, and the ancestors of all of these."""
_IS_REDUNDANT_IMPORT = """
    (
        session_files.file_version_id IN (SELECT version_id FROM imported)
        AND EXISTS (
            SELECT 1 FROM session_files AS own WHERE own.session_id = session_files.session_id
                AND own.file_version_id NOT IN (SELECT version_id FROM imported)
        )
    )
"""
"""Whether a row of `session_files` is an import although this machine has also read a file of the session."""
_IS_DELETED = f"""
    (NOT EXISTS (
        SELECT 1 FROM session_files JOIN versions ON versions.id = file_version_id JOIN files ON files.id = file_id
        WHERE session_files.session_id = sessions.session_id AND deleted_us IS NULL
            AND role NOT IN ('stub', 'unreadable') AND NOT {_IS_REDUNDANT_IMPORT}
    ))
"""  # noqa: S608  ours
"""Whether none of a session's files exists in its home."""
_TOKENS = [f"max(min(tok_{count}, {1 << 40}), {-1 << 40})" for count in COUNTS]
_COST = f"max(min(cost_nanousd, {1 << 52}), {-1 << 52})"
"""Clamped, because SQLite refuses sums of more than 64 bits; only damaged rows exceed the bounds."""
_TOOL_TOKENS = ", ".join(f"coalesce(sum({tokens}), 0)" for tokens in _TOKENS)
CALL_SUMS = ", ".join(
    [
        "session_id",
        "fate = 'active'",
        "count(*)",
        *(f"sum({tokens})" for tokens in _TOKENS),
        f"sum(coalesce({_COST}, 0))",
        "sum(cost_nanousd IS NULL)",
        *(f"sum(CASE WHEN cost_nanousd IS NULL THEN {tokens} ELSE 0 END)" for tokens in _TOKENS),
        "sum(NOT tok_consistent)",
    ]
)
"""The columns of `session_usage`, computed from `model_calls`."""
_SPANS = f"""
    SELECT session_id, min(at_us), max(at_us), sum(at_us IS NULL),
        (SELECT project_hash FROM sessions WHERE sessions.session_id = model_calls.session_id),
        count(*), sum({_TOKENS[COUNTS.index("total")]}), sum(coalesce({_COST}, 0)), sum(cost_nanousd IS NULL)
    FROM model_calls WHERE owner_session_id IS NULL
"""  # noqa: S608  ours
"""The columns of `session_spans`, computed from `model_calls`."""
_SHARED = "SELECT message_id FROM model_calls {which} GROUP BY message_id HAVING count(*) > 1"
_OF_SESSIONS = """
    WHERE message_id IN (SELECT message_id FROM model_calls WHERE session_id IN (SELECT value FROM json_each(?)))
"""
_DANGLING = """
    SELECT message_id FROM model_calls AS c WHERE owner_session_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM model_calls AS owner
        WHERE owner.session_id = c.owner_session_id AND owner.message_id = c.message_id
    )
"""
"""Calls that their owner no longer contains."""
_HOLDERS = """
    SELECT session_id, message_id, tok_input, tok_cached, tok_output, tok_thoughts, tok_tool, tok_total,
        owner_session_id, started_us,
        NOT EXISTS (SELECT 1 FROM session_files AS f WHERE f.session_id = sessions.session_id AND f.role = 'main'),
        NOT EXISTS (
            SELECT 1 FROM session_files AS f WHERE f.session_id = sessions.session_id
                AND f.file_version_id NOT IN (SELECT version_id FROM imported)
        )
    FROM model_calls JOIN sessions USING (session_id) WHERE message_id IN (SELECT value FROM json_each(?))
"""


def note_files(database: sqlite3.Connection, which: str, values: tuple[object, ...]) -> None:
    """Record that the sessions of some rows of `files` must be updated, because a file disappeared or came back."""
    database.execute(
        f"""
        INSERT OR IGNORE INTO changed_sessions
        SELECT session_id FROM files JOIN versions ON versions.file_id = files.id
        JOIN session_files ON file_version_id = versions.id WHERE {which}
        """,  # noqa: S608  ours
        values,
    )


def update(database: sqlite3.Connection) -> None:
    """Recompute root, deletion and sums of all changed sessions, within the transaction that changed them."""
    if database.execute("SELECT 1 FROM changed_sessions LIMIT 1").fetchone() is None:
        return
    _update_roots(database)
    database.execute(
        f"""
        UPDATE sessions SET is_deleted = {_IS_DELETED}
        WHERE session_id IN {_CHANGED} AND is_deleted <> {_IS_DELETED}
        """  # noqa: S608  ours
    )
    database.execute(f"DELETE FROM session_usage WHERE session_id IN {_CHANGED}")  # noqa: S608  ours
    add_up(database, f"session_id IN {_CHANGED}")
    database.execute(f"DELETE FROM session_tools WHERE session_id IN {_CHANGED}")  # noqa: S608  ours
    database.execute(f"INSERT INTO session_tools {tool_sums(f'c.session_id IN {_CHANGED}')}")
    database.execute(f"DELETE FROM session_spans WHERE session_id IN {_CHANGED}")  # noqa: S608  ours
    database.execute(f"INSERT INTO session_spans {_SPANS} AND session_id IN {_CHANGED} GROUP BY session_id")
    database.execute("DELETE FROM changed_sessions")


def update_all(database: sqlite3.Connection) -> None:
    """Recompute root, deletion and sums of all sessions."""
    database.execute("INSERT OR IGNORE INTO changed_sessions SELECT session_id FROM sessions")
    update(database)


def add_up(database: sqlite3.Connection, which: str = "1") -> None:
    """Write the sums of the calls that sessions own to `session_usage`."""
    database.execute(
        f"""
        INSERT INTO session_usage SELECT {CALL_SUMS} FROM model_calls
        WHERE owner_session_id IS NULL AND {which} GROUP BY session_id, fate = 'active'
        """  # noqa: S608  ours
    )


def tool_sums(which: str, when: str = "1") -> str:
    """Return a statement that selects rows of `session_tools`, computed from the tool calls that conditions select.

    `which` is a condition on `tool_calls AS c`, `when` one on the time `at_us` of the calls of a message by one tool.
    """
    return f"""
        SELECT
            t.session_id, t.label, t.model, t.fate = 'active', m.tok_total IS NULL OR m.cost_nanousd IS NOT NULL,
            sum(t.requested), sum(t.success), sum(t.error), sum(t.cancelled), count(m.tok_total),
            {_TOOL_TOKENS}, coalesce(sum({_COST}), 0),
            sum(m.tok_consistent IS 0), min(t.at_us), max(t.at_us),
            sum(t.at_us IS NULL)
        FROM (
            SELECT
                c.session_id, c.message_id, c.label, c.fate, o.model, min(coalesce(c.at_us, o.at_us)) AS at_us,
                count(*) AS requested, sum(c.status = 'success') AS success, sum(c.status = 'error') AS error,
                sum(c.status = 'cancelled') AS cancelled
            FROM tool_calls AS c
            JOIN messages AS o ON o.session_id = c.session_id AND o.message_id = c.message_id AND o.is_own = 1
            WHERE {which} GROUP BY c.session_id, c.message_id, c.label, c.fate, o.model
        ) AS t
        LEFT JOIN model_calls AS m
            ON m.session_id = t.session_id AND m.message_id = t.message_id AND m.owner_session_id IS NULL
        WHERE {when} GROUP BY 1, 2, 3, 4, 5
    """  # noqa: S608  ours


def sessions_with_wrong_sums(database: sqlite3.Connection) -> list[str]:
    """Return the sessions whose rows of `session_usage` are not the sums of their calls."""
    expected = (
        f"SELECT {CALL_SUMS} FROM model_calls WHERE owner_session_id IS NULL GROUP BY session_id, fate = 'active'"  # noqa: S608
    )
    stored = "SELECT * FROM session_usage"
    rows = database.execute(
        f"""
        SELECT session_id FROM (SELECT * FROM ({expected}) EXCEPT {stored})
        UNION SELECT session_id FROM ({stored} EXCEPT SELECT * FROM ({expected}))
        """  # noqa: S608  ours
    )
    return [row[0] for row in rows]


def assign_owners(database: sqlite3.Connection, sessions: Iterable[str] | None = None) -> None:
    """Write the owner of each call that several sessions contain: of all calls, or of the calls of some sessions."""
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
    database.executemany("UPDATE model_calls SET owner_session_id = ? WHERE session_id = ? AND message_id = ?", changes)


def note_imported(database: sqlite3.Connection, version_id: int, *, source: str, at_us: int) -> None:
    """Mark a version as imported from another archive."""
    database.execute("INSERT INTO imported VALUES (?, ?, ?)", (version_id, source, at_us))


def confirm_imports(database: sqlite3.Connection, version_ids: Iterable[int]) -> None:
    """Remove the mark from imported versions that were just read from the disk, and derive them again.

    A file of which there are only imports has an inode that no file has, so `raw.prepare` compares all its bytes before
    it continues a version.
    """
    for version_id in version_ids:
        if database.execute("DELETE FROM imported WHERE version_id = ?", (version_id,)).rowcount:
            database.execute("UPDATE readings SET n_bytes = -1 WHERE version_id = ?", (version_id,))


def imported_versions(database: sqlite3.Connection, file_id: int) -> set[int]:
    """Return the IDs of the imported versions of a file."""
    rows = database.execute(
        "SELECT version_id FROM imported JOIN versions ON versions.id = version_id WHERE file_id = ?", (file_id,)
    )
    return {row[0] for row in rows}


def _update_roots(database: sqlite3.Connection) -> None:
    rows = database.execute(_LINEAGE).fetchall()
    roots = find_roots({session_id: parent for session_id, parent, _ in rows})
    changes = [(roots[session_id], session_id) for session_id, _, root in rows if roots[session_id] != root]
    database.executemany("UPDATE sessions SET root_session_id = ? WHERE session_id = ?", changes)


def _json(ids: list[str]) -> str:
    return msgspec.json.encode(ids).decode()
