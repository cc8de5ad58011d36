"""Statistics equal counts by hand and over all messages, with and without an archive, and on another engine."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pytest
from tests import builders
from tests.builders import OTHER, SESSION, call, gemini, header, log, notice, preamble, put, rewind, tokens, user
from tests.corpus.trees import SELECTED, all_trees
from tests.refreshing import refresh

import pollux
from pollux.archive import store
from pollux.archive.load_sessions import session_projects
from pollux.archive.memory import in_memory
from pollux.cli.demo import HOME as DEMO
from pollux.errors import UnreadableFileError
from pollux.model import Kind, Origin, Problem, Session
from pollux.reports import stats_sql
from pollux.reports.stats import FILES, SECTIONS, TOOL, USUAL, WORK, Statistics, StatsTable, statistics
from pollux.reports.stats_sql import read
from pollux.reports.usage import tool_rows
from pollux.reports.usage_sql import tool_sums
from pollux.sessions.grouping import OpenSession
from pollux.sessions.homes import Home, homes
from pollux.sessions.reader import History, history, opened
from pollux.views.contracts import to_json

EVER = (-(1 << 62), 1 << 62, 1)
KID = "7ffa9413-0e52-481c-aa76-916820b43a25"


def home(root: Path) -> Home:
    """Write a home whose counts are all known."""
    chats = builders.chats(root)
    calls = [
        call("c1", "run_shell_command", args={"command": "make test | tail"}, timestamp=builders.at(4)),
        call("c2", "run_shell_command", args={"command": "false"}, status="error"),
        call("c3", "my_tool", args={}, status="cancelled"),
        call("c4", "my_tool", args={}, status=None, result=None),
        call("c5", args={"file_path": "src/a.py"}),
        call("c6", args={"file_path": f"{builders.ROOT}/src/a.py"}),
        call("c7", args={"file_path": "Makefile"}),
        call("c8", args={"file_path": "missing.py"}, status="error"),
    ]
    put(
        chats / f"{builders.NAME}.jsonl",
        log(
            header(),
            preamble(),
            user("u1", "one", second=1),
            gemini("g1", second=3, tokens=tokens(10), toolCalls=calls),
            notice("e1", "[API Error]", kind="error", second=5),
            user("u2", "two", second=60),
            gemini("g2", second=90, tokens=tokens(20), model="gemini-2.5-flash"),
            user("u3", "three", second=100),
            gemini("g3", second=101, tokens=tokens(30)),
            rewind("u3"),
            user("u4", "four") | {"timestamp": "2026-11-16T23:30:00.000Z"},
        ),
    )
    put(
        chats / SESSION / f"{KID}.jsonl",
        log(
            header(KID, kind="subagent"),
            user("k1", "look", second=20),
            gemini("k2", second=50, tokens=tokens(40), toolCalls=[call("c9", "glob", args={"pattern": "*"})]),
        ),
    )
    return builders.home(root)


def archived(folder: Path, *searched: Home) -> sqlite3.Connection:
    archive = store.open_archive(folder / "archive.db")
    refresh(archive, searched)
    if archive.lock:
        archive.lock.release()
    return archive.database


def without_archive(read_history: History) -> sqlite3.Connection:
    problems: list[Problem] = []
    database = in_memory(read_history.sessions, problems, opened)
    assert not problems
    return database


def counted(database: sqlite3.Connection, by: str | None = None, **wanted: Any) -> Statistics:  # noqa: ANN401
    zone = wanted.pop("zone", UTC)
    needs = SECTIONS[by].needs if by else stats_sql.EVERYTHING
    parts = read(database, needs=needs, **wanted)
    return statistics(parts, session_projects(database, {}), by, zone=zone)


def section(database: sqlite3.Connection, by: str, **wanted: Any) -> dict[str | None, dict[str, int]]:  # noqa: ANN401
    (counted_section,) = counted(database, by, **wanted).sections
    return {row.key: dict(zip(counted_section.columns, row.numbers, strict=True)) for row in counted_section.rows}


@pytest.fixture(params=["archive", "memory"])
def facts(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Return the facts of the home with known counts, from an archive and from memory."""
    place = home(tmp_path / "home")
    with closing(
        archived(tmp_path, place) if request.param == "archive" else without_archive(history([place]))
    ) as database:
        yield database


