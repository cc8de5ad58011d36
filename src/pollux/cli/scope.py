"""The options that every reading command shares, and what they lead to: homes, history, the sessions meant."""
# ruff: noqa: PLC0415  imported when a command runs: completion needs the options alone

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click
import msgspec

from pollux.cli import output
from pollux.cli.complete import project_names
from pollux.library import folders, project_memory

if TYPE_CHECKING:
    from datetime import tzinfo
    from types import TracebackType

    from pollux.archive.store import Archive
    from pollux.errors import UnfinishedArchiveError
    from pollux.model import Session
    from pollux.reports.filters import Filter
    from pollux.sessions.grouping import Group
    from pollux.sessions.homes import Home
    from pollux.sessions.reader import History, Progress

_Function = TypeVar("_Function", bound=Callable[..., Any])
_QUIET_SECONDS = 0.5
_DRAWN_EVERY = 0.1
"""Seconds."""


class Scope(msgspec.Struct):
    """What somebody asked to look at."""

    homes: tuple[Path, ...]
    wanted: Filter
    as_json: bool = False
    all_homes: bool = False
    """Whether every home in the archive is meant, not only those that the options or the environment name."""
    archive_path: Path | None = None
    """Where the archive is; without one, all is read anew and nothing is stored."""
    archive: Archive | None = None
    """Once it is open: sessions are read from it as long as the command runs."""
    unused_archive: Archive | None = None
    """Open, but not what sessions are read from, because it cannot be brought up to date."""
    n_elsewhere: int = 0
    """Archived sessions of homes that were not asked for, once the archive was read."""
    _in_use: ExitStack = msgspec.field(default_factory=ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the archive; what SQLite has against it becomes a sentence."""
        self._in_use.__exit__(kind, error, trace)
        if self.archive_path and isinstance(error, TypeError | ValueError | LookupError | ArithmeticError):
            _raise_for_damage(self.archive_path)

    def using(self, archive: Archive) -> Archive:
        """Leave an open archive to this scope, which closes it."""
        return self._in_use.enter_context(archive)

    def places(self) -> tuple[Home, ...]:
        """Return the homes to look at."""
        from pollux.sessions import homes as home

        try:
            return home.homes(self.homes, os.environ, Path.home())
        except FileNotFoundError as error:
            if error.errno is not None:  # the current folder was deleted, so a relative path means nothing
                raise
            raise click.UsageError(f"{error}.") from None

    def history(self) -> History:
        """Take in what changed and return what there is, with a progress bar when it takes time."""
        return self._read() if self.archive_path is None else self._archived(self.archive_path)

    def saved(self) -> History:
        """Read the conversations that `/chat save` stored in the homes asked for."""
        from pollux.sessions.locate import locate
        from pollux.sessions.reader import saved

        return saved(locate(self.places()), memory=project_memory.known_here())

    def opened(self, session: Session) -> Group:
        """Open a session that the history named, to read its messages."""
        from pollux.archive import open_session as history
        from pollux.sessions.reader import opened

        return history.opened(self.archive.database, session) if self.archive else opened(session)

    def contents(self) -> Callable[[Session], object]:
        """Return what tells, without reading, whether the bytes of a session have changed."""
        from pollux.archive import open_session as history

        if self.archive:
            kept = history.contents(self.archive.database)
            return lambda session: kept.get(session.id)
        return lambda session: [_size_and_time(ref.path) for ref in session.files]

    def _read(self) -> History:
        """Read all files, and store nothing."""
        from pollux.sessions.reader import history

        with progress("reading") as tell:
            return history(self.places(), memory=project_memory.known_here(), progress=tell)

    def _read_meanwhile(self, archive: Archive) -> History:
        """Read the files while somebody else fills the archive for the first time or anew, or nobody can."""
        say_files_alone(archive)
        self.archive, self.unused_archive = None, archive
        return self._read()

    def _archived(self, path: Path) -> History:
        from pollux.archive import open_session as history
        from pollux.archive import schema, store
        from pollux.archive.refresh import files_say_more, refresh_to_read
        from pollux.errors import UnfinishedArchiveError

        known = project_memory.recalled()
        places = self.places()
        try:
            self.archive = self.using(store.opened(path))
        except UnfinishedArchiveError as error:
            say_unfinished(error)
            return self._read()
        with progress("reading") as tell:
            result = refresh_to_read(self.archive, places, memory=known, progress=tell)
        if self.archive.lock:
            self.archive.lock.release()
        elif not schema.are_current(self.archive.database):
            return self._read_meanwhile(self.archive)
        elif not self.archive.lock_is_taken:
            if files_say_more(self.archive.database, result.located):
                return self._read_meanwhile(self.archive)
            output.words(f"The archive cannot be written ({self.archive.why_not}): this is what it holds so far.")
        # One snapshot for the rest of the command: another process may be writing to the archive.
        self.archive.database.execute("BEGIN")
        only = self.sessions_in_homes(self.archive, result.located.homes)
        self.n_elsewhere = schema.count_sessions(self.archive.database) - len(only) if only is not None else 0
        found = history.history(
            self.archive.database, result.located, tuple(result.problems), only=only, memory=project_memory.known_here()
        )
        if self.archive.lock_is_taken and _is_behind(found):
            if not found.sessions:
                return self._read_meanwhile(self.archive)
            output.words(f"The archive does not hold everything yet: {self.archive.why_not}.")
        project_memory.remember(found.sessions, known)
        return found

    def sessions_in_homes(self, archive: Archive, homes: Iterable[Home]) -> set[str] | None:
        """Return the IDs of the archived sessions that belong to the homes asked for; None if that is all of them.

        Where nothing names a home, the question is about the user's own history: the user's home and what was
        imported from other archives.
        """
        from pollux.archive.schema import sessions_of_homes
        from pollux.sessions.homes import USER_HOME

        if self.all_homes:
            return None
        homes = tuple(homes)
        is_own_history = any(home.how == USER_HOME for home in homes)
        return sessions_of_homes(archive.database, [str(home.root) for home in homes], with_imports=is_own_history)

    def sessions(self, found: History, *, everything: bool = False) -> tuple[Session, ...]:
        """Return the sessions meant; subagents and stubs only when asked for."""
        return self._chosen(found.sessions if everything else found.main)

    def session(self, found: History, wanted: str) -> Session:
        """Return the one session that an argument names, within what was asked to look at.

        Raises `FailedSessionError` if it names files that Pollux fails to read.
        """
        from pollux.errors import FailedSessionError, NoSuchSessionError
        from pollux.sessions.reader import History, failed_files, select

        chosen = self._chosen(found.sessions) if found.sessions else ()
        try:
            return select(History(found.located, chosen), wanted)
        except NoSuchSessionError as error:
            if failed := failed_files(found.problems, wanted):
                raise FailedSessionError([*failed], next(iter(failed.values())).message) from None
            if not found.sessions:
                raise click.ClickException(self.nothing_here()) from None
            if not chosen:
                raise click.ClickException(output.NOTHING_FITS) from None
            if not self.n_elsewhere:
                raise
            raise click.ClickException(f"{error} {self._hint()}") from None

    def nothing_here(self) -> str:
        """Return the sentence for homes without sessions, with a hint when the archive has sessions of other homes."""
        return f"{output.NOTHING_HERE} {self._hint()}".rstrip()

    def _hint(self) -> str:
        if not self.n_elsewhere:
            return ""
        sessions = f"{self.n_elsewhere} session{'s' * (self.n_elsewhere != 1)}"
        return f"The archive has {sessions} of other homes: add --all-homes to include them."

    def _chosen(self, sessions: Sequence[Session]) -> tuple[Session, ...]:
        """Return the sessions that pass the filter.

        A project that is known by its hash alone is found by hashing the folder that was typed and, if the query names
        no known project exactly, the folders where projects usually are.
        """
        from pollux.reports import filters
        from pollux.sessions.projects import search

        cwd, user_home = folders.current(), Path.home()
        choose = functools.partial(filters.chosen, wanted=self.wanted, cwd=cwd, user_home=user_home)
        query = self.wanted.project
        if query is None or not project_memory.unproven(sessions):
            return choose(sessions)
        typed = Path(os.path.expanduser(query))  # noqa: PTH111  which does not fail over `~nobody`
        better = project_memory.proven(sessions, [typed], depth=0)
        if not search.is_exact({session.project for session in better}, query, cwd, user_home):
            # A folder with exactly this name may belong to a project that is known by its hash alone.
            better = _searched(better, typed if typed.is_dir() else None)
        if self.archive_path is not None:
            project_memory.remember(better, project_memory.recalled())
        return choose(better)


def _raise_for_damage(path: Path) -> None:
    """Raise `PolluxError` if rows of an archive are damaged, which explains an exception that nothing else does."""
    from pollux.archive.maintenance import readable
    from pollux.archive.verify import damage_of_rows
    from pollux.errors import PolluxError

    try:
        archive = readable(path)
    except PolluxError:
        return  # none that rows could be read from
    with archive:
        damage = damage_of_rows(archive)
    if damage:
        raise PolluxError(
            f"The archive {path} is damaged ({damage.message}); `pollux verify --repair` derives the facts anew and "
            "puts back what is on the disk, otherwise restore the archive from a backup."
        )


def _is_behind(found: History) -> bool:
    """Tell whether there are files of which the archive knows nothing."""
    known = {ref.path for one in found.sessions for ref in one.files}
    return any(file.path not in known for file in found.located.files)


def say_unfinished(error: UnfinishedArchiveError) -> None:
    """Say that another process is making the archive."""
    output.words(f"The archive is not ready yet: {error.why}. These are the files alone.")


def say_files_alone(archive: Archive) -> None:
    """Say why the answer does not come from the archive."""
    what = "does not hold everything yet" if archive.lock_is_taken else "cannot be brought up to date"
    output.words(f"The archive {what}: {archive.why_not}. These are the files alone.")


def _size_and_time(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None  # told when it is read
    return found.st_size, found.st_mtime_ns


def _searched(sessions: Sequence[Session], folder: Path | None) -> tuple[Session, ...]:
    """Look through the folder that was named, or through all that are likely to hold projects."""
    from pollux.sessions.projects import search

    if _is_watched():
        output.words("No such project is known yet; looking through likely folders …")
    return project_memory.proven(sessions, [folder] if folder else search.likely_roots(Path.home()))


def options(*, json: bool = True, filters: bool = True, all_homes: bool = True) -> Callable[[_Function], _Function]:
    """Add the shared options to a command, which receives them as one `scope`.

    A command that answers no question about sessions has no use for `--all-homes`.
    """

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def wrapped(
            home: tuple[Path, ...],
            archive: Path | None,
            *,
            all_homes: bool = False,
            no_archive: bool,
            as_json: bool = False,
            **rest: Any,  # noqa: ANN401  click's
        ) -> object:
            wanted = filter_of(**{name: rest.pop(name, None) for name in _FILTERS})
            if no_archive and archive:
                raise click.UsageError("--archive and --no-archive say the opposite: give one of them.")
            path = None if no_archive else archive or archive_path()
            if all_homes and home:
                raise click.UsageError("--home and --all-homes contradict each other: use one of them.")
            if all_homes and path is None:
                raise click.UsageError("--all-homes reads every home in the archive, so it cannot work without one.")
            if path and os.path.isdir(path):  # noqa: PTH112  which does not fail where it may not look
                raise click.UsageError(f"The archive {path} is a folder: name a file, such as {path / 'archive.db'}.")
            if path and os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
                raise click.UsageError(f"The archive {path} is a pipe or a device: name a regular file.")
            with Scope(home, wanted, as_json, all_homes=all_homes, archive_path=path) as scope:
                click.get_current_context().obj = scope  # for `output_guard`, which protects what the options name
                return function(scope=scope, **rest)

        chosen = [_HOME, *([_ALL_HOMES] if all_homes else []), *_ARCHIVE]
        chosen += [*(_FILTERS.values() if filters else ()), *((_JSON,) if json else ())]
        for option in reversed(chosen):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[return-value]

    return decorate


def archive_path() -> Path | None:
    """Return where the archive is: where `POLLUX_ARCHIVE` says, else in the user's data folder; `-` means none."""
    said = os.environ.get("POLLUX_ARCHIVE")
    if said:
        return None if said == "-" else Path(said)
    return project_memory.memory_path().with_name("archive.db")


def filter_of(
    *,
    project: str | None,
    since: str | None,
    until: str | None,
    last: str | None,
    model: str | None,
    zone: tzinfo | None = None,
) -> Filter:
    """Read what was typed to choose by; dates are days of a zone, or of the system's own."""
    from pollux.reports import filters

    if since and last:
        raise click.UsageError("--since and --last both say where to begin: give one of them.")
    now = output.now()
    start = filters.moment("--since", since, now=now, zone=zone) if since else None
    start = filters.before("--last", last, now=now) if last else start
    end = filters.moment("--until", until, now=now, zone=zone) if until else None
    if start and end and end <= start:
        first = f"--since {since}" if since else f"--last {last}"
        raise click.UsageError(f"--until {until} is before {first}: nothing lies between them.")
    return filters.Filter(project, start, end, model)


_HOME = click.option(
    "--home",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Gemini home to read: the folder that contains .gemini, .gemini itself or its tmp folder. Repeatable.",
)
_ALL_HOMES = click.option("--all-homes", is_flag=True, help="Include every home that the archive has ever read.")
_ARCHIVE = (
    click.option("--archive", type=click.Path(path_type=Path), help="Another archive than your own."),
    click.option("--no-archive", is_flag=True, help="Read the files alone, and store nothing."),
)
_FILTERS = {
    "project": click.option(
        "--project", "-p", metavar="NAME|PATH|.", shell_complete=project_names, help="Only sessions of this project."
    ),
    "since": click.option(
        "--since", metavar="WHEN", help="Only sessions active after this: 2026-11-01, yesterday, 7d."
    ),
    "until": click.option("--until", metavar="WHEN", help="Only sessions begun before this."),
    "last": click.option("--last", metavar="SPAN", help="Only the last 7d, 12h, 2w."),
    "model": click.option("--model", metavar="NAME", help="Only sessions in which such a model answered."),
}
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object instead of words.")


@contextmanager
def progress(words: str) -> Iterator[Progress]:
    """Show a bar on a terminal's error stream, once something takes longer than half a second."""
    if not _is_watched():
        yield lambda _done, _all: None
        return
    bar = _Bar(words)
    try:
        yield bar.tell
    finally:
        bar.stop()


def _is_watched() -> bool:
    return sys.stderr.isatty()


class _Bar:
    """A progress bar that appears late."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._since = time.monotonic()
        self._drawn = 0.0
        self._bar: Any = None
        self._task: Any = None

    def tell(self, done: int, whole: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._since < _QUIET_SECONDS:
                return
            self._start(whole)
        self._bar.update(self._task, completed=done, total=whole)
        if time.monotonic() - self._drawn > _DRAWN_EVERY:
            self._bar.refresh()
            self._drawn = time.monotonic()

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _start(self, whole: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        # No thread of its own: a process that has one cannot be copied, and copies do the work.
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
        self._task = self._bar.add_task(self._words, total=whole)
        self._bar.start()
