from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests import builders

from pollux.archive.load_sessions import session_projects
from pollux.archive.memory import in_memory
from pollux.cli.demo import HOME
from pollux.search.facts import FactPlace
from pollux.search.hints import explain_nothing
from pollux.search.query import parse_query
from pollux.sessions.reader import history, opened


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("alarms project:skywatch", []),
        ("project:skywach", ['No session matches "project:skywach". Did you mean "project:skywatch"?']),
        ("project:LEDGR tool:shell", ['No session matches "project:LEDGR". Did you mean "project:Ledger"?']),
        (
            "model:gemini-2.5-flsh",
            ['No session matches "model:gemini-2.5-flsh". Did you mean "model:gemini-2.5-flash"?'],
        ),
        ("tool:Bsh", ['No session matches "tool:Bsh". Did you mean "tool:Bash"?']),
        ("tool:red_file", ['No session matches "tool:red_file". Did you mean "tool:read_file"?']),
        ("cmd:nothing on:1999", ['No session matches "cmd:nothing".', 'No session matches "on:1999".']),
        ("-project:skywach project:nowhere OR project:skywatch", []),
        ("in:prompt has:image", []),
        ('file:"\x1b[31m"', ['No session matches "file:\\x1b[31m".']),
        (f"file:{'x' * 500}", [f'No session matches "file:{"x" * 55}…".']),
    ],
)
def test_fields_without_sessions_are_named(
    demo: tuple[sqlite3.Connection, FactPlace], text: str, expected: list[str]
) -> None:
    database, place = demo
    query = parse_query(text, now=datetime(2026, 11, 18, tzinfo=UTC), zone=UTC)
    assert [*explain_nothing(database, query, place)] == expected


@pytest.fixture(scope="module")
def demo() -> Iterator[tuple[sqlite3.Connection, FactPlace]]:
    with closing(in_memory(history([builders.home(HOME)]).sessions, [], opened)) as database:
        yield database, FactPlace(session_projects(database, {}), Path("/"), Path("/"))
