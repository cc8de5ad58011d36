"""Building the index: what is indexed, in which order, and how it follows the archive.

`POLLUX_LONG=1` lets each of four archives change more than 500 times instead of 100.
"""

from __future__ import annotations

import os
import random
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from tests import builders
from tests.archive.growing import PLACES, Life
from tests.refreshing import refresh
from tests.search.indexing import check, found, indexed, opened, put_session, session_file, session_id, synced

from pollux.archive import store
from pollux.archive.forget import forget
from pollux.archive.index_file import index_files, index_path
from pollux.archive.maintenance import backup
from pollux.search import build, prepare
from pollux.search.build import build_index, delete_index, index_info, optimize_index

ARCHIVE = "archive.db"
N_ROUNDS, N_STEPS = (120, 500) if os.environ.get("POLLUX_LONG") else (24, 100)
"""Of random changes: how often the index follows, and how many changes there are at least."""


def append(file: Path, *records: object) -> None:
    with file.open("ab") as stream:
        stream.write(builders.log(*records))


def ordinals(root: Path) -> list[tuple[str, int]]:
    """Return the session of each block and its first ordinal, lowest first."""
    with opened(root) as index:
        return index.database.execute("SELECT session_id, first FROM blocks ORDER BY first").fetchall()


def n_dead(root: Path) -> int:
    with opened(root) as index:
        return sum(n for _, n in index.database.execute("SELECT first, n FROM dead"))


def test_everything_is_found(tmp_path: Path) -> None:
    for number in range(6):
        put_session(tmp_path, number, f"question {number}", "Grüße, 超时错误", "getUserById()")
    result = indexed(tmp_path)
    assert (result.n_sessions, result.n_messages, result.n_missing, result.reason) == (6, 36, 0, "")
    check(tmp_path)


def test_files_are_private(tmp_path: Path) -> None:
    put_session(tmp_path, 0, "words")
    with synced(tmp_path) as archive:
        build_index(archive.path, archive.database)
        with opened(tmp_path):
            files = [path for path in index_files(archive.path) if path.exists()]
            assert len(files) == 3
            assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_nothing_new_costs_a_few_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        put_session(tmp_path, number, "words")
    indexed(tmp_path)
    statements: list[str] = []
    connect = sqlite3.connect

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401  sqlite3's own
        database: sqlite3.Connection = connect(*args, **options)
        database.set_trace_callback(statements.append)
        return database

    with store.open_archive(tmp_path / ARCHIVE, write=False) as archive:
        archive.database.set_trace_callback(statements.append)
        monkeypatch.setattr(sqlite3, "connect", traced)
        result = build_index(archive.path, archive.database)
    assert result.n_sessions == 0
    assert len(statements) < 25
    assert not [statement for statement in statements if "INSERT" in statement or "UPDATE" in statement]


def test_the_newest_session_has_the_highest_ordinals(tmp_path: Path) -> None:
    for number in (3, 0, 2, 1):
        put_session(tmp_path, number, "words")
    indexed(tmp_path)
    put_session(tmp_path, 4, "words")
    put_session(tmp_path, 5, "words")
    indexed(tmp_path)
    sessions = [session for session, _ in ordinals(tmp_path)]
    assert [*dict.fromkeys(sessions)] == [session_id(number) for number in range(6)]


def test_a_budget_takes_the_newest_first_and_the_order_stays(tmp_path: Path) -> None:
    for number in range(6):
        put_session(tmp_path, number, "words")
    size = session_file(tmp_path, 0).stat().st_size
    result = indexed(tmp_path, budget=2 * size + 10)
    assert (result.n_sessions, result.n_missing) == (2, 4)
    with opened(tmp_path) as index:
        assert index.coverage.missing == tuple(session_id(number) for number in (3, 2, 1, 0))
    put_session(tmp_path, 6, "words")
    assert indexed(tmp_path, budget=3 * size).n_missing == 2
    assert indexed(tmp_path).n_missing == 0
    assert [session for session, _ in ordinals(tmp_path)] == [session_id(number) for number in range(7)]
    check(tmp_path)


