"""Ctrl-C: raise `Interrupt` in the main thread, and end the process if it does not end by itself soon.

Python calls a signal handler only between two of its own instructions. While a library call lasts, such as SQLite
writing a large transaction to the disk, Ctrl-C has no effect. A watching thread therefore ends the process if the
handler was not called within `_STUCK` seconds. That is as safe as a crash: SQLite undoes what was not committed.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress

INTERRUPTED = 130
"""The exit status after Ctrl-C."""
CLEANUP = 0.2
"""Seconds that a command has to remove temporary files."""
_STUCK = 0.15
"""Seconds after which a signal handler that was not called means that a library call lasts."""


class Interrupt(KeyboardInterrupt):
    """Ctrl-C. The process ends when clean-up takes longer than `CLEANUP`, unless the command handles the exception.

    A `finally` block may wait for a disk, such as SQLite that merges its log when it closes. Killing it there is safe.
    """

    def __init__(self) -> None:
        """Start the countdown."""
        super().__init__()
        self._timer = threading.Timer(CLEANUP, _end_unless_waiting, (threading.get_ident(),))
        self._timer.daemon = True
        self._timer.start()

    def __del__(self) -> None:
        """Stop the countdown: an `except` block has handled the exception."""
        self._timer.cancel()


def handle_interrupts() -> None:
    """Raise `Interrupt` on Ctrl-C from now on, and watch that it takes effect."""
    sys.unraisablehook = _end_if_interrupted
    watcher = _Watcher() if os.name == "posix" else None  # Windows has no pipes that can be waited for

    def interrupt(_number: int, _frame: object) -> None:
        if watcher:
            watcher.drain()
        raise Interrupt

    if watcher:
        watcher.start(interrupt)
    signal.signal(signal.SIGINT, interrupt)


class _Watcher:
    """A thread that ends the process if the handler of SIGINT is not called soon after the signal.

    Python writes the number of each signal into a pipe at once, in whatever call the main thread is; the handler
    empties the pipe. The thread is not one of `threading`, and it is stopped during a fork, so that workers can still
    be forked.
    """

    def __init__(self) -> None:
        self._output, self._input = os.pipe()
        os.set_blocking(self._output, False)
        os.set_blocking(self._input, False)
        self._running = _thread.allocate_lock()
        self._is_stopping = False

    def start(self, handler: object) -> None:
        """Start to watch over a handler that calls `drain`."""
        self._handler = handler
        signal.set_wakeup_fd(self._input, warn_on_full_buffer=False)
        self._start_thread()
        os.register_at_fork(before=self._stop_thread, after_in_parent=self._start_thread, after_in_child=_ignore_pipe)

    def drain(self) -> bytes:
        """Empty the pipe and return the numbers of the signals in it."""
        try:
            return os.read(self._output, 1000)
        except BlockingIOError:
            return b""

    def _start_thread(self) -> None:
        self._running.acquire()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # signals go to the main thread
        _thread.start_new_thread(self._watch, ())
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def _stop_thread(self) -> None:
        self._is_stopping = True
        os.write(self._input, b"\0")
        with self._running:  # which the thread releases when it ends
            self._is_stopping = False
            self.drain()

    def _watch(self) -> None:
        while True:
            select.select([self._output], [], [])
            if self._is_stopping:
                break
            time.sleep(_STUCK)
            if signal.SIGINT in self.drain() and signal.getsignal(signal.SIGINT) is self._handler:
                os._exit(INTERRUPTED)
        self._running.release()


def _ignore_pipe() -> None:
    with suppress(ValueError):  # only the main thread may change it
        signal.set_wakeup_fd(-1)


def _end_unless_waiting(main_thread: int) -> None:
    """End the process, unless it waits for a program that uses the terminal, such as a pager."""
    frame = sys._current_frames().get(main_thread)  # noqa: SLF001  documented in `sys`
    while frame:
        if frame.f_globals.get("__name__") == "subprocess":
            return
        frame = frame.f_back
    os._exit(INTERRUPTED)


def _end_if_interrupted(unraisable: sys.UnraisableHookArgs) -> None:
    """End the process if Ctrl-C hit a finalizer: Python would print a traceback and continue."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__unraisablehook__(unraisable)
