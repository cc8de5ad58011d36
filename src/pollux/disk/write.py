"""Write files completely or not at all, and check the names of files.

Files get their final names only when all of their bytes are on the disk. `write_private` replaces one file; `place_all`
writes several new files, or none, and never touches an existing one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path, PureWindowsPath
from typing import IO

import msgspec

from pollux.errors import PolluxError
from pollux.text.escape import printable


@contextmanager
def private_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file next to a path; it replaces the path at the end of the block, or is deleted on an error.

    The file has mode 0600. If the path is a link, the file that it leads to is replaced and the link stays.
    """
    import tempfile  # noqa: PLC0415  slow to load, and few commands write

    path = Path(os.path.realpath(path))
    descriptor, name = tempfile.mkstemp(prefix=".pollux-", suffix=".part", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # the first error matters
            temporary.unlink()
        raise


def write_private(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file with mode 0600; an existing file is replaced when all is written, and stays on an error."""
    with private_file(path) as file:
        file.writelines(pieces)


def make_private_folder(path: Path) -> None:
    """Create a folder and its missing parents with mode 0700."""
    missing = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)  # raises if the path is not a folder


class RestoreError(PolluxError):
    """A session cannot be restored."""


class CollisionError(RestoreError):
    """A file already has the name; another session ID would avoid that."""


class Writing(msgspec.Struct, frozen=True):
    """One file to write."""

    place: Path
    pieces: Callable[[], Iterable[bytes]]


class _Undo(msgspec.Struct):
    """The files and folders created so far, to be removed on an error."""

    created: list[Path] = []

    def run(self) -> None:
        for path in reversed(self.created):
            with suppress(OSError):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def place_all(files: Sequence[Writing]) -> None:
    """Write all files, or none. Raises `RestoreError`."""
    if not files:
        return
    undo = _Undo()
    place = files[-1].place
    staged: list[tuple[Path, Path]] = []
    try:
        try:
            for file in files:
                place = file.place
                staged.append((_stage(file, undo), place))
            for temporary, place in staged:
                _move_into_place(temporary, place)
                undo.created.append(place)
        except BaseException:
            undo.run()
            raise
    except FileExistsError:
        raise CollisionError(f"{printable(str(place))} was created in the meantime; nothing was written.") from None
    except OSError as error:
        raise RestoreError(f"Cannot write {printable(str(place))} ({error.strerror}); nothing was changed.") from None
    for temporary, _ in staged:
        with suppress(OSError):  # harmless leftovers: the client ignores these names
            temporary.unlink(missing_ok=True)
    for folder in dict.fromkeys(chain.from_iterable((file.place.parent, file.place.parent.parent) for file in files)):
        _sync_folder(folder)


def below(folder: Path, *names: str) -> Path:
    """Return a path below a folder. Raises `RestoreError` for a name that no file on this system can have."""
    for name in names:
        if fault := name_fault(name):
            raise RestoreError(f"'{printable(name)}' in the archive cannot be a file name on this system: {fault}.")
    return folder.joinpath(*names)


def _stage(writing: Writing, undo: _Undo) -> Path:
    """Write a file next to its final place, under a name that the client ignores."""
    import tempfile  # noqa: PLC0415  as above

    missing = [folder for folder in writing.place.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700)
        undo.created.append(folder)
    descriptor, name = tempfile.mkstemp(prefix=".pollux-", suffix=".tmp", dir=writing.place.parent)  # 0600
    temporary = Path(name)
    undo.created.append(temporary)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(writing.pieces())
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _move_into_place(temporary: Path, place: Path) -> None:
    """Link or rename a file to its final name. Raises `FileExistsError` if the name is taken."""
    try:
        os.link(temporary, place)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(place):
            raise FileExistsError(place) from None
        temporary.rename(place)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_LONGEST = 255
"""Bytes of a name on common file systems."""
_NOT_ON_WINDOWS = frozenset('<>:"/\\|?*')


def path_fault(path: str) -> str | None:
    """Return why no file below a home can have this path; None if one can."""
    for name in path.split("/"):
        if name in ("", ".", ".."):
            return f"'{printable(path)}' is not a path below a home"
        if "\0" in name:
            return f"'{printable(path)}' contains a NUL character"
    return None


def name_fault(name: str, *, is_windows: bool = os.name == "nt") -> str | None:
    """Return why no file on this system can have this name; None if one can."""
    if name in ("", ".", "..") or "/" in name:
        return "it is not a plain name"
    if "\0" in name:
        return "it contains a NUL character"
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST:
        return f"it is longer than {_LONGEST} bytes"
    if is_windows:
        return _windows_fault(name)
    return None


def _windows_fault(name: str) -> str | None:
    if any(char in _NOT_ON_WINDOWS or ord(char) < ord(" ") for char in name):
        return "it contains a character that Windows does not allow"
    if name.endswith((".", " ")):
        return "it ends with a dot or a space, which Windows removes"
    if PureWindowsPath(name).is_reserved():
        return "Windows reserves it for a device"
    return None
