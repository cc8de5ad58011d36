"""The facts: tables derived from the raw bytes, thrown away and built again whenever the reader changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pollux.reports.cache import NO_TIME
from pollux.text.unicode import sound

READER = "6"
"""Raise this whenever the same bytes would give other facts."""

TABLES: Mapping[str, str] = {
    "readings": """
        version_id INTEGER PRIMARY KEY, kept INTEGER NOT NULL, is_superseded INTEGER NOT NULL, look BLOB NOT NULL,
        snapshot BLOB NOT NULL
    """,
    "sessions": """
        session_id TEXT PRIMARY KEY, kind TEXT NOT NULL, parent_session_id TEXT, parent_call_id TEXT,
        project_hash TEXT, title TEXT NOT NULL, title_from TEXT NOT NULL,
        started_us INTEGER, ended_us INTEGER, updated_us INTEGER, first_prompt TEXT NOT NULL, last_prompt TEXT NOT NULL,
        n_user INTEGER NOT NULL, n_gemini INTEGER NOT NULL, n_tool INTEGER NOT NULL, n_error INTEGER NOT NULL,
        n_rewound INTEGER NOT NULL, n_compressed INTEGER NOT NULL, models TEXT NOT NULL, cli_generation TEXT NOT NULL,
        extra_json TEXT NOT NULL, bundle TEXT NOT NULL, body BLOB NOT NULL
    """,
    "session_files": """
        session_id TEXT NOT NULL, file_version_id INTEGER NOT NULL, role TEXT NOT NULL, format TEXT NOT NULL,
        problems INTEGER NOT NULL, PRIMARY KEY (session_id, file_version_id)
    """,
    "projects": """
        project_hash TEXT PRIMARY KEY, path TEXT, slug TEXT, how_known TEXT, proven INTEGER NOT NULL, git_remote TEXT
    """,
    "messages": """
        session_id TEXT NOT NULL, message_id TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,
        origin TEXT NOT NULL, fate TEXT NOT NULL, at_us INTEGER, model TEXT, n_chars INTEGER NOT NULL,
        file_version_id INTEGER NOT NULL, line INTEGER NOT NULL,
        words_line INTEGER NOT NULL, calls_line INTEGER, PRIMARY KEY (session_id, message_id)
    """,
    "model_calls": """
        session_id TEXT NOT NULL, message_id TEXT NOT NULL, at_us INTEGER, model TEXT, fate TEXT NOT NULL,
        tok_input INTEGER NOT NULL, tok_cached INTEGER NOT NULL, tok_output INTEGER NOT NULL,
        tok_thoughts INTEGER NOT NULL, tok_tool INTEGER NOT NULL, tok_total INTEGER NOT NULL,
        tok_consistent INTEGER NOT NULL, cost_nanousd INTEGER, price_id TEXT,
        file_version_id INTEGER NOT NULL, line INTEGER NOT NULL, copy_of TEXT,
        PRIMARY KEY (session_id, message_id)
    """,
    "tool_calls": """
        session_id TEXT NOT NULL, message_id TEXT NOT NULL, idx INTEGER NOT NULL, call_id TEXT, raw_name TEXT NOT NULL,
        canonical TEXT NOT NULL, category TEXT NOT NULL, kind TEXT NOT NULL, label TEXT NOT NULL, mcp_server TEXT,
        status TEXT NOT NULL, exit_code INTEGER, at_us INTEGER, args_json TEXT NOT NULL, result_bytes INTEGER NOT NULL,
        agent_session_id TEXT, fate TEXT NOT NULL, PRIMARY KEY (session_id, message_id, idx)
    """,
    "shell_commands": """
        session_id TEXT NOT NULL, message_id TEXT NOT NULL, idx INTEGER NOT NULL, n INTEGER NOT NULL,
        command TEXT NOT NULL, program TEXT NOT NULL, PRIMARY KEY (session_id, message_id, idx, n)
    """,
    "file_touches": """
        session_id TEXT NOT NULL, message_id TEXT NOT NULL, idx INTEGER NOT NULL, path TEXT NOT NULL, op TEXT NOT NULL,
        lines_added INTEGER, lines_removed INTEGER, evidence TEXT NOT NULL,
        PRIMARY KEY (session_id, message_id, idx, path)
    """,
    "value_problems": """
        session_id TEXT NOT NULL, message_id TEXT NOT NULL, idx INTEGER NOT NULL, n INTEGER NOT NULL,
        file_version_id INTEGER NOT NULL, line INTEGER NOT NULL, message TEXT NOT NULL,
        PRIMARY KEY (session_id, message_id, idx, n)
    """,
    "failures": "version_id INTEGER PRIMARY KEY, kept INTEGER NOT NULL, message TEXT NOT NULL",
    "problems": """
        file_version_id INTEGER NOT NULL, n INTEGER NOT NULL, code TEXT NOT NULL, line INTEGER, message TEXT NOT NULL,
        PRIMARY KEY (file_version_id, n)
    """,
    "call_digests": """
        session_id TEXT NOT NULL, message_id TEXT NOT NULL, sha256 BLOB NOT NULL, PRIMARY KEY (session_id, message_id)
    """,
    "session_digests": """
        session_id TEXT PRIMARY KEY, sha256 BLOB NOT NULL
    """,
}
_OLD, _NEW, _REPLACED = (
    f"coalesce({row}.at_us - {row}.at_us % 900000000, {NO_TIME})" for row in ("OLD", "NEW", "replaced")
)
_CHANGES = {
    "BEFORE INSERT": f"""
        VALUES ({_NEW}) UNION ALL SELECT {_REPLACED} FROM model_calls AS replaced
        WHERE replaced.session_id = NEW.session_id AND replaced.message_id = NEW.message_id
    """,  # noqa: S608  ours
    "AFTER UPDATE": f"VALUES ({_OLD}), ({_NEW})",
    "AFTER DELETE": f"VALUES ({_OLD})",
}
"""When a call is written, and which quarters of an hour have other sums then."""
_NOTE = """
    CREATE TRIGGER note_{name} {when} ON model_calls WHEN EXISTS (SELECT 1 FROM reports)
    BEGIN INSERT OR IGNORE INTO changed_quarters {quarters}; END
