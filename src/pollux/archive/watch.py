"""Sync whenever a running client writes something, until stopped.

The system reports changes; where it cannot, as on network file systems, the folders are polled. Twice a second the
homes themselves are checked too, so that one that is created, mounted or replaced is watched from then on. No single
event matters: each only says that a sync is due.

On Linux every folder needs its own watch. watchfiles would find folders by following links, possibly across the whole
disk, so they are listed here, and again after each change: a new folder is a change of its parent.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from pollux.archive.refresh import RefreshResult
from pollux.archive.store import Archive
from pollux.errors import ArchiveError
from pollux.model import Problem
from pollux.sessions.locate import Home

Homes = Callable[[], Iterable[Home]]
Tell = Callable[[str], None]
_Result = TypeVar("_Result")

MOUNTS = Path("/proc/mounts")
_STEP_MS, _DEBOUNCE_MS = 50, 200
_CHECK_MS = 500
"""Milliseconds between two checks of the homes themselves."""
_MAX_WAIT = 60.0
"""Seconds after which a sync runs although no change was reported."""
_MIN_PAUSE, _MAX_PAUSE = 0.25, 30.0
"""Seconds between attempts when a sync fails."""
_EACH_FOLDER = sys.platform == "linux"
_MAX_TITLES = 3
_NO_TITLES: Mapping[str, str] = {}
_REMOTE = {"9p", "afs", "ceph", "cifs", "drvfs", "lustre", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
"""File systems that other computers can change without this system noticing."""
_ESCAPED = re.compile(r"\\(\d{3})")


class SyncReport(msgspec.Struct, frozen=True):
    """What a sync copied into an archive."""

    archive: Path
    homes: tuple[str, ...] = ()
    n_projects: int = 0
    n_files: int = 0
    """Files with new bytes."""
    n_bytes: int = 0
    """New bytes."""
    n_deleted: int = 0
    """Files that the client has deleted since the last sync."""
    sessions: tuple[str, ...] = ()
    """The IDs of the sessions whose facts were written."""
    titles: Mapping[str, str] = _NO_TITLES
    """Of the first few sessions."""
    problems: tuple[Problem, ...] = ()


def sync_report(archive: Archive, result: RefreshResult) -> SyncReport:
    """Return the report of a refresh, with the titles of the first few sessions."""
    sessions = tuple(sorted(result.sessions))
    return SyncReport(
        archive.path,
        tuple(str(home.root) for home in result.located.homes),
        len(result.located.folders),
        result.n_files,
        result.n_bytes,
        result.n_deleted,
        sessions,
        _titles(archive.database, sessions[:_MAX_TITLES]),
        tuple(result.problems),
    )


def watch(homes: Homes, sync: Callable[[], _Result], *, poll: bool, tell: Tell) -> Iterator[_Result]:
    """Sync immediately and after every change, and yield the result of each sync; never ends.

    A failed sync is repeated until it succeeds; each different error is reported once with `tell`.
    """
    for _ in changes(homes, poll=poll, tell=tell):
        yield _retry(sync, tell)


def changes(homes: Homes, *, poll: bool = False, tell: Tell = lambda _message: None) -> Iterator[None]:
    """Yield immediately, and again whenever something in the homes may have changed; never ends."""
    while True:
        yield
        folders, last = _folders(homes()), float("-inf")  # changes before the first check must be noticed
        for is_changed in _checks([*folders], poll=poll, tell=tell):
            if _folders(homes()) != folders:
                break
            if is_changed or time.monotonic() - last > _MAX_WAIT:
                yield
                last = time.monotonic()


def is_remote(folders: Iterable[str], mounts: str) -> bool:
    """Return whether a folder is on a file system that reports no changes, according to the table of mounts."""
    kinds = {}
    for line in mounts.splitlines():
        _, mount_point, kind, *_ = line.split(" ")
        kinds[_ESCAPED.sub(lambda match: chr(int(match[1], 8)), mount_point)] = kind
    return any(_is_remote_kind(kinds.get(_mount(os.path.realpath(folder), kinds), "")) for folder in folders)


def _mount(folder: str, mounts: Mapping[str, str]) -> str:
    return next((path for path in (folder, *map(str, Path(folder).parents)) if path in mounts), "")


def _is_remote_kind(kind: str) -> bool:
    return kind in _REMOTE or kind.startswith(("nfs", "fuse.")) or kind == "fuse"


def _checks(folders: Sequence[str], *, poll: bool, tell: Tell) -> Iterator[bool]:
    """Yield at least twice a second whether something in the folders has changed."""
    import watchfiles  # noqa: PLC0415  only a watch needs it

    if folders and not poll and not is_remote(folders, _mounts()):
        watched, is_first = _watched(folders), True
        try:
            for events in watchfiles.watch(
                *watched,
                recursive=not _EACH_FOLDER,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                rust_timeout=_CHECK_MS,
                yield_on_timeout=True,
                force_polling=False,
                ignore_permission_denied=True,
            ):
                yield bool(events)
                if (events or is_first) and _watched(folders) != watched:
                    return  # a folder was created or deleted
                is_first = False
        except FileNotFoundError:
            return  # deleted since it was listed
        except (OSError, RuntimeError) as error:  # the limit of watches is reached
            tell(f"The system cannot report changes ({error}); polling the folders instead.")
    yield from _polled(folders)


def _polled(folders: Sequence[str]) -> Iterator[bool]:
    """Compare the folders again and again; watchfiles can poll too, but misses changes within the same second."""
    before = None
    while True:
        started = time.monotonic()
        now = set(_stamps(folders))
        took = time.monotonic() - started
        yield before is not None and now != before
        before = now
        time.sleep(max(_CHECK_MS / 1000, 4 * took))  # idle most of the time, even if the folders are slow


def _stamps(folders: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)  # noqa: PTH118  a hot loop
                with suppress(OSError):  # deleted since it was listed
                    status = os.stat(path)  # noqa: PTH116
                    yield path, status.st_size, status.st_mtime_ns


def _watched(folders: Iterable[str]) -> list[str]:
    """Return the folders to watch, with subfolders if each needs its own watch, but without following links."""
    if not _EACH_FOLDER:
        return [*folders]
    return [place for folder in folders for place, _, _ in os.walk(folder)]


def _folders(homes: Iterable[Home]) -> dict[str, tuple[int, int]]:
    """Return the existing folders with device and inode, which reveal that one was replaced."""
    folders = {}
    for home in homes:
        with suppress(OSError):
            status = home.tmp.stat()
            folders[str(home.tmp)] = (status.st_dev, status.st_ino)
    return folders


def _mounts() -> str:
    try:
        return MOUNTS.read_text("utf-8", "replace")
    except OSError:
        return ""  # not Linux


def _retry(sync: Callable[[], _Result], tell: Tell) -> _Result:
    """Sync until it succeeds, with increasing pauses; report each different error once."""
    pause, reported = _MIN_PAUSE, ""
    while True:
        try:
            result = sync()
        except (ArchiveError, OSError, sqlite3.Error) as error:
            if str(error) != reported:
                reported = str(error)
                tell(f"{reported} Trying again until it works.")
            time.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE)
            continue
        if reported:
            tell("It works again.")
        return result


def _titles(database: sqlite3.Connection, ids: Sequence[str]) -> dict[str, str]:
    marks = ", ".join("?" * len(ids))
    return dict(database.execute(f"SELECT session_id, title FROM sessions WHERE session_id IN ({marks})", ids))  # noqa: S608  only marks
