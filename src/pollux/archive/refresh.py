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

from pollux.archive import dependents, schema
from pollux.archive.inventory import Item, belongs_to, inventory, place_of
from pollux.archive.migrations import transaction
from pollux.archive.store import Archive
from pollux.model import Problem
from pollux.sessions.locate import Home, Located, Look, locate
from pollux.text.times import microseconds
from pollux.text.unicode import sound

if TYPE_CHECKING:
    from pollux.sessions.reader import Progress

_SHARES = 4
"""Of the work on a new file: one to keep it, the others to read it."""
_TICK_US = 20_000
"""Longer than a tick of any clock that file systems go by, but for those of old memory cards."""
_LONGEST_US = 600_000_000
"""A refresh that takes longer than that may miss it; a file that is dated later has its time from elsewhere."""
_MAY_BE_OLDER = " OR ".join(
    f"({column} / 1000 > last_us - {_TICK_US} AND {column} / 1000 < last_us + {_LONGEST_US})"
    for column in ("mtime_ns", "ctime_ns")
)
"""Whether a file may have been written again right after we looked, without its times telling.

File systems count in ticks: who writes twice within one leaves the same times.
"""
_UNSEEN = ("unreadable-folder", "link-outside")
"""Problems that hide files which may still be there."""
_NO_MEMORY: Mapping[str, str] = {}


def _now() -> datetime:
    return datetime.now(UTC)


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


def refresh_to_read(
    archive: Archive,
    homes: Iterable[Home],
    *,
    memory: Mapping[str, str],
    progress: Progress,
) -> Refreshed:
    """Refresh an archive as far as there is room; where there is none, it is read like one that cannot be written."""
    found = _look(homes)
    try:
        _take_in(archive, found, memory=memory, now=_now, progress=progress, derives=True)
    except sqlite3.OperationalError as error:
        if not _is_about_room(error):
            raise
        archive.stop_writing(str(error))
    return found.result


def refresh(
    archive: Archive,
    homes: Iterable[Home],
    *,
    memory: Mapping[str, str] = _NO_MEMORY,
    now: Callable[[], datetime] = _now,
    progress: Progress = lambda _done, _all: None,
    derives: bool = True,
) -> Refreshed:
    """Bring an archive up to date with some homes; one that cannot be written stays as it is.

    Raises `sqlite3.OperationalError` where there is no room.

    Args:
        archive: to write to.
        homes: to look at.
        memory: paths of projects that were proven before.
        now: the clock.
        progress: is told how far it is.
        derives: whether the facts are brought up to date too, and not only the bytes kept.

    """
    found = _look(homes)
    _take_in(archive, found, memory=memory, now=now, progress=progress, derives=derives)
    return found.result


class _Found(NamedTuple):
    """What is on the disk, and what a refresh came to so far."""

    look: Look
    result: Refreshed


def _look(homes: Iterable[Home]) -> _Found:
    look = Look()
    return _Found(look, Refreshed(locate(homes, look), problems=look.problems))


