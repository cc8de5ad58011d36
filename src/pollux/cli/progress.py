"""What a user who watches is told while a command works: a bar, and notes on what takes long."""
# ruff: noqa: PLC0415  what draws is imported when something is drawn

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pollux.cli import output

if TYPE_CHECKING:
    from pollux.render.terminal.progress import Bar

_QUIET_SECONDS = 0.5


def announce(sentence: str) -> None:
    """Print a note if a user watches."""
    if _is_watched():
        output.words(sentence)


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal's error stream, once something takes longer than half a second."""
    if not _is_watched():
        yield lambda _done, _whole: None
        return
    bar: Bar | None = None
    began = time.monotonic()

    def tell(done: int, whole: int) -> None:
        nonlocal bar
        if bar is None and time.monotonic() - began > _QUIET_SECONDS:
            from pollux.render.terminal.progress import Bar

            bar = Bar(label, whole)
        if bar is not None:
            bar.update(done, whole)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.stop()


def _is_watched() -> bool:
    return sys.stderr.isatty()
