"""Reports on usage have equal rows on each SQL engine, to the last digit."""

from __future__ import annotations

import importlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders
from tests.corpus.trees import SELECTED, all_trees
from tests.refreshing import refresh

from pollux import prices
from pollux.archive import schema as facts
from pollux.archive import store
from pollux.archive.pricing import price_calls
from pollux.cli.demo import HOME as DEMO
from pollux.reports import usage, usage_sql
from pollux.reports.usage_sql import CallSum, QuarterSum, ToolSum
from pollux.sessions.homes import Home, homes

Run: TypeAlias = Callable[[str, tuple[int, ...]], list[tuple[Any, ...]]]
"""Runs a report on an engine that has the tables."""
Engine: TypeAlias = Callable[[sqlite3.Connection], Run]

GENERATED = Path(__file__).parents[1] / "data" / "usage"
TABLES = ("sessions", "projects", "messages", "model_calls", "tool_calls")
REPORTS = {"calls": usage_sql.CALLS, "times": usage_sql.TIMES, "tools": usage_sql.TOOLS}
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
WINDOWS = {
    "ever": (None, None),
    "since": (NOON, None),
    "until": (None, NOON),
    "between": (NOON - timedelta(days=40), NOON + timedelta(seconds=1)),
}


def columns(database: sqlite3.Connection, table: str) -> dict[str, str]:
    """Return the columns of a table with their types."""
    return {name: kind for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})")}


def rows(database: sqlite3.Connection, table: str) -> list[tuple[Any, ...]]:
    return database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608  the name of a fact table


def on_duckdb(source: sqlite3.Connection) -> Run:
    database = duckdb.connect()
    for table in TABLES:
        named = ", ".join(
            f"{name} {kind.replace('INTEGER', 'BIGINT')}" for name, kind in columns(source, table).items()
        )
        database.execute(f"CREATE TABLE {table} ({named})")
        marks = ", ".join("?" * len(columns(source, table)))
        if values := rows(source, table):
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608  names and marks
    return lambda sql, window: database.execute(sql, window).fetchall()


def on_spark(source: sqlite3.Connection) -> Run:
    spark = spark_session()
    types = {"INTEGER": "BIGINT", "TEXT": "STRING", "BLOB": "BINARY"}
    for table in TABLES:
        schema = ", ".join(f"{name} {types[kind]}" for name, kind in columns(source, table).items())
        spark.createDataFrame(rows(source, table), schema).createOrReplaceTempView(table)
    return lambda sql, window: [tuple(row) for row in spark.sql(sql, args=list(window)).collect()]


@cache
def spark_session() -> Any:  # noqa: ANN401  Spark may not be installed
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    start = importlib.import_module("pyspark.sql").SparkSession.builder.master("local[1]")
    for key, value in (("ui.enabled", "false"), ("sql.shuffle.partitions", "1")):
        start = start.config(f"spark.{key}", value)
    return start.getOrCreate()


SPARK = pytest.mark.skipif("POLLUX_SPARK" not in os.environ, reason="Spark is large: `make test-spark` fetches it")
each_engine = pytest.mark.parametrize("engine", [on_duckdb, pytest.param(on_spark, marks=SPARK)])


def invented(root: Path) -> Home:
    """Write a home with an unknown model, no model, no time, wrong totals, imports and subagents."""
    chats = builders.chats(root)
    calls = [
        builders.call("c1", "run_shell_command", status="error"),
        builders.call("c2", "run_shell_command", status="cancelled"),
        builders.call("c3", "my_tool", status=None),
    ]
    answer = builders.gemini("g1", tokens=builders.tokens(10), toolCalls=calls)
    builders.put(
        chats / f"{builders.NAME}.jsonl",
        builders.log(
            builders.header(),
            builders.user(content="it's “quoted”; naïve 検索\t"),
            answer,
            builders.gemini("g2", second=3, tokens=builders.tokens(20) | {"total": 7}, model="gemini-9.9-ultra"),
            builders.gemini("g3", tokens=builders.tokens(30), model=None, toolCalls=[builders.call("c4")])
            | {"timestamp": "never"},
            builders.gemini("g4", tokens=builders.tokens(1 << 40)) | {"timestamp": "1969-12-31T23:50:00.001Z"},
            builders.user("u2", second=6),
            builders.gemini(
                "g5", second=7, tokens=builders.tokens(40), toolCalls=[builders.call("c5", status="error")]
            ),
            builders.rewind("u2"),
            builders.gemini("g6", second=8, toolCalls=[builders.call("c6")]),
        ),
    )
    imported = builders.log(
        builders.header(builders.OTHER, startTime=builders.at(60)), builders.user("import-1", "hello"), answer
    )
    builders.put(chats / f"session-2026-11-15T19-31-{builders.OTHER[:8]}.jsonl", imported)
    for id_, parent in (("kid", builders.SESSION), ("grandkid", "kid"), ("deepest", "grandkid")):
        log = builders.log(builders.header(id_, kind="subagent"), builders.gemini(id_, tokens=builders.tokens(50)))
        builders.put(chats / parent / f"{id_}.jsonl", log)
    return builders.home(root)


def real() -> tuple[Home, ...]:
    folders = [tree.folder / "gemini" for tree in all_trees(SELECTED)]
    return homes([folder for folder in folders if folder.is_dir()], {}, SELECTED / "nowhere")


