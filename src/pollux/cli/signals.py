"""Ending in good order: on Ctrl-C, when told to terminate, and when nobody reads any more."""

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
"""Seconds within which a write may find out by itself that a pipe is closed."""


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End in good order, with status 0, on Ctrl-C and when told to terminate; a second signal changes nothing."""

    def stop(*_: object) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = [(number, signal.signal(number, stop)) for number in _SIGNALS]
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        for number, old in before:
            signal.signal(number, old)


@contextmanager
def until_stopped() -> Iterator[None]:
    """End with status 0 on Ctrl-C, or when nobody reads any more."""
    is_over = threading.Event()
    with ended_by_signals():
        _end_with_the_reader(is_over)
        try:
            yield
        except BrokenPipeError:
            return  # or it would be said by the exit status
        except KeyboardInterrupt:
            if output.is_terminal():
                click.echo(err=True)  # behind the terminal's ^C
        finally:
            is_over.set()


def _end_with_the_reader(is_over: threading.Event) -> None:
    """Stop when the other end of a pipe is closed: a write would tell, but the next one may be hours away."""
    try:
        stdout = sys.stdout.fileno()
    except (OSError, ValueError):  # no file at all
        return
    if sys.stdout.isatty() or not hasattr(select, "poll"):  # not on Windows
        return
    main = threading.get_ident()
    ends = select.poll()
    ends.register(stdout, 0)

    def wait() -> None:
        ends.poll()
        if not is_over.wait(_PAUSE):  # unless a write tells first
            signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()
