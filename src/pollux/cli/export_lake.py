"""The facts of the archive as files of a lake: no session on its own, but all that were chosen in one set of tables."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output

if TYPE_CHECKING:
    from pollux.cli.scope import Scope


def check(scope: Scope, target: str) -> None:
    """Refuse what cannot work, before anything is read."""
    if scope.archive_path is None:
        raise click.UsageError("Parquet is made of the archive's tables: leave --no-archive out.")
    if target == "-" or Path(target).is_file():
        raise click.UsageError("Parquet is a folder of files, one a table: say where with `-o facts/`.")


def write(scope: Scope, ids: set[str], target: str) -> None:
    """Write the tables of some sessions into a folder."""
    from pollux import prices
    from pollux.cli.output_guard import check_output
    from pollux.lake import parquet

    if scope.archive is None:
        raise click.UsageError("Parquet is made of the archive's tables: name sessions by their ids, or take --all.")
    try:
        check_output(Path(target))
        counts = parquet.write(scope.archive.database, Path(target), prices.load(), ids, check=check_output)
    except OSError as error:
        raise click.ClickException(
            f"{target} cannot be written: {error.strerror or error}; give another place with `-o`."
        ) from None
    told = ", ".join(_counted(table, count) for table, count in counts.items() if count)
    output.words(f"{told or 'Empty tables'} written to {target}")


def _counted(table: str, count: int) -> str:
    """Say how many rows a table has: 1 session file, 2 session files."""
    nouns = table.replace("_", " ")
    return f"1 {nouns.removesuffix('es' if nouns.endswith('ches') else 's')}" if count == 1 else f"{count:,} {nouns}"
