"""What changed: stat the homes, and compare with what the archive knows of them.

Where nothing did, that is all; `intake` has the rest, and is not even loaded.
"""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pollux.archive import facts
from pollux.archive.inventory import Item, belongs_to, inventory, place_of
from pollux.archive.migrations import transaction
from pollux.archive.store import Archive
from pollux.formats.times import microseconds
from pollux.locate import Home, Located, locate
from pollux.model import Problem

if TYPE_CHECKING:
    from pollux.sessions import Progress

_NO_MEMORY: Mapping[str, str] = {}


@dataclass(slots=True)
class Refreshed:
    """What a refresh came to."""

    located: Located
    n_files: int = 0
    """Files with something new."""
    n_bytes: int = 0
    """New bytes."""
    n_gone: int = 0
    sessions: set[str] = field(default_factory=set)
    """Ids whose facts were written."""
    problems: list[Problem] = field(default_factory=list)


def refresh(
    archive: Archive,
    homes: Iterable[Home],
    *,
    memory: Mapping[str, str] = _NO_MEMORY,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    progress: Progress = lambda _done, _all: None,
) -> Refreshed:
    """Bring an archive up to date with some homes; one that cannot be written stays as it is."""
    located = locate(homes)
    result = Refreshed(located, problems=list(located.problems))
    if not archive.is_writable:
        return result
    if not facts.are_current(archive.database):
        with transaction(archive.database):
            facts.reset(archive.database)
    items = list(inventory(located, result.problems))
    now_us = microseconds(now()) or 0
    _note_gone(archive.database, located, items, result, now_us)
    changed = _changed(archive.database, items)
    if changed or facts.are_behind(archive.database):
        from pollux.archive import intake  # noqa: PLC0415  packs and reads: a third of a start where nothing is new

        intake.take_in(archive, changed, result, memory=memory, now_us=now_us, progress=progress)
    return result


def _changed(database: sqlite3.Connection, items: list[Item]) -> list[Item]:
    """Return the files that are not as they were last time."""
    known = {
        (home, path): (size, mtime_ns, inode, gone_us, forgotten_us)
        for home, path, size, mtime_ns, inode, gone_us, forgotten_us in database.execute(
            "SELECT home, path, size, mtime_ns, inode, gone_us, forgotten_us FROM files WHERE machine = ?",
            (platform.node(),),
        )
    }
    forgotten = [row[0] for row in database.execute("SELECT session_id FROM tombstones")]
    return [
        one
        for one in items
        if _has_changed(one, known.get((one.home, one.path))) and not belongs_to(one.path, forgotten)
    ]


def _has_changed(item: Item, known: tuple[int, int, int, int | None, int | None] | None) -> bool:
    if known is None:
        return True
    size, mtime_ns, inode, gone_us, forgotten_us = known
    return forgotten_us is None and (
        (size, mtime_ns, inode) != (item.size, item.mtime_ns, item.inode) or gone_us is not None
    )


def _note_gone(
    database: sqlite3.Connection, located: Located, items: list[Item], result: Refreshed, now_us: int
) -> None:
    """Note which files are no longer there; a home that is not there at all is only not mounted."""
    there = {(one.home, one.path) for one in items}
    unseen = tuple(str(problem.file) for problem in result.problems if problem.code == "unreadable-folder")
    homes = [str(home.root) for home in located.homes if home.tmp.is_dir()]
    with transaction(database):
        for home in homes:
            rows = database.execute(
                "SELECT id, path FROM files WHERE machine = ? AND home = ? AND gone_us IS NULL", (platform.node(), home)
            ).fetchall()
            gone = [
                (now_us, file_id)
                for file_id, path in rows
                if (home, path) not in there and not str(place_of(home, path)).startswith(unseen)
            ]
            database.executemany("UPDATE files SET gone_us = ? WHERE id = ?", gone)
            result.n_gone += len(gone)
