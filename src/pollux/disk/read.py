"""Read files that another person may have created.

A cloned repository or a colleague's copy of a home may contain a link to `/dev/zero`, a pipe without a writer, or a
link to the reader's private key. Files are therefore read only if they are regular files inside their folder tree and
not larger than such files ever are.
"""

from __future__ import annotations

import errno
import os
import stat
from io import FileIO
from typing import TypeAlias

from pollux.model import Problem

SIDE_FILE = 4 << 20
"""Largest settings file, registry, marker or price file, in bytes."""
PROMPT_LOG = 64 << 20
"""Largest `logs.json`, which contains every prompt of a project, in bytes."""
NAMED_FILE = 1 << 30
"""Largest file that the user names and that must be in memory as a whole, in bytes."""

_Path: TypeAlias = "str | os.PathLike[str]"
_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)  # neither wait for a pipe nor take over a terminal
_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


class LinkOutsideError(OSError):
    """A link leads out of its folder tree."""

    def __init__(self, path: _Path, root: _Path) -> None:
        """Build the message from both ends of the link."""
        reason = f"it is a link out of {os.fspath(root)}, to {os.path.realpath(path)}"
        super().__init__(errno.ELOOP, reason, os.fspath(path))


def open_regular(path: _Path) -> FileIO:
    """Open a regular file for reading, without a buffer.

    Raises `OSError` for everything else; for a pipe without waiting for a writer.
    """
    try:
        file = open(path, "rb", buffering=0, opener=_open)  # noqa: SIM115  the caller closes it
    except ValueError:
        raise _invalid_name(path) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is a pipe, a socket or a device, not a regular file", os.fspath(path))
    return file


def read_side_file(path: _Path, *, within: _Path | None = None, limit: int = SIDE_FILE) -> bytes:
    """Return the contents of a small regular file.

    Args:
        path: of the file.
        within: folder that links must not leave; None allows links to anywhere.
        limit: largest size in bytes.

    Raises:
        OSError: the file is missing, unreadable, too large, or not a regular file inside the folder.

    """
    try:
        if within is not None and not is_within(path, within):
            raise LinkOutsideError(path, within)
    except ValueError:
        raise _invalid_name(path) from None
    with open_regular(path) as file:
        return _limited(file, path, limit)


def read_named(path: _Path, *, limit: int = NAMED_FILE) -> bytes:
    """Return the contents of a file that the user named: a regular file, or a stream that the shell opened.

    Raises `OSError` like `read_side_file`.
    """
    if not os.fspath(path).startswith(_STREAMS):
        return read_side_file(path, limit=limit)
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        return _limited(file, path, limit)


def is_within(path: _Path, root: _Path) -> bool:
    """Return whether a path with resolved links is inside a folder."""
    real, base = os.path.realpath(path), os.path.realpath(root)
    return real == base or real.startswith(base.rstrip(os.sep) + os.sep)


def problem_of(error: OSError, path: _Path) -> Problem:
    """Return the problem for a file that could not be read."""
    code = "link-outside" if isinstance(error, LinkOutsideError) else "unreadable-file"
    return Problem(code, f"cannot be read: {error.strerror}", os.fspath(path))


def is_missing(error: OSError) -> bool:
    """Return whether an error means that the file does not exist."""
    return isinstance(error, FileNotFoundError | NotADirectoryError)


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _FLAGS)


def _invalid_name(path: _Path) -> OSError:
    """Return the error for a name with a NUL or a lone surrogate, which Python rejects with a `ValueError`."""
    return FileNotFoundError(errno.ENOENT, "no file can have this name", os.fspath(path))


def _limited(file: FileIO, path: _Path, limit: int) -> bytes:
    if os.fstat(file.fileno()).st_size > limit:
        raise _too_large(path, limit)
    pieces: list[bytes] = []
    n_bytes = 0
    while piece := file.read(min(limit + 1 - n_bytes, 1 << 20)):
        pieces.append(piece)
        n_bytes += len(piece)
        if n_bytes > limit:
            raise _too_large(path, limit)
    return b"".join(pieces)


def _too_large(path: _Path, limit: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {limit >> 20 or 1} MB", os.fspath(path))
