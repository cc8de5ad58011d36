"""Refuse to write an output over what cannot be had again: the archive, keys, and the client's own files.

Every command that writes to a path which the user names asks here first. What is protected is compared by its real
path, without regard to case, and by its inode, so that links, `..` and other spellings of a name make no difference.
"""
# ruff: noqa: PLC0415  imported when something is written

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.errors import PolluxError

if TYPE_CHECKING:
    from pollux.sessions.homes import Home

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
_META = "pollux.output_guard"

_Inode = tuple[int, int]


class ProtectedOutputError(PolluxError):
    """An output would replace something that is to stay as it is."""

    status = 2

    def __init__(self, path: object, reason: str) -> None:
        """Say why, and what to do."""
        super().__init__(f"{path} is {reason}; name another place.")


@dataclass(frozen=True, slots=True)
class Protected:
    """What no output may be written over, by real path and by inode."""

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

    def _reason_inside(self, real: str) -> str | None:
        """Look at a file that is there: it may be protected under another name, or hold a private key."""
        inode = _inode(real)
        if inode in self.inodes:
            return self.inodes[inode]
        return f"a private key, {_NEVER}" if inode and _holds_private_key(real) else None


def check_output(path: Path) -> None:
    """Raise `ProtectedOutputError` if the running command must not write to a path."""
    ctx = click.get_current_context(silent=True)
    known = ctx.meta if ctx else {}
    if _META not in known:  # once a command: an export may write thousands of files
        known[_META] = _protected(ctx)
    guard: Protected = known[_META]
    if reason := guard.reason(path):
        raise ProtectedOutputError(path, reason)


def protected(
    archives: Iterable[Path], memory: Path, key_folders: Collection[Path], homes: Iterable[Home]
) -> Protected:
    """Return what is protected around some archives, folders of keys and homes."""
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
    for home in homes:
        root = home.root if home.root.name.casefold() == _HOME else home.tmp
        for folder in (root, home.tmp):
            folders[os.path.realpath(folder).casefold()] = f"below the Gemini home {home.root}, {_CLIENTS}"
    return Protected(names, inodes, folders, frozenset(os.path.realpath(one).casefold() for one in key_folders))


def _protected(ctx: click.Context | None) -> Protected:
    """Return what is protected in the running command: what its options name, and what is the user's own."""
    from pollux.cli.scope import Scope, archive_path
    from pollux.library import keys as keyring
    from pollux.library import project_memory as memory
    from pollux.sessions.homes import homes

    scope = ctx.find_object(Scope) if ctx else None
    own = memory.memory_path()
    archives = [scope.archive_path if scope else None, archive_path(), own.with_name("archive.db")]
    return protected(
        [path.expanduser().absolute() for path in archives if path],
        own,
        [keyring.folder(), own.with_name("keys")],
        [*(scope.places() if scope else ()), *homes((), os.environ, Path.home()), *homes((), {}, Path.home())],
    )


def _keys(folder: Path) -> Iterator[Path]:
    try:
        yield from (path for path in folder.iterdir() if path.suffix in _KEY_SUFFIXES)
    except OSError:
        return  # there is no such folder yet


def _inode(path: str) -> _Inode | None:
    try:
        found = os.stat(path)  # noqa: PTH116  a string
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _holds_private_key(path: str) -> bool:
    """Return whether a file is a private key, or a bundle with one; a text that quotes one is not."""
    from pollux.disk.regular_files import open_regular

    try:
        with open_regular(path) as file:
            head = file.read(_KEY_HEAD)
    except OSError:
        return False  # nothing to read, or no regular file
    return bool(_KEY_FILE.match(head) and _PRIVATE_KEY.search(head))