def test_totals_equal_the_counts_by_hand(facts: sqlite3.Connection) -> None:
    summary = counted(facts).summary
    assert summary is not None
    assert summary.totals == {
        "sessions": 1,
        "subagents": 1,
        "projects": 1,
        "prompts": 4,
        "answers": 4,
        "errors": 1,
        "tool_calls": 9,
        "success": 5,
        "error": 2,
        "cancelled": 1,
        "no_result": 1,
        "nonzero_exit": 0,
        "model_calls": 4,
        "tokens": 15 + 25 + 35 + 45,
        "files": 2,
        "lines_added": 0,
        "lines_removed": 0,
        "active_seconds": 100,
        "active_days": 2,
    }
    assert summary.hours == {(7, 19): 3, (1, 23): 1}
    assert (summary.first, summary.last) == (
        datetime(2026, 11, 15, 19, 30, tzinfo=UTC),
        datetime(2026, 11, 16, 23, 30, tzinfo=UTC),
    )


def test_sections_equal_the_counts_by_hand(facts: sqlite3.Connection) -> None:
    tools = section(facts, "tool")
    assert list(tools) == ["Read", "Bash", "my_tool", "Glob"]
    assert tools["Bash"] == dict(zip(TOOL, (2, 1, 1, 0, 0, 0, 1), strict=True))
    assert tools["my_tool"] == dict(zip(TOOL, (2, 0, 0, 1, 1, 0, 1), strict=True))
    models = section(facts, "model")
    assert {name: (row["answers"], row["tool_calls"], row["tokens"]) for name, row in models.items()} == {
        "gemini-2.5-pro": (3, 9, 95),
        "gemini-2.5-flash": (1, 0, 25),
    }
    assert section(facts, "project")[builders.ROOT]["prompts"] == 4
    (session,) = section(facts, "session").values()
    assert session == dict(zip(WORK, (1, 1, 4, 4, 9, 2, 1, 4, 120, 100), strict=True))
    assert {day: row["prompts"] for day, row in section(facts, "day").items()} == {"2026-11-15": 3, "2026-11-16": 1}
    assert list(section(facts, "week")) == ["2026-W46", "2026-W47"]
    assert list(section(facts, "month")) == ["2026-11"]
    files = section(facts, "filetype")
    assert files[".py"] == dict(zip(FILES, (1, 2, 0, 0, 0, 0, 0), strict=True))
    assert files["no suffix"]["files"] == 1
    programs = section(facts, "program")
    assert {name: row["runs"] for name, row in programs.items()} == {"make": 1, "tail": 1, "false": 1}


def test_days_are_those_of_the_time_zone(facts: sqlite3.Connection) -> None:
    assert list(section(facts, "day", zone=ZoneInfo("Asia/Tokyo"))) == ["2026-11-16", "2026-11-17"]
    summary = counted(facts, zone=ZoneInfo("Asia/Tokyo")).summary
    assert summary is not None
    assert summary.hours == {(1, 4): 3, (2, 8): 1}


def test_window_limits_messages_by_time(facts: sqlite3.Connection) -> None:
    later = datetime(2026, 11, 16, tzinfo=UTC)
    after, before = counted(facts, since=later).summary, counted(facts, until=later).summary
    assert after is not None
    assert before is not None
    assert (after.totals["prompts"], after.totals["answers"], after.totals["subagents"]) == (1, 0, 0)
    assert (before.totals["prompts"], before.totals["tool_calls"]) == (3, 9)
    assert section(facts, "filetype", since=later) == section(facts, "program", since=later) == {}


def test_only_selected_sessions_are_counted(facts: sqlite3.Connection) -> None:
    assert section(facts, "tool", only={KID}).keys() == {"Glob"}
    assert section(facts, "tool", only=()) == {}
    assert section(facts, "tool", model="FLASH").keys() == {"Read", "Bash", "my_tool"}
    assert section(facts, "tool", model="FLASH", only={KID}) == {}
    assert counted(facts, model="ultra").is_empty
    assert counted(facts, "tool", model="ultra").is_empty
    assert not counted(facts).is_empty


