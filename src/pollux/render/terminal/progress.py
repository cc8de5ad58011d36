"""A progress bar on the error stream that appears only when something takes long."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

_DRAWN_EVERY = 0.1
"""Seconds."""


class Bar:
    """A bar that is drawn until it is stopped, and leaves nothing behind."""

    def __init__(self, label: str, whole: int) -> None:
        """Draw an empty bar."""
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        # No thread of its own: a process that has one cannot be copied, and copies do the work.
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
        self._task = self._progress.add_task(label, total=whole)
        self._drawn = 0.0
        self._progress.start()

    def update(self, done: int, whole: int) -> None:
        """Show how far the work is, a few times a second."""
        self._progress.update(self._task, completed=done, total=whole)
        if time.monotonic() - self._drawn > _DRAWN_EVERY:
            self._progress.refresh()
            self._drawn = time.monotonic()

    def stop(self) -> None:
        """Remove the bar."""
        self._progress.stop()
