"""The page of usage reads stored sums: the statements and the rows of the calls it reads stay few."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests import builders

from pollux.library.config import Config, configure
from pollux.library.library import Library
from pollux.library.usage import UsageQuery
from pollux.library.usage_summary import summary_query
from pollux.reports.filters import Filter
from pollux.reports.sessions import Page

N_OLD, N_NEW = 400, 5
NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
MOST_STEPS = 4_500
"""Instructions of SQLite's machine for a page; reading every call of the old sessions takes several times as many."""


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    for number in range(N_OLD + N_NEW):
        start = NOW - (timedelta(days=200) if number < N_OLD else timedelta(days=2))
        name = f"session-{start:%Y-%m-%dT%H-%M}-{number:08x}"
        calls = [
            builders.gemini(
                f"g{number}-{n}",
                tokens=builders.tokens(10 + n),
                timestamp=written(start),
                toolCalls=[builders.call(f"c{number}-{n}")],
            )
            for n in range(6)
        ]
        header = builders.header(f"{number:08x}-0000-4000-8000-000000000000")
        header["startTime"] = header["lastUpdated"] = written(start)
        builders.put(builders.chats(tmp_path) / f"{name}.jsonl", builders.log(header, *calls))
    config = configure(named_homes=[tmp_path], archive=tmp_path / "archive.db", clock=lambda: NOW)
    with Library(config) as opened:
        opened.refresh(add_up=True)
        yield opened


def written(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.000Z"


@contextmanager
def counted(library: Library) -> Iterator[list[int]]:
    """Yield a list that gets an item for every ten instructions of SQLite's machine."""
    steps: list[int] = []
    with library.snapshot() as snapshot:
        snapshot.database.set_progress_handler(lambda: steps.append(1), 10)
        try:
            yield steps
        finally:
            snapshot.database.set_progress_handler(None, 0)


def month(config: Config) -> UsageQuery:
    return summary_query(config=config)


def test_usage_of_a_month_does_not_read_older_calls(library: Library) -> None:
    with counted(library) as steps:
        summary = library.usage_summary(month(library.config))
    assert (summary.billed.calls, summary.n_sessions) == (6 * N_NEW, N_NEW)
    assert [row.outcomes.calls for row in summary.tools if row.outcomes] == [6 * N_NEW]
    assert 10 * len(steps) < MOST_STEPS


def test_lists_read_only_the_sessions_that_they_show(library: Library) -> None:
    with counted(library) as steps:
        page = library.sessions(page=Page(3))
    assert (len(page.rows), page.total) == (3, N_OLD + N_NEW)
    assert 10 * len(steps) < MOST_STEPS
    with counted(library) as steps:
        assert len(library.project_names()) == 1
        library.newest_calls([row.id for row in page.rows])
        library.last_change()
    assert 10 * len(steps) < MOST_STEPS // 2


def test_all_calls_take_more(library: Library) -> None:
    with counted(library) as steps:
        report = library.usage(UsageQuery("session", Filter()))
    assert report.billed.calls == 6 * (N_OLD + N_NEW)
    assert 10 * len(steps) > 4 * MOST_STEPS


def test_usage_by_day_reads_no_calls(library: Library) -> None:
    with counted(library) as steps:
        report = library.usage(UsageQuery("day"))
    assert report.billed.calls == 6 * (N_OLD + N_NEW)
    assert 10 * len(steps) < MOST_STEPS
