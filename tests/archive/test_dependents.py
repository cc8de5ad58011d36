"""Roots, deletions and sums of sessions equal those computed from all rows, after any changes."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import builders
from tests.archive.growing import Life, Step, steps
from tests.archive.test_verify import archived_home, damage, looked_at
from tests.refreshing import refresh

from pollux import prices
from pollux.archive import dependents, memory, schema, store
from pollux.archive.forget import forget
from pollux.archive.migrations import transaction
from pollux.archive.pricing import price_calls
from pollux.model import Problem, Tokens
from pollux.sessions import reader

USAGE = schema.TABLES["session_usage"].names


def expected_usage(database: sqlite3.Connection) -> dict[tuple[str, int], dict[str, int]]:
    """Return the sums of each session, added up call by call."""
    sums: dict[tuple[str, int], dict[str, int]] = {}
    counts = [f"tok_{count}" for count in schema.COUNTS]
    rows = database.execute(
        f"SELECT session_id, fate, cost_nanousd, tok_consistent, {', '.join(counts)} FROM model_calls "  # noqa: S608
        "WHERE owner_session_id IS NULL"
    )
    for session_id, fate, cost, is_consistent, *numbers in rows:
        sum_ = sums.setdefault((session_id, int(fate == "active")), dict.fromkeys(USAGE[2:], 0))
        sum_["calls"] += 1
        sum_["cost_nanousd"] += cost or 0
        sum_["unpriced_calls"] += cost is None
        sum_["inconsistent"] += not is_consistent
        for count, number in zip(schema.COUNTS, numbers, strict=True):
            sum_[f"tok_{count}"] += number
            sum_[f"unpriced_{count}"] += number if cost is None else 0
    return sums


def stored_usage(database: sqlite3.Connection) -> dict[tuple[str, int], dict[str, int]]:
    rows = database.execute(f"SELECT {', '.join(USAGE)} FROM session_usage")  # noqa: S608
    return {row[:2]: dict(zip(USAGE[2:], row[2:], strict=True)) for row in rows}


def expected_root(session_id: str, parents: Mapping[str, str | None]) -> str:
    """Return the root of a session; members of a circle are their own roots."""
    chain = [session_id]
    while (parent := parents[chain[-1]]) in parents and parent is not None:
        if parent in chain:
            return parent if session_id not in chain[chain.index(parent) :] else session_id
        chain.append(parent)
    return chain[-1]


def expected_deleted(database: sqlite3.Connection) -> set[str]:
    """Return the sessions without an existing file, among those read by this machine if there are any."""
    rows = database.execute(
        "SELECT session_id, role, deleted_us, file_version_id IN (SELECT version_id FROM imported) "
        "FROM session_files JOIN versions ON versions.id = file_version_id JOIN files ON files.id = file_id"
    ).fetchall()
    has_own = {session_id for session_id, _, _, is_import in rows if not is_import}
    present = set()
    for session_id, role, deleted_us, is_import in rows:
        is_file = role not in ("stub", "unreadable") and not (is_import and session_id in has_own)
        if is_file and deleted_us is None:
            present.add(session_id)
    return {row[0] for row in database.execute("SELECT session_id FROM sessions")} - present


def check(database: sqlite3.Connection) -> None:
    """Check all values that depend on other rows."""
    assert stored_usage(database) == expected_usage(database)
    parents = dict(database.execute("SELECT session_id, parent_session_id FROM sessions").fetchall())
    stored = dict(database.execute("SELECT session_id, root_session_id FROM sessions").fetchall())
    assert stored == {session_id: expected_root(session_id, parents) for session_id in parents}
    deleted = {row[0] for row in database.execute("SELECT session_id FROM sessions WHERE is_deleted")}
    assert deleted == expected_deleted(database)
    assert not database.execute("SELECT * FROM changed_sessions").fetchall()


def put_session(database: sqlite3.Connection, session_id: str, parent: str | None) -> None:
    values: dict[str, Any] = {
        column.name: {"TEXT": "", "INTEGER": 0, "BLOB": b""}[column.type] if column.is_required else None
        for column in schema.TABLES["sessions"].columns
    }
    values |= {"session_id": session_id, "parent_session_id": parent, "root_session_id": session_id, "is_deleted": 1}
    database.execute(schema.TABLES["sessions"].insert, tuple(values.values()))


ids = st.sampled_from("abcdef")


@settings(max_examples=60)
@given(st.lists(st.lists(st.tuples(ids, st.none() | ids | st.just("unknown"), st.booleans()), max_size=4), max_size=8))
def test_roots_follow_any_change_of_the_parents(changes: list[list[tuple[str, str | None, bool]]]) -> None:
    with closing(memory.in_memory([], [])) as database:
        for batch in changes:
            for session_id, parent, is_there in batch:
                if is_there:
                    put_session(database, session_id, parent)
                else:
                    schema.forget_sessions(database, [session_id])
            dependents.update(database)
            check(database)


CALL = st.tuples(ids, ids, st.sampled_from(["active", "rewound"]), st.none() | st.integers(0, 9), st.none() | ids)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["put", "own", "price", "delete"]), CALL), max_size=20), st.integers(1, 5))
def test_sums_follow_any_change_of_the_calls(changes: list[tuple[str, Any]], at_once: int) -> None:
    with closing(memory.in_memory([], [])) as database:
        for session_id in "abcdef":
            put_session(database, session_id, None)
        for number, (what, (session_id, message_id, fate, cost, owner)) in enumerate(changes):
            key = (session_id, message_id)
            match what:
                case "put":
                    tokens = Tokens(number, 1, 2, 3, 4, number % 3)
                    row = schema.call_row(key, None, "m", fate, tokens, price=(cost, ""))
                    database.execute(schema.TABLES["model_calls"].insert, row)
                case "own":
                    database.execute(f"UPDATE model_calls SET owner_session_id = ? WHERE {KEY}", (owner, *key))  # noqa: S608
                case "price":
                    database.execute(f"UPDATE model_calls SET cost_nanousd = ? WHERE {KEY}", (cost, *key))  # noqa: S608
                case _:
                    database.execute(f"DELETE FROM model_calls WHERE {KEY}", key)  # noqa: S608
            if number % at_once == 0:
                dependents.update(database)
        dependents.update(database)
        check(database)


KEY = "session_id = ? AND message_id = ?"


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(steps, st.sampled_from(["", "price", "other prices", "keep", "forget"])), max_size=12))
def test_values_are_right_after_every_refresh(life: list[tuple[Step, str]]) -> None:
    table = prices.load()
    other = msgspec.structs.replace(table, version="other", rows=(), models=())
    with tempfile.TemporaryDirectory() as folder:
        world = Life(Path(folder))
        with store.open_archive(Path(folder) / "archive.db") as archive:
            for step, what in life:
                world.take(step)
                refresh(archive, world.homes, derives=what != "keep")
                if what.endswith(("price", "prices")):
                    price_calls(archive.database, other if "other" in what else table)
                if what == "forget":
                    forget(archive, [builders.SESSION], now_us=1, memory={})
                check(archive.database)


def test_sums_with_prices_are_computed_for_a_read_only_archive(tmp_path: Path) -> None:
    answer = builders.gemini("g1", tokens=builders.tokens(1000))
    log = builders.log(builders.header(), builders.user(), answer)
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", log)
    with store.open_archive(tmp_path / "a.db") as archive:
        refresh(archive, [builders.home(tmp_path)])
        assert [row["unpriced_calls"] for row in stored_usage(archive.database).values()] == [1]
    with store.open_archive(tmp_path / "a.db", write=False) as archive:
        price_calls(archive.database, prices.load())
        assert stored_usage(archive.database) == expected_usage(archive.database)
        assert [row["cost_nanousd"] for row in stored_usage(archive.database).values()] == [1_298_875]


def test_facts_in_memory_equal_those_of_an_archive(tmp_path: Path) -> None:
    world = Life(tmp_path)
    for step in (("lines", "subagent", 0, 9), ("lines", "log", 0, 20), ("rewrite", "document", 1, 5)):
        world.take(step)
    sessions = reader.history(world.homes).sessions
    with store.open_archive(tmp_path / "a.db") as archive:
        refresh(archive, world.homes)
        for opened in (None, reader.opened):
            with closing(memory.in_memory(sessions, [], opened)) as database:
                check(database)
                for table in ("sessions", "session_usage", "model_calls"):
                    names = [name for name in schema.TABLES[table].names if name not in OF_THE_ARCHIVE]
                    query = f"SELECT {', '.join(names)} FROM {table} ORDER BY 1, 2"  # noqa: S608
                    assert database.execute(query).fetchall() == archive.database.execute(query).fetchall()


OF_THE_ARCHIVE = ("bundle", "extra", "file_version_id")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE session_usage SET tok_input = tok_input + 1",
        "UPDATE session_usage SET cost_nanousd = 5",
        "DELETE FROM session_usage",
        "UPDATE session_usage SET is_active = 1 - is_active",
    ],
)
def test_changed_sums_are_damage(tmp_path: Path, statement: str) -> None:
    _, archive = archived_home(tmp_path)
    assert looked_at(archive).is_ok
    damage(archive, statement)
    messages = [damage.message for damage in looked_at(archive).damage]
    assert messages
    assert all(message.endswith("are not those that were derived") for message in messages)


def test_value_rejected_by_sqlite_affects_only_its_session(tmp_path: Path) -> None:
    world = Life(tmp_path)
    for step in (("lines", "log", 0, 9), ("lines", "third", 0, 9)):
        world.take(step)
    sound, broken = reader.history(world.homes).sessions
    broken = msgspec.structs.replace(broken, tool_calls=1 << 70)
    problems: list[Problem] = []
    with closing(memory.in_memory([sound, broken], problems)) as database:
        check(database)
        assert database.execute("SELECT session_id FROM sessions").fetchall() == [(sound.id,)]
    assert [(problem.code, problem.file) for problem in problems] == [("cannot-derive", str(broken.files[0].path))]


def test_damaged_counts_stop_neither_sync_nor_verify(tmp_path: Path) -> None:
    root, archive = archived_home(tmp_path)
    damage(archive, "UPDATE model_calls SET tok_input = 1 << 62, cost_nanousd = 1 << 62, fate = 'active'")
    assert not looked_at(archive).is_ok
    with store.open_archive(archive) as opened:
        refresh(opened, [builders.home(root)])
        with transaction(opened.database):
            dependents.update(opened.database)
    assert not looked_at(archive).is_ok
