"""Stored sums are those of the calls, whatever happened to the calls since."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from itertools import permutations
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests import builders
from tests.refreshing import refresh

from pollux import prices
from pollux.archive import forget, store
from pollux.archive.pricing import price_calls
from pollux.reports import usage, usage_days, usage_sql
from pollux.reports.usage import UsageRow
from pollux.reports.usage_days import Days, DaySum, day_sums, update_day_sums

TABLE = prices.load()
DAYS = Days(TABLE, ZoneInfo("UTC"), "UTC")
NAMELESS = Days(TABLE, None, "local")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[store.Archive]:
    write(tmp_path, 2)
    with store.open_archive(tmp_path / "archive.db") as opened:
        sync_home(opened, tmp_path)
        yield opened


def write(root: Path, n_calls: int) -> None:
    calls = [builders.gemini(f"g{n}", second=n, tokens=builders.tokens(10 + n)) for n in range(n_calls)]
    builders.put(builders.chats(root) / f"{builders.NAME}.jsonl", builders.log(builders.header(), *calls))


def sync_home(archive: store.Archive, root: Path) -> None:
    refresh(archive, [builders.home(root)])
    price_calls(archive.database, TABLE)


def stored(archive: store.Archive, days: Days = DAYS) -> tuple[UsageRow, ...]:
    """Return the days of the stored sums, which are renewed first."""
    return usage.time_rows("day", day_sums(archive.database, days), zone=days.zone)


def added_up(archive: store.Archive, days: Days = DAYS) -> tuple[UsageRow, ...]:
    """Return the same from the calls."""
    return usage.time_rows("day", usage_sql.quarter_sums(archive.database), zone=days.zone)


def n_stored(archive: store.Archive) -> int:
    return int(archive.database.execute("SELECT count(*) FROM reports").fetchone()[0])


def n_changed(archive: store.Archive) -> int:
    return int(archive.database.execute("SELECT count(*) FROM changed_quarters").fetchone()[0])


def forbid_adding_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_days, "_added_up", lambda *_: pytest.fail("added up again"))


def test_stored_sums_are_read(archive: store.Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    first = day_sums(archive.database, DAYS)
    assert [part.calls for part in first] == [2]
    forbid_adding_up(monkeypatch)
    assert day_sums(archive.database, DAYS) == first
    assert type(day_sums(archive.database, DAYS)[0]) is DaySum


def test_refresh_stores_them_once(archive: store.Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    update_day_sums(archive.database, DAYS)
    assert (n_stored(archive), n_changed(archive)) == (1, 0)
    forbid_adding_up(monkeypatch)
    update_day_sums(archive.database, DAYS)


def test_a_new_call_is_added(archive: store.Archive, tmp_path: Path) -> None:
    stored(archive)
    write(tmp_path, 5)
    sync_home(archive, tmp_path)
    assert n_changed(archive) == 1
    assert [row.billed.calls for row in stored(archive)] == [5]
    assert n_changed(archive) == 0


NEW = "1, 1, 1, 1, 1, 1, 1, NULL, NULL, file_version_id, line, NULL FROM model_calls"
CHANGES = (
    "UPDATE model_calls SET cost_nanousd = 1",
    "DELETE FROM model_calls",
    "DELETE FROM model_calls WHERE message_id = 'g0'",
    "UPDATE model_calls SET fate = 'rewound' WHERE message_id = 'g1'",
    "UPDATE model_calls SET at_us = at_us - 900000000 * (message_id = 'g1')",
    "UPDATE model_calls SET at_us = NULL WHERE message_id = 'g0'",
    "UPDATE model_calls SET at_us = -5 WHERE message_id = 'g0'",
    f"INSERT OR REPLACE INTO model_calls SELECT session_id, message_id, 99999999999, model, fate, {NEW} LIMIT 1",
    f"INSERT OR REPLACE INTO model_calls SELECT session_id, message_id || 'x', NULL, 'new', fate, {NEW}",
    "UPDATE model_calls SET owner_session_id = 'another' WHERE message_id = 'g1'",
)


@pytest.mark.parametrize("changes", [*((change,) for change in CHANGES), *permutations(CHANGES, 2)])
def test_stored_sums_follow_every_change(archive: store.Archive, changes: tuple[str, ...]) -> None:
    stored(archive)
    for change in changes:
        archive.database.execute(change)
        assert stored(archive) == added_up(archive)


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/St_Johns", "Pacific/Apia"])
def test_days_are_those_of_the_zone(archive: store.Archive, zone: str) -> None:
    insert = f"INSERT INTO model_calls SELECT session_id, ?, ?, model, fate, {NEW} LIMIT 1"
    start = 1_325_000_000_000_000  # days before Samoa skipped one
    for number in range(400):
        archive.database.execute(insert, (f"n{number}", start + number * 3_600_000_000))
    days = Days(TABLE, ZoneInfo(zone), zone)
    assert stored(archive, days) == added_up(archive, days)
    archive.database.execute("DELETE FROM model_calls WHERE message_id IN ('n7', 'n150')")
    assert stored(archive, days) == added_up(archive, days)


def test_another_zone_or_price_table_takes_their_place(archive: store.Archive) -> None:
    stored(archive)
    assert stored(archive, Days(TABLE, ZoneInfo("Asia/Tokyo"), "Asia/Tokyo"))
    assert n_stored(archive) == 1


def test_days_of_another_zone_without_a_name_are_not_used(
    archive: store.Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.database.execute("UPDATE model_calls SET at_us = 1767258000000000 WHERE message_id = 'g0'")  # 09:00
    archive.database.execute("UPDATE model_calls SET at_us = 1767294000000000 WHERE message_id = 'g1'")  # 19:00
    assert len(stored(archive, NAMELESS)) == 1
    monkeypatch.setattr(usage_days, "local", lambda at, _zone: at.astimezone(ZoneInfo("Asia/Tokyo")))
    assert len(day_sums(archive.database, NAMELESS)) == 2


def test_other_stored_results_stay(archive: store.Archive) -> None:
    archive.database.execute("INSERT INTO reports VALUES ('deletions', x'00')")
    stored(archive)
    assert n_stored(archive) == 2


def test_what_another_changes_meanwhile_is_seen_next_time(
    archive: store.Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_up = usage_days._added_up

    def racing(database: sqlite3.Connection, *arguments: object) -> list[DaySum]:
        rows = add_up(database, *arguments)  # type: ignore[arg-type]
        with closing(sqlite3.connect(archive.path, isolation_level=None)) as other:
            other.execute("UPDATE model_calls SET cost_nanousd = 7")
        return rows

    before = added_up(archive)
    monkeypatch.setattr(usage_days, "_added_up", racing)
    assert stored(archive) == before
    assert n_stored(archive) == 0
    assert not archive.database.in_transaction
    monkeypatch.setattr(usage_days, "_added_up", add_up)
    assert stored(archive) == added_up(archive) != before


def test_an_archive_that_takes_no_writes_is_added_up(archive: store.Archive) -> None:
    archive.database.execute("PRAGMA query_only = 1")
    assert [row.billed.calls for row in stored(archive)] == [2]
    assert n_stored(archive) == 0


def test_an_archive_that_takes_no_writes_any_more_is_added_up(archive: store.Archive) -> None:
    stored(archive)
    archive.database.execute("UPDATE model_calls SET fate = 'rewound' WHERE message_id = 'g1'")
    archive.database.execute("PRAGMA query_only = 1")
    assert stored(archive) == added_up(archive)
    assert stored(archive) == added_up(archive)


def test_sums_that_cannot_be_read_are_made_anew(archive: store.Archive) -> None:
    first = stored(archive)
    for body in (b"", b"\0\x11", zlib.compress(b"\xc1"), zlib.compress(b"\x91\x01")):
        archive.database.execute("UPDATE reports SET body = ?", (body,))
        assert stored(archive) == first


def test_what_is_forgotten_is_in_no_sums(archive: store.Archive) -> None:
    assert stored(archive)
    forget.forget(archive, [builders.SESSION], now_us=1, memory={})
    assert (n_stored(archive), n_changed(archive)) == (0, 0)
