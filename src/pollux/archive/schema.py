"""The facts: tables derived from the archived bytes, dropped and rebuilt whenever the reader's version changes.

Each table lists its columns once; statements, in-memory copies and Parquet files are generated from that list.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import astuple

from pollux.model import Tokens
from pollux.text.escape import escape_surrogates
from pollux.text.times import microseconds

READER = "12"
"""Increase this whenever the same bytes would give other facts."""


class Column(msgspec.Struct, frozen=True):
    """A column of a fact table."""

    name: str
    type: str
    """`TEXT`, `INTEGER` or `BLOB`."""
    is_required: bool
    is_key: bool
    is_later: bool
    """Whether it is filled in after the rest of the row, from other rows: prices, owners, roots."""
    is_private: bool
    """Whether only the archive uses it, so that Parquet files leave it out."""


class Table(msgspec.Struct, frozen=True):
    """A fact table; its rows are tuples with a value for each column, in order."""

    name: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key."""
        return tuple(column.name for column in self.columns if column.is_key)

    @property
    def blanked(self) -> str:
        """The column list that selects rows as they were first written, with NULL for `LATER` columns."""
        return ", ".join("NULL" if column.is_later else column.name for column in self.columns)

    @property
    def insert(self) -> str:
        """The statement that inserts a row, or replaces the row with the same key."""
        return f"INSERT OR REPLACE INTO {self.name} VALUES ({', '.join('?' * len(self.columns))})"  # noqa: S608  ours

    def create(self, database: str = "main") -> str:
        """Return the CREATE statement; tables with a composite key have no rowid, so the key is stored once."""
        columns = []
        for column in self.columns:
            constraint = " PRIMARY KEY" if self.key == (column.name,) else " NOT NULL" if column.is_required else ""
            columns.append(f"{column.name} {column.type}{constraint}")
        if len(self.key) == 1:
            return f"CREATE TABLE {database}.{self.name} ({', '.join(columns)})"
        key = f"PRIMARY KEY ({', '.join(self.key)})"
        return f"CREATE TABLE {database}.{self.name} ({', '.join(columns)}, {key}) WITHOUT ROWID"


def _table(name: str, columns: str) -> Table:
    """Parse a list of columns: name and type, then any of NULL (nullable), KEY, LATER and PRIVATE."""
    parsed = []
    for line in columns.split(","):
        column, kind, *words = line.split()
        marks = (word in words for word in ("KEY", "LATER", "PRIVATE"))
        parsed.append(Column(column, kind, "NULL" not in words, *marks))
    return Table(name, tuple(parsed))


