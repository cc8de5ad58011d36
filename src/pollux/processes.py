"""Work for all cores, where processes can be had cheaply: as copies of this one."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.pool import Pool
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def side_by_side(work: Callable[[_Item], _Result], items: Sequence[_Item], *, is_worth_it: bool) -> Iterator[_Result]:
    """Yield the results in the order of the items, made by as many processes as there are cores.

    One process does it all where that is not worth it, or where processes are not copies: on Windows and macOS each
    would have to import everything again.
    """
    if not is_worth_it or not _can_copy():
        yield from map(work, items)
        return
    with copies(_begin, (work, items), is_worth_it=True) as pool:
        assert pool is not None
        yield from pool.imap(_do, range(len(items)))


@contextmanager
def copies(begin: Callable[..., None], given: tuple[object, ...], *, is_worth_it: bool) -> Iterator[Pool | None]:
    """Start as many copies of this process as there are cores; each begins with what it is given."""
    if not is_worth_it or not _can_copy():
        yield None
        return
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), _alone, (begin, given)) as pool:
        yield pool


def _alone(begin: Callable[..., None], given: tuple[object, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who started it
    begin(*given)


def _can_copy() -> bool:
    """Tell whether this process may be copied: other threads would be missing in the copy, with what they hold."""
    is_alone = threading.active_count() == 1
    return os.name == "posix" and os.uname().sysname == "Linux" and (os.cpu_count() or 1) > 1 and is_alone


_work: Callable[[object], object]
_items: Sequence[object]


def _begin(work: Callable[[object], object], items: Sequence[object]) -> None:
    global _work, _items
    _work, _items = work, items


def _do(number: int) -> object:
    return _work(_items[number])
