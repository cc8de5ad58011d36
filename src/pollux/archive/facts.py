"""The facts: tables derived from the raw bytes, thrown away and built again whenever the reader changes.

A session's rows are written anew only where something is new: each message row says which recordings it was made from,
and where those are the same only order and fate can have changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pollux.archive.touches import call_rows
from pollux.formats.times import instant, microseconds
from pollux.model import Problem, Session

if TYPE_CHECKING:
    from pollux.entries import Entry
    from pollux.grouping import Group, Placed

READER = "2"
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
    "problems": """
        file_version_id INTEGER NOT NULL, n INTEGER NOT NULL, code TEXT NOT NULL, line INTEGER, message TEXT NOT NULL,
        PRIMARY KEY (file_version_id, n)
    """,
}
_INDEXES = (
    "CREATE INDEX calls_by_message ON model_calls (message_id)",
    "CREATE INDEX sessions_by_bundle ON sessions (bundle)",
)
_OF_MESSAGES = ("messages", "tool_calls", "shell_commands", "file_touches")
_OF_SESSIONS = ("sessions", "session_files", *_OF_MESSAGES, "model_calls")

VERSIONS = """
    FROM versions JOIN files ON files.id = versions.file_id LEFT JOIN readings ON readings.version_id = versions.id
    WHERE files.path LIKE 'tmp/%/chats/%' AND files.forgotten_us IS NULL AND coalesce(readings.is_superseded, 0) = 0
"""
"""All versions of session files that still matter."""
UNREAD = f"{VERSIONS} AND versions.kept IS NOT readings.kept"

_pack = msgspec.msgpack.Encoder(enc_hook=str).encode


def are_current(database: sqlite3.Connection) -> bool:
    """Tell whether the facts were made by this reader."""
    row = database.execute("SELECT value FROM facts_meta WHERE key = 'reader'").fetchone()
    return row is not None and row[0] == READER


def are_behind(database: sqlite3.Connection) -> bool:
    """Tell whether some session file has bytes that the facts have not seen."""
    rows = database.execute(f"SELECT 1 {UNREAD} LIMIT 1")
    return rows.fetchone() is not None


def reset(database: sqlite3.Connection) -> None:
    """Throw all facts away and make their tables anew."""
    for name, columns in TABLES.items():
        database.execute(f"DROP TABLE IF EXISTS {name}")
        shape = "WITHOUT ROWID" if "PRIMARY KEY (" in columns else ""  # keys of several ids are stored once
        database.execute(f"CREATE TABLE {name} ({columns}) {shape}")
    for statement in _INDEXES:
        database.execute(statement)
    database.execute("INSERT OR REPLACE INTO facts_meta VALUES ('reader', ?)", (READER,))


def sessions_of_homes(database: sqlite3.Connection, homes: Iterable[str]) -> set[str]:
    """Return the sessions of which some home has a file, or had one."""
    rows: list[Any] = database.execute(
        """
        SELECT DISTINCT session_files.session_id, files.home FROM session_files
        JOIN versions ON versions.id = session_files.file_version_id JOIN files ON files.id = versions.file_id
        """
    ).fetchall()
    wanted = set(homes)
    return {session_id for session_id, home in rows if home in wanted}


def forget_sessions(database: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Take sessions out of the facts."""
    for one in ids:
        for table in _OF_SESSIONS:
            database.execute(f"DELETE FROM {table} WHERE session_id = ?", (one,))  # noqa: S608  a name from our table


def write(database: sqlite3.Connection, group: Group, session: Session, bundle: str) -> None:
    """Write the rows of one session."""
    _write_session(database, group, session, bundle)
    _write_messages(database, group)
    _write_model_calls(database, group, session)


def copy(database: sqlite3.Connection, found: Mapping[str, list[tuple[Any, ...]]]) -> None:
    """Write rows that were made elsewhere, of sessions that have none here."""
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
        [(version_id, n, one.code, one.line, one.message) for n, one in enumerate(problems)],
    )


def leave_copies_to_their_owner(database: sqlite3.Connection, message_ids: Iterable[str]) -> None:
    """Mark model calls that an imported session only repeats, so that no report counts them twice."""
    for one in message_ids:
        rows = database.execute(
            """
            SELECT model_calls.session_id, model_calls.tok_total
            FROM model_calls JOIN sessions USING (session_id)
            WHERE message_id = ?
            ORDER BY
                EXISTS (
                    SELECT 1 FROM session_files AS f WHERE f.session_id = sessions.session_id AND f.role = 'import'
                ),
                started_us IS NULL, started_us, model_calls.session_id
            """,
            (one,),
        ).fetchall()
        owners: dict[int, str] = {}
        for session_id, total in rows:
            owner = owners.setdefault(total, session_id)
            database.execute(
                "UPDATE model_calls SET copy_of = ? WHERE session_id = ? AND message_id = ?",
                (None if owner == session_id else owner, session_id, one),
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
                _pack(
                    msgspec.structs.replace(session, calls=(), children=(), title="", first_prompt="", last_prompt="")
                ),
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
    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _OF_MESSAGES}
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
    for table in _OF_MESSAGES:
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
    data = placed.reading.source.slice(entry.calls_from.span)
    for idx, found in enumerate(call_rows(data)):
        rows["tool_calls"].append((*key, idx, *found.call, entry.fate))
        rows["shell_commands"] += [(*key, idx, n, *command) for n, command in enumerate(found.commands)]
        rows["file_touches"] += [(*key, idx, *touch) for touch in found.touches]


def _write_model_calls(database: sqlite3.Connection, group: Group, session: Session) -> None:
    versions = {one: file.version_id for file in reversed(group.files) for one in file.reading.replay.calls}
    database.execute("DELETE FROM model_calls WHERE session_id = ?", (session.id,))
    rows = []
    for call in session.calls:
        tokens = call.tokens
        counts = (tokens.input, tokens.cached, tokens.output, tokens.thoughts, tokens.tool, tokens.total)
        place = (versions[call.message_id], call.line)
        key = (session.id, call.message_id, microseconds(call.at), call.model, call.fate)
        rows.append((*key, *counts, tokens.is_consistent, None, None, *place, None))
    _insert(database, "model_calls", sorted(rows))


def _insert(database: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        database.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)  # noqa: S608  a name from our table


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return "{}"


def rows(database: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield a table in the order of its key; for comparisons."""
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[5]]
    yield from database.execute(f"SELECT * FROM {table} ORDER BY {', '.join(columns)}")  # noqa: S608