COUNTS = ("input", "cached", "output", "thoughts", "tool", "total")
"""The token counts of a model call, in the order of `Tokens`."""
_TOKENS = ", ".join(f"tok_{count} INTEGER" for count in COUNTS)
_UNPRICED = ", ".join(f"unpriced_{count} INTEGER" for count in COUNTS)
_COLUMNS: Mapping[str, str] = {
    "readings": """
        version_id INTEGER KEY LATER, n_bytes INTEGER LATER, is_superseded INTEGER LATER, cleanup_traits BLOB,
        snapshot BLOB
    """,
    "sessions": """
        session_id TEXT KEY, kind TEXT, parent_session_id TEXT NULL, parent_call_id TEXT NULL, project_hash TEXT NULL,
        title TEXT, title_from TEXT, started_us INTEGER NULL, ended_us INTEGER NULL, updated_us INTEGER NULL,
        first_prompt TEXT, last_prompt TEXT, n_user INTEGER, n_gemini INTEGER, n_tool INTEGER, n_error INTEGER,
        n_rewound INTEGER, n_compressed INTEGER, models TEXT, cli_generation TEXT, extra_json TEXT,
        root_session_id TEXT LATER, last_used_us INTEGER NULL, is_stub INTEGER, is_deleted INTEGER LATER,
        bundle TEXT LATER PRIVATE, extra BLOB PRIVATE
    """,
    "session_files": """
        session_id TEXT KEY, file_version_id INTEGER KEY, role TEXT, format TEXT, problems INTEGER
    """,
    "session_usage": f"""
        session_id TEXT KEY, is_active INTEGER KEY, calls INTEGER, {_TOKENS}, cost_nanousd INTEGER,
        unpriced_calls INTEGER, {_UNPRICED}, inconsistent INTEGER
    """,
    "projects": """
        project_hash TEXT KEY, path TEXT NULL, slug TEXT NULL, source TEXT NULL, proven INTEGER, git_remote TEXT NULL
    """,
    "messages": """
        session_id TEXT KEY, message_id TEXT KEY, seq INTEGER, kind TEXT, origin TEXT, fate TEXT, is_own INTEGER,
        at_us INTEGER NULL, model TEXT NULL, n_chars INTEGER, file_version_id INTEGER, line INTEGER,
        text_line INTEGER PRIVATE, calls_line INTEGER NULL PRIVATE
    """,
    "model_calls": f"""
        session_id TEXT KEY, message_id TEXT KEY, at_us INTEGER NULL, model TEXT NULL, fate TEXT, {_TOKENS},
        tok_consistent INTEGER, cost_nanousd INTEGER NULL LATER, price_id TEXT NULL LATER, file_version_id INTEGER,
        line INTEGER, owner_session_id TEXT NULL LATER
    """,
    "tool_calls": """
        session_id TEXT KEY, message_id TEXT KEY, idx INTEGER KEY, call_id TEXT NULL, raw_name TEXT, canonical TEXT,
        category TEXT, kind TEXT, label TEXT, mcp_server TEXT NULL, status TEXT, exit_code INTEGER NULL,
        at_us INTEGER NULL, args_json TEXT, result_bytes INTEGER, agent_session_id TEXT NULL, fate TEXT LATER
    """,
    "shell_commands": """
        session_id TEXT KEY, message_id TEXT KEY, idx INTEGER KEY, n INTEGER KEY, command TEXT, program TEXT
    """,
    "file_touches": """
        session_id TEXT KEY, message_id TEXT KEY, idx INTEGER KEY, path TEXT KEY, op TEXT, lines_added INTEGER NULL,
        lines_removed INTEGER NULL, evidence TEXT
    """,
    "value_problems": """
        session_id TEXT KEY, message_id TEXT KEY, idx INTEGER KEY, n INTEGER KEY, file_version_id INTEGER,
        line INTEGER, message TEXT
    """,
    "failures": "version_id INTEGER KEY, n_bytes INTEGER, message TEXT",
    "problems": "file_version_id INTEGER KEY, n INTEGER KEY, code TEXT, line INTEGER NULL, message TEXT",
    "call_digests": "session_id TEXT KEY, message_id TEXT KEY, sha256 BLOB",
    "session_digests": "session_id TEXT KEY, sha256 BLOB",
}
TABLES: Mapping[str, Table] = {name: _table(name, columns) for name, columns in _COLUMNS.items()}
Row = tuple[Any, ...]
"""A value for each column of a table, in their order."""
OF_SESSIONS = tuple(name for name, table in TABLES.items() if "session_id" in table.names)
OF_MESSAGES = tuple(name for name in OF_SESSIONS if "message_id" in TABLES[name].names and name != "model_calls")

