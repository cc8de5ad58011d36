"""The facts as Parquet files, one a table, batch by batch."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from importlib import import_module
from pathlib import Path
from typing import Any

from pollux import __version__
from pollux.archive import schema as facts
from pollux.disk.private_files import make_private_folder, private_file
from pollux.errors import PolluxError
from pollux.lake.tables import TABLES, TYPES, columns, query
from pollux.prices import Prices

SCHEMA = "pollux.facts/1"
BATCH = 50_000
"""Rows in memory at a time, and in a row group."""


class NoParquetError(PolluxError):
    """The library that writes Parquet is not installed."""

    def __init__(self) -> None:
        """Name the extra."""
        super().__init__("Parquet needs the library pyarrow; `pip install 'pollux-cli[lake]'` brings it.")


def write(
    database: sqlite3.Connection,
    folder: Path,
    prices: Prices,
    sessions: AbstractSet[str] | None = None,
    *,
    check: Callable[[Path], None] = lambda _path: None,
) -> dict[str, int]:
    """Write all tables of an archive, or the part of some sessions, and return how many rows each has.

    Args:
        database: of the archive; its calls have their costs by `prices`.
        folder: to write into; it is made if it is missing.
        prices: the table that is named in the files.
        sessions: whose rows to write; all, if not given.
        check: is called with each file before it is written, and raises to refuse it.

    Raises:
        NoParquetError: pyarrow is not installed.
        OSError: the folder cannot be written.

    """
    pyarrow = _pyarrow()
    only_chosen = sessions is not None and not _are_all(database, sessions)
    if only_chosen and sessions is not None:
        database.execute("DROP TABLE IF EXISTS temp.chosen")
        database.execute("CREATE TEMP TABLE chosen (session_id TEXT PRIMARY KEY)")
        database.executemany("INSERT INTO temp.chosen VALUES (?)", ((one,) for one in sorted(sessions)))
    paths = {table: folder / f"{table}.parquet" for table in TABLES}
    for path in paths.values():
        check(path)
    make_private_folder(folder)
    about = {"schema": SCHEMA, "pollux": __version__, "reader": facts.READER, "prices": f"{prices.table} {prices.date}"}
    return {
        table: _write_table(pyarrow, database, path, _schema(pyarrow, table, about), only_chosen=only_chosen)
        for table, path in paths.items()
    }


def _pyarrow() -> Any:  # noqa: ANN401  it has no types
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
    """Write one table, as a whole or not at all, and return how many rows it has."""
    rows = database.execute(query(path.stem, only_chosen=only_chosen))
    n_rows = 0
    with private_file(path) as file, pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while found := rows.fetchmany(BATCH):
            arrays = [
                pyarrow.array(values, field.type)
                for values, field in zip(zip(*found, strict=True), schema, strict=True)
            ]
            writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema), row_group_size=BATCH)
            n_rows += len(found)
    return n_rows
