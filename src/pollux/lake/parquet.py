"""Write the fact tables as Parquet files, one per table.

Names and types of columns are those of the archive, without the columns that only the archive uses. IDs are text, times
are integer microseconds (UTC), money is integer nano-dollars and booleans are 1 and 0, so that the SQL of a report
means the same in every engine.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from importlib import import_module
from pathlib import Path
from typing import Any

from pollux import __version__
from pollux.archive import schema as facts
from pollux.archive.schema import Column
from pollux.disk.write import make_private_folder, private_file
from pollux.errors import PolluxError
from pollux.prices import Prices

SCHEMA = "pollux.facts/1"
BATCH = 50_000
"""Rows in memory at a time, and in a row group."""
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
"""Arrow's names of the column types."""
_EXPRESSIONS = {("model_calls", "price_id"): "nullif(price_id, '')"}
"""The archive stores an empty price for a model without one; Parquet files have NULL."""
_CONDITIONS = {
    "projects": "project_hash IN (SELECT project_hash FROM sessions WHERE session_id IN chosen)",
    "problems": "file_version_id IN (SELECT file_version_id FROM session_files WHERE session_id IN chosen)",
}


class NoParquetError(PolluxError):
    """pyarrow is not installed."""

    def __init__(self) -> None:
        """Build the message."""
        super().__init__("Parquet needs pyarrow; install it with `pip install 'pollux-cli[lake]'`.")


def write(
    database: sqlite3.Connection,
    folder: Path,
    prices: Prices,
    sessions: AbstractSet[str] | None = None,
    *,
    check: Callable[[Path], None] = lambda _path: None,
) -> dict[str, int]:
    """Write all tables of an archive, or the rows of some sessions, and return the number of rows by table.

    Args:
        database: the archive's, priced by `prices`.
        folder: to write into; created if it is missing.
        prices: the price table that the files name.
        sessions: the sessions to write, or None for all.
        check: called with each path before anything is written; raises to refuse it.

    Raises:
        NoParquetError: pyarrow is not installed.
        OSError: the folder cannot be written.

    """
    pyarrow = _pyarrow()
    only_chosen = sessions is not None and not _are_all(database, sessions)
    if only_chosen and sessions is not None:
        database.execute("DROP TABLE IF EXISTS temp.chosen")
        database.execute("CREATE TEMP TABLE chosen (session_id TEXT PRIMARY KEY)")
        database.executemany("INSERT INTO temp.chosen VALUES (?)", ((session_id,) for session_id in sorted(sessions)))
    paths = {table: folder / f"{table}.parquet" for table in TABLES}
    for path in paths.values():
        check(path)
    make_private_folder(folder)
    about = {"schema": SCHEMA, "pollux": __version__, "reader": facts.READER, "prices": f"{prices.table} {prices.date}"}
    return {
        table: _write_table(pyarrow, database, path, _schema(pyarrow, table, about), only_chosen=only_chosen)
        for table, path in paths.items()
    }


def columns(table: str) -> tuple[Column, ...]:
    """Return the columns of a table that Parquet files have, in order."""
    return tuple(column for column in facts.TABLES[table].columns if not column.is_private)


def query(table: str, *, only_chosen: bool) -> str:
    """Return the SQL that reads a table in the order of its key; with `only_chosen`, of sessions in `chosen`."""
    expressions = ", ".join(_EXPRESSIONS.get((table, column.name), column.name) for column in columns(table))
    key = ", ".join(facts.TABLES[table].key)
    which = f" WHERE {_CONDITIONS.get(table, 'session_id IN chosen')}" if only_chosen else ""
    return f"SELECT {expressions} FROM {table}{which} ORDER BY {key}"  # noqa: S608  ours


def _pyarrow() -> Any:  # noqa: ANN401  pyarrow has no types
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError:
        raise NoParquetError from None


def _are_all(database: sqlite3.Connection, sessions: AbstractSet[str]) -> bool:
    return {row[0] for row in database.execute("SELECT session_id FROM sessions")} <= sessions


def _schema(pyarrow: Any, table: str, about: dict[str, str]) -> Any:  # noqa: ANN401
    fields = [
        pyarrow.field(column.name, getattr(pyarrow, TYPES[column.type])(), nullable=not column.is_required)
        for column in columns(table)
    ]
    return pyarrow.schema(fields, metadata={f"pollux.{name}": value for name, value in about.items()})


def _write_table(pyarrow: Any, database: sqlite3.Connection, path: Path, schema: Any, *, only_chosen: bool) -> int:  # noqa: ANN401
    rows = database.execute(query(path.stem, only_chosen=only_chosen))
    n_rows = 0
    with private_file(path) as file, pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := rows.fetchmany(BATCH):
            values_by_column = zip(*batch, strict=True)
            arrays = [pyarrow.array(values, field.type) for values, field in zip(values_by_column, schema, strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), row_group_size=BATCH)
            n_rows += len(batch)
    return n_rows
