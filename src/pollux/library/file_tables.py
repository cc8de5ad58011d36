"""Facts of session files, in tables of the same shape as the archive's."""
# ruff: noqa: PLC0415  imported when files are read

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pollux.library import project_memory
from pollux.library.snapshot import SessionFiles, Snapshot

if TYPE_CHECKING:
    import sqlite3

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
        self._tables: dict[bool, tuple[sqlite3.Connection, list[Problem]]] = {}
        self._lock = threading.RLock()

    @contextmanager
    def snapshot(self, prices: Prices, freshness: Freshness, *, tools: bool) -> Iterator[Snapshot]:
        """Open a snapshot of the tables; with `tools`, also of those that need every message."""
        with self._lock:
            memory = project_memory.with_current_folder(self._config)
            history = self._read(memory)
            database, failures = self._write(history, prices, tools=tools)
            yield Snapshot(self._config, database, SessionFiles(history, failures), history.located, freshness, memory)

    def clear(self) -> None:
        """Discard the tables, so that the next snapshot reads the files again."""
        with self._lock:
            self._history = None
            for database, _ in self._tables.values():
                database.close()
            self._tables.clear()

    def _read(self, memory: dict[str, str]) -> History:
        from pollux.sessions.reader import history

        if self._history is None:
            with self._report("reading") as progress:
                self._history = history(self._config.homes, memory=memory, progress=progress)
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
            )
            self._tables[tools] = database, failures
        return self._tables[tools]
