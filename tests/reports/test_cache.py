"""A report that was kept is what the calls come to, whatever happened to them since."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from itertools import permutations
from pathlib import Path

import pytest
from tests import builders
from tests.refreshing import refresh

from pollux import prices
from pollux.archive import forget, store
from pollux.archive.pricing import price_calls
from pollux.reports import usage_sql

TABLE = prices.load()


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_sql, "_MIN_CACHED", 1)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[store.Archive]:
    write(tmp_path, 2)
    with store.open_archive(tmp_path / "archive.db") as found:
        sync_home(found, tmp_path)
        yield found


def write(root: Path, n_calls: int) -> None:
    calls = [builders.gemini(f"g{n}", second=n, tokens=builders.tokens(10 + n)) for n in range(n_calls)]
    builders.put(builders.chats(root) / f"{builders.NAME}.jsonl", builders.log(builders.header(), *calls))


def sync_home(archive: store.Archive, root: Path) -> None:
    refresh(archive, [builders.home(root)])
    price_calls(archive.database, TABLE)


def cached(archive: store.Archive, version: str = TABLE.version) -> list[usage_sql.QuarterSum]:
    return usage_sql.cached_quarter_sums(archive.database, version)


def n_kept(archive: store.Archive) -> int:
    return int(archive.database.execute("SELECT count(*) FROM reports").fetchone()[0])


def added_up(archive: store.Archive) -> list[usage_sql.QuarterSum]:
    return sorted(usage_sql.quarter_sums(archive.database), key=repr)


def test_it_is_read_and_not_run_again(archive: store.Archive) -> None:
    first = cached(archive)
    assert [one.calls for one in first] == [2]
    assert usage_sql.cached_rows(archive.database, name_of(archive), usage_sql.QuarterSum, fails, fails) == first
    assert type(first[0]) is usage_sql.QuarterSum


def fails() -> list[usage_sql.QuarterSum]:
    pytest.fail("run again")


def name_of(archive: store.Archive) -> str:
    return str(archive.database.execute("SELECT name FROM reports").fetchone()[0])


def test_a_new_call_is_added(archive: store.Archive, tmp_path: Path) -> None:
    cached(archive)
    write(tmp_path, 5)
    sync_home(archive, tmp_path)
    assert [one.calls for one in cached(archive)] == [5]


def test_only_quarters_that_changed_are_added_up_again(archive: store.Archive) -> None:
    cached(archive)
    archive.database.execute("UPDATE model_calls SET at_us = 0 WHERE message_id = 'g1'")
    (was, new) = sorted(row[0] for row in archive.database.execute("SELECT quarter_us FROM changed_quarters"))[::-1]
    assert (was % 900_000_000, new) == (0, 0)
    asked = []

    def run_changed() -> list[usage_sql.QuarterSum]:
        asked.append(1)
        return []

    assert usage_sql.cached_rows(archive.database, name_of(archive), usage_sql.QuarterSum, fails, run_changed) == []
    assert asked


NEW = "1, 1, 1, 1, 1, 1, 1, NULL, NULL, file_version_id, line, NULL FROM model_calls"
CHANGES = (
    "UPDATE model_calls SET cost_nanousd = 1",
    "DELETE FROM model_calls",
    "DELETE FROM model_calls WHERE message_id = 'g0'",
    "UPDATE model_calls SET fate = 'rewound' WHERE message_id = 'g1'",
    "UPDATE model_calls SET at_us = at_us + 900000000 * (message_id = 'g1')",
    "UPDATE model_calls SET at_us = NULL WHERE message_id = 'g0'",
    "UPDATE model_calls SET at_us = -5 WHERE message_id = 'g0'",
    f"INSERT OR REPLACE INTO model_calls SELECT session_id, message_id, 99999999999, model, fate, {NEW} LIMIT 1",
    f"INSERT OR REPLACE INTO model_calls SELECT session_id, message_id || 'x', NULL, 'new', fate, {NEW}",
    "UPDATE model_calls SET owner_session_id = 'another' WHERE message_id = 'g1'",
)


@pytest.mark.parametrize("changes", [*((one,) for one in CHANGES), *permutations(CHANGES, 2)])
def test_whatever_changes_it_is_what_the_calls_come_to(archive: store.Archive, changes: tuple[str, ...]) -> None:
    cached(archive)
    for change in changes:
        archive.database.execute(change)
        assert sorted(cached(archive), key=repr) == added_up(archive)


def test_other_prices_take_its_place(archive: store.Archive) -> None:
    cached(archive)
    assert cached(archive, "others") == cached(archive)
    assert n_kept(archive) == 1


def test_few_rows_are_not_worth_it(archive: store.Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_sql, "_MIN_CACHED", 2)
    assert cached(archive)
    assert n_kept(archive) == 0


def test_what_another_changes_meanwhile_is_seen_next_time(archive: store.Archive) -> None:
    def run() -> list[usage_sql.QuarterSum]:
        rows = usage_sql.quarter_sums(archive.database)
        with closing(sqlite3.connect(archive.path, isolation_level=None)) as other:
            other.execute("UPDATE model_calls SET cost_nanousd = 7")
        return rows

    before = added_up(archive)
    assert usage_sql.cached_rows(archive.database, "sums", usage_sql.QuarterSum, run, fails) == before
    assert n_kept(archive) == 0
    assert not archive.database.in_transaction
    assert cached(archive) == added_up(archive) != before


def test_an_archive_that_takes_no_writes_is_added_up(archive: store.Archive) -> None:
    archive.database.execute("PRAGMA query_only = 1")
    assert [one.calls for one in cached(archive)] == [2]
    assert n_kept(archive) == 0


def test_an_archive_that_takes_no_writes_any_more_is_added_up(archive: store.Archive) -> None:
    cached(archive)
    archive.database.execute("UPDATE model_calls SET fate = 'rewound' WHERE message_id = 'g1'")
    archive.database.execute("PRAGMA query_only = 1")
    assert sorted(cached(archive), key=repr) == added_up(archive)
    assert sorted(cached(archive), key=repr) == added_up(archive)


def test_report_that_cannot_be_read_is_made_anew(archive: store.Archive) -> None:
    first = cached(archive)
    for body in (b"", b"\0\x11", zlib.compress(b"\xc1"), zlib.compress(b"\x91\x01")):
        archive.database.execute("UPDATE reports SET body = ?", (body,))
        assert cached(archive) == first
        assert usage_sql.cached_rows(archive.database, name_of(archive), usage_sql.QuarterSum, fails, fails) == first


def test_report_that_became_short_is_thrown_away(archive: store.Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    cached(archive)
    archive.database.execute("DELETE FROM model_calls WHERE message_id = 'g0'")
    monkeypatch.setattr(usage_sql, "_MIN_CACHED", 2)
    assert cached(archive) == added_up(archive)
    assert n_kept(archive) == 0
    assert archive.database.execute("SELECT count(*) FROM changed_quarters").fetchone() == (0,)


def test_what_is_forgotten_is_in_no_report(archive: store.Archive) -> None:
    assert cached(archive)
    forget.forget(archive, [builders.SESSION], now_us=1, memory={})
    assert n_kept(archive) == 0
    assert archive.database.execute("SELECT count(*) FROM changed_quarters").fetchone() == (0,)