def test_a_session_larger_than_the_budget_waits(tmp_path: Path) -> None:
    put_session(tmp_path, 0, "small")
    put_session(tmp_path, 1, "large " * 1000)
    result = indexed(tmp_path, budget=2000)
    assert (result.n_sessions, result.n_missing) == (1, 1)
    assert found(tmp_path, "small")
    result = indexed(tmp_path, budget=2000)
    assert (result.n_sessions, result.n_missing) == (1, 0), "the next build takes it"
    assert found(tmp_path, "large")


def test_of_sessions_larger_than_the_budget_one_build_takes_the_newest(tmp_path: Path) -> None:
    for number in range(3):
        put_session(tmp_path, number, "large " * 1000)
    assert [indexed(tmp_path, budget=2000).n_missing for _ in range(3)] == [2, 1, 0]
    check(tmp_path)


def test_one_more_turn_is_indexed_alone(tmp_path: Path) -> None:
    for number in range(5):
        put_session(tmp_path, number, "words")
    file = put_session(tmp_path, 5, *(f"turn {n}" for n in range(8)))
    indexed(tmp_path)
    append(file, builders.user("u8", "another turn", second=310))
    assert indexed(tmp_path).n_messages == 1
    append(file, builders.gemini("g8", "an answer", second=311))
    assert indexed(tmp_path).n_messages == 1
    append(file, builders.gemini("g8", "an answer", second=311, toolCalls=[builders.call()]))
    assert indexed(tmp_path).n_messages == 1
    assert n_dead(tmp_path) == 1
    append(file, builders.user("u9", "the next turn", second=312))
    assert indexed(tmp_path).n_messages == 1
    assert n_dead(tmp_path) == 1
    check(tmp_path)


def test_a_message_that_is_recorded_again_is_found_once(tmp_path: Path) -> None:
    file = put_session(tmp_path, 0, "words")
    indexed(tmp_path)
    for n in range(5):
        append(file, builders.gemini("g1", f"zebra and more {n}", second=9))
        indexed(tmp_path)
    assert len(found(tmp_path, "zebra")) == 1
    assert not found(tmp_path, "3")
    check(tmp_path)


def test_a_rewritten_document_costs_its_new_messages(tmp_path: Path) -> None:
    file = builders.chats(tmp_path) / f"{builders.NAME}.json"
    messages: list[object] = []
    for n in range(12):
        messages += [builders.user(f"u{n}", f"ask {n}", second=n), builders.gemini(f"g{n}", f"reply {n}", second=n)]
        builders.put(file, builders.document(*messages))
        result = indexed(tmp_path)
        assert result.n_messages == 2
    assert n_dead(tmp_path) == 0
    check(tmp_path)


def test_a_change_in_the_middle_takes_the_rest_along(tmp_path: Path) -> None:
    file = builders.chats(tmp_path) / f"{builders.NAME}.json"
    messages = [builders.user(f"u{n}", f"ask{n}", second=n) for n in range(10)]
    builders.put(file, builders.document(*messages))
    indexed(tmp_path)
    messages[4] = builders.user("u4", "other", second=4)
    builders.put(file, builders.document(*messages))
    assert indexed(tmp_path).n_messages == 6
    assert n_dead(tmp_path) == 6
    assert not found(tmp_path, "ask4")
    check(tmp_path)


def test_facts_that_are_written_again_cost_no_new_rows(tmp_path: Path) -> None:
    for number in range(3):
        put_session(tmp_path, number, "words")
    indexed(tmp_path)
    with store.open_archive(tmp_path / ARCHIVE) as archive:
        archive.database.execute("UPDATE readings SET n_bytes = -1")
    result = indexed(tmp_path)
    assert (result.n_sessions, result.n_messages) == (3, 0)
    check(tmp_path)


def test_many_dead_messages_lead_to_a_rebuild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_MANY_DEAD", 10)
    put_session(tmp_path, 0, *(f"turn {n}" for n in range(15)))
    file = put_session(tmp_path, 1, "words")
    indexed(tmp_path)
    for n in range(12):
        append(file, builders.gemini("g1-0", f"version {n}", second=65))
        indexed(tmp_path)
    assert n_dead(tmp_path) < 4
    check(tmp_path)