def _is_about_room(error: sqlite3.OperationalError) -> bool:
    """Return whether an error is about room on the disk; SQLite calls some of these an I/O error."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_FULL)
    return code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def _take_in(
    archive: Archive,
    found: _Found,
    *,
    memory: Mapping[str, str],
    now: Callable[[], datetime],
    progress: Progress,
    derives: bool,
) -> None:
    look, result = found
    if not archive.is_writable:
        return
    if not schema.are_current(archive.database):
        with transaction(archive.database):
            schema.reset(archive.database)
    items = inventory(result.located, look)
    now_us = microseconds(now()) or 0
    missing, changed = compared(archive.database, items)
    _note_gone(archive.database, missing, items, result, now_us)
    if changed or (derives and schema.are_behind(archive.database)):
        from pollux.archive import ingest  # noqa: PLC0415  packs and reads: a third of a start where nothing is new

        keeping, deriving = _shares(progress, _SHARES if derives else 1)
        ingest.keep(archive, changed, result, now_us=now_us, progress=keeping)
        if derives:
            ingest.derive(archive, result, memory=memory, progress=deriving)


def files_say_more(database: sqlite3.Connection, located: Located) -> bool:
    """Return whether the files on the disk say more than an archive: it lacks some, and holds none that are deleted."""
    names = "files.path LIKE 'tmp/%/chats/%' AND files.forgotten_us IS NULL"
    gone = database.execute(f"SELECT 1 FROM files WHERE gone_us IS NOT NULL AND {names} LIMIT 1").fetchone()  # noqa: S608
    if gone:
        return False
    rows = database.execute(
        f"SELECT home, path, size FROM files WHERE {names} AND version_id NOT IN (SELECT versions.id {schema.UNREAD})"  # noqa: S608
    )
    known = {(str(place_of(home, path)), size) for home, path, size in rows}
    return any((sound(file.place), file.size) not in known for file in located.files)


def lacks_files(database: sqlite3.Connection, located: Located) -> bool:
    """Return whether there are session files on the disk that an archive has never read."""
    rows = database.execute("SELECT home, path FROM files WHERE path LIKE 'tmp/%/chats/%'")
    known = {str(place_of(home, path)) for home, path in rows}
    return any(sound(file.place) not in known for file in located.files)


def _shares(progress: Progress, number: int) -> tuple[Progress, Progress]:
    """Tell of work that has two parts: the first is one of some shares, the second all the others."""
    return (
        lambda done, whole: progress(done, whole * number),
        lambda done, whole: progress(whole + done * (number - 1), whole * number),
    )


_Known: TypeAlias = tuple[str, str, int, int, int, int]
"""Home and path of a file, and its status when it was last looked into: size, mtime, inode and ctime.

The ctime tells of a file that was edited and given its old mtime back; any change of a file's status costs one look.
"""


def compared(database: sqlite3.Connection, items: list[Item]) -> tuple[set[_Known], list[Item]]:
    """Return how files looked last time that do not look so any more, and what there is to look into now."""
    known = _known(database)
    found: dict[_Known, Item] = {one[:2] + one[3:]: one for one in items}
    if known == found.keys():
        return set(), []
    return known - found.keys(), _wanted(database, [one for look, one in found.items() if look not in known])


def _known(database: sqlite3.Connection) -> set[_Known]:
    """Return the files that were there last time; one that has to be looked into again has a size that none has."""
    rows = database.execute(
        f"""
        SELECT home, path, CASE WHEN {_MAY_BE_OLDER} THEN -1 ELSE size END, mtime_ns, inode, ctime_ns
        FROM files NOT INDEXED
        WHERE machine = ? AND gone_us IS NULL
        """,  # noqa: S608  ours
        (platform.node(),),
    )
    return set(rows)


def _wanted(database: sqlite3.Connection, changed: list[Item]) -> list[Item]:
    """Leave out what is to be forgotten."""
    if not changed:
        return []
    rows = database.execute(
        "SELECT home, path FROM files WHERE machine = ? AND forgotten_us IS NOT NULL", (platform.node(),)
    )
    files = set(rows.fetchall())
    sessions = [row[0] for row in database.execute("SELECT session_id FROM tombstones")]
    return [one for one in changed if (one.home, one.path) not in files and not belongs_to(one.path, sessions)]


def _note_gone(
    database: sqlite3.Connection, missing: set[_Known], items: list[Item], result: Refreshed, now_us: int
) -> None:
    """Note which files are no longer there; a home that is not there at all is only not mounted."""
    if not missing:
        return
    there = {(one.home, one.path) for one in items}
    unseen = tuple(str(problem.file) for problem in result.problems if problem.code in _UNSEEN)
    homes = {sound(str(home.root)) for home in result.located.homes if home.tmp.is_dir()}
    gone = [
        (now_us, platform.node(), home, path)
        for home, path, *_ in missing
        if (home, path) not in there and home in homes and not str(place_of(home, path)).startswith(unseen)
    ]
    if gone:
        with transaction(database):
            for row in gone:
                database.execute("UPDATE files SET gone_us = ? WHERE machine = ? AND home = ? AND path = ?", row)
                dependents.note_files(database, "machine = ? AND home = ? AND path = ?", row[1:])
            dependents.update(database)
    result.n_gone += len(gone)
