"""What runs in other processes, to be killed there: builders of an index."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pollux.archive import store
from pollux.search import prepare
from pollux.search.build import build_index


def build(archive: Path, how: tuple[str, int], pipe: Connection) -> None:
    """Build an index in small batches, and send the result; die where it is told to."""
    prepare.BATCH = 400
    what, number = how
    if what == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
    elif what != "live":
        _die(what, number)
    with store.open_archive(archive, write=False) as opened:
        pipe.send("ready")
        if what == "live":
            pipe.recv()
        result = build_index(archive, opened.database)
    pipe.send((result.n_sessions, result.reason, result.is_busy))


def _die(what: str, number: int) -> None:
    """Kill this process at its statement of some number, or before or after a commit of some number."""
    connect = sqlite3.connect
    left = number
    is_due = False

    def count(statement: str) -> None:
        nonlocal left, is_due
        if is_due:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= what == "statement" or statement == "COMMIT"
        is_due = left <= 0
        if is_due and what != "after commit":
            os.kill(os.getpid(), signal.SIGKILL)

    def connected(*args: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401  sqlite3's own
        database: sqlite3.Connection = connect(*args, **options)
        database.set_trace_callback(count)
        return database

    sqlite3.connect = connected  # type: ignore[assignment]
