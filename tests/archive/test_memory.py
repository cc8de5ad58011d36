"""Tables that are filled from files, without an archive."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests import builders

import pollux
from pollux.archive import memory, schema
from pollux.prices import load
from pollux.sessions import reader

DEMO = Path(pollux.__file__).parent / "demo" / "home"


def all_rows(database: sqlite3.Connection) -> dict[str, list[schema.Row]]:
    return {table: list(schema.rows(database, table)) for table in schema.TABLES}


def test_several_processes_write_the_same_rows_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = reader.history([builders.home(DEMO)]).sessions
    with closing(memory.in_memory(sessions, [], reader.opened, prices=load())) as database:
        expected = all_rows(database)
    monkeypatch.setattr(memory, "_PIECE", 3)
    monkeypatch.setattr(memory, "_WORTH_PROCESSES", 0)
    with closing(memory.in_memory(sessions, [], reader.opened, prices=load())) as database:
        assert all_rows(database) == expected
    assert expected["tool_calls"]


def test_calls_and_owners_are_equal_without_opening_sessions() -> None:
    history = reader.history([builders.home(DEMO)])
    calls = "SELECT * FROM model_calls ORDER BY session_id, message_id"
    sums = "SELECT * FROM session_usage ORDER BY 1, 2"
    with (
        closing(memory.in_memory(history.sessions, [], reader.opened, prices=load())) as opened,
        closing(memory.in_memory(history.sessions, [], prices=load(), repeated=history.repeated)) as light,
    ):
        assert light.execute(sums).fetchall() == opened.execute(sums).fetchall()
        for ours, theirs in zip(light.execute(calls), opened.execute(calls), strict=True):
            assert ours[:-3] == theirs[:-3]  # without the file number, because files are numbered in another order
            assert ours[-1] == theirs[-1]
        assert light.execute("SELECT count(*) FROM model_calls WHERE price_id IS NULL").fetchone() == (0,)
    assert history.repeated
