"""A report that was kept is what the calls come to, whatever happened to them since."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import builders

from pollux import prices
from pollux.archive import reports, store
from pollux.archive.pricing import price_calls
from pollux.archive.refresh import refresh
from pollux.views import usage_parts

TABLE = prices.load()


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_WORTH_KEEPING", 1)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[store.Archive]:
    write(tmp_path, 2)
    with store.opened(tmp_path / "archive.db") as found:
        take_in(found, tmp_path)
        yield found


def write(root: Path, n_calls: int) -> None:
    calls = [builders.gemini(f"g{n}", second=n, tokens=builders.tokens(10 + n)) for n in range(n_calls)]
    builders.put(builders.chats(root) / f"{builders.NAME}.jsonl", builders.log(builders.header(), *calls))


def take_in(archive: store.Archive, root: Path) -> None:
    refresh(archive, [builders.home(root)])
    price_calls(archive.database, TABLE)


def kept(archive: store.Archive, version: str = TABLE.version) -> list[usage_parts.TimePart]:
    return usage_parts.kept_time_parts(archive.database, version)


def n_kept(archive: store.Archive) -> int:
    return int(archive.database.execute("SELECT count(*) FROM reports").fetchone()[0])


def test_it_is_read_and_not_run_again(archive: store.Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kept(archive)
    assert [one.calls for one in first] == [2]
    monkeypatch.setattr(usage_parts, "time_parts", lambda _database: pytest.fail("run again"))
    assert kept(archive) == first
    assert type(kept(archive)[0]) is usage_parts.TimePart


def test_a_new_call_makes_it_anew(archive: store.Archive, tmp_path: Path) -> None:
    kept(archive)
    write(tmp_path, 5)
    take_in(archive, tmp_path)
    assert [one.calls for one in kept(archive)] == [5]


@pytest.mark.parametrize(
    "change",
    ["UPDATE model_calls SET cost_nanousd = 1", "DELETE FROM model_calls", "UPDATE model_calls SET fate = 'rewound'"],
)
def test_any_change_throws_it_away(archive: store.Archive, change: str) -> None:
    kept(archive)
    archive.database.execute(change)
    assert n_kept(archive) == 0
    assert kept(archive) == usage_parts.time_parts(archive.database)


def test_other_prices_have_their_own(archive: store.Archive) -> None:
    kept(archive)
    assert kept(archive, "others") == kept(archive)
    assert n_kept(archive) == 2


def test_few_rows_are_not_worth_it(archive: store.Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_WORTH_KEEPING", 2)
    assert kept(archive)
    assert n_kept(archive) == 0


def test_what_changes_while_it_is_added_up_is_not_kept(archive: store.Archive) -> None:
    def run() -> list[int]:
        with sqlite3.connect(archive.path, isolation_level=None) as other:
            other.execute("UPDATE model_calls SET cost_nanousd = 7")
        return [1, 2, 3]

    assert reports.kept(archive.database, "sums", run, int) == [1, 2, 3]
    assert n_kept(archive) == 0


def test_an_archive_that_takes_no_writes_is_added_up(archive: store.Archive) -> None:
    archive.database.execute("PRAGMA query_only = 1")
    assert [one.calls for one in kept(archive)] == [2]
    assert n_kept(archive) == 0
