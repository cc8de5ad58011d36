"""What changed: stat the homes, and compare with what the archive knows of them.

Where nothing did, that is all; `intake` has the rest, and is not even loaded.
"""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from pollux.archive import facts
from pollux.archive.inventory import Item, belongs_to, inventory, place_of
from pollux.archive.migrations import transaction
from pollux.archive.store import Archive
from pollux.locate import Home, Located, locate
from pollux.model import Problem
from pollux.sound import sound
from pollux.times import microseconds

if TYPE_CHECKING:
    from pollux.sessions import Progress

_SHARES = 4
"""Of the work on a new file: one to keep it, the others to read it."""
_TICK_US = 20_000
"""Longer than a tick of any clock that file systems go by, but for those of old memory cards."""
_LONGEST_US = 600_000_000
"""A refresh that takes longer than that may miss it; a file that is dated later has its time from elsewhere."""
_MAY_BE_OLDER = f"mtime_ns / 1000 > last_us - {_TICK_US} AND mtime_ns / 1000 < last_us + {_LONGEST_US}"
"""Whether a file may have been written again right after we looked, without its time telling.

File systems count in ticks: who writes twice within one leaves the same time.
"""
_NO_MEMORY: Mapping[str, str] = {}


class Refreshed(msgspec.Struct):
    """What a refresh came to."""

    located: Located
    n_files: int = 0
    """Files with something new."""
    n_bytes: int = 0
    """New bytes."""
    n_gone: int = 0
    sessions: set[str] = msgspec.field(default_factory=set)
    """Ids whose facts were written."""
    problems: list[Problem] = msgspec.field(default_factory=list)


def refresh(
    archive: Archive,
    homes: Iterable[Home],
    *,
    memory: Mapping[str, str] = _NO_MEMORY,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    progress: Progress = lambda _done, _all: None,
    derives: bool = True,
) -> Refreshed:
    """Bring an archive up to date with some homes; one that cannot be written stays as it is.

    Args:
        archive: to write to.
        homes: to look at.
        memory: paths of projects that were proven before.
        now: the clock.
        progress: is told how far it is.
        derives: whether the facts are brought up to date too, and not only the bytes kept.

    """
    located = locate(homes)
    result = Refreshed(located, problems=list(located.problems))
    if not archive.is_writable:
        return result
    if not facts.are_current(archive.database):
        with transaction(archive.database):
            facts.reset(archive.database)
    items = inventory(located, result.problems)
    now_us = microseconds(now()) or 0
    changed: list[Item] = []
    if not _are_as_they_were(archive.database, items):
        known = _known(archive.database)
        _note_gone(archive.database, known, items, result, now_us)
        changed = _changed(archive.database, known, items)
    if changed or (derives and facts.are_behind(archive.database)):
        from pollux.archive import intake  # noqa: PLC0415  packs and reads: a third of a start where nothing is new

        keeping, deriving = _shares(progress, _SHARES if derives else 1)
        intake.keep(archive, changed, result, now_us=now_us, progress=keeping)
        if derives:
            intake.derive(archive, result, memory=memory, progress=deriving)
    return result


def _shares(progress: Progress, number: int) -> tuple[Progress, Progress]:
    """Tell of work that has two parts: the first is one of some shares, the second all the others."""
    return (
        lambda done, whole: progress(done, whole * number),
        lambda done, whole: progress(whole + done * (number - 1), whole * number),
    )


def _are_as_they_were(database: sqlite3.Connection, items: list[Item]) -> bool:
    """Tell at once whether all files are as they were last time, and no other was there then."""
    rows = database.execute(
        f"SELECT home, path, size, mtime_ns, inode, {_MAY_BE_OLDER} FROM files WHERE machine = ? AND gone_us IS NULL",  # noqa: S608  ours
        (platform.node(),),
    )
    return set(rows) == {(one.home, one.path, one.size, one.mtime_ns, one.inode, 0) for one in items}


class _Known(NamedTuple):
    """What the archive knows of a file."""

    id: int
    size: int
    mtime_ns: int
    inode: int
    gone_us: int | None
    forgotten_us: int | None
    may_be_older: int
    """Whether it has to be looked into again, however it looks."""


_Files: TypeAlias = dict[tuple[str, str], _Known]
"""By home and path."""


def _known(database: sqlite3.Connection) -> _Files:
    columns = f"home, path, id, size, mtime_ns, inode, gone_us, forgotten_us, {_MAY_BE_OLDER}"
    rows = database.execute(f"SELECT {columns} FROM files WHERE machine = ?", (platform.node(),))  # noqa: S608  ours
    return {(home, path): _Known._make(rest) for home, path, *rest in rows}


def _changed(database: sqlite3.Connection, known: _Files, items: list[Item]) -> list[Item]:
    """Return the files that are not as they were last time."""
    forgotten = [row[0] for row in database.execute("SELECT session_id FROM tombstones")]
    return [
        one
        for one in items
        if _has_changed(one, known.get((one.home, one.path))) and not belongs_to(one.path, forgotten)
    ]


def _has_changed(item: Item, known: _Known | None) -> bool:
    if known is None:
        return True
    is_as_it_was = known[1:4] == item[3:6] and known.gone_us is None and not known.may_be_older
    return known.forgotten_us is None and not is_as_it_was


def _note_gone(database: sqlite3.Connection, known: _Files, items: list[Item], result: Refreshed, now_us: int) -> None:
    """Note which files are no longer there; a home that is not there at all is only not mounted."""
    there = {(one.home, one.path) for one in items}
    unseen = tuple(str(problem.file) for problem in result.problems if problem.code == "unreadable-folder")
    homes = {sound(str(home.root)) for home in result.located.homes if home.tmp.is_dir()}
    gone = [
        (now_us, file.id)
        for (home, path), file in known.items()
        if (home, path) not in there
        and file.gone_us is None
        and home in homes
        and not str(place_of(home, path)).startswith(unseen)
    ]
    if gone:
        with transaction(database):
            database.executemany("UPDATE files SET gone_us = ? WHERE id = ?", gone)
    result.n_gone += len(gone)
