"""Eight threads read from one library while another one writes and refreshes: each answer is one snapshot."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests import builders
from tests.builders import gemini, header, log, tokens, user

from pollux.library.config import Config, configure
from pollux.library.library import Library
from pollux.library.usage import UsageQuery
from pollux.model import Origin, Usage
from pollux.reports.filters import Filter
from pollux.reports.sessions import Page

N_ROUNDS = 400 if os.environ.get("POLLUX_LONG") else 12
"""Turns that the writer appends; readers go on until it is done, and at least as often."""
N_READERS = 8
EVERY = Filter(subagents=True, empty=True)
IDS = tuple(f"{digit * 8}-1111-4222-8333-444455556666" for digit in "abc")


def settings(folder: Path, *, archive: bool = True) -> Config:
    return configure(named_homes=[folder], archive=folder / "archive.db" if archive else None, zone="UTC", environ={})


def path_of(folder: Path, session_id: str) -> Path:
    return builders.chats(folder) / f"session-2026-11-15T19-30-{session_id[:8]}.jsonl"


def append_turn(folder: Path, session_id: str, number: int) -> None:
    """Append a prompt and its answer at once."""
    turn = [
        user(f"u{number}-{session_id}", f"ask {number}", second=number),
        gemini(f"g{number}-{session_id}", second=number, tokens=tokens(number), toolCalls=[builders.call()]),
    ]
    with path_of(folder, session_id).open("ab") as file:
        file.write(log(*turn))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for session_id in IDS:
        builders.put(path_of(tmp_path, session_id), log(header(session_id)))
        append_turn(tmp_path, session_id, 0)
    return tmp_path


def read_sessions(library: Library) -> None:
    page = library.sessions(EVERY, Page(None))
    assert page.total == len(page.rows) == len(IDS)
    for row in page.rows:
        assert row.own_usage.calls == row.prompts == row.tool_calls == row.counts["gemini"]


def read_session(library: Library) -> None:
    row = library.session(IDS[0])
    assert row.own_usage == row.usage
    assert row.own_usage.calls == row.prompts


def read_usage(library: Library) -> None:
    for by in ("day", "session", "model"):
        report = library.usage(UsageQuery(by))
        assert sum((row.billed for row in report.rows), Usage()) == report.billed
    tools = library.usage(UsageQuery("tool"))
    assert sum(row.outcomes.calls for row in tools.rows if row.outcomes) == tools.billed.calls


def read_stats(library: Library) -> None:
    summary = library.stats().summary
    assert summary is not None
    assert summary.totals["prompts"] == summary.totals["model_calls"] == summary.totals["tool_calls"]


def read_overview(library: Library) -> None:
    report = library.overview()
    usage = sum((row.own_usage for row in report.newest), Usage())
    assert report.overview.usage == usage
    assert report.overview.n_prompts == usage.calls


def read_messages(library: Library) -> None:
    with library.snapshot() as snapshot:
        for session in snapshot.sessions.load(None):
            messages = list(snapshot.sessions.open(session).messages())
            assert sum(message.origin == Origin.HUMAN for message in messages) == session.counts["user"]
            assert sum(message.tokens is not None for message in messages) == len(session.calls)


QUESTIONS: tuple[Callable[[Library], None], ...] = (
    read_sessions,
    read_session,
    read_usage,
    read_stats,
    read_overview,
    read_messages,
    read_sessions,
    read_usage,
)


def test_every_answer_is_one_snapshot(home: Path) -> None:
    is_done = threading.Event()
    failures: list[BaseException] = []

    def read(number: int) -> int:
        n_answers = 0
        try:
            while not is_done.is_set() or n_answers < N_ROUNDS:
                QUESTIONS[(number + n_answers) % len(QUESTIONS)](library)
                n_answers += 1
        except BaseException as error:
            failures.append(error)
            raise
        return n_answers

    with Library(settings(home)) as library, ThreadPoolExecutor(N_READERS) as pool:
        library.refresh()
        try:
            answers = [pool.submit(read, number) for number in range(N_READERS)]
            for number in range(1, N_ROUNDS + 1):
                for session_id in IDS:
                    append_turn(home, session_id, number)
                library.refresh()
                if failures:
                    break
        finally:
            is_done.set()
        assert all(answer.result() >= N_ROUNDS for answer in answers)
        page = library.sessions(EVERY, Page(None))
    assert [row.own_usage.calls for row in page.rows] == [N_ROUNDS + 1] * len(IDS)


@pytest.mark.parametrize("archive", [True, False])
def test_close_closes_the_connections_of_all_threads(home: Path, *, archive: bool) -> None:
    connections: list[sqlite3.Connection] = []

    def ask() -> None:
        with library.snapshot() as snapshot:
            connections.append(snapshot.database)

    library = Library(settings(home, archive=archive))
    library.refresh()
    with ThreadPoolExecutor(2) as pool:
        for _ in range(4):
            pool.submit(ask).result()
        library.close()
    for connection in connections:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


def test_ended_threads_leave_no_connection_behind(home: Path) -> None:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("counts open files as Linux does")

    def ask() -> None:
        thread = threading.Thread(target=read_sessions, args=(library,))
        thread.start()
        thread.join()

    with Library(settings(home)) as library:
        ask()
        before = len(list(folder.iterdir()))
        for _ in range(20):
            ask()
        assert len(list(folder.iterdir())) <= before + 4


def test_a_snapshot_outlives_the_library(home: Path) -> None:
    """SQLite crashes if a connection is closed during a query of another thread."""
    is_open, is_closed = threading.Event(), threading.Event()

    def read(library: Library) -> int:
        with library.snapshot() as snapshot:
            is_open.set()
            is_closed.wait()
            (number,) = snapshot.database.execute("SELECT count(*) FROM sessions").fetchone()
            return int(number)

    with ThreadPoolExecutor(1) as pool:
        library = Library(settings(home))
        answer = pool.submit(read, library)
        is_open.wait()
        library.close()
        is_closed.set()
        assert answer.result() == len(IDS)