"""
_BESIDE = (
    "CREATE INDEX sessions_by_bundle ON sessions (bundle)",
    "CREATE INDEX calls_by_owner ON model_calls (copy_of) WHERE copy_of IS NOT NULL",
    "DROP TABLE IF EXISTS main.reports",
    "DROP TABLE IF EXISTS main.changed_quarters",
    "CREATE TABLE main.reports (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE main.changed_quarters (quarter_us INTEGER PRIMARY KEY)",
    "DROP TABLE IF EXISTS main.joined",
    "CREATE TABLE main.joined (name TEXT PRIMARY KEY, bundle TEXT NOT NULL) WITHOUT ROWID",
    *(_NOTE.format(name=when[-6:], when=when, quarters=quarters) for when, quarters in _CHANGES.items()),
)
"""No facts themselves: what finds them, what was added up (`reports.py`), what of that has changed, and what is read
together (`joins.py`).
"""
_UNOWNED, _UNPRICED = "unowned", "unpriced"
OF_MESSAGES = ("messages", "tool_calls", "shell_commands", "file_touches", "value_problems", "call_digests")
_OF_SESSIONS = ("sessions", "session_files", *OF_MESSAGES, "model_calls", "session_digests")

VERSIONS = """
    FROM versions JOIN files ON files.id = versions.file_id LEFT JOIN readings ON readings.version_id = versions.id
    WHERE files.path LIKE 'tmp/%/chats/%' AND files.forgotten_us IS NULL AND coalesce(readings.is_superseded, 0) = 0
    AND (
        files.path GLOB '*.json' OR files.path GLOB '*.jsonl'
        OR files.path GLOB '*.tmp-*' OR files.path GLOB '*.unreadable-*'
    )
    AND typeof(files.path) = 'text' AND typeof(versions.kept) = 'integer'
"""
"""All versions of session files that still matter; damaged rows are for `verify` to name.

`locate.session_file_kind` decides about each name; these patterns only keep files that are never sessions from being
looked at again at every refresh.
"""
UNREAD = f"""
    {VERSIONS} AND versions.kept IS NOT readings.kept
    AND NOT EXISTS (SELECT 1 FROM failures WHERE version_id = versions.id AND failures.kept = versions.kept)