@pytest.fixture(scope="module", params=["demo", "generated", "invented", "real"])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    folder = tmp_path_factory.mktemp(request.param)
    match request.param:
        case "demo" | "generated":
            searched: tuple[Home, ...] = (builders.home(DEMO if request.param == "demo" else GENERATED),)
        case "invented":
            searched = (invented(folder),)
        case _:
            searched = real()
    with store.open_archive(folder / "archive.db") as opened:
        refresh(opened, searched)
        price_calls(opened.database, prices.load())
        yield opened.database


def on_sqlite(source: sqlite3.Connection) -> Run:
    return lambda sql, window: source.execute(sql, window).fetchall()


def ordered(unordered: list[tuple[Any, ...]]) -> list[str]:
    """Return rows sorted as texts, because reports have no order, and 1, 1.0 and true must differ."""
    return sorted(map(repr, unordered))


@each_engine
def test_reports_are_equal_to_the_last_digit(archive: sqlite3.Connection, engine: Engine) -> None:
    run, expected = engine(archive), on_sqlite(archive)
    n_rows = 0
    for sql in REPORTS.values():
        for window in WINDOWS.values():
            result = run(sql, usage_sql._window(*window))
            assert ordered(result) == ordered(expected(sql, usage_sql._window(*window)))
            n_rows += len(result)
    assert n_rows


@each_engine
def test_each_report_is_equal_after_folding(archive: sqlite3.Connection, engine: Engine) -> None:
    engines, ever = (engine(archive), on_sqlite(archive)), usage_sql._window(None, None)
    for by in usage.REPORTS:
        result, expected = (_folded(by, run, ever) for run in engines)
        assert result == expected
        assert result


def _folded(by: str, run: Run, window: tuple[int, int, int]) -> tuple[usage.UsageRow, ...]:
    if by == "tool":
        return usage.tool_rows(map(ToolSum._make, run(usage_sql.TOOLS, window)))
    if by in usage.BY_TIME:
        return usage.time_rows(by, map(QuarterSum._make, run(usage_sql.TIMES, window)), zone=UTC)
    roots = usage_sql.session_roots((row[0], row[1], row[2]) for row in run(usage_sql.SESSIONS, ()))
    return usage.call_rows(by, map(CallSum._make, run(usage_sql.CALLS, window)), zone=UTC, roots=roots)


_ids = st.sampled_from(["a", "b", "A", "ä", ""])
_words = st.none() | st.sampled_from(["", "gemini", "Gemini", "ß", "it's; --"])
_times = st.none() | st.integers(-(10**16), 10**17) | st.integers(-2, 2).map(lambda n: n * 900_000_000)
_counts = st.integers(0, 10**12)
_model_calls = st.lists(
    st.tuples(
        *(_ids, _ids, _times, _words, st.sampled_from(["active", "rewound"])),
        *(_counts,) * 6,
        *(st.integers(0, 1), st.none() | _counts, st.none() | _ids),
    ),
    max_size=8,
    unique_by=lambda row: row[:2],
)
_tool_calls = st.lists(
    st.tuples(
        *(_ids, _ids, st.integers(0, 3), _ids, st.sampled_from(["success", "error", "cancelled", "pending"])),
        *(_times, st.sampled_from(["active", "rewound"])),
    ),
    max_size=8,
    unique_by=lambda row: row[:3],
)
_messages = st.lists(st.tuples(_ids, _ids, st.integers(0, 1)), max_size=8, unique_by=lambda row: row[:2])
_sessions = st.lists(st.tuples(_ids, st.none() | _ids, st.none() | _ids, _ids), unique_by=lambda row: row[0])
_projects = st.lists(st.tuples(_ids, _words, _words, _words, st.integers(0, 1)), unique_by=lambda row: row[0])
_MODEL_CALL = (
    "session_id, message_id, at_us, model, fate, tok_input, tok_cached, tok_output, tok_thoughts, tok_tool, tok_total, "
    "tok_consistent, cost_nanousd, owner_session_id"
)
_TOOL_CALL = "session_id, message_id, idx, label, status, at_us, fate"


@given(_messages, _model_calls, _tool_calls, _sessions, _projects, _times, _times)
def test_any_facts_give_equal_rows(
    messages: list[Any],
    calls: list[Any],
    tools: list[Any],
    sessions: list[Any],
    projects: list[Any],
    since: int | None,
    until: int | None,
) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        for table in TABLES:
            database.execute(facts.TABLES[table].create().replace("NOT NULL", ""))
        _insert(database, "messages", "session_id, message_id, is_own", messages)
        _insert(database, "model_calls", _MODEL_CALL, calls)
        _insert(database, "tool_calls", _TOOL_CALL, tools)
        _insert(database, "sessions", "session_id, parent_session_id, project_hash, title", sessions)
        _insert(database, "projects", "project_hash, path, slug, source, proven", projects)
        window = (-(1 << 62) if since is None else since, (1 << 62) if until is None else until, int(since is None))
        run, expected = on_duckdb(database), on_sqlite(database)
        for sql in REPORTS.values():
            assert ordered(run(sql, window)) == ordered(expected(sql, window))


def _insert(database: sqlite3.Connection, table: str, names: str, inserted: list[tuple[Any, ...]]) -> None:
    marks = ", ".join("?" * len(names.split(",")))
    database.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", inserted)  # noqa: S608  names and marks


def test_sql_contains_no_syntax_that_differs_between_engines() -> None:
    for sql in REPORTS.values():
        assert "/" not in sql  # an integer in SQLite, a fraction in others
        assert '"' not in sql  # a name in SQLite and DuckDB, a string in Spark
        assert "||" not in sql
