"""Time limits of a search: for statements of SQLite, and for loops over sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pollux.errors import PolluxError
from pollux.search.plan import ComplicatedQueryError

_STEPS = 10_000
"""Instructions of SQLite between two looks at the clock."""


class InterruptedSearchError(PolluxError):
    """Another thread stopped a search by interrupting its connection."""

    def __init__(self) -> None:
        """Build the message."""
        super().__init__("The search was stopped.")


class OutOfTimeError(Exception):
    """A statement took longer than its search may take."""


class Deadline:
    """The time until which a search may run."""

    def __init__(self, clock: Callable[[], float], seconds: float | None) -> None:
        """Start now; without a number of seconds there is no limit."""
        self.seconds = seconds
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds

    def is_over(self) -> bool:
        """Return whether the time is over."""
        return self._end is not None and self._clock() >= self._end

    @contextmanager
    def limits(self, *databases: sqlite3.Connection) -> Iterator[None]:
        """Stop statements on these connections when the time is over.

        Raises `OutOfTimeError` then, `InterruptedSearchError` if another thread interrupts a connection, and
        `ComplicatedQueryError` if SQLite cannot evaluate an expression.
        """
        for database in databases:
            database.set_progress_handler(self.is_over, _STEPS)
        try:
            yield
        except sqlite3.OperationalError as error:
            code = error.sqlite_errorcode & 0xFF
            if code == sqlite3.SQLITE_ERROR:  # FTS5 refuses the expression
                raise ComplicatedQueryError from None
            if code != sqlite3.SQLITE_INTERRUPT:
                raise
            if self.is_over():
                raise OutOfTimeError from None
            raise InterruptedSearchError from None
        finally:
            for database in databases:
                database.set_progress_handler(None, 0)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `InterruptedSearchError` if another thread interrupts a statement."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_INTERRUPT:
            raise InterruptedSearchError from None
        raise
