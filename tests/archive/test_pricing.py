"""Every model call has its price looked up once, and again when the table changes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec
import pytest
from tests import builders
from tests.refreshing import refresh

from pollux import prices
from pollux.archive import schema, store
from pollux.archive.pricing import price_calls


@pytest.fixture
def path(tmp_path: Path) -> Path:
    home = builders.home(tmp_path)
    priced = builders.gemini("g1", tokens=builders.tokens(1000))
    unknown = builders.gemini("g2", second=9, tokens=builders.tokens(500), model="gemini-9.9-ultra")
    nameless = builders.gemini("g3", second=10, tokens=builders.tokens(600), model=None)
    data = builders.log(builders.header(), builders.user(), priced, unknown, nameless)
    builders.put(builders.chats(tmp_path) / f"{builders.NAME}.jsonl", data)
    with store.open_archive(tmp_path / "archive.db") as archive:
        refresh(archive, [home])
    return tmp_path / "archive.db"


def rows(database: sqlite3.Connection) -> list[tuple[str, int | None, str | None]]:
    return database.execute("SELECT message_id, cost_nanousd, price_id FROM model_calls ORDER BY message_id").fetchall()


def test_calls_are_priced_and_those_without_a_price_are_marked(path: Path) -> None:
    table = prices.load()
    with store.open_archive(path) as archive:
        price_calls(archive.database, table)
        # 999 fresh at 1.25, 1 cached at 0.125, 2 + 3 at 10 dollars a million
        assert rows(archive.database) == [("g1", 1_298_875, "gemini-2.5-pro"), ("g2", None, ""), ("g3", None, "")]
        assert not archive.database.in_transaction


def test_nothing_is_written_without_new_calls(path: Path) -> None:
    table = prices.load()
    with store.open_archive(path) as archive:
        price_calls(archive.database, table)
        before = archive.database.total_changes
        price_calls(archive.database, table)
        assert archive.database.total_changes == before


def test_another_price_table_prices_all_calls_again(path: Path) -> None:
    with store.open_archive(path) as archive:
        price_calls(archive.database, prices.load())
        archive.database.execute("UPDATE model_calls SET cost_nanousd = 7")
        price_calls(archive.database, msgspec.structs.replace(prices.load(), version="other"))
        assert [row[1] for row in rows(archive.database)] == [1_298_875, None, None]


def test_only_new_calls_are_looked_up(path: Path) -> None:
    table = prices.load()
    with store.open_archive(path) as archive:
        price_calls(archive.database, table)
        archive.database.execute("UPDATE model_calls SET cost_nanousd = 7 WHERE message_id = 'g1'")
        archive.database.execute("UPDATE model_calls SET price_id = NULL WHERE message_id = 'g2'")
        schema.note_new_calls(archive.database)
        price_calls(archive.database, table)
        assert rows(archive.database)[:2] == [("g1", 7, "gemini-2.5-pro"), ("g2", None, "")]


@pytest.mark.parametrize("version", ["same", "other"])
def test_read_only_archive_is_priced_in_memory(path: Path, version: str) -> None:
    table = prices.load()
    if version == "same":
        with store.open_archive(path) as archive:
            archive.database.execute("INSERT INTO facts_meta VALUES ('prices', ?)", (table.version,))
    with store.open_archive(path, write=False) as archive:
        price_calls(archive.database, table)
        assert rows(archive.database)[0] == ("g1", 1_298_875, "gemini-2.5-pro")
        stored = archive.database.execute("SELECT price_id FROM main.model_calls").fetchall()
        assert stored == [(None,)] * 3
