"""One writer at a time, by a lock that names its owner; it dies with its process, however that dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from pathlib import Path

import msgspec


class WriterLock:
    """A lock on a file beside the archive."""

    def __init__(self, archive: Path) -> None:
        """Nothing is locked yet."""
        self.path = archive.with_name(archive.name + ".lock")
        self._file: FileIO | None = None

    def take(self) -> bool:
        """Take the lock if nobody has it; never wait. Raises `OSError` where there can be no lock."""
        file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0)
        try:
            _lock(file)
        except (BlockingIOError, PermissionError):  # the second on Windows
            file.close()
            return False
        except OSError:  # a file system without locks
            file.close()
            raise
        self._file = file
        with suppress(OSError):  # a full disk: a lock without a name is one, too
            file.truncate(0)
            file.write(msgspec.json.encode({"pid": os.getpid(), "command": " ".join(sys.argv[1:2])}))
        return True

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
            found = msgspec.json.decode(self.path.read_bytes())
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
