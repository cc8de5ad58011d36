"""Work for all cores, where processes can be had cheaply: as copies of this one."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_LOOK = 1.0
"""Seconds between two looks at who has started this."""


def side_by_side(work: Callable[[_Item], _Result], items: Sequence[_Item], *, is_worth_it: bool) -> Iterator[_Result]:
    """Yield the results in the order of the items, made by as many processes as there are cores.

    One process does it all where that is not worth it, or where processes are not copies: on Windows and macOS each
    would have to import everything again. It also does what is left when another is killed, as where memory is short.
    """
    n_done = 0
    with copies(_begin, (work, items), is_worth_it=is_worth_it) as pool:
        for result in done_by(pool, _do, range(len(items))):
            yield result  # type: ignore[misc]  # what `work` gives
            n_done += 1
    yield from map(work, items[n_done:])


@contextmanager
def copies(
    begin: Callable[..., None], given: tuple[object, ...], *, is_worth_it: bool
) -> Iterator[ProcessPoolExecutor | None]:
    """Start as many copies of this process as there are cores; each begins with what it is given."""
    if not is_worth_it or not _can_copy():
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  slow to load
    from multiprocessing import get_context  # noqa: PLC0415

    pool = ProcessPoolExecutor(os.cpu_count(), get_context("fork"), _alone, (begin, given))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def done_by(
    pool: ProcessPoolExecutor | None, work: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[_Result]:
    """Yield the results in the order of the items, until there are no more, or a process is killed."""
    if pool is None:
        return
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

    try:
        yield from pool.map(work, items)
    except BrokenProcessPool:
        return


def _alone(begin: Callable[..., None], given: tuple[object, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who started it
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    begin(*given)


def _end_with(parent: int) -> None:
    """End when the one who started this is gone, who may have been killed: nobody else would ever tell."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)


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
