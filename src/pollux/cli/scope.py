"""The options that every reading command shares, and what they lead to: homes, history, the sessions meant."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from pollux import filters, projects
from pollux.filters import Filter
from pollux.model import Session
from pollux.sessions import History, Progress, history, homes, select

_Function = TypeVar("_Function", bound=Callable[..., Any])
_QUIET_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Scope:
    """What somebody asked to look at."""

    homes: tuple[Path, ...]
    wanted: Filter
    as_json: bool = False

    def history(self) -> History:
        """Read what there is, with a progress bar when it takes time."""
        memory = projects.load_memory(memory_path())
        with progress("reading") as tell:
            found = history(homes(*self.homes), memory=memory, progress=tell)
        _remember(found, memory)
        return found

    def sessions(self, found: History, *, everything: bool = False) -> tuple[Session, ...]:
        """Return the sessions meant; subagents and stubs only when asked for."""
        sessions = found.sessions if everything else found.main
        return filters.chosen(sessions, self.wanted, cwd=Path.cwd(), user_home=Path.home())

    def session(self, found: History, wanted: str) -> Session:
        """Return the one session that an argument names, within what was asked to look at."""
        chosen = filters.chosen(found.sessions, self.wanted, cwd=Path.cwd(), user_home=Path.home())
        return select(History(found.located, chosen), wanted)


def options(*, json: bool = True) -> Callable[[_Function], _Function]:
    """Give a command the shared options; it gets them as one `scope`."""

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapped(
            home: tuple[Path, ...],
            project: str | None,
            since: str | None,
            until: str | None,
            last: str | None,
            model: str | None,
            **rest: object,
        ) -> object:
            now = datetime.now(UTC)
            start = filters.moment("--since", since, now=now) if since else None
            start = now - filters.span("--last", last) if last else start
            end = filters.moment("--until", until, now=now) if until else None
            as_json = bool(rest.pop("as_json", False))
            scope = Scope(home, Filter(project, start, end, model), as_json)
            return function(scope=scope, **rest)

        for option in reversed(_OPTIONS if json else _OPTIONS[:-1]):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[return-value]

    return decorate


_OPTIONS = (
    click.option(
        "--home",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A folder that contains .gemini, or is it, or is its tmp; repeatable.",
    ),
    click.option("--project", "-p", metavar="NAME|PATH|.", help="Only sessions of this project."),
    click.option("--since", metavar="WHEN", help="Only sessions active after this: 2026-11-01, yesterday, 7d."),
    click.option("--until", metavar="WHEN", help="Only sessions begun before this."),
    click.option("--last", metavar="SPAN", help="Only the last 7d, 12h, 2w."),
    click.option("--model", metavar="NAME", help="Only sessions in which such a model answered."),
    click.option("--json", "as_json", is_flag=True, help="One JSON object instead of words."),
)


def memory_path() -> Path:
    """Return where proven project paths are remembered."""
    import platformdirs  # noqa: PLC0415  only where the data folder matters

    return platformdirs.user_data_path("pollux", appauthor=False) / "projects.json"


def _remember(found: History, memory: dict[str, str]) -> None:
    known = {one.project.hash: one.project.path for one in found.sessions if one.project.proven}
    new = {digest: path for digest, path in known.items() if digest and path and memory.get(digest) != path}
    if new:
        projects.remember(memory_path(), new)  # a convenience: where it cannot be kept, it is found again


@contextmanager
def progress(words: str) -> Iterator[Progress]:
    """Show a bar on a terminal's error stream, once something takes longer than half a second."""
    if not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    bar = _Bar(words)
    try:
        yield bar.tell
    finally:
        bar.stop()


class _Bar:
    """A progress bar that appears late."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._since = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def tell(self, done: int, whole: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._since < _QUIET_SECONDS:
                return
            self._start(whole)
        self._bar.update(self._task, completed=done, total=whole)

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _start(self, whole: int) -> None:
        from rich.console import Console  # noqa: PLC0415  only when it is shown
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._words, total=whole)
        self._bar.start()
