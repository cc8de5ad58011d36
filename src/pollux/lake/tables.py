"""The facts as tables of a lake: names and types as in the archive, without what only the archive itself needs.

Ids are text, times whole microseconds (UTC), money whole nano-dollars, and yes and no are 1 and 0: so the text of a
report means the same everywhere.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from typing import NamedTuple

from pollux.archive import schema

TABLES = (
    "sessions",
    "session_files",
    "projects",
    "messages",
    "model_calls",
    "tool_calls",
    "shell_commands",
    "file_touches",
    "problems",
)
_PRIVATE = {"sessions": {"bundle", "body"}, "messages": {"words_line", "calls_line"}}
_TYPES = {"INTEGER": "int64", "TEXT": "string"}
_READ = {("model_calls", "price_id"): "nullif(price_id, '')"}
"""An empty price says that nobody has one; a lake has nothing there."""
_WHICH = {
    "projects": "project_hash IN (SELECT project_hash FROM sessions WHERE session_id IN chosen)",
    "problems": "file_version_id IN (SELECT file_version_id FROM session_files WHERE session_id IN chosen)",
}


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: str
    """`int64` or `string`, as Arrow calls them."""
    is_required: bool
    is_key: bool


@cache
def columns(table: str) -> tuple[Column, ...]:
    """Return the columns of a table, in their order."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE {table} ({schema.TABLES[table]})")
        found = database.execute(f"PRAGMA table_info({table})").fetchall()
    return tuple(
        Column(name, _TYPES[kind], bool(required or key), bool(key))
        for _, name, kind, required, _, key in found
        if name not in _PRIVATE.get(table, ())
    )


def query(table: str, *, only_chosen: bool) -> str:
    """Return what reads a table in the order of its key; of `chosen` sessions only, if there are such."""
    read = ", ".join(_READ.get((table, column.name), column.name) for column in columns(table))
    key = ", ".join(column.name for column in columns(table) if column.is_key)
    which = f" WHERE {_WHICH.get(table, 'session_id IN chosen')}" if only_chosen else ""
    return f"SELECT {read} FROM {table}{which} ORDER BY {key}"  # noqa: S608  names from our tables