def test_workers_build_the_same_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(22):
        put_session(tmp_path, number, *(f"text {number} {n}" for n in range(number)))
    indexed(tmp_path)
    alone = contents(tmp_path)
    delete_index(tmp_path / ARCHIVE)
    monkeypatch.setattr(build, "_WORKERS_FROM", (0, 0))
    monkeypatch.setattr(build, "_ITEM", 3000)
    monkeypatch.setattr(prepare, "BATCH", 2000)
    seen: list[tuple[int, int]] = []
    with synced(tmp_path) as archive:
        build_index(archive.path, archive.database, lambda done, all_: seen.append((done, all_)))
    assert contents(tmp_path) == alone
    assert len(seen) > 3
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]
    check(tmp_path)


def contents(root: Path) -> list[tuple[str, int, int]]:
    """Return the messages in the order of their ordinals."""
    with opened(root) as index:
        rows = index.database.execute("SELECT session_id, seq, n FROM blocks ORDER BY first").fetchall()
    return [(id_, seq + place, 0) for id_, seq, n in rows for place in range(n)]


def test_a_session_larger_than_a_batch_is_indexed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "BATCH", 500)
    put_session(tmp_path, 0, *(f"turn {n} " * 20 for n in range(30)))
    put_session(tmp_path, 1, "short")
    indexed(tmp_path)
    assert len(ordinals(tmp_path)) > 10
    assert contents(tmp_path) == [(session_id(0), n, 0) for n in range(60)] + [(session_id(1), n, 0) for n in range(2)]
    check(tmp_path)


def test_a_session_that_cannot_be_read_is_reported_and_not_tried_again(tmp_path: Path) -> None:
    put_session(tmp_path, 0, "good words")
    put_session(tmp_path, 1, "bad words")
    with synced(tmp_path) as archive:
        archive.database.execute(
            "UPDATE segments SET data = x'00' WHERE version_id = (SELECT version_id FROM files WHERE path LIKE ?)",
            ("%00000001.jsonl",),
        )
        result = build_index(archive.path, archive.database)
        (problem,) = result.problems
        assert problem.code == "not-indexed"
        assert problem.message.startswith(f"session {session_id(1)} is not in the search index: Version 1 of ")
        assert build_index(archive.path, archive.database).problems == ()
    assert {entry[0] for entry in found(tmp_path, "words")} == {session_id(0)}


def test_a_session_without_its_files_is_reported(tmp_path: Path) -> None:
    put_session(tmp_path, 0, "good words")
    put_session(tmp_path, 1, "lost words")
    with synced(tmp_path) as archive:
        archive.database.execute("DELETE FROM session_files WHERE session_id = ?", (session_id(1),))
        result = build_index(archive.path, archive.database)
        assert [problem.code for problem in result.problems] == ["not-indexed"]
        assert (result.n_sessions, result.n_messages, result.n_missing) == (2, 2, 0)


def test_a_forgotten_session_is_gone_from_an_index_that_was_not_deleted(tmp_path: Path) -> None:
    for number in range(3):
        put_session(tmp_path, number, "words")
    with synced(tmp_path) as archive:
        build_index(archive.path, archive.database)
        forget(archive, [session_id(1)], now_us=1, memory={})
        with opened(tmp_path) as index:
            assert {place.session_id for place in index.places(index.rows('"words"')).values()} == {
                session_id(0),
                session_id(2),
            }
        build_index(archive.path, archive.database)
    check(tmp_path)


def test_an_archive_restored_from_a_backup_is_noticed(tmp_path: Path) -> None:
    archive, copy = tmp_path / ARCHIVE, tmp_path / "backup.db"
    for number in range(4):
        put_session(tmp_path, number, f"words {number}")
    indexed(tmp_path)
    backup(archive, copy)
    append(session_file(tmp_path, 0), builders.user("u9", "first history", second=90))
    put_session(tmp_path, 4, "first history")
    indexed(tmp_path)
    assert len(found(tmp_path, "first")) == 3
    for suffix in ("-wal", "-shm"):
        archive.with_name(archive.name + suffix).unlink(missing_ok=True)
    copy.replace(archive)
    with opened(tmp_path) as index:
        assert set(index.coverage.missing) == {session_id(0)}
        assert not index.places(index.rows('"first"'))
    put_session(tmp_path, 0, "words 0")
    append(session_file(tmp_path, 0), builders.user("u9", "other history", second=90))
    put_session(tmp_path, 4, "other history")
    indexed(tmp_path)
    assert not found(tmp_path, "first")
    assert len(found(tmp_path, "other")) == 3
    check(tmp_path)


