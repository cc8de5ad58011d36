"""Refuse to write an output over what cannot be had again: the archive, keys, and the client's own files.

Every front end writes to paths that the user names through an `OutputGuard`. What is protected is compared by its real
path, without regard to case, and by its inode, so that links, `..` and other spellings of a name make no difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.disk.private_files import write_private
from pollux.disk.regular_files import open_regular
from pollux.errors import PolluxError
from pollux.library.config import archive_path
from pollux.sessions.homes import Home, homes

if TYPE_CHECKING:
    from pollux.library.config import Config

_COMPANIONS = ("", "-wal", "-shm", "-journal", ".lock")
_KEY_SUFFIXES = (".pem", ".pub")
_HOME = ".gemini"
_CLIENTS_FOLDER = f"{os.sep}{_HOME}{os.sep}tmp{os.sep}"
_KEY_HEAD = 64 << 10
_KEY_FILE = re.compile(rb"\s*(?:-----BEGIN |Bag Attributes|PuTTY-User-Key-File)")
_PRIVATE_KEY = re.compile(rb"^-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----|^PuTTY-User-Key-File", re.MULTILINE)
_NEVER = "which no output may replace"
_CLIENTS = "where only `pollux restore` writes"
_KEY = f"a key, {_NEVER}"

_Inode = tuple[int, int]


class ProtectedOutputError(PolluxError):
    """An output would replace something that is to stay as it is."""

    status = 2

    def __init__(self, path: object, reason: str) -> None:
        """Say why, and what to do."""
        super().__init__(f"{path} is {reason}; name another place.")


@dataclass(frozen=True, slots=True)
class OutputGuard:
    """Writes files, except over what is protected by its real path or its inode."""

    names: dict[str, str]
    """Files, each with why it may not be written."""
    inodes: dict[_Inode, str]
    """The same for the files that are there."""
    folders: dict[str, str]
    """Folders with all that is below them."""
    key_folders: frozenset[str]

    def reason(self, path: Path) -> str | None:
        """Return why a path may not be written; nothing, if it may."""
        real = os.path.realpath(path)
        name = real.casefold()
        if name in self.names:
            return self.names[name]
        if os.path.dirname(name) in self.key_folders and name.endswith(_KEY_SUFFIXES):  # noqa: PTH120  a string
            return _KEY
        if _CLIENTS_FOLDER in name + os.sep:
            return f"below a Gemini home, {_CLIENTS}"
        for folder, what in self.folders.items():
            if name == folder or name.startswith(folder + os.sep):
                return what
        return self._reason_inside(real)

    def check(self, path: Path) -> None:
        """Raise `ProtectedOutputError` if a path may not be written."""
        if reason := self.reason(path):
            raise ProtectedOutputError(path, reason)

    def write(self, path: Path, pieces: Iterable[bytes]) -> None:
        """Write a file at once or not at all. Raises `ProtectedOutputError`."""
        self.check(path)
        if path.exists() and not path.is_file():  # a device or a pipe
            with path.open("wb") as stream:
                stream.writelines(pieces)
        else:
            write_private(path, pieces)

    def _reason_inside(self, real: str) -> str | None:
        """Return why an existing file may not be replaced: it has a protected inode or contains a private key."""
        inode = _inode(real)
        if inode in self.inodes:
            return self.inodes[inode]
        return f"a private key, {_NEVER}" if inode and _holds_private_key(real) else None


def guard_outputs(config: Config) -> OutputGuard:
    """Return the guard of what the settings name and of what is the user's own."""
    own_archive = config.data_dir / "archive.db"
    archives = [config.archive, archive_path(config.data_dir, config.environ), own_archive]
    own_homes = [*homes((), config.environ, config.user_home), *homes((), {}, config.user_home)]
    return protected(
        [path.expanduser().absolute() for path in archives if path],
        config.project_memory,
        [config.keys_dir, config.data_dir / "keys"],
        [*config.homes, *own_homes],
    )


def protected(
    archives: Iterable[Path], memory: Path, key_folders: Collection[Path], places: Iterable[Home]
) -> OutputGuard:
    """Return the guard of some archives, the file of project paths, folders of keys and homes."""
    files: dict[str, str] = {str(memory): f"Pollux's list of project paths, {_NEVER}"}
    for archive in archives:
        real = os.path.realpath(archive)
        for suffix in _COMPANIONS:
            what = f"part of the archive {archive}" if suffix else "the archive"
            files[f"{archive}{suffix}"] = files[f"{real}{suffix}"] = f"{what}, {_NEVER}"
    keys = {str(path): _KEY for folder in key_folders for path in _keys(folder)}
    names = {os.path.realpath(path).casefold(): what for path, what in files.items()}
    inodes = {inode: what for path, what in (files | keys).items() if (inode := _inode(path))}
    folders = {}
    for home in places:
        root = home.root if home.root.name.casefold() == _HOME else home.tmp
        for folder in (root, home.tmp):
            folders[os.path.realpath(folder).casefold()] = f"below the Gemini home {home.root}, {_CLIENTS}"
    real_key_folders = frozenset(os.path.realpath(folder).casefold() for folder in key_folders)
    return OutputGuard(names, inodes, folders, real_key_folders)


def _keys(folder: Path) -> Iterator[Path]:
    try:
        yield from (path for path in folder.iterdir() if path.suffix in _KEY_SUFFIXES)
    except OSError:
        return  # there is no such folder yet


def _inode(path: str) -> _Inode | None:
    try:
        status = os.stat(path)  # noqa: PTH116  a string
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _holds_private_key(path: str) -> bool:
    """Return whether a file is a private key, or a bundle with one; a text that quotes one is not."""
    try:
        with open_regular(path) as file:
            head = file.read(_KEY_HEAD)
    except OSError:
        return False  # nothing to read, or no regular file
    return bool(_KEY_FILE.match(head) and _PRIVATE_KEY.search(head))
