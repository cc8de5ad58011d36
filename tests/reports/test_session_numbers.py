"""Sessions have the numbers of the list in which they are shown."""

from __future__ import annotations

import random
import sqlite3

import pytest

from pollux.reports import sessions

TIMES = (None, 1, 2, 3, -5, -(1 << 63), (1 << 63) - 1)


def test_numbers_computed_in_sql_equal_those_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)  # noqa: S311  not a secret
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE sessions (session_id TEXT, last_used_us INTEGER, kind TEXT, is_stub INTEGER)")
    ids = [f"{number:03}" for number in rng.sample(range(1000), 300)]
    for session_id in ids:
        kind, is_stub = rng.choice(["main", "main", "subagent"]), rng.choice([0, 0, 1])
        values = (session_id, rng.choice([*TIMES, rng.randint(0, 30)]), kind, is_stub)
        database.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", values)
    listed = sessions.page(database, sessions.SessionQuery())
    for _ in range(50):
        requested = [*rng.sample(ids, rng.randint(0, 20)), "unknown"]
        expected = {session_id: listed.index(session_id) + 1 for session_id in requested if session_id in listed}
        assert sessions.numbers(database, requested, None) == expected
        with monkeypatch.context() as patched:
            patched.setattr(sessions, "_FEW", -1)
            assert sessions.numbers(database, requested, None) == expected
    database.close()
