"""Work for all cores, where processes can be had cheaply: as copies of this one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def side_by_side(work: Callable[[_Item], _Result], items: Iterable[_Item], *, is_worth_it: bool) -> Iterator[_Result]:
    """Yield the results in the order of the items, made by as many processes as there are cores.

    One process does it all where that is not worth it, or where processes are not copies: on Windows and macOS each
    would have to import everything again.
    """
    if not is_worth_it or not _can_copy():
        yield from map(work, items)
        return
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), _begin, (work,)) as pool:
        yield from pool.imap(_do, items)


def _can_copy() -> bool:
    """Tell whether this process may be copied: other threads would be missing in the copy, with what they hold."""
    is_alone = threading.active_count() == 1
    return os.name == "posix" and os.uname().sysname == "Linux" and (os.cpu_count() or 1) > 1 and is_alone


_work: Callable[[object], object]


def _begin(work: Callable[[object], object]) -> None:
    global _work  # noqa: PLW0603  what a process is for, told once instead of with every item
    _work = work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who started it


def _do(item: object) -> object:
    return _work(item)
