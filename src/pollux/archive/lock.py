"""The writer lock: a file next to the archive that names its owner. The system releases it when the process ends."""

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

from pollux.disk.read import read_side_file
from pollux.errors import ArchiveError

_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BEGINNING = b'{"pid":'
"""The beginning of a lock file; a prefix of it if the disk was full."""
_MAX_SIZE = 4096


class ForeignLockError(ArchiveError):
    """The path of the lock file is taken by something else."""

    def __init__(self, path: Path, what: str) -> None:
        """Build the message."""
        super().__init__(
            f"{path} is {what}, not the lock of an archive; move it away, or name another archive with --archive."
        )


class WriterLock:
    """A lock on a file next to the archive."""

    def __init__(self, archive: Path) -> None:
        """Create the lock without taking it."""
        self.path = archive.with_name(archive.name + ".lock")
        self._file: FileIO | None = None

    def take(self) -> bool:
        """Try to take the lock without waiting, and return whether that worked.

        Raises `OSError` if the folder or the file system cannot hold a lock, and `ForeignLockError` instead of
        overwriting a file that is not a lock.
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
        with suppress(OSError):  # a full disk: a lock without the owner's name still works
            file.truncate(0)
            file.write(msgspec.json.encode({"pid": os.getpid(), "command": " ".join(sys.argv[1:2])}))
        return True

    def _check_own(self, file: FileIO) -> None:
        """Raise `ForeignLockError` unless a writer can have created the file."""
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ForeignLockError(self.path, "a pipe or a device")
        if status.st_nlink > 1:
            raise ForeignLockError(self.path, "a hard link to another file")
        head = file.read(len(_BEGINNING))
        file.seek(0)
        if not _BEGINNING.startswith(head):
            raise ForeignLockError(self.path, "another file")

    def wait(self, announce: Callable[[str], None], *, pause: float = 0.1) -> None:
        """Wait until the lock is free and take it; call `announce` once with the name of its owner."""
        if self.take():
            return
        announce(self.owner())
        while not self.take():
            time.sleep(pause)

    def owner(self) -> str:
        """Return command and process ID of the process that has the lock, as far as the file says."""
        try:
            content = msgspec.json.decode(read_side_file(self.path, limit=_MAX_SIZE))
            command = f"pollux {content['command']}".strip()
            return f"{command} (process {content['pid']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another Pollux process"

    def release(self) -> None:
        """Release the lock, if it is taken."""
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
