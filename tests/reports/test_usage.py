"""Sums equal the counts of the files to the token and nano-dollar, with and without an archive or copies."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests import builders
from tests.corpus.trees import SELECTED, Tree, all_trees, history, raw_messages
from tests.refreshing import refresh

from pollux import prices
from pollux.archive import load_sessions, memory, store
from pollux.archive.pricing import price_calls
from pollux.archive.schema import sessions_of_homes
from pollux.model import Tokens, Usage
from pollux.reports import usage, usage_sql
from pollux.reports.usage import UsageRow
from pollux.reports.usage_sql import CallSum
from pollux.sessions import reader
from pollux.sessions.homes import Home
from pollux.views.contracts import to_json

TINY = Path(__file__).parents[1] / "data" / "usage"
GENERATOR = Path(__file__).parents[3] / "shared" / "gen_tree.py"
NAMES = ("input", "cached", "output", "thoughts", "tool", "total")


@dataclass(frozen=True, slots=True)
class ExpectedUsage:
    """The counts with which a tree was generated, and the cost of its files, computed without Pollux's reader."""

    billed: Tokens
    kept: Tokens
    by_model: dict[str, Tokens]
    by_day: dict[str, Tokens]
    calls: int
    nanousd: int


def tokens(counts: dict[str, int]) -> Tokens:
    return Tokens(*(counts[name] for name in NAMES))


def expected_usage(root: Path) -> ExpectedUsage:
    recorded = json.loads((root / "truth.json").read_bytes())
    messages: dict[str, dict[str, Any]] = {}
    for path in sorted((root / ".gemini" / "tmp").glob("*/chats/**/*.json*")):
        for message in raw_messages(path):
            if message.get("tokens"):
                messages[message["id"]] = message
    return ExpectedUsage(
        tokens(recorded["billed"]),
        tokens(recorded["kept"]),
        {model: tokens(counts) for model, counts in recorded["by_model"].items()},
        {day: tokens(counts) for day, counts in recorded["by_day_utc"].items()},
        recorded["requests"],
        sum(map(nanousd, messages.values())),
    )


def nanousd(message: dict[str, Any]) -> int:
    """Return the price of a call, computed with decimals."""
    counts = message["tokens"]
    at = datetime.fromisoformat(message["timestamp"])
    price = prices.find(prices.load(), message["model"], at)
    assert price
    prompt = counts["input"] + counts["tool"]
    tier = [tier for tier in price.tiers if prompt > tier.above or not tier.above][-1]
    a_million = [Decimal(rate or 0) / 10**6 for rate in (tier.input, tier.cached, tier.output)]
    amounts = (
        counts["input"] - counts["cached"] + counts["tool"],
        counts["cached"],
        counts["output"] + counts["thoughts"],
    )
    dollars = sum(Decimal(amount) * rate / 10**6 for amount, rate in zip(amounts, a_million, strict=True))
    return int((Decimal(dollars) * 10**9).quantize(Decimal(1), ROUND_HALF_UP))


def generated(folder: Path, *options: str) -> Path:
    if not GENERATOR.exists():
        pytest.skip(f"no generator at {GENERATOR}")
    command = [sys.executable, str(GENERATOR), "--out", str(folder), "--sessions", "25", "--mb", "1", "--projects", "5"]
    subprocess.run([*command, *options], check=True, capture_output=True)
    return folder


