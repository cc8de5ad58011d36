"""Run work in as many processes as there are cores, where forking makes that cheap."""

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
_PARENT_CHECK = 0.1
"""Seconds between two checks whether the parent process still runs."""


def map_in_processes(
    work: Callable[[_Item], _Result], items: Sequence[_Item], *, is_worth_it: bool
) -> Iterator[_Result]:
    """Yield the results in the order of the items, computed by as many processes as there are cores.

    This process does all of the work if `is_worth_it` is false or if it cannot be forked: on Windows and macOS every
    worker would have to import all modules again. It also does what remains when a worker is killed, as happens when
    memory runs out.
    """
    n_done = 0
    with worker_pool(_set_work, (work, items), is_worth_it=is_worth_it) as pool:
        for result in map_until_killed(pool, _do_item, range(len(items))):
            yield result  # type: ignore[misc]  # `work` returned it
            n_done += 1
    yield from map(work, items[n_done:])


@contextmanager
def worker_pool(
    initialize: Callable[..., None], arguments: tuple[object, ...], *, is_worth_it: bool
) -> Iterator[ProcessPoolExecutor | None]:
    """Fork one worker per core, each of which calls `initialize` first; yield None if that is not worth it.

    If the block ends with an exception, such as Ctrl-C, this does not wait for the workers: each ends after its current
    item, or when this process does.
    """
    if not is_worth_it or not _can_fork():
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415  slow to load
    from multiprocessing import get_context  # noqa: PLC0415

    pool = ProcessPoolExecutor(os.cpu_count(), get_context("fork"), _start_worker, (initialize, arguments))
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def map_until_killed(
    pool: ProcessPoolExecutor | None, work: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[_Result]:
    """Yield the results in the order of the items; stop early if there is no pool or a worker is killed."""
    if pool is None:
        return
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415

    try:
        yield from pool.map(work, items)
    except BrokenProcessPool:
        return


def _start_worker(initialize: Callable[..., None], arguments: tuple[object, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent handles Ctrl-C
    threading.Thread(target=_exit_after, args=(os.getppid(),), daemon=True).start()
    initialize(*arguments)


def _exit_after(parent: int) -> None:
    """Exit when the parent process has ended, which may have been killed without a chance to stop its workers."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK)
    os._exit(1)


def _can_fork() -> bool:
    """Return whether forking is safe and useful: a fork copies the locks of other threads, but not the threads."""
    has_one_thread = threading.active_count() == 1
    return os.name == "posix" and os.uname().sysname == "Linux" and (os.cpu_count() or 1) > 1 and has_one_thread


_work: Callable[[object], object]
_items: Sequence[object]


def _set_work(work: Callable[[object], object], items: Sequence[object]) -> None:
    global _work, _items
    _work, _items = work, items


def _do_item(number: int) -> object:
    return _work(_items[number])
