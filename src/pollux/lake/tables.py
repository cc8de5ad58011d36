"""The facts as tables of a lake: names and types as in the archive, without what only the archive itself needs.

Ids are text, times whole microseconds (UTC), money whole nano-dollars, and yes and no are 1 and 0: so the text of a
report means the same everywhere.
"""

from __future__ import annotations

from pollux.archive import schema
from pollux.archive.schema import Column

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
TYPES = {"INTEGER": "int64", "TEXT": "string"}
"""The types of columns, as Arrow calls them."""
_READ = {("model_calls", "price_id"): "nullif(price_id, '')"}
"""An empty price says that nobody has one; a lake has nothing there."""
_WHICH = {
    "projects": "project_hash IN (SELECT project_hash FROM sessions WHERE session_id IN chosen)",
    "problems": "file_version_id IN (SELECT file_version_id FROM session_files WHERE session_id IN chosen)",
}


def columns(table: str) -> tuple[Column, ...]:
    """Return the public columns of a table, in their order."""
    return tuple(column for column in schema.TABLES[table].columns if not column.is_private)


def query(table: str, *, only_chosen: bool) -> str:
    """Return what reads a table in the order of its key; of `chosen` sessions only, if there are such."""
    read = ", ".join(_READ.get((table, column.name), column.name) for column in columns(table))
    key = ", ".join(schema.TABLES[table].key)
    which = f" WHERE {_WHICH.get(table, 'session_id IN chosen')}" if only_chosen else ""
    return f"SELECT {read} FROM {table}{which} ORDER BY {key}"  # noqa: S608  names from our tables