@pytest.fixture(params=["tiny", "clean", "copied"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a home that the test may change."""
    match request.param:
        case "clean":
            return generated(tmp_path / "home", "--seed", "11")
        case "copied":
            return generated(
                tmp_path / "home",
                "--seed",
                "12",
                "--copies",
                "0.5",
                "--resumed",
                "0.3",
                "--torn",
                "0.05",
                "--rewind",
                ".2",
            )
        case _:
            shutil.copytree(TINY, tmp_path / "home")
            return tmp_path / "home"


Reader = Callable[..., list[CallSum]]


def roots_in(database: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    return usage_sql.session_roots(database.execute(usage_sql.SESSIONS))


@pytest.fixture(params=["archive", "memory"])
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Reader:
    """Return the rows of the report on some homes, with an archive or without one."""

    def archived(*homes: Home) -> list[CallSum]:
        with store.open_archive(tmp_path / "archive.db") as archive:
            refresh(archive, homes)
            price_calls(archive.database, prices.load())
            return usage_sql.call_sums(archive.database)

    def read_only(*homes: Home) -> list[CallSum]:
        with closing(memory.in_memory(reader.history(homes).sessions, [])) as database:
            price_calls(database, prices.load())
            return usage_sql.call_sums(database)

    return archived if request.param == "archive" else read_only


def test_sums_equal_the_generated_counts(tree: Path, read: Reader) -> None:
    expected, sums = expected_usage(tree), read(builders.home(tree))
    billed = usage.total(sums)
    assert (billed.tokens, billed.calls) == (expected.billed, expected.calls)
    assert usage.total(row for row in sums if row.is_active).tokens == expected.kept
    assert billed.cost_nanousd == expected.nanousd
    assert (billed.cost.unpriced_calls, billed.inconsistent) == (0, 0)
    by_model = usage.call_rows("model", sums)
    assert {row.key: row.billed.tokens for row in by_model} == expected.by_model
    by_day = usage.call_rows("day", sums, zone=UTC)
    assert {row.key: row.billed.tokens for row in by_day} == expected.by_day


@pytest.mark.parametrize("by", [report for report in usage.REPORTS if report != "tool"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
def test_rows_add_up_to_the_total(by: str, zone: str, tmp_path: Path) -> None:
    del tmp_path
    with closing(memory.in_memory(reader.history([builders.home(TINY)]).sessions, [])) as database:
        price_calls(database, prices.load())
        sums = usage_sql.call_sums(database)
    rows = usage.call_rows(by, sums, zone=ZoneInfo(zone))
    assert sum((row.billed.tokens for row in rows), Tokens()) == usage.total(sums).tokens
    assert sum(row.billed.cost_nanousd or 0 for row in rows) == usage.total(sums).cost_nanousd
    assert sum(row.active.calls for row in rows) == usage.total(row for row in sums if row.is_active).calls


def test_deleted_files_are_still_counted(tree: Path, tmp_path: Path) -> None:
    home = builders.home(tree)

    def sums() -> Usage:
        with store.open_archive(tmp_path / "archive.db") as archive:
            refresh(archive, [home])
            price_calls(archive.database, prices.load())
            return usage.total(usage_sql.call_sums(archive.database))

    before = sums()
    for path in home.tmp.glob("*/chats"):
        shutil.rmtree(path)
    assert sums() == before


def test_copied_home_adds_nothing(tree: Path, read: Reader, tmp_path: Path) -> None:
    shutil.copytree(tree / ".gemini", tmp_path / "backup" / ".gemini")
    expected = expected_usage(tree)
    usage_ = usage.total(read(builders.home(tree), builders.home(tmp_path / "backup")))
    assert (usage_.tokens, usage_.cost_nanousd) == (expected.billed, expected.nanousd)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Return an archive of a session with a subagent of a subagent, an unknown model, a wrong total and many tools."""
    chats = builders.chats(tmp_path)
    shell = builders.call("c2", "run_shell_command", args={"command": "ls"}, status="error")
    stopped = builders.call("c3", "run_shell_command", status="cancelled")
    waiting = builders.call("c4", "my_tool", status=None, result=None)
    builders.put(
        chats / f"{builders.NAME}.jsonl",
        builders.log(
            builders.header(),
            builders.user(),
            builders.gemini("g1", tokens=builders.tokens(10), toolCalls=[builders.call(), shell, stopped]),
            builders.gemini("g2", second=3, tokens=builders.tokens(20) | {"total": 7}, toolCalls=[builders.call("c5")]),
            builders.gemini("g3", second=4, tokens=builders.tokens(30), model="gemini-9.9-ultra"),
            builders.gemini("g4", second=5, toolCalls=[waiting]),
            builders.user("u2", "no", second=6),
            builders.gemini("g5", second=7, tokens=builders.tokens(40)),
            builders.rewind("u2"),
        ),
    )
    for id_, parent, n in (("kid", builders.SESSION, 50), ("grandkid", "kid", 60), ("deepest", "grandkid", 70)):
        head = builders.header(id_, kind="subagent")
        answer = builders.gemini(f"of-{id_}", second=8, tokens=builders.tokens(n))
        builders.put(chats / parent / f"{id_}.jsonl", builders.log(head, builders.user(), answer))
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)])
        price_calls(archive.database, prices.load())
        yield archive.database


def test_subagents_are_added_to_their_session_or_listed_separately(database: sqlite3.Connection) -> None:
    sums = usage_sql.call_sums(database)
    (root,) = usage.call_rows("session", sums, roots=roots_in(database))
    assert (root.key, root.name, root.billed.calls) == (builders.SESSION, "hello", 7)
    apart = usage.call_rows("session", sums)
    assert {row.key: row.billed.calls for row in apart} == {
        builders.SESSION: 4,
        "kid": 1,
        "grandkid": 1,
        "deepest": 1,
    }