def test_import_is_counted_in_its_original_session(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path / "home")
    records = (user("u1", "one"), gemini("g1", tokens=tokens(10), toolCalls=[call(args={"file_path": "a.py"})]))
    put(chats / f"{builders.NAME}.jsonl", log(header(), *records))
    imported = (notice("import-1794418000167", "imported", second=60), *records, user("u2", "two", second=61))
    put(chats / "session-1794418000167-b3e2640d.jsonl", log(header(OTHER, startTime=builders.at(60)), *imported))
    place = builders.home(tmp_path / "home")
    for database in (archived(tmp_path, place), without_archive(history([place]))):
        with closing(database):
            rows = section(database, "session")
            assert {key: (row["prompts"], row["answers"], row["tool_calls"]) for key, row in rows.items()} == {
                SESSION: (1, 1, 1),
                OTHER: (1, 0, 0),
            }
            assert section(database, "filetype")[".py"]["reads"] == 1


def test_sessions_with_circular_parents_are_counted_separately(tmp_path: Path) -> None:
    for own, parent, n in ((builders.SESSION, builders.OTHER, 10), (builders.OTHER, builders.SESSION, 20)):
        head = builders.header(own, kind="subagent")
        answer = builders.gemini(f"g{n}", tokens=builders.tokens(n))
        file = builders.chats(tmp_path) / parent / f"{own}.jsonl"
        builders.put(file, builders.log(head, builders.user(), answer))
    with closing(archived(tmp_path / "archive", builders.home(tmp_path))) as database:
        rows = section(database, "session")
    assert {key: row["tokens"] for key, row in rows.items()} == {builders.SESSION: 15, builders.OTHER: 25}


def test_messages_without_a_time_are_outside_any_window(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path / "home")
    lost = user("u1", "when?") | {"timestamp": "never"}
    put(chats / f"{builders.NAME}.jsonl", log(header(), lost, gemini("g1")))
    with closing(archived(tmp_path, builders.home(tmp_path / "home"))) as database:
        assert section(database, "day")[None]["prompts"] == 1
        ever = counted(database).summary
        since = counted(database, since=datetime(2020, 1, 1, tzinfo=UTC)).summary
        assert ever is not None
        assert since is not None
        assert (ever.totals["prompts"], since.totals["prompts"]) == (1, 0)
        assert (ever.totals["active_days"], ever.hours) == (1, {})


def test_file_types_are_read_from_paths_of_any_system(tmp_path: Path) -> None:
    chats = builders.chats(tmp_path / "home")
    names = ("C:\\src\\Money.CS", "src/.gitignore", "a.tar.gz", "weird.this is no suffix", "dir.d/file", "b.py~")
    calls = [call(f"c{number}", args={"file_path": name}) for number, name in enumerate(names)]
    put(chats / f"{builders.NAME}.jsonl", log(header(), user(), gemini(toolCalls=calls)))
    with closing(archived(tmp_path, builders.home(tmp_path / "home"))) as database:
        counts = {key: row["files"] for key, row in section(database, "filetype").items()}
    assert counts == {".cs": 1, ".gz": 1, "no suffix": 4}


def test_missing_file_is_reported(tmp_path: Path) -> None:
    read_history = history([home(tmp_path)])
    problems: list[Problem] = []

    def gone(session: Session) -> OpenSession:
        if session.id == KID:
            raise UnreadableFileError("kid.jsonl", "No such file")
        return opened(session)

    with closing(in_memory(read_history.sessions, problems, gone)) as database:
        assert section(database, "tool").keys() == {"Read", "Bash", "my_tool"}
    assert [(problem.code, problem.message) for problem in problems] == [
        ("unreadable-file", "Cannot read kid.jsonl: No such file.")
    ]


# The demo and the corpus


@cache
def demo() -> History:
    return history(pollux.homes(DEMO))


def test_statistics_of_the_demo_equal_counts_over_its_messages() -> None:
    """Each message is counted once by its ID, from complete messages and without SQL."""
    seen: set[str] = set()
    totals: Counter[str] = Counter()
    by_tool: Counter[str] = Counter()
    for session in sorted(demo().sessions, key=lambda entry: (entry.started is None, entry.started)):
        fresh = [message for message in opened(session).messages() if message.id not in seen]
        seen |= {message.id for message in fresh if message.origin != Origin.SESSION_CONTEXT}
        for message in fresh:
            totals["prompts"] += message.origin == Origin.HUMAN
            totals["answers"] += message.kind == Kind.GEMINI
            totals["errors"] += message.kind == Kind.ERROR
            totals["tool_calls"] += len(message.tool_calls)
            totals.update(call.status for call in message.tool_calls if call.status != "pending")
            by_tool.update(call.label for call in message.tool_calls)
    with closing(without_archive(demo())) as database:
        summary = counted(database).summary
        assert summary is not None
        assert {name: summary.totals[name] for name in totals} == dict(totals)
        assert {key: row["tool_calls"] for key, row in section(database, "tool").items()} == dict(by_tool)
    assert summary.totals["sessions"] == len(demo().main)
    assert summary.totals["tokens"] == sum(call.tokens.total for session in demo().sessions for call in session.calls)


