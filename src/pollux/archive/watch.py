"""Until stopped: what a running client writes is taken in as soon as it is on the disk.

The system tells of changes, or, where it cannot (network file systems), the folders are looked through again and
again. Twice a second, moreover, the folders themselves are looked at: one that is made, mounted or put in another's
place is watched from then on. Nothing hangs on a single event: each only says that a refresh is due.

On Linux every folder needs a watch of its own. The library would find them by following links, which may lead to the
whole disk, so they are listed here, and listed again after each change: a new folder is a change of the one above it.
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

from pollux.archive.refresh import Refreshed
from pollux.archive.store import Archive
from pollux.errors import ArchiveError
from pollux.model import Problem
from pollux.sessions.locate import Home

Homes = Callable[[], Iterable[Home]]
Tell = Callable[[str], None]
_Result = TypeVar("_Result")

MOUNTS = Path("/proc/mounts")
_STEP_MS, _DEBOUNCE_MS = 50, 200
_LOOK_MS = 500
"""How often the watched folders themselves are looked at."""
_ANYWAY = 60.0
"""Seconds after which there is a refresh although nothing was told."""
_SHORTEST, _LONGEST = 0.25, 30.0
"""Seconds between attempts when a refresh fails."""
_EACH_FOLDER = sys.platform == "linux"
_NAMED = 3
_NO_TITLES: Mapping[str, str] = {}
_FAR = {"9p", "afs", "ceph", "cifs", "drvfs", "lustre", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
"""File systems on which others write without our system knowing."""
_BLANKS = re.compile(r"\\(\d{3})")


class SyncReport(msgspec.Struct, frozen=True):
    """What a sync copied into an archive."""

    archive: Path
    homes: tuple[str, ...] = ()
    n_projects: int = 0
    n_files: int = 0
    """Files with something new."""
    n_bytes: int = 0
    """New bytes."""
    n_deleted: int = 0
    """Files that the client has deleted since the last sync."""
    sessions: tuple[str, ...] = ()
    """The IDs of the sessions whose facts were written."""
    titles: Mapping[str, str] = _NO_TITLES
    """Of the first few sessions."""
    problems: tuple[Problem, ...] = ()


def sync_report(archive: Archive, result: Refreshed) -> SyncReport:
    """Return what a refresh copied, with the titles of the first few sessions."""
    sessions = tuple(sorted(result.sessions))
    return SyncReport(
        archive.path,
        tuple(str(home.root) for home in result.located.homes),
        len(result.located.folders),
        result.n_files,
        result.n_bytes,
        result.n_gone,
        sessions,
        _titles(archive.database, sessions[:_NAMED]),
        tuple(result.problems),
    )


def watch(homes: Homes, sync: Callable[[], _Result], *, poll: bool, tell: Tell) -> Iterator[_Result]:
    """Sync at once and again at every change, without end; yield what each sync returned.

    A sync that fails is tried again until it works, and `tell` gets each trouble once.
    """
    for _ in changes(homes, poll=poll, tell=tell):
        yield _insist(sync, tell)


def changes(homes: Homes, *, poll: bool = False, tell: Tell = lambda _words: None) -> Iterator[None]:
    """Yield at once, and then whenever something below the homes may be new; without end."""
    while True:
        yield
        folders, last = _folders(homes()), float("-inf")  # so that the first look sees what came before it
        for is_new in _looks([*folders], poll=poll, tell=tell):
            if _folders(homes()) != folders:
                break
            if is_new or time.monotonic() - last > _ANYWAY:
                yield
                last = time.monotonic()


def is_far(folders: Iterable[str], mounts: str) -> bool:
    """Tell by the table of mounts whether some folder is on a file system that tells nobody of its changes."""
    kinds = {}
    for line in mounts.splitlines():
        _, place, kind, *_ = line.split(" ")
        kinds[_BLANKS.sub(lambda found: chr(int(found[1], 8)), place)] = kind
    return any(_is_far(kinds.get(_mount(os.path.realpath(one), kinds), "")) for one in folders)


def _mount(folder: str, places: Mapping[str, str]) -> str:
    return next((one for one in (folder, *map(str, Path(folder).parents)) if one in places), "")


def _is_far(kind: str) -> bool:
    return kind in _FAR or kind.startswith(("nfs", "fuse.")) or kind == "fuse"


def _looks(folders: Sequence[str], *, poll: bool, tell: Tell) -> Iterator[bool]:
    """Yield, twice a second at least, whether something is new in the folders."""
    import watchfiles  # noqa: PLC0415  only a watch needs it

    if folders and not poll and not is_far(folders, _mounts()):
        watched, is_first = _watched(folders), True
        try:
            for found in watchfiles.watch(
                *watched,
                recursive=not _EACH_FOLDER,
                watch_filter=None,
                debounce=_DEBOUNCE_MS,
                step=_STEP_MS,
                rust_timeout=_LOOK_MS,
                yield_on_timeout=True,
                force_polling=False,
                ignore_permission_denied=True,
            ):
                yield bool(found)
                if (found or is_first) and _watched(folders) != watched:
                    return  # a folder came or went
                is_first = False
        except FileNotFoundError:
            return  # gone since it was listed
        except (OSError, RuntimeError) as error:  # no more watches to be had
            tell(f"The system does not tell of changes ({error}); looking for them instead.")
    yield from _compared(folders)


def _compared(folders: Sequence[str]) -> Iterator[bool]:
    """Look through the folders again and again; watchfiles can, but takes changes within one second for one."""
    before = None
    while True:
        began = time.monotonic()
        now = set(_stamps(folders))
        took = time.monotonic() - began
        yield before is not None and now != before
        before = now
        time.sleep(max(_LOOK_MS / 1000, 4 * took))  # most of the time is left to others, however far the folders are


def _stamps(folders: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)  # noqa: PTH118  a hot loop
                with suppress(OSError):  # gone since it was listed
                    status = os.stat(path)  # noqa: PTH116
                    yield path, status.st_size, status.st_mtime_ns


def _watched(folders: Iterable[str]) -> list[str]:
    """List the folders to watch: where each needs a watch of its own, also those below, but none behind a link."""
    if not _EACH_FOLDER:
        return [*folders]
    return [place for folder in folders for place, _, _ in os.walk(folder)]


def _folders(homes: Iterable[Home]) -> dict[str, tuple[int, int]]:
    """Return the folders that are there, each with what tells it from another in its place."""
    found = {}
    for home in homes:
        try:
            status = home.tmp.stat()
        except OSError:
            continue
        found[str(home.tmp)] = (status.st_dev, status.st_ino)
    return found


def _mounts() -> str:
    try:
        return MOUNTS.read_text("utf-8", "replace")
    except OSError:
        return ""  # not Linux


def _insist(sync: Callable[[], _Result], tell: Tell) -> _Result:
    """Try until it works, with longer and longer pauses; say each trouble once."""
    pause, told = _SHORTEST, ""
    while True:
        try:
            result = sync()
        except (ArchiveError, OSError, sqlite3.Error) as error:
            if str(error) != told:
                told = str(error)
                tell(f"{told} Trying again until it works.")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
            continue
        if told:
            tell("It works again.")
        return result


def _titles(database: sqlite3.Connection, ids: Sequence[str]) -> dict[str, str]:
    marks = ", ".join("?" * len(ids))
    return dict(database.execute(f"SELECT session_id, title FROM sessions WHERE session_id IN ({marks})", ids))  # noqa: S608  only marks