def test_nested_subagent_is_counted_under_its_root_if_its_parents_are_outside_the_window(
    database: sqlite3.Connection,
) -> None:
    database.execute("UPDATE model_calls SET at_us = at_us + 3600000000 WHERE session_id = 'deepest'")
    sums = usage_sql.call_sums(database, builders.instant_of(3600))
    (root,) = usage.call_rows("session", sums, roots=roots_in(database))
    assert (root.key, root.name, root.billed.calls) == (builders.SESSION, "hello", 1)


def test_rewound_calls_are_billed_but_not_active(database: sqlite3.Connection) -> None:
    (day,) = usage.call_rows("day", usage_sql.call_sums(database), zone=UTC)
    assert (day.key, day.billed.calls, day.active.calls) == ("2026-11-15", 7, 6)
    assert day.billed.tokens.input - day.active.tokens.input == 40


def test_model_without_a_price_is_listed_without_a_cost(database: sqlite3.Connection) -> None:
    all_sums = usage_sql.call_sums(database)
    (model, sums), *others = usage.unpriced_models(all_sums).items()
    assert (model, sums.calls, sums.tokens.total, others) == ("gemini-9.9-ultra", 1, 35, [])
    rows = {row.key: row.billed for row in usage.call_rows("model", all_sums)}
    assert rows["gemini-9.9-ultra"].cost_nanousd is None
    assert usage.total(all_sums).cost_nanousd == rows["gemini-2.5-pro"].cost_nanousd
    assert usage.total([]).cost_nanousd == 0


def test_total_that_differs_from_the_sum_is_flagged_and_kept(database: sqlite3.Connection) -> None:
    usage_ = usage.total(usage_sql.call_sums(database))
    assert usage_.inconsistent == 1
    assert usage_.tokens.total == 7 + sum(n + 5 for n in (10, 30, 40, 50, 60, 70))


@pytest.mark.parametrize(
    ("since", "until", "calls"),
    [(None, None, 7), (3, None, 6), (3, 4, 1), (None, 3, 1), (4, 8, 2), (100, None, 0)],
)
def test_window_selects_single_calls(
    database: sqlite3.Connection, since: int | None, until: int | None, calls: int
) -> None:
    window = [None if second is None else builders.instant_of(second) for second in (since, until)]
    assert usage.total(usage_sql.call_sums(database, *window)).calls == calls


def test_tools_are_counted_by_outcome(database: sqlite3.Connection) -> None:
    rows = {row.key: row for row in usage.tool_rows(usage_sql.tool_sums(database))}
    assert {key: row.outcomes for key, row in rows.items()} == {
        "Bash": usage.ToolOutcomes(2, 0, 1, 1),
        "Read": usage.ToolOutcomes(2, 2, 0, 0),
        "my_tool": usage.ToolOutcomes(1, 0, 0, 0),
    }
    assert (rows["Bash"].billed.calls, rows["Bash"].billed.tokens.input) == (
        1,
        10,
    )  # counted once, though it called twice
    assert (rows["Read"].billed.calls, rows["Read"].billed.tokens.input) == (2, 30)
    assert rows["my_tool"].billed == Usage()  # its message has no counts
    assert rows["my_tool"].outcomes
    assert rows["my_tool"].outcomes.no_result == 1


def test_tools_are_the_same_without_an_archive(database: sqlite3.Connection, tmp_path: Path) -> None:
    read_history = reader.history([builders.home(tmp_path)])
    with closing(memory.in_memory(read_history.sessions, [], reader.opened)) as other:
        price_calls(other, prices.load())
        assert usage.tool_rows(usage_sql.tool_sums(other)) == usage.tool_rows(usage_sql.tool_sums(database))
        projects = load_sessions.session_projects(other, {})
    assert projects == load_sessions.session_projects(database, {})


@pytest.mark.parametrize("real", all_trees(SELECTED), ids=lambda real: real.name)
def test_real_trees_are_the_same_without_an_archive(real: Tree, tmp_path: Path) -> None:
    read_history = history(real)
    with (
        closing(memory.in_memory(read_history.sessions, [], reader.opened)) as other,
        store.open_archive(tmp_path / "a.db") as archive,
    ):
        refresh(archive, read_history.located.homes)
        for database in (other, archive.database):
            price_calls(database, prices.load())
        for by in ("hour", "session", "model"):
            rows = [
                usage.call_rows(by, usage_sql.call_sums(database), roots=roots_in(database))
                for database in (other, archive.database)
            ]
            assert rows[0] == rows[1]
        assert usage.tool_rows(usage_sql.tool_sums(other)) == usage.tool_rows(usage_sql.tool_sums(archive.database))