"""  # noqa: S608  ours
"""Those with bytes that the facts have not seen, but for files that are known to fail at just these bytes."""


def are_current(database: sqlite3.Connection) -> bool:
    """Tell whether the facts were made by this reader."""
    row = database.execute("SELECT value FROM facts_meta WHERE key = 'reader'").fetchone()
    return row is not None and row[0] == READER


def are_behind(database: sqlite3.Connection) -> bool:
    """Tell whether some session file has bytes that the facts have not seen, or calls have no owner yet."""
    rows = database.execute(f"SELECT 1 {UNREAD} LIMIT 1")
    return rows.fetchone() is not None or are_unowned(database)


def are_empty(database: sqlite3.Connection) -> bool:
    """Return whether there are no sessions."""
    return database.execute("SELECT 1 FROM sessions LIMIT 1").fetchone() is None


def are_unowned(database: sqlite3.Connection) -> bool:
    """Tell whether calls were written of which nobody has looked yet whether other sessions hold them too."""
    return _is_noted(database, _UNOWNED)


def are_unpriced(database: sqlite3.Connection) -> bool:
    """Tell whether calls were written whose price nobody has looked up yet."""
    return _is_noted(database, _UNPRICED)


def note_new_calls(database: sqlite3.Connection) -> None:
    """Note that calls are written; it outlives whatever happens before somebody looks at them."""
    database.executemany("INSERT OR IGNORE INTO facts_meta VALUES (?, '')", [(_UNOWNED,), (_UNPRICED,)])


def note_owned(database: sqlite3.Connection) -> None:
    """Note that all calls have their owners."""
    database.execute("DELETE FROM facts_meta WHERE key = ?", (_UNOWNED,))


def note_priced(database: sqlite3.Connection) -> None:
    """Note that all calls have their prices."""
    database.execute("DELETE FROM facts_meta WHERE key = ?", (_UNPRICED,))


def _is_noted(database: sqlite3.Connection, key: str) -> bool:
    return database.execute("SELECT 1 FROM facts_meta WHERE key = ?", (key,)).fetchone() is not None


def reset(database: sqlite3.Connection) -> None:
    """Throw all facts away and make their tables anew."""
    for name, columns in TABLES.items():
        database.execute(f"DROP TABLE IF EXISTS {name}")
        shape = "WITHOUT ROWID" if "PRIMARY KEY (" in columns else ""  # keys of several ids are stored once
        database.execute(f"CREATE TABLE {name} ({columns}) {shape}")
    for statement in _BESIDE:
        database.execute(statement)
    database.execute("INSERT OR REPLACE INTO facts_meta VALUES ('reader', ?)", (READER,))


def count_sessions(database: sqlite3.Connection) -> int:
    """Return the number of sessions in the archive, subagents and stubs included."""
    number: int = database.execute("SELECT count(*) FROM sessions").fetchone()[0]
    return number


def sessions_of_homes(
    database: sqlite3.Connection, homes: Iterable[str], *, with_imports: bool = False
) -> set[str] | None:
    """Return the IDs of the sessions that have, or had, a file in some homes; None if that is every session.

    Args:
        database: the archive.
        homes: paths of `.gemini` folders.
        with_imports: whether sessions that were imported from other archives are returned as well.

    """
    wanted = {sound(home) for home in homes}
    if wanted.issuperset(row[0] for row in database.execute("SELECT DISTINCT home FROM files")):
        return None
    rows: list[Any] = database.execute(
        """
        SELECT DISTINCT
            session_files.session_id, files.home, session_files.file_version_id IN (SELECT version_id FROM imported)
        FROM session_files
        JOIN versions ON versions.id = session_files.file_version_id JOIN files ON files.id = versions.file_id
        """
    ).fetchall()
    return {session_id for session_id, home, is_import in rows if home in wanted or (with_imports and is_import)}


def forget_sessions(database: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Take sessions out of the facts."""
    for one in ids:
        for table in _OF_SESSIONS:
            database.execute(f"DELETE FROM {table} WHERE session_id = ?", (one,))  # noqa: S608  a name from our table


def rows(database: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield a table in the order of its key; for comparisons."""
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[5]]
    yield from database.execute(f"SELECT * FROM {table} ORDER BY {', '.join(columns)}")  # noqa: S608
