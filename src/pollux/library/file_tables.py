"""Facts of session files, in tables of the same shape as the archive's."""
# ruff: noqa: PLC0415  imported when files are read

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from pollux.library import project_memory
from pollux.library.snapshot import SessionFiles, Snapshot

if TYPE_CHECKING:
    import sqlite3

    from pollux.archive.memory import Files
    from pollux.library.config import Config
    from pollux.library.freshness import Reporter
    from pollux.model import Problem
    from pollux.prices import Prices
    from pollux.reports.freshness import Freshness
    from pollux.sessions.reader import History


class FileTables:
    """Tables of the session files of some homes, filled on first use and locked to one thread at a time."""

    def __init__(self, config: Config, report: Reporter) -> None:
        """Store the settings, and a callback for progress bars."""
        self._config, self._report = config, report
        self._history: History | None = None
        self._numbers: Files | None = None
        self._tables: dict[bool, tuple[sqlite3.Connection, list[Problem]]] = {}
        self._lock = threading.RLock()

    @contextmanager
    def snapshot(self, prices: Prices, freshness: Freshness, *, tools: bool) -> Iterator[Snapshot]:
        """Open a snapshot of the tables; with `tools`, also of those that need every message."""
        with self._lock:
            memory = project_memory.with_current_folder(self._config)
            history = self._read(memory, prices, tools=tools)
            database, failures = self._write(history, prices, tools=tools)
            yield Snapshot(self._config, database, SessionFiles(history, failures), history.located, freshness, memory)

    def clear(self) -> None:
        """Discard the tables, so that the next snapshot reads the files again."""
        with self._lock:
            self._history = None
            for database, _ in self._tables.values():
                database.close()
            self._tables.clear()

    def _read(self, memory: dict[str, str], prices: Prices, *, tools: bool) -> History:
        from pollux.archive.memory import Files, opened_rows
        from pollux.sessions.locate import locate
        from pollux.sessions.reader import located_history

        if self._history is None:
            located = locate(self._config.homes)
            self._numbers = Files(str(file.path) for file in located.files) if tools else None
            derive = partial(opened_rows, self._numbers, prices) if self._numbers else None
            with self._report("reading") as progress:
                self._history = located_history(located, memory=memory, progress=progress, derive=derive)
        return self._history

    def _write(self, history: History, prices: Prices, *, tools: bool) -> tuple[sqlite3.Connection, list[Problem]]:
        from pollux.archive.memory import in_memory
        from pollux.sessions.reader import opened

        if tools not in self._tables:
            failures: list[Problem] = []
            database = in_memory(
                history.sessions,
                failures,
                opened if tools else None,
                prices=prices,
                repeated=history.repeated,
                files=self._numbers,
                derived=history.derived,
            )
            self._tables[tools] = database, failures
            self._history = msgspec.structs.replace(history, derived={})
        return self._tables[tools]
