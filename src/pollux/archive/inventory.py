"""List the files of some homes that are archived, by name and status only.

Links are followed only within their home. A home may be a copy from someone else, and a link out of it would put a file
of the reader into the archive, its seals and its backups.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pollux.disk.read import is_within
from pollux.sessions.homes import Home
from pollux.sessions.locate import (
    HomeScan,
    ScanCache,
    SessionFile,
    entries,
    held_inode,
    held_time,
    id8_in,
    link_outside,
    no_regular_file,
    vanished,
)
from pollux.text.escape import escape_surrogates
from pollux.text.numbers import clamped

_AT_ROOT = ("projects.json", "trustedFolders.json", "settings.json")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_NOT_ARCHIVED = (".lock", ".tmp")


class DiskFile(NamedTuple):
    """A file on disk and its status."""

    home: str
    path: str
    """Relative to the home, with `/`; both without unpaired surrogates, so that SQLite can store them."""
    place: str
    """The path to open it with."""
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int


_Known: TypeAlias = Mapping[str, SessionFile]


def inventory(located: HomeScan, look: ScanCache) -> list[DiskFile]:
    """Return all files of all project folders, and the files of the homes that name project paths."""
    files: list[DiskFile] = []
    linked: list[DiskFile] = []
    for home in located.homes:
        for name in _AT_ROOT:
            files += _at_root(home, name, home.link_limit, look)
        for name in _markers(home):
            files += _at_root(home, name, home.root, look)
    for folder in located.folders:
        by_place = {file.place: file for file in folder.files}
        walk = _Walk(files, linked, escape_surrogates(str(folder.home.root)), by_place, look.inside(folder.home))
        walk.add(str(folder.path), f"tmp/{folder.name}")
    return [*files, *_only_linked(linked, files)]


def _markers(home: Home) -> list[str]:
    """Return the files that name the projects of the client's checkpoints, which themselves are not archived."""
    try:
        names = sorted(os.listdir(home.root / "history"))  # noqa: PTH208  a hot loop
    except OSError:
        return []
    return [f"history/{name}/.project_root" for name in names]


def _at_root(home: Home, path: str, within: Path | None, look: ScanCache) -> Iterator[DiskFile]:
    place = str(home.root / path)
    try:
        status = os.stat(place)  # noqa: PTH116  a string
    except OSError:
        return
    if within is not None and not is_within(place, within):
        look.problems.append(link_outside(place))
    elif stat.S_ISREG(status.st_mode):
        yield _item(place, escape_surrogates(str(home.root)), path, status, look)
    else:
        look.problems.append(no_regular_file(place))


class _Walk(NamedTuple):
    """A recursive walk through one project folder."""

    items: list[DiskFile]
    linked: list[DiskFile]
    """Targets of links, which may also be among the items."""
    home: str
    known: _Known
    """The session files, whose status is known already."""
    look: ScanCache

    def add(self, folder: str, path: str) -> None:
        """Add all files in a folder."""
        listed = entries(folder, self.look)
        del self.look.listings[folder]  # those of many files take as much memory as the items
        for entry in listed:
            name = f"{path}/{entry.name}"
            try:
                if file := self.known.get(entry.path):
                    self.items.append(_known_item(self.home, name, file))
                elif entry.is_dir(follow_symlinks=False):
                    self.add(entry.path, name)
                elif not entry.name.endswith(_NOT_ARCHIVED):
                    self._add_file(entry, name)
            except OSError as error:
                self.look.problems.append(vanished(entry, error))

    def _add_file(self, entry: os.DirEntry[str], name: str) -> None:
        status = entry.stat()
        if stat.S_ISREG(status.st_mode):
            items = self.linked if entry.is_symlink() else self.items
            items.append(_item(entry.path, self.home, name, status, self.look))
        elif not stat.S_ISDIR(status.st_mode):  # a linked folder is walked at its real path
            problem = no_regular_file(entry.path)
            if problem not in self.look.problems:  # `locate` may have reported it
                self.look.problems.append(problem)


def _only_linked(linked: Iterable[DiskFile], items: Iterable[DiskFile]) -> Iterator[DiskFile]:
    """Yield the targets of links that are not items themselves, each once."""
    linked = list(linked)
    seen = {os.path.realpath(item.place) for item in items} if linked else set()
    for item in linked:
        real = os.path.realpath(item.place)
        if real not in seen:
            seen.add(real)
            yield item


def _item(place: str, home: str, path: str, status: os.stat_result, look: ScanCache) -> DiskFile:
    mtime_ns = held_time(status.st_mtime_ns, place, look)
    now = (status.st_size, mtime_ns, held_inode(status.st_ino), clamped(status.st_ctime_ns))
    return DiskFile(home, escape_surrogates(path), place, *now)


def _known_item(home: str, path: str, file: SessionFile) -> DiskFile:
    return DiskFile(home, escape_surrogates(path), file.place, file.size, file.mtime_ns, file.inode, file.ctime_ns)


def belongs_to(path: str, ids: Iterable[str]) -> bool:
    """Return whether a file belongs to one of these sessions, according to its path in the home."""
    _, _, *parts = path.split("/") if path.startswith("tmp/") else ("", "")
    if not parts:
        return False
    id8 = id8_in(parts[-1]) if parts[0] == "chats" else None
    names = {name for part in parts for name in (part, part.partition(".")[0])}
    return any(
        id_ in names or f"session-{id_}" in names or (id8 is not None and id_.startswith(id8))
        for id_ in ids
        if _UUID.fullmatch(id_)
    )


def original_path(home: str, path: str) -> Path:
    """Return the path on disk that a file was archived from."""
    return Path(home, *path.split("/"))
