"""All files that are worth keeping of some homes: names and stat only."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pollux.home import Home
from pollux.locate import Located, Look, SessionFile, entries, held_inode, held_time, id8_in, vanished
from pollux.sound import sound

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


_Known: TypeAlias = Mapping[str, SessionFile]


def inventory(located: Located, look: Look) -> list[Item]:
    """List every file of every project folder, and what in the home tells where the projects are."""
    found: list[Item] = []
    for home in located.homes:
        root = str(home.root)
        for name in _AT_ROOT:
            found += _item(os.path.join(root, name), root, name, look)  # noqa: PTH118  a hot loop
        found += _markers(home, look)
    for folder in located.folders:
        known = {file.place: file for file in folder.files}
        _walk(found, str(folder.path), sound(str(folder.home.root)), f"tmp/{folder.name}", known, look)
    return found


def _markers(home: Home, look: Look) -> Iterator[Item]:
    """List what the client's snapshots of projects say of their paths; the snapshots themselves are no history."""
    history = home.root / "history"
    try:
        names = sorted(os.listdir(history))  # noqa: PTH208  a hot loop
    except OSError:
        return
    for name in names:
        yield from _item(str(history / name / ".project_root"), str(home.root), f"history/{name}/.project_root", look)


def _walk(items: list[Item], folder: str, home: str, path: str, known: _Known, look: Look) -> None:
    """Add what is in a folder; what was found to be a session file was looked at just now."""
    for entry in entries(folder, look):
        name = f"{path}/{entry.name}"
        try:
            if file := known.get(entry.path):
                items.append(Item(home, sound(name), entry.path, file.size, file.mtime_ns, file.inode))
            elif entry.is_dir(follow_symlinks=False):
                _walk(items, entry.path, home, name, known, look)
            elif not entry.name.endswith(_NOT_KEPT):
                items += _item(entry.path, home, name, look, entry.stat())
        except OSError as error:
            look.problems.append(vanished(entry, error))


def _item(place: str, home: str, path: str, look: Look, status: os.stat_result | None = None) -> Iterator[Item]:
    try:
        status = status or os.stat(place)  # noqa: PTH116  a hot loop
    except OSError:
        return
    if stat.S_ISREG(status.st_mode):
        mtime_ns = held_time(status.st_mtime_ns, place, look)
        yield Item(sound(home), sound(path), place, status.st_size, mtime_ns, held_inode(status.st_ino))


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