def real() -> list[Home]:
    folders = [tree.folder / "gemini" for tree in all_trees(SELECTED)]
    return [*homes([folder for folder in folders if folder.is_dir()], {}, SELECTED / "nowhere")]


@pytest.fixture(scope="module", params=["demo", "real"])
def place(request: pytest.FixtureRequest) -> list[Home]:
    return [*pollux.homes(DEMO)] if request.param == "demo" else real()


def test_statistics_of_archive_and_files_are_equal(tmp_path: Path, place: list[Home]) -> None:
    with closing(archived(tmp_path, *place)) as kept, closing(without_archive(history(place))) as fresh:
        for by in (None, *SECTIONS):
            result, expected = (to_json(counted(database, by)) for database in (kept, fresh))
            assert result == expected


def test_tool_counts_equal_those_of_the_usage_report(tmp_path: Path, place: list[Home]) -> None:
    with closing(archived(tmp_path, *place)) as database:
        expected = {row.key: row.outcomes for row in tool_rows(tool_sums(database))}
        for key, row in section(database, "tool").items():
            asked = expected.pop(key)
            assert asked is not None
            counts = (asked.calls, asked.success, asked.error, asked.cancelled, asked.no_result)
            assert tuple(row.values())[:5] == counts
    assert not expected


def test_statistics_on_duckdb_are_equal(tmp_path: Path, place: list[Home]) -> None:
    tables = ("sessions", "messages", "model_calls", "tool_calls", "shell_commands", "file_touches")
    noon = 1_794_700_800_000_000
    with closing(archived(tmp_path, *place)) as database, closing(duckdb.connect()) as other:
        for table in tables:
            columns = database.execute(f"PRAGMA table_info({table})").fetchall()
            named = ", ".join(f"{name} {kind.replace('INTEGER', 'BIGINT')}" for _, name, kind, *_ in columns)
            other.execute(f"CREATE TABLE {table} ({named})")
            rows = database.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608  the name of a fact table
            other.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)  # noqa: S608
        for name in ("MESSAGES", "TOOLS", "CALLS", "TOUCHES", "PROGRAMS"):
            sql = getattr(stats_sql, name)
            assert "/" not in sql  # an integer in SQLite, a fraction in others
            for window in (EVER, (noon, 1 << 62, 0), (-(1 << 62), noon, 0)):
                result, expected = (
                    sorted(map(repr, engine.execute(sql, window).fetchall())) for engine in (other, database)
                )
                assert result == expected
                assert result or window != EVER


def test_each_section_names_its_columns() -> None:
    with closing(without_archive(demo())) as database:
        for by in SECTIONS:
            (table,) = counted(database, by).sections
            assert isinstance(table, StatsTable)
            assert table.columns == SECTIONS[by].columns
            assert all(len(row.numbers) == len(table.columns) for row in table.rows)
        assert [section.by for section in counted(database).sections] == list(USUAL)


def test_negative_line_counts_of_damaged_files_are_added_like_in_the_totals(tmp_path: Path) -> None:
    display = {"fileDiff": "", "fileName": "a.py", "diffStat": {"model_added_lines": -3, "model_removed_lines": 2}}
    edit = call("c1", "replace", args={"file_path": "a.py"}, resultDisplay=display)
    records = header(), preamble(), user("u1", "edit"), gemini("g1", toolCalls=[edit])
    put(builders.chats(tmp_path / "home") / f"{builders.NAME}.jsonl", log(*records))
    with closing(archived(tmp_path, builders.home(tmp_path / "home"))) as database:
        files = section(database, "filetype")
        summary = counted(database).summary
    assert [(row["lines_added"], row["lines_removed"]) for row in files.values()] == [(-3, 2)]
    assert summary is not None
    assert (summary.totals["lines_added"], summary.totals["lines_removed"]) == (-3, 2)
