"""A long-running process counts again only when the archive has changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import OTHER, chats, gemini, header, log, put, tokens, user
from tests.web.homes import long_home

from pollux.library.config import configure
from pollux.library.library import Library
from pollux.reports import sessions
from pollux.reports.filters import Filter
from pollux.reports.sessions import SessionQuery


def test_lists_are_counted_once_until_the_archive_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = long_home(tmp_path / "home", 3)
    counted: list[SessionQuery] = []
    count = sessions.count

    def counting(database: object, query: SessionQuery) -> int:
        counted.append(query)
        return count(database, query)  # type: ignore[arg-type]

    monkeypatch.setattr(sessions, "count", counting)
    with Library(configure(named_homes=[home], archive=tmp_path / "archive.db")) as library:
        assert library.sessions().total == 1
        n_counted = len(counted)
        assert library.sessions().total == 1
        assert len(counted) == n_counted
        assert library.sessions(Filter(model="no-such-model")).total == 0
        records = (user("x1", "hello"), gemini("y1", "hi", tokens=tokens(7)))
        put(chats(home) / "session-2026-11-15T19-40-b3e2640d.jsonl", log(header(OTHER), *records))
        library.refresh()
        assert library.sessions().total == library.sessions().listed == 2
