"""What a session's rows say because of other rows: its root, whether its files are deleted, the sums of its calls.

A parent may be read after its subagent, a file may disappear, and a call may get another owner or price. Triggers
(`schema.py`) and `note_files` note the sessions that are concerned; `update` looks only at those and their subagents.
"""

from __future__ import annotations

import sqlite3

from pollux.archive.imports import BESIDE_OWN
from pollux.archive.schema import COUNTS
from pollux.sessions.family import find_roots

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
"""The changed sessions, all below them and all above those."""
_IS_DELETED = f"""
    (NOT EXISTS (
        SELECT 1 FROM session_files JOIN versions ON versions.id = file_version_id JOIN files ON files.id = file_id
        WHERE session_files.session_id = sessions.session_id AND gone_us IS NULL
            AND role NOT IN ('stub', 'unreadable') AND NOT {BESIDE_OWN}
    ))
"""  # noqa: S608  our own words
"""Whether no file of a session is where the client put it."""
_TOKENS = [f"max(min(tok_{count}, {1 << 40}), {-1 << 40})" for count in COUNTS]
_COST = f"max(min(cost_nanousd, {1 << 52}), {-1 << 52})"
"""Within bounds that only damaged rows exceed: SQLite refuses to add up what needs more than 64 bits."""
_SUMS = ", ".join(
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


def note_files(database: sqlite3.Connection, which: str, values: tuple[object, ...]) -> None:
    """Note the sessions of some rows of `files`, which have disappeared or returned."""
    database.execute(
        f"""
        INSERT OR IGNORE INTO changed_sessions
        SELECT session_id FROM files JOIN versions ON versions.file_id = files.id
        JOIN session_files ON file_version_id = versions.id WHERE {which}
        """,  # noqa: S608  our own words
        values,
    )


def update(database: sqlite3.Connection) -> None:
    """Bring the dependent values of all noted sessions up to date; part of the transaction that has changed them."""
    if database.execute("SELECT 1 FROM changed_sessions LIMIT 1").fetchone() is None:
        return
    _update_roots(database)
    database.execute(
        f"""
        UPDATE sessions SET is_deleted = {_IS_DELETED}
        WHERE session_id IN {_CHANGED} AND is_deleted <> {_IS_DELETED}
        """  # noqa: S608  our own words
    )
    database.execute(f"DELETE FROM session_usage WHERE session_id IN {_CHANGED}")  # noqa: S608
    add_up(database, f"session_id IN {_CHANGED}")
    database.execute("DELETE FROM changed_sessions")


def update_all(database: sqlite3.Connection) -> None:
    """Bring the dependent values of all sessions up to date."""
    database.execute("INSERT OR IGNORE INTO changed_sessions SELECT session_id FROM sessions")
    update(database)


def add_up(database: sqlite3.Connection, which: str = "1") -> None:
    """Write the sums of the calls that sessions own."""
    database.execute(
        f"""
        INSERT INTO session_usage SELECT {_SUMS} FROM model_calls
        WHERE copy_of IS NULL AND {which} GROUP BY session_id, fate = 'active'
        """  # noqa: S608  our own words
    )


def sessions_with_wrong_sums(database: sqlite3.Connection) -> list[str]:
    """Return the sessions whose rows of `session_usage` are not the sums of their calls."""
    expected = f"SELECT {_SUMS} FROM model_calls WHERE copy_of IS NULL GROUP BY session_id, fate = 'active'"  # noqa: S608
    stored = "SELECT * FROM session_usage"
    rows = database.execute(
        f"""
        SELECT session_id FROM (SELECT * FROM ({expected}) EXCEPT {stored})
        UNION SELECT session_id FROM ({stored} EXCEPT SELECT * FROM ({expected}))
        """  # noqa: S608  our own words
    )
    return [row[0] for row in rows]


def _update_roots(database: sqlite3.Connection) -> None:
    rows = database.execute(_LINEAGE).fetchall()
    found = find_roots({session_id: parent for session_id, parent, _ in rows})
    changes = [(found[session_id], session_id) for session_id, _, root in rows if found[session_id] != root]
    database.executemany("UPDATE sessions SET root_session_id = ? WHERE session_id = ?", changes)