def test_the_index_of_another_archive_is_replaced(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for root, text in ((one, "apples"), (other, "pears")):
        put_session(root, 0, text)
        indexed(root)
    index_path(other / ARCHIVE).write_bytes(index_path(one / ARCHIVE).read_bytes())
    with opened(other) as index:
        assert index.coverage.missing == (session_id(0),)
        assert not index.places(index.rows('"apples"'))
    indexed(other)
    assert found(other, "pears")
    assert not found(other, "apples")
    check(other)


def test_info_says_how_far_the_index_is(tmp_path: Path) -> None:
    put_session(tmp_path, 0, "words")
    put_session(tmp_path, 1, "words" * 500)
    with synced(tmp_path) as archive:
        assert index_info(archive.path, archive.database).coverage is None
        build_index(archive.path, archive.database, budget=1500)
        info = index_info(archive.path, archive.database)
        assert info.coverage is not None
        assert (info.coverage.n_indexed, info.coverage.n_sessions) == (1, 2)
        assert info.n_bytes > 10_000


def test_optimizing_changes_no_answer(tmp_path: Path) -> None:
    file = put_session(tmp_path, 0, "words")
    optimize_index(tmp_path / ARCHIVE)
    assert not index_path(tmp_path / ARCHIVE).exists()
    for n in range(10):
        append(file, builders.user(f"v{n}", f"turn {n}", second=n + 10))
        indexed(tmp_path)
    optimize_index(tmp_path / ARCHIVE)
    check(tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_an_index_that_followed_equals_one_that_was_built_at_once(tmp_path: Path, seed: int) -> None:
    """Random growths, rewrites, deletions and forgets: after each few of them, every sampled token has its places."""
    rng = random.Random(seed)  # noqa: S311
    life, small = Life(tmp_path / "homes", seed), tmp_path / "small"
    homes = (*life.homes, builders.home(small))
    path = tmp_path / ARCHIVE
    n_steps = n_forgotten = 0
    for round_ in range(N_ROUNDS):
        with store.open_archive(path) as archive:
            for _ in range(rng.randint(3, 8)):
                life.take(step(rng))
                n_steps += 1
            put_session(small, round_, f"note {round_}", f"mine {rng.random()}")
            append(session_file(small, rng.randrange(round_ + 1)), builders.user(f"r{round_}", f"more {round_}"))
            refresh(archive, homes)
            if round_ % 6 == 3:
                forget_one(archive, rng)
                n_forgotten += 1
            build_index(path, archive.database, budget=rng.choice([None, None, 4000]))
            if round_ % 4 == 3:
                build_index(path, archive.database)
        if round_ % 4 == 3:
            check(tmp_path, rng, 30)
    with opened(tmp_path) as index:
        assert index.coverage.n_sessions > 20
    assert (n_steps >= N_STEPS, n_forgotten) == (True, N_ROUNDS // 6)


def step(rng: random.Random) -> tuple[str, str, int, int]:
    what = rng.choice(["append", "lines", "lines", "lines", "rewrite", "shrink", "replace", "delete", "move"])
    names = [name for name in PLACES if name != "document"]
    return what, "document" if what == "rewrite" else rng.choice(names), rng.randint(0, 1), rng.randint(1, 40)


def forget_one(archive: store.Archive, rng: random.Random) -> None:
    """Forget a session as the command does, or as a process that is killed before it deletes the index."""
    rows = archive.database.execute("SELECT session_id FROM sessions WHERE session_id LIKE '000%' ORDER BY session_id")
    forget(archive, [rng.choice(rows.fetchall())[0]], now_us=1, memory={})
    if rng.random() < 0.5:
        delete_index(archive.path)
