"""Functions that run in other processes and are killed there: they change a home and refresh its archive."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.archive.growing import APPENDED, PLACES, Life, Step, merge_all, rebuild
from tests.refreshing import refresh

from pollux.archive import store
from pollux.archive.maintenance import writable
from pollux.errors import ArchiveError
from pollux.sessions.locate import Home

Acknowledged = list[tuple[str, str, int, str]]
"""Home, path, size and SHA-256 of each archived file."""


def any_step(rng: random.Random) -> Step:
    what = rng.choice(["append", "lines", "lines", "rewrite", "shrink", "replace", "delete", "touch"])
    name = rng.choice(APPENDED) if what in ("append", "lines") else rng.choice([*PLACES])
    return what, "document" if what == "rewrite" else name, rng.randint(0, 1), rng.randint(1, 40)


def keep_on(archive: Path, root: Path, pipe: Connection, seed: int, fatal: int | None) -> None:
    """Change the home and refresh the archive repeatedly, and send the archived files; die at the `fatal` statement."""
    rng, life = random.Random(seed), Life(root, time.monotonic_ns())  # noqa: S311  no secret
    if fatal:
        _die_at(fatal)
    pipe.send([])
    while True:
        with store.open_archive(archive, wait=lambda _who: None) as opened:
            for _ in range(rng.randint(1, 6)):
                for _ in range(rng.randint(1, 4)):
                    life.take(any_step(rng))
                acknowledged = summed(life)
                refresh(opened, life.homes)
                pipe.send(acknowledged)
                match rng.randint(0, 5):
                    case 0:
                        merge_all(opened)
                    case 1:
                        rebuild(opened, life.homes)


def summed(life: Life) -> Acknowledged:
    return [
        (home, path, len(data), hashlib.sha256(data).hexdigest())
        for home, path, data in life.files()
        if not path.endswith(".tmp")
    ]


def sync_once(archive: Path, homes: tuple[Home, ...], pipe: Connection, limit: int | None = None) -> None:
    """Refresh the archive once, and send the result; `limit` bounds the size of each file."""
    sys.argv = ["pollux", "sync"]
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    try:
        with writable(archive, create=True, wait=lambda _who: None) as opened:
            result = refresh(opened, homes)
    except ArchiveError as error:
        pipe.send(str(error))
    else:
        pipe.send((result.n_files, result.n_bytes))


def hold(archive: Path, pipe: Connection) -> None:
    """Hold the writer's lock until a message arrives."""
    sys.argv = ["pollux", "verify"]
    with store.open_archive(archive):
        pipe.send("held")
        pipe.recv()


def _die_at(number: int) -> None:
    """Kill this process when SQLite is about to run this statement, by its number."""
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect
    left = number

    def count(_statement: str) -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def connected(*args: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401  arguments of sqlite3
        database = connect(*args, **options)
        database.set_trace_callback(count)
        return database

    sqlite3.connect = connected  # type: ignore[assignment]