def test_call_without_a_time_is_outside_any_window(tmp_path: Path) -> None:
    answer = builders.gemini("g1", tokens=builders.tokens(10)) | {"timestamp": "never"}
    data = builders.log(builders.header(), builders.user(), answer)
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", data)
    with closing(memory.in_memory(reader.history([builders.home(tmp_path)]).sessions, [])) as database:
        price_calls(database, prices.load())
        (row,) = usage.call_rows("day", usage_sql.call_sums(database))
        assert (row.key, row.name, row.billed.calls) == (None, "no time", 1)
        assert not usage_sql.call_sums(database, builders.instant_of(0))
        assert not usage_sql.call_sums(database, None, builders.instant_of(0))


def test_project_is_named_by_path_by_memory_or_by_hash(tmp_path: Path) -> None:
    answer = builders.gemini("g1", tokens=builders.tokens(10))
    unknown_hash = "0" * 64
    builders.put(
        tmp_path / ".gemini" / "tmp" / unknown_hash / "chats" / f"{builders.NAME}.jsonl",
        builders.log(builders.header(projectHash=unknown_hash), builders.user(), answer),
    )
    headless = builders.chats(tmp_path) / "session-2026-11-15T19-30-b3e2640d.jsonl"
    builders.put(headless, builders.log(builders.user(), answer | {"id": "g2"}))
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)])
        price_calls(archive.database, prices.load())
        sums = usage_sql.call_sums(archive.database)
        projects = load_sessions.session_projects(archive.database, {unknown_hash: "/srv/app"})
        rows = usage.call_rows("project", sums, projects=projects)
        assert {row.key: row.name for row in rows} == {"/srv/app": "app", builders.ROOT: "webapp"}
        assert {row.key for row in usage.call_rows("project", sums)} == {unknown_hash, None}
        assert {code for _, problem in load_sessions.file_problems(archive.database) if (code := problem.code)} == {
            "no-header"
        }
        assert sessions_of_homes(archive.database, ["/nowhere"]) == set()
        assert sessions_of_homes(archive.database, [str(tmp_path / ".gemini")]) is None
        archive.database.execute("UPDATE files SET home = '/other' WHERE path LIKE '%b3e2640d.jsonl'")
        assert sessions_of_homes(archive.database, [str(tmp_path / ".gemini")]) == {builders.SESSION}
        assert sessions_of_homes(archive.database, ["/other"]) == {"b3e2640d"}


def test_import_is_counted_in_its_original_session(tmp_path: Path) -> None:
    answer = builders.gemini("g1", tokens=builders.tokens(10), toolCalls=[builders.call()])
    chats = builders.chats(tmp_path)
    builders.put(chats / f"{builders.NAME}.jsonl", builders.log(builders.header(), builders.user(), answer))
    imported = builders.log(
        builders.header(builders.OTHER, startTime=builders.at(60)), builders.user("import-1", "hello"), answer
    )
    builders.put(chats / f"session-2026-11-15T19-31-{builders.OTHER[:8]}.jsonl", imported)
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [builders.home(tmp_path)])
        price_calls(archive.database, prices.load())
        (row,) = usage.call_rows("session", usage_sql.call_sums(archive.database), roots=roots_in(archive.database))
        assert (row.key, row.billed.calls) == (builders.SESSION, 1)
        # Without a notice of the client, the second session may have called the tool itself.
        (tool,) = usage.tool_rows(usage_sql.tool_sums(archive.database))
        assert tool.outcomes == usage.ToolOutcomes(2, 2, 0, 0)
        assert tool.billed.calls == 1


def test_json_has_each_key_of_the_contract(database: sqlite3.Connection) -> None:
    sums = usage_sql.call_sums(database)
    row = UsageRow("k", "name", usage.total(sums), Usage(), None, usage.ToolOutcomes(3, 1, 1, 0))
    report = usage.UsageReport(
        "tool", "UTC", "table", "2026-10-15", (row,), Usage(), Usage(), usage.unpriced_models(sums)
    )
    written = to_json(report)
    assert written["unpriced_models"] == [
        {
            "model": "gemini-9.9-ultra",
            "calls": 1,
            "tokens": {"input": 30, "cached": 1, "output": 2, "thoughts": 3, "tool": 0, "total": 35},
        }
    ]
    assert isinstance(written["rows"], list)
    (only,) = written["rows"]
    assert isinstance(only, dict)
    assert only["tool_calls"] == {"calls": 3, "success": 1, "error": 1, "cancelled": 0, "no_result": 1}
