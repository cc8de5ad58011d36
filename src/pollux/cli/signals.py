"""End a command cleanly on Ctrl-C, on SIGTERM, and when the reader of its output has gone."""

from __future__ import annotations

import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import click

from pollux.cli import output

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PAUSE = 0.5
"""Seconds in which a write may fail by itself after the pipe was closed."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End the block with status 0 on Ctrl-C and SIGTERM. Further signals are ignored while it ends."""

    def stop(*_: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = [(number, signal.signal(number, stop)) for number in _SIGNALS]
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def until_stopped() -> Iterator[None]:
    """End the block with status 0 on Ctrl-C, on SIGTERM, and when the reader of standard output closes the pipe."""
    is_over = threading.Event()
    with ended_by_signals():
        _interrupt_when_pipe_closes(is_over)
        try:
            yield
        except BrokenPipeError:
            return
        except KeyboardInterrupt:
            if output.is_terminal():
                click.echo(err=True)  # a new line after the terminal's ^C
        finally:
            is_over.set()


def _interrupt_when_pipe_closes(is_over: threading.Event) -> None:
    """Watch for a closed pipe in a thread, because the next write may be hours away."""
    try:
        stdout = sys.stdout.fileno()
    except (OSError, ValueError):  # not a real file
        return
    if sys.stdout.isatty() or not hasattr(select, "poll"):  # Windows has no poll
        return
    main = threading.get_ident()
    poll = select.poll()
    poll.register(stdout, 0)

    def wait() -> None:
        poll.poll()
        if not is_over.wait(_PAUSE):
            signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()
