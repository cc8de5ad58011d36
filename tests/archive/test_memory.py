"""Tables that are filled from files, without an archive."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from tests import builders

import pollux
from pollux.archive import memory, schema
from pollux.prices import load
from pollux.sessions import reader
from pollux.sessions.locate import locate

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


def test_rows_derived_while_reading_are_those_of_opened_sessions(tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path, dirs_exist_ok=True)
    chats = builders.chats(tmp_path)
    split = (builders.user("u1"), builders.gemini("g1")), (builders.user("u2", second=3), builders.gemini("g2"))
    for name, messages in zip((builders.NAME, "session-2026-11-15T19-40-b3e2640d"), split, strict=True):
        builders.put(chats / f"{name}.jsonl", builders.log(builders.header(), *messages))
    shared = [builders.log(builders.header(f"nightly-{name}"), builders.user(f"u{name}")) for name in "AB"]
    builders.put(chats / "session-2026-11-15T19-30-nightly-.jsonl", b"".join(shared))
    located = locate([builders.home(tmp_path)])
    files = memory.Files(str(file.path) for file in located.files)
    derive = partial(memory.opened_rows, files, load())
    history = reader.located_history(located, derive=derive)
    with closing(memory.in_memory(history.sessions, [], reader.opened, prices=load(), files=files)) as database:
        expected = all_rows(database)
    with closing(
        memory.in_memory(history.sessions, [], reader.opened, prices=load(), files=files, derived=history.derived)
    ) as database:
        assert all_rows(database) == expected
    opened_again = {session.id for session in history.sessions} - history.derived.keys()
    assert opened_again == {builders.SESSION, "nightly-A", "nightly-B"}


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
