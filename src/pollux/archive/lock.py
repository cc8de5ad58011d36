"""One writer at a time, by a lock that names its owner; it dies with its process, however that dies."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from pathlib import Path

import msgspec

from pollux.disk.regular_files import read_side_file
from pollux.errors import ArchiveError

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BEGINNING = b'{"pid":'
"""Of what a writer puts into the lock; less of it where the disk was full."""
_LARGEST = 4096
"""Bytes of that."""


class ForeignLockError(ArchiveError):
    """Something else is where the lock of an archive should be."""

    def __init__(self, path: Path, what: str) -> None:
        """Say what is there, and what to do."""
        super().__init__(
            f"{path} is {what}, not the lock of an archive; move it away, or name another archive with --archive."
        )


class WriterLock:
    """A lock on a file beside the archive."""

    def __init__(self, archive: Path) -> None:
        """Nothing is locked yet."""
        self.path = archive.with_name(archive.name + ".lock")
        self._file: FileIO | None = None

    def take(self) -> bool:
        """Take the lock if nobody has it; never wait.

        Raises `OSError` where there can be no lock, and `ForeignLockError` rather than empty a file that is none.
        """
        if self.path.is_symlink():  # also where the system has no O_NOFOLLOW
            raise ForeignLockError(self.path, f"a link to {os.path.realpath(self.path)}")
        file = os.fdopen(os.open(self.path, _FLAGS, 0o600), "r+b", buffering=0)
        try:
            _lock(file)
            self._check_own(file)
        except (BlockingIOError, PermissionError):  # the second on Windows
            file.close()
            return False
        except (OSError, ForeignLockError):  # the first on a file system without locks
            file.close()
            raise
        self._file = file
        with suppress(OSError):  # a full disk: a lock without a name is one, too
            file.truncate(0)
            file.write(msgspec.json.encode({"pid": os.getpid(), "command": " ".join(sys.argv[1:2])}))
        return True

    def _check_own(self, file: FileIO) -> None:
        """Raise `ForeignLockError` if the file cannot be one that a writer has made."""
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ForeignLockError(self.path, "a pipe or a device")
        if status.st_nlink > 1:
            raise ForeignLockError(self.path, "another name of some other file")
        head = file.read(len(_BEGINNING))
        file.seek(0)
        if not _BEGINNING.startswith(head):
            raise ForeignLockError(self.path, "some other file")

    def wait(self, tell: Callable[[str], None], *, pause: float = 0.1) -> None:
        """Take the lock, however long somebody else has it; tell once who that is."""
        if self.take():
            return
        tell(self.owner())
        while not self.take():
            time.sleep(pause)

    def owner(self) -> str:
        """Say who has the lock, as far as they said."""
        try:
            found = msgspec.json.decode(read_side_file(self.path, limit=_LARGEST))
            name = f"pollux {found['command']}".strip()
            return f"{name} (process {found['pid']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another Pollux"

    def release(self) -> None:
        """Give the lock back."""
        if self._file:
            self._file.truncate(0)
            self._file.close()
            self._file = None


def _lock(file: FileIO) -> None:
    if sys.platform == "win32":  # pragma: no cover  tested there
        import msvcrt  # noqa: PLC0415  only there

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # noqa: PLC0415  only there

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
