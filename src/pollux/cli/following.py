"""Follows a session until somebody has seen enough: what it is now, and again at every change."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from pollux.cli import output
from pollux.cli.watch import ended_by_signals, homes_of
from pollux.library import project_memory

if TYPE_CHECKING:
    from pollux.cli.scope import Scope
    from pollux.model import Session
    from pollux.sessions.grouping import Group
    from pollux.sessions.live import Growing, Member
    from pollux.sessions.locate import SessionFile

_PAUSE = 0.5
"""Seconds within which whoever is in the middle of something goes on with it."""
_PATIENCE = 10
"""How often that is waited for, as long as it does go on."""
_STEP = 0.25
"""Seconds between two looks at a file that was named."""


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


class Look(NamedTuple):
    """How things are at some moment."""

    members: list[Member]
    """The session that is followed and its subagents; none if nothing has changed there."""
    others: dict[str, str]
    """Other sessions that are written to, each told once: the beginning of its id, and its folder."""


@dataclass(frozen=True, slots=True)
class Following:
    """A session to be followed."""

    scope: Scope
    session: Session
    file: Path | None = None
    """The one file that was named, wherever it is."""

    def looks(self, is_in_doubt: Callable[[Group], bool]) -> Iterator[Look]:
        """Yield what there is, and what there is at every change, without end; in doubt, a moment later."""
        from pollux.archive.watch import changes
        from pollux.sessions.live import Growing, Member

        if self.session.gone:  # only the archive has it
            yield Look([Member(self.session, self.scope.opened(self.session))], {})
        look = self._look_with(Growing(self.session, project_memory.recalled()))
        for _ in _steps() if self.file else changes(homes_of(self.scope), tell=output.words):
            found, n_pauses = look(), 0
            while n_pauses < _PATIENCE and any(is_in_doubt(one.group) for one in found.members):
                time.sleep(_PAUSE)
                again = look()
                n_pauses = n_pauses + 1 if again.members else _PATIENCE
                found = Look(again.members or found.members, found.others | again.others)
            if any(found):
                yield found

    def _look_with(self, growing: Growing) -> Callable[[], Look]:
        from pollux.sessions.locate import locate

        if self.file:
            file = self.file
            return lambda: Look(growing.look_at(file), {})
        homes, others = homes_of(self.scope), _Others(self)

        def look() -> Look:
            files = list(locate(homes()).files)
            return Look(growing.look(files), others.new(files))

        return look


class _Others:
    """Notices that other sessions are written to."""

    def __init__(self, following: Following) -> None:
        self._own = {ref.path for ref in following.session.files}
        self._is_of_all = following.scope.wanted.project is None
        self._sizes: dict[Path, int] | None = None
        self._told: set[str] = set()

    def new(self, files: list[SessionFile]) -> dict[str, str]:
        """Give the sessions that have begun or grown since the first look, each once."""
        from pollux.sessions.grouping import bundle_of

        own = [one for one in files if one.path in self._own]
        if self._sizes is None:
            self._sizes = {one.path: one.size for one in files}
            self._told = {bundle_of(one) for one in own}
        folders = {one.folder for one in own}
        found = {
            bundle_of(one): one.folder
            for one in files
            if one.what == "session"
            and one.size > self._sizes.get(one.path, -1)
            and (self._is_of_all or one.folder in folders)
        }
        new = {name: folder for name, folder in found.items() if name not in self._told}
        self._told |= new.keys()
        return new


def _steps() -> Iterator[None]:
    while True:
        yield
        time.sleep(_STEP)


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
