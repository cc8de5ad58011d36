"""Bring the archive up to date when the server starts, while it answers already.

Reading a gigabyte for the first time takes many cores, but a process with threads must not fork workers, so `pollux
sync` does it in a process of its own. Meanwhile pages show what it has written. A small change is read by a thread.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

from pollux.errors import PolluxError
from pollux.library.config import Config
from pollux.library.freshness import bytes_on_disk, bytes_read
from pollux.web.routing import Reading, Viewer

MANY_BYTES = 64 << 20
"""New archives of at least this size are filled by another process; `archive.ingest` forks workers from here on."""
_PATIENCE = 0.25
"""Seconds after which pages do not wait any longer."""
_POLL = 0.25
"""Seconds between two looks at what the other process has done."""


class FirstReading:
    """A thread that refreshes the archive once."""

    def __init__(self, viewer: Viewer) -> None:
        """Make pages wait from now on."""
        self._viewer = viewer
        self._stopped = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._timer = threading.Timer(_PATIENCE, viewer.settled.set)
        self._timer.daemon = True
        viewer.settled.clear()

    def start(self) -> None:
        """Start to read."""
        self._timer.start()
        self._thread.start()

    def join(self) -> None:
        """Wait until all is read."""
        self._thread.join()

    def stop(self) -> None:
        """Stop the other process, if there is one; the next start continues where it was."""
        self._stopped.set()
        self._timer.cancel()
        if self._process is not None:
            self._process.terminate()

    def _run(self) -> None:
        library = self._viewer.library
        try:
            if not library.read_as_it_is():
                self._read_all(library.config)
            while not self._stopped.is_set() and library.refresh(quiet=True, add_up=True).is_locked:
                if not self._is_other_process_busy():
                    break
                self._stopped.wait(_POLL)
        except PolluxError:
            with library.stale():  # the next page tries again, and reports the error
                pass
        finally:
            self._viewer.reading = None
            self._viewer.settled.set()
            gc.collect()  # what a list of all files leaves behind

    def _is_other_process_busy(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _read_all(self, config: Config) -> None:
        """Run another process that fills a new archive, if there is much to read."""
        n_bytes = bytes_on_disk(config)
        if config.archive is None or n_bytes < MANY_BYTES:
            return
        self._viewer.reading = Reading(0, n_bytes)
        self._viewer.settled.set()
        self._process = subprocess.Popen(  # noqa: S603  Pollux itself
            sync_command(config),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        done = 0
        while done < n_bytes and self._process.poll() is None and not self._stopped.wait(_POLL):
            done = min(bytes_read(config), n_bytes)
            self._viewer.reading = Reading(done, n_bytes)
            if done:
                self._viewer.library.read_as_it_is()
        threading.Thread(target=self._process.wait, daemon=True).start()  # it goes on to index for search


def sync_command(config: Config) -> list[str]:
    """Return the command that fills the archive of a library."""
    command = [sys.executable, "-m", "pollux", "sync", "--archive", str(config.archive)]
    for home in config.named_homes:
        command += ["--home", str(home)]
    return command
