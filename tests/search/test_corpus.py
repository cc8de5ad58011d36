"""Sessions come in the order of the request, however many there are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

import pytest

from pollux.search import corpus
from pollux.search.corpus import NEWEST, OLDEST, RELEVANCE, Corpus, Request, SearchScope
from pollux.search.query import parse_query

TIMES = {f"{number:04}": 1 + number * 7919 % 500 for number in range(3000)} | {"none": None, "also none": None}
"""Many sessions share a time, and some have none."""


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE sessions (session_id TEXT PRIMARY KEY, last_used_us INTEGER)")
        connection.execute("CREATE INDEX sessions_by_use ON sessions (last_used_us DESC, session_id)")
        connection.executemany("INSERT INTO sessions VALUES (?, ?)", TIMES.items())
        yield connection


def scope(database: sqlite3.Connection, sort: str) -> SearchScope:
    source = Corpus(database, None, cast("Any", None), cast("Any", None))
    return SearchScope(source, Request(parse_query("word", now=datetime(2026, 11, 18, tzinfo=UTC)), sort=sort), ())


@pytest.mark.parametrize("sort", [RELEVANCE, NEWEST, OLDEST])
@pytest.mark.parametrize("ids", [set(TIMES), {*list(TIMES)[::3], "none"}, {"unknown", *list(TIMES)[:2500]}])
def test_many_sessions_have_the_order_of_few(
    database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, sort: str, ids: set[str]
) -> None:
    monkeypatch.setattr(corpus, "_FEW", 10_000)
    sorted_keys = [key for key in scope(database, sort).ordered(ids) if key.session_id in TIMES]
    monkeypatch.setattr(corpus, "_FEW", 0)
    monkeypatch.setattr(corpus, "_FIRST_WALKED", 7)
    assert list(scope(database, sort).ordered(ids)) == sorted_keys


def test_first_page_of_many_sessions_reads_few_rows(database: sqlite3.Connection) -> None:
    ordered = scope(database, NEWEST)
    list(islice(ordered.ordered(set(TIMES)), 20))
    assert len(ordered._used) == corpus._FIRST_WALKED < len(TIMES)
