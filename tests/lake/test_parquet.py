"""The facts as Parquet: what DuckDB reads is what the archive holds, name for name and digit for digit."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.refreshing import refresh

from pollux import prices
from pollux.archive import schema as facts
from pollux.archive import store
from pollux.archive.pricing import price_calls
from pollux.cli.demo import HOME as DEMO
from pollux.lake import parquet
from pollux.lake.parquet import TABLES, columns
from pollux.reports import usage_sql
from pollux.sessions.homes import Home, homes

duckdb = pytest.importorskip("duckdb", reason="no DuckDB: `pip install 'pollux-cli[lake]'`")
pyarrow = pytest.importorskip("pyarrow.parquet", reason="no pyarrow: `pip install 'pollux-cli[lake]'`")

# The columns of the facts, as the design has them; those behind them are also there.
DESIGN = {
    "sessions": "session_id kind parent_session_id parent_call_id project_hash title title_from started_us ended_us "
    "updated_us first_prompt last_prompt n_user n_gemini n_tool n_error n_rewound n_compressed models cli_generation "
    "extra_json root_session_id last_used_us is_stub is_deleted",
    "session_files": "session_id file_version_id role format problems",
    "projects": "project_hash path slug source proven git_remote",
    "messages": "session_id message_id seq kind origin fate is_own at_us model n_chars file_version_id line",
    "model_calls": "session_id message_id at_us model fate tok_input tok_cached tok_output tok_thoughts tok_tool "
    "tok_total tok_consistent cost_nanousd price_id file_version_id line owner_session_id",
    "tool_calls": "session_id message_id idx call_id raw_name canonical category kind label mcp_server status "
    "exit_code at_us args_json result_bytes agent_session_id fate",
    "shell_commands": "session_id message_id idx n command program",
    "file_touches": "session_id message_id idx path op lines_added lines_removed evidence",
    "problems": "file_version_id n code line message",
}
NUMBERS = ("_us", "_nanousd", "_bytes", "_code", "_id_", "n_", "tok_", "lines_")
WHOLE = {"idx", "n", "line", "seq", "proven", "problems", "file_version_id", "is_own", "is_stub", "is_deleted"}


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(_archive(tmp_path, homes([DEMO], {}, tmp_path))) as database:
        yield database


def _archive(folder: Path, places: tuple[Home, ...]) -> sqlite3.Connection:
    opened = store.open_archive(folder / "archive.db")
    refresh(opened, places)
    price_calls(opened.database, prices.load())
    assert opened.lock is not None
    opened.lock.release()
    return opened.database


def rows(folder: Path, table: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = duckdb.read_parquet(str(folder / f"{table}.parquet")).fetchall()
    return found


def test_tables_have_the_names_and_types_of_the_design(archive: sqlite3.Connection, tmp_path: Path) -> None:
    parquet.write(archive, tmp_path / "lake", prices.load())
    assert tuple(DESIGN) == TABLES
    for table, names in DESIGN.items():
        schema = pyarrow.read_schema(tmp_path / "lake" / f"{table}.parquet")
        assert schema.names == names.split()
        for field in schema:
            is_number = field.name in WHOLE or field.name.endswith(NUMBERS[:4]) or field.name.startswith(NUMBERS[5:])
            assert str(field.type) == ("int64" if is_number else "string"), f"{table}.{field.name}"
        assert schema.metadata[b"pollux.schema"] == b"pollux.facts/1"


def test_rows_are_those_of_the_archive(archive: sqlite3.Connection, tmp_path: Path) -> None:
    counts = parquet.write(archive, tmp_path / "lake", prices.load())
    for table in TABLES:
        names = [one.name for one in columns(table)]
        of_archive = [
            tuple(None if name == "price_id" and value == "" else value for name, value in zip(names, row, strict=True))
            for row in archive.execute(f"SELECT {', '.join(names)} FROM {table}")  # noqa: S608  our own names
        ]
        assert sorted(rows(tmp_path / "lake", table), key=repr) == sorted(of_archive, key=repr)
        assert counts[table] == len(of_archive) > 0


def test_reports_say_the_same(archive: sqlite3.Connection, tmp_path: Path) -> None:
    parquet.write(archive, tmp_path / "lake", prices.load())
    lake = duckdb.connect()
    for table in TABLES:
        lake.read_parquet(str(tmp_path / "lake" / f"{table}.parquet")).create_view(table)
    ever = (-(1 << 62), 1 << 62, 1)
    for report in (usage_sql.CALLS, usage_sql.TOOLS):
        here, there = archive.execute(report, ever).fetchall(), lake.execute(report, ever).fetchall()
        assert sorted(there, key=repr) == sorted(here, key=repr)
        assert here


def test_some_sessions_bring_what_belongs_to_them(archive: sqlite3.Connection, tmp_path: Path) -> None:
    (chosen,) = archive.execute("SELECT session_id FROM sessions WHERE session_id LIKE '408a8bb2%'").fetchone()
    counts = parquet.write(archive, tmp_path / "lake", prices.load(), {chosen})
    assert (counts["sessions"], counts["projects"], counts["problems"]) == (1, 1, 1)
    for table in ("messages", "model_calls", "tool_calls", "session_files"):
        assert {row[0] for row in rows(tmp_path / "lake", table)} == {chosen}
    again = parquet.write(archive, tmp_path / "lake", prices.load(), {"no such session"})
    assert not any(again.values())


def test_same_facts_give_the_same_bytes(archive: sqlite3.Connection, tmp_path: Path) -> None:
    first, second = (_digests(archive, tmp_path / name) for name in "ab")
    assert first == second


def _digests(archive: sqlite3.Connection, folder: Path) -> list[str]:
    parquet.write(archive, folder, prices.load())
    return [hashlib.sha256((folder / f"{table}.parquet").read_bytes()).hexdigest() for table in TABLES]


def test_batches_make_one_table(archive: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH", 7)
    counts = parquet.write(archive, tmp_path / "lake", prices.load())
    assert len(rows(tmp_path / "lake", "messages")) == counts["messages"] > 7


def test_half_a_table_is_never_left(
    archive: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", fail)
    with pytest.raises(OSError, match="No space"):
        parquet.write(archive, tmp_path / "lake", prices.load())
    assert not [*(tmp_path / "lake").iterdir()]


def test_private_columns_are_left_out() -> None:
    public = {f"{table}.{column.name}" for table in TABLES for column in columns(table)}
    private = {"sessions.bundle", "sessions.extra", "messages.text_line", "messages.calls_line"}
    assert not public & private
    private_tables = {"readings", "failures", "value_problems", "call_digests", "session_digests", "session_usage"}
    assert set(facts.TABLES) - set(TABLES) == private_tables
