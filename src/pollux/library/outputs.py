"""Write outputs to streams, files and folders, but never over the archive, keys, or the client's own files.

Front ends write to paths that the user names through an `OutputGuard`. It compares real paths, ignoring case, and
inodes, so that links, `..` and other spellings of a path make no difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.archive.index_file import index_path
from pollux.disk.read import open_regular
from pollux.disk.write import write_private
from pollux.errors import PolluxError
from pollux.library.config import archive_path, keys_folder, user_data_folder, user_home_folder
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
ELSEWHERE = "name another path with `-o`"
_NEVER = "which no output may replace"
_CLIENTS = "where only `pollux restore` writes"
_KEY = f"a key, {_NEVER}"

_Inode = tuple[int, int]


class ProtectedOutputError(PolluxError):
    """An output would overwrite a protected file."""

    status = 2

    def __init__(self, path: object, reason: str) -> None:
        """Build the message from the path and the reason."""
        super().__init__(f"{path} is {reason}; name another place.")


@dataclass(frozen=True, slots=True)
class OutputGuard:
    """Writes files, but never over protected ones."""

    names: dict[str, str]
    """Real paths of files, each with the reason why it is protected."""
    inodes: dict[_Inode, str]
    """The same by inode, for files that exist."""
    folders: dict[str, str]
    """Folders in which everything is protected, each with the reason."""
    key_folders: frozenset[str]

    def reason(self, path: Path) -> str | None:
        """Return why a path is protected; None if it may be written."""
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
        """Raise `ProtectedOutputError` if a path is protected."""
        if reason := self.reason(path):
            raise ProtectedOutputError(path, reason)

    def write(self, path: Path, pieces: Iterable[bytes]) -> None:
        """Write a file atomically. Raises `ProtectedOutputError`."""
        self.check(path)
        if path.exists() and not path.is_file():  # a device or a pipe
            with path.open("wb") as stream:
                stream.writelines(pieces)
        else:
            write_private(path, pieces)

    def _reason_inside(self, real: str) -> str | None:
        """Return why an existing file is protected: by its inode, or because it contains a private key."""
        inode = _inode(real)
        if inode in self.inodes:
            return self.inodes[inode]
        return f"a private key, {_NEVER}" if inode and _holds_private_key(real) else None


def guard_outputs(config: Config) -> OutputGuard:
    """Return a guard for the archive, keys and homes of the settings and of the user."""
    own_data, user_home = user_data_folder(), user_home_folder()  # also during a demo
    archives = [config.archive, archive_path(own_data, config.user_environ), own_data / "archive.db"]
    own_homes = [*homes((), config.user_environ, user_home), *homes((), {}, user_home)]
    return protected(
        [path.expanduser().absolute() for path in archives if path],
        own_data / config.project_memory.name,
        [config.keys_dir, keys_folder(), own_data / "keys"],
        [*config.homes, *own_homes],
    )


def protected(
    archives: Iterable[Path], memory: Path, key_folders: Collection[Path], places: Iterable[Home]
) -> OutputGuard:
    """Return a guard for archives, the file of project paths, key folders and homes."""
    files: dict[str, str] = {str(memory): f"Pollux's list of project paths, {_NEVER}"}
    for archive in archives:
        real = os.path.realpath(archive)
        for suffix in _COMPANIONS:
            what = f"part of the archive {archive}" if suffix else "the archive"
            files[f"{archive}{suffix}"] = files[f"{real}{suffix}"] = f"{what}, {_NEVER}"
            index, real_index = index_path(archive), index_path(Path(real))
            files[f"{index}{suffix}"] = files[f"{real_index}{suffix}"] = f"the search index of {archive}, {_NEVER}"
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


class StreamSink(msgspec.Struct, frozen=True):
    """A stream, such as standard output."""

    write: Callable[[Iterable[bytes]], None]


class FileSink(msgspec.Struct, frozen=True):
    """One file, which is replaced atomically."""

    path: Path


class FolderSink(msgspec.Struct, frozen=True):
    """A folder with a file per session."""

    path: Path


class PathSink(msgspec.Struct, frozen=True):
    """A folder if there is one, or if several sessions are exported and the name has no suffix; else a file."""

    path: Path


class NamedSink(msgspec.Struct, frozen=True):
    """A new file or folder inside a folder, named after what is exported."""

    path: Path


Sink = StreamSink | FileSink | FolderSink | PathSink | NamedSink


class OutputError(PolluxError):
    """A file or folder that the user named cannot be written."""

    def __init__(self, path: object, error: OSError, advice: str = ELSEWHERE, note: str = "") -> None:
        """Build the message from the system's error, advice, and a note on what was written before."""
        sentence = f"{path} cannot be written: {error.strerror or error}; {advice}."
        super().__init__(f"{note}\n{sentence}" if note else sentence)


@contextmanager
def explained_failure(path: Path, advice: str = ELSEWHERE) -> Iterator[None]:
    """Turn an error of the system into an `OutputError`."""
    try:
        yield
    except OSError as error:
        raise OutputError(path, error, advice) from None


def write_output(
    guard: OutputGuard, sink: StreamSink | FileSink, pieces: Iterable[bytes], advice: str = ELSEWHERE
) -> None:
    """Write to a stream or into one file. Raises `OutputError` and `ProtectedOutputError`."""
    if isinstance(sink, StreamSink):
        sink.write(pieces)
        return
    with explained_failure(sink.path, advice):
        guard.write(sink.path, pieces)


def _keys(folder: Path) -> Iterator[Path]:
    try:
        yield from (path for path in folder.iterdir() if path.suffix in _KEY_SUFFIXES)
    except OSError:
        return  # the folder does not exist yet


def _inode(path: str) -> _Inode | None:
    try:
        status = os.stat(path)  # noqa: PTH116  a string
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _holds_private_key(path: str) -> bool:
    """Return whether a file is a private key or a bundle with one; a text that quotes a key is neither."""
    try:
        with open_regular(path) as file:
            head = file.read(_KEY_HEAD)
    except OSError:
        return False  # unreadable, or no regular file
    return bool(_KEY_FILE.match(head) and _PRIVATE_KEY.search(head))
