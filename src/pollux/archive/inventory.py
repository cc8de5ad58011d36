"""List all files of some homes that are worth archiving: names and stat only.

Links are followed only inside their home. A home may be a copy that somebody else has made, and a link in it that leads
elsewhere would put a file of the reader into the archive, its seals and its backups.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pollux.disk.regular_files import is_within
from pollux.sessions.homes import Home
from pollux.sessions.locate import (
    Located,
    Look,
    SessionFile,
    entries,
    held_inode,
    held_time,
    id8_in,
    link_outside,
    no_regular_file,
    vanished,
)
from pollux.text.integers import clamped
from pollux.text.unicode import sound

_AT_ROOT = ("projects.json", "trustedFolders.json", "settings.json")
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_NOT_KEPT = (".lock", ".tmp")


class Item(NamedTuple):
    """One file, as the disk has it now."""

    home: str
    path: str
    """Below the home, with `/`; both as the archive can write them (`sound`)."""
    place: str
    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int


_Known: TypeAlias = Mapping[str, SessionFile]


def inventory(located: Located, look: Look) -> list[Item]:
    """List every file of every project folder, and what in the home tells where the projects are."""
    found: list[Item] = []
    linked: list[Item] = []
    for home in located.homes:
        for name in _AT_ROOT:
            found += _at_root(home, name, home.link_limit, look)
        for name in _markers(home):
            found += _at_root(home, name, home.root, look)
    for folder in located.folders:
        known = {file.place: file for file in folder.files}
        walk = _Walk(found, linked, sound(str(folder.home.root)), known, look.inside(folder.home))
        walk.add(str(folder.path), f"tmp/{folder.name}")
    return [*found, *_elsewhere(linked, found)]


def _markers(home: Home) -> list[str]:
    """Name what the client's snapshots of projects say of their paths; the snapshots themselves are no history."""
    try:
        names = sorted(os.listdir(home.root / "history"))  # noqa: PTH208  a hot loop
    except OSError:
        return []
    return [f"history/{name}/.project_root" for name in names]


def _at_root(home: Home, path: str, within: Path | None, look: Look) -> Iterator[Item]:
    """Yield one file of a home by its path, if it is there."""
    place = str(home.root / path)
    try:
        status = os.stat(place)  # noqa: PTH116  a string
    except OSError:
        return
    if within is not None and not is_within(place, within):
        look.problems.append(link_outside(place))
    elif stat.S_ISREG(status.st_mode):
        yield _item(place, sound(str(home.root)), path, status, look)
    else:
        look.problems.append(no_regular_file(place))


class _Walk(NamedTuple):
    """A walk through one project folder."""

    items: list[Item]
    linked: list[Item]
    """What links lead to, which may be an item of its own."""
    home: str
    known: _Known
    """The session files, which were looked at just now."""
    look: Look

    def add(self, folder: str, path: str) -> None:
        """Add the files in a folder and below it."""
        for entry in entries(folder, self.look):
            name = f"{path}/{entry.name}"
            try:
                if file := self.known.get(entry.path):
                    self.items.append(_known_item(self.home, name, file))
                elif entry.is_dir(follow_symlinks=False):
                    self.add(entry.path, name)
                elif not entry.name.endswith(_NOT_KEPT):
                    self._add_file(entry, name)
            except OSError as error:
                self.look.problems.append(vanished(entry, error))

    def _add_file(self, entry: os.DirEntry[str], name: str) -> None:
        status = entry.stat()
        if stat.S_ISREG(status.st_mode):
            items = self.linked if entry.is_symlink() else self.items
            items.append(_item(entry.path, self.home, name, status, self.look))
        elif not stat.S_ISDIR(status.st_mode):  # a folder that a link leads to is walked where it is
            problem = no_regular_file(entry.path)
            if problem not in self.look.problems:  # `locate` may have met it
                self.look.problems.append(problem)


def _elsewhere(linked: Iterable[Item], items: Iterable[Item]) -> Iterator[Item]:
    """Yield what only links lead to, each real file once."""
    linked = list(linked)
    seen = {os.path.realpath(item.place) for item in items} if linked else set()
    for item in linked:
        real = os.path.realpath(item.place)
        if real not in seen:
            seen.add(real)
            yield item


def _item(place: str, home: str, path: str, status: os.stat_result, look: Look) -> Item:
    mtime_ns = held_time(status.st_mtime_ns, place, look)
    now = (status.st_size, mtime_ns, held_inode(status.st_ino), clamped(status.st_ctime_ns))
    return Item(home, sound(path), place, *now)


def _known_item(home: str, path: str, file: SessionFile) -> Item:
    return Item(home, sound(path), file.place, file.size, file.mtime_ns, file.inode, file.ctime_ns)


def belongs_to(path: str, ids: Iterable[str]) -> bool:
    """Tell by its path below the home whether a file is of one of these sessions, also one that was never read."""
    _, _, *parts = path.split("/") if path.startswith("tmp/") else ("", "")
    if not parts:
        return False
    id8 = id8_in(parts[-1]) if parts[0] == "chats" else None
    names = {name for part in parts for name in (part, part.partition(".")[0])}
    return any(
        one in names or f"session-{one}" in names or (id8 is not None and one.startswith(id8))
        for one in ids
        if _UUID.fullmatch(one)
    )


def place_of(home: str, path: str) -> Path:
    """Tell where a file that was kept stood."""
    return Path(home, *path.split("/"))