SUMS = "sums "
"""The names of stored sums begin with it."""
NO_TIME = 1
"""The quarter of calls without a time; no real quarter of an hour starts at 1 µs."""
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
"""For each kind of write to `model_calls`: the quarters of an hour whose sums it changes."""
_NOTE_QUARTERS = """
    CREATE TRIGGER note_{name} {when} ON model_calls WHEN EXISTS (SELECT 1 FROM reports)
    BEGIN INSERT OR IGNORE INTO changed_quarters {quarters}; END
"""
_NOTE_SESSIONS = """
    CREATE TRIGGER note_{table}_{change} AFTER {change} ON {table}
    BEGIN INSERT OR IGNORE INTO changed_sessions VALUES {ids}; END
"""
_CHANGED_IDS = {
    ("sessions", "INSERT"): "(NEW.session_id)",
    ("sessions", "DELETE"): "(OLD.session_id)",
    ("model_calls", "INSERT"): "(NEW.session_id)",
    ("model_calls", "UPDATE"): "(OLD.session_id), (NEW.session_id)",
    ("model_calls", "DELETE"): "(OLD.session_id)",
}
"""Changes after which `dependents.update` has to recompute a session."""
_COUNT_CHANGE = """
    CREATE TRIGGER main.count_{table}_{change} AFTER {change} ON {table}
    BEGIN UPDATE generation SET number = number + 1; END
"""
_COUNTED = ("readings", "sessions", "session_files")
"""Tables that, with `files`, decide which sessions the client deletes; every change of a row is counted."""
_ANY_CHANGE = ("INSERT", "UPDATE", "DELETE")
_NOTE_CHANGE = """
    CREATE TRIGGER main.number_{change} AFTER {change} ON session_digests
    BEGIN
        DELETE FROM session_changes WHERE session_id = {row}.session_id;
        INSERT INTO session_changes (session_id, token, is_deleted) VALUES ({row}.session_id, randomblob(8), {deleted});
    END
"""
"""Numbers each write of a session's facts and gives it a token of its own, so that the search index finds the changes.

A number alone would not do: an archive that was restored from a backup counts the same numbers again for other writes.
"""
_NOTED_CHANGES: Mapping[str, Mapping[str, object]] = {
    "INSERT": {"row": "NEW", "deleted": 0},
    "DELETE": {"row": "OLD", "deleted": 1},
}
COUNTING_TRIGGERS = frozenset(f"count_{table}_{change}" for table in ("files", *_COUNTED) for change in _ANY_CHANGE)
TOOL_SUMS = (
    *("model", "is_active", "is_priced", "requested", "success", "error", "cancelled", "calls"),
    *("input", "cached", "output", "thoughts", "tool", "total", "cost_nanousd", "inconsistent", "first_us", "last_us"),
    "n_timeless",
)
"""Columns of `session_tools` after session and tool: the calls of a tool, and the model calls that made them."""
_AUXILIARY = (
    "CREATE INDEX sessions_by_bundle ON sessions (bundle)",
    "CREATE INDEX sessions_by_use ON sessions (last_used_us DESC, session_id)",
    """
    CREATE INDEX listed_sessions
    ON sessions (last_used_us DESC, session_id, n_user, started_us, is_deleted, project_hash)
    WHERE kind = 'main' AND is_stub = 0
    """,
    """
    CREATE INDEX sessions_by_project
    ON sessions (project_hash, last_used_us DESC, session_id, n_user, root_session_id)
    WHERE kind = 'main' AND is_stub = 0
    """,
    """
    CREATE INDEX deleted_sessions ON sessions (last_used_us DESC, session_id)
    WHERE kind = 'main' AND is_stub = 0 AND is_deleted = 1
    """,
    """
    CREATE INDEX long_sessions ON sessions (last_used_us, started_us, ended_us)
    WHERE kind = 'main' AND is_stub = 0 AND ended_us - started_us > 3600000000
    """,
    "CREATE INDEX places_of_sessions ON sessions (session_id, root_session_id, project_hash)",
    "CREATE INDEX sessions_by_hash ON sessions (project_hash, session_id)",
    "CREATE INDEX summarized_sessions ON sessions (session_id, title) WHERE title_from = 'summary'",
    "CREATE INDEX empty_sessions ON sessions (session_id) WHERE is_stub = 1",
    "CREATE INDEX subagent_sessions ON sessions (session_id) WHERE kind = 'subagent'",
    "CREATE INDEX sessions_by_root ON sessions (root_session_id)",
    "CREATE INDEX sessions_by_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL",
    "CREATE INDEX sessions_by_version ON session_files (file_version_id)",
    "CREATE INDEX dropped_messages ON messages (session_id, fate) WHERE fate <> 'active'",
    "CREATE INDEX unsuccessful_calls ON tool_calls (session_id, status) WHERE status <> 'success'",
    "CREATE INDEX calls_by_tool ON tool_calls (raw_name, session_id)",
    "CREATE INDEX calls_by_server ON tool_calls (session_id, mcp_server) WHERE mcp_server IS NOT NULL",
    "CREATE INDEX calls_by_owner ON model_calls (owner_session_id) WHERE owner_session_id IS NOT NULL",
    "DROP TABLE IF EXISTS main.reports",
    "DROP TABLE IF EXISTS main.changed_quarters",
    "DROP TABLE IF EXISTS main.changed_sessions",
    "CREATE TABLE main.reports (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE main.changed_quarters (quarter_us INTEGER PRIMARY KEY)",
    "CREATE TABLE main.changed_sessions (session_id TEXT PRIMARY KEY) WITHOUT ROWID",
    "DROP TABLE IF EXISTS main.session_tools",
    f"CREATE TABLE main.session_tools ({', '.join(('session_id TEXT NOT NULL', 'label TEXT NOT NULL', *TOOL_SUMS))})",
    "CREATE INDEX tools_of_sessions ON session_tools (session_id)",
    "DROP TABLE IF EXISTS main.session_spans",
    """
    CREATE TABLE main.session_spans (
        session_id TEXT PRIMARY KEY, first_us INTEGER, last_us INTEGER, n_timeless INTEGER NOT NULL, project_hash TEXT,
        calls INTEGER NOT NULL, tok_total INTEGER NOT NULL, cost_nanousd INTEGER NOT NULL,
        unpriced_calls INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX expensive_sessions ON session_spans (cost_nanousd DESC)",
    "CREATE INDEX largest_sessions ON session_spans (tok_total DESC)",
    """
    CREATE INDEX spans_by_project ON session_spans (project_hash, calls, tok_total, cost_nanousd, unpriced_calls)
    """,
    "DROP TABLE IF EXISTS main.generation",
    "CREATE TABLE main.generation (number INTEGER NOT NULL)",
    "INSERT INTO generation VALUES (0)",
    *(_COUNT_CHANGE.format(table=table, change=change) for table in _COUNTED for change in _ANY_CHANGE),
    "DROP TABLE IF EXISTS main.session_changes",
    """
    CREATE TABLE main.session_changes (
        number INTEGER PRIMARY KEY, session_id TEXT NOT NULL UNIQUE, token BLOB NOT NULL, is_deleted INTEGER NOT NULL
    )
    """,
    *(_NOTE_CHANGE.format(change=change, **values) for change, values in _NOTED_CHANGES.items()),
    "DROP TABLE IF EXISTS main.joined",  # its name up to reader 7
    "DROP TABLE IF EXISTS main.merged_bundles",
    "CREATE TABLE main.merged_bundles (name TEXT PRIMARY KEY, bundle TEXT NOT NULL) WITHOUT ROWID",
    *(_NOTE_QUARTERS.format(name=when[-6:], when=when, quarters=quarters) for when, quarters in _CHANGES.items()),
    *(_NOTE_SESSIONS.format(table=table, change=change, ids=ids) for (table, change), ids in _CHANGED_IDS.items()),
)
"""Indexes, stored sums (`reports.usage_days`) with the triggers that invalidate them, calls of sessions, bundles."""
_NO_OWNERS, _NO_PRICES = "unowned", "unpriced"

VERSIONS = """
    FROM versions JOIN files ON files.id = versions.file_id LEFT JOIN readings ON readings.version_id = versions.id
    WHERE files.path LIKE 'tmp/%/chats/%' AND files.forgotten_us IS NULL AND coalesce(readings.is_superseded, 0) = 0
    AND (
        files.path GLOB '*.json' OR files.path GLOB '*.jsonl'
        OR files.path GLOB '*.tmp-*' OR files.path GLOB '*.unreadable-*'
    )
    AND typeof(files.path) = 'text' AND typeof(versions.archived_bytes) = 'integer'
"""
"""The versions of session files that facts are derived from, without rows that are damaged (`verify` reports those).

`locate.session_file_kind` decides about each name; the patterns only save a refresh from checking files that are never
sessions.
"""
UNREAD = f"""
    {VERSIONS} AND versions.archived_bytes IS NOT readings.n_bytes
    AND NOT EXISTS (
        SELECT 1 FROM failures WHERE version_id = versions.id AND failures.n_bytes = versions.archived_bytes
    )
"""  # noqa: S608  ours
"""Versions with bytes that are not derived yet, except those that failed at exactly these bytes before."""

_HOMES = """
    WITH RECURSIVE places(machine, home) AS (
        SELECT machine, home FROM (SELECT machine, home FROM files ORDER BY machine, home LIMIT 1)
        UNION ALL
        SELECT
            coalesce(next_home.machine, next_machine.machine), coalesce(next_home.home, next_machine.home)
        FROM places
        LEFT JOIN files AS next_home ON next_home.id = (
            SELECT id FROM files WHERE machine = places.machine AND home > places.home ORDER BY home LIMIT 1
        )
        LEFT JOIN files AS next_machine ON next_home.id IS NULL AND next_machine.id = (
            SELECT id FROM files WHERE machine > places.machine ORDER BY machine, home LIMIT 1
        )
        WHERE next_home.id IS NOT NULL OR next_machine.id IS NOT NULL
    )
    SELECT DISTINCT home FROM places
"""
"""The homes of all files, each found by a step in an index, which compares one column with a range and not two."""


def are_current(database: sqlite3.Connection) -> bool:
    """Return whether the facts were derived by this version of the reader."""
    row = database.execute("SELECT value FROM facts_meta WHERE key = 'reader'").fetchone()
    return row is not None and row[0] == READER


def are_behind(database: sqlite3.Connection) -> bool:
    """Return whether some archived bytes are not derived yet, or some calls have no owner yet."""
    rows = database.execute(f"SELECT 1 {UNREAD} LIMIT 1")
    return rows.fetchone() is not None or are_unowned(database)


def are_empty(database: sqlite3.Connection) -> bool:
    """Return whether the archive has no sessions."""
    return database.execute("SELECT 1 FROM sessions LIMIT 1").fetchone() is None


def are_unowned(database: sqlite3.Connection) -> bool:
    """Return whether calls were written for which `assign_owners` has not run yet."""
    return _is_marked(database, _NO_OWNERS)


def are_unpriced(database: sqlite3.Connection) -> bool:
    """Return whether calls were written that have no price yet."""
    return _is_marked(database, _NO_PRICES)


def note_new_calls(database: sqlite3.Connection) -> None:
    """Record that new calls need owners and prices; the mark survives a crash before they get them."""
    database.executemany("INSERT OR IGNORE INTO facts_meta VALUES (?, '')", [(_NO_OWNERS,), (_NO_PRICES,)])


def note_owned(database: sqlite3.Connection) -> None:
    """Record that all calls have owners."""
    database.execute("DELETE FROM facts_meta WHERE key = ?", (_NO_OWNERS,))


def note_priced(database: sqlite3.Connection) -> None:
    """Record that all calls have prices."""
    database.execute("DELETE FROM facts_meta WHERE key = ?", (_NO_PRICES,))


def _is_marked(database: sqlite3.Connection, key: str) -> bool:
    return database.execute("SELECT 1 FROM facts_meta WHERE key = ?", (key,)).fetchone() is not None


def reset(database: sqlite3.Connection) -> None:
    """Drop all facts and create empty tables."""
    make_tables(database)
    make_indexes(database)


def make_tables(database: sqlite3.Connection) -> None:
    """Create empty fact tables without indexes and triggers, for fast bulk inserts."""
    for name, table in TABLES.items():
        database.execute(f"DROP TABLE IF EXISTS main.{name}")
        database.execute(table.create())


def make_indexes(database: sqlite3.Connection) -> None:
    """Create the indexes, triggers and auxiliary tables of the facts."""
    for statement in _AUXILIARY:
        database.execute(statement)
    if database.execute("SELECT 1 FROM main.sqlite_schema WHERE name = 'files'").fetchone():  # a worker has none
        for change in _ANY_CHANGE:
            database.execute(f"DROP TRIGGER IF EXISTS main.count_files_{change}")
            database.execute(_COUNT_CHANGE.format(table="files", change=change))
    database.execute("INSERT OR REPLACE INTO facts_meta VALUES ('reader', ?)", (READER,))


def count_sessions(database: sqlite3.Connection) -> int:
    """Return the number of sessions, including subagents and stubs."""
    number: int = database.execute("SELECT count(*) FROM sessions").fetchone()[0]
    return number


def sessions_of_homes(
    database: sqlite3.Connection, homes: Iterable[str], *, with_imports: bool = False
) -> set[str] | None:
    """Return the IDs of the sessions that have or had a file in the given homes; None if that is every session.

    Args:
        database: the archive.
        homes: paths of `.gemini` folders.
        with_imports: whether to include sessions imported from other archives.

    """
    roots = {escape_surrogates(home) for home in homes}
    if roots.issuperset(row[0] for row in database.execute(_HOMES)):
        return None
    rows: list[Any] = database.execute(
        """
        SELECT DISTINCT
            session_files.session_id, files.home, session_files.file_version_id IN (SELECT version_id FROM imported)
        FROM session_files
        JOIN versions ON versions.id = session_files.file_version_id JOIN files ON files.id = versions.file_id
        """
    ).fetchall()
    return {session_id for session_id, home, is_import in rows if home in roots or (with_imports and is_import)}


def forget_sessions(database: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Delete all rows of some sessions."""
    keys = [(session_id,) for session_id in ids]
    for table in OF_SESSIONS:
        database.executemany(f"DELETE FROM {table} WHERE session_id = ?", keys)  # noqa: S608  a name from our table


def rows(database: sqlite3.Connection, table: str) -> Iterator[Row]:
    """Yield the rows of a table in the order of its key."""
    yield from database.execute(f"SELECT * FROM {table} ORDER BY {', '.join(TABLES[table].key)}")  # noqa: S608


def call_row(
    key: tuple[str, str],
    at: datetime | None,
    model: str | None,
    fate: str,
    tokens: Tokens,
    *,
    price: tuple[int | None, str | None] = (None, None),
    place: tuple[int, int | None] = (0, 0),
    owner: str | None = None,
) -> Row:
    """Return a row of `model_calls`.

    `key` are the IDs of session and message, `price` is a cost in nano-dollars and the ID of its price, `place` is the
    file version and the line that recorded the call. `owner` is the session that counts the call, if that is another.
    """
    return (*key, microseconds(at), model, fate, *astuple(tokens), tokens.is_consistent, *price, *place, owner)


def has_other_prices(database: sqlite3.Connection) -> bool:
    """Return whether a connection sees other costs than the stored sums have (`pricing.priced_view`)."""
    return database.execute("SELECT 1 FROM temp.sqlite_schema WHERE name = 'model_calls'").fetchone() is not None


def generation(database: sqlite3.Connection) -> int:
    """Return a number that changes with every change of what decides about deletions."""
    number: int = database.execute("SELECT number FROM generation").fetchone()[0]
    return number


def last_change(database: sqlite3.Connection) -> bytes | None:
    """Return the token of the newest change of a session, which no other archive has; None in an empty archive."""
    row = database.execute("SELECT token FROM session_changes ORDER BY number DESC LIMIT 1").fetchone()
    return row[0] if row else None


ChangeMark = tuple[int, bytes]
"""Number and token of a change of a session."""
NO_CHANGE: ChangeMark = (0, b"")


def newest_change(database: sqlite3.Connection) -> ChangeMark:
    """Return the newest change; `NO_CHANGE` in an empty archive."""
    row = database.execute("SELECT number, token FROM session_changes ORDER BY number DESC LIMIT 1").fetchone()
    return row or NO_CHANGE


def changes_after(database: sqlite3.Connection, mark: ChangeMark) -> tuple[ChangeMark, frozenset[str]]:
    """Return the newest change, and the IDs of the sessions that changed after an earlier one.

    The session of the newest change gets the same number again if it changes again, so the token decides. If the newest
    number is smaller, the archive was replaced, and every session counts as changed.
    """
    newest = newest_change(database)
    if newest == NO_CHANGE:
        return NO_CHANGE, frozenset()
    number, token = mark if mark[0] <= newest[0] else NO_CHANGE
    rows = database.execute(
        "SELECT session_id FROM session_changes WHERE number >= ? AND NOT (number = ? AND token = ?)",
        (number, number, token),
    )
    return newest, frozenset(session_id for (session_id,) in rows)


def stored_result(database: sqlite3.Connection, name: str) -> bytes | None:
    """Return a stored result; whoever stored it has to put what it depends on into it."""
    row = database.execute("SELECT body FROM reports WHERE name = ?", (name,)).fetchone()
    return row[0] if row else None


def store_result(database: sqlite3.Connection, name: str, body: bytes) -> None:
    """Store a result; in a database that takes no writes, do nothing."""
    with suppress(sqlite3.OperationalError):
        database.execute("INSERT OR REPLACE INTO reports VALUES (?, ?)", (name, body))


def clear_sums(database: sqlite3.Connection) -> None:
    """Delete the stored sums of calls, and note that none have changed since."""
    database.execute("DELETE FROM reports WHERE name GLOB ?", (f"{SUMS}*",))
    database.execute("DELETE FROM changed_quarters")
