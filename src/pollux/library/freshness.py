"""Bringing the archive up to date before a question is answered, and what to read where that is not possible."""
# ruff: noqa: PLC0415  imported when an archive is opened

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import msgspec

from pollux.errors import PolluxError
from pollux.library import project_memory
from pollux.library.config import UsageError
from pollux.reports.freshness import Freshness, Source

if TYPE_CHECKING:
    from pathlib import Path

    from pollux.archive.damage import Damage
    from pollux.archive.refresh import Refreshed
    from pollux.archive.store import Archive
    from pollux.archive.watch import SyncReport
    from pollux.library.config import Config
    from pollux.library.filters import Announce
    from pollux.prices import Prices
    from pollux.sessions.locate import Located
    from pollux.sessions.reader import Progress

Reporter = Callable[[str], AbstractContextManager["Progress"]]
"""Called with a word when long work begins; what it returns is told how far the work is."""
NOTHING_TO_SYNC = "There is nothing to do without an archive"


def no_report(_label: str) -> AbstractContextManager[Progress]:
    """Report nothing."""
    return nullcontext(lambda _done, _all: None)


class Refresh(msgspec.Struct, frozen=True):
    """What a refresh found on the disk and made of it."""

    located: Located
    freshness: Freshness


def refresh(config: Config, prices: Prices, report: Reporter = no_report, *, add_up: bool = False) -> Refresh:
    """Bring the archive up to date with the homes; say what to read if that is not possible.

    Every model call gets its cost; with `add_up`, the sums by time are stored too, which `usage` starts from.
    """
    from pollux.archive import store
    from pollux.errors import UnfinishedArchiveError
    from pollux.sessions.locate import locate

    if config.archive is None:
        return Refresh(locate(config.homes), Freshness(Source.FILES))
    try:
        archive = store.opened(config.archive)
    except UnfinishedArchiveError as error:
        return Refresh(locate(config.homes), Freshness(Source.FILES, f"The archive is not ready yet: {error.why}"))
    with archive:
        return _refresh(archive, config, prices, report, add_up=add_up)


@contextmanager
def explained_damage(path: Path | None) -> Iterator[None]:
    """Raise `PolluxError` for an exception that damaged rows of an archive explain, and nothing else does."""
    try:
        yield
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        damage = _damage_of_rows(path) if path else None
        if damage is None:
            raise
        raise PolluxError(
            f"The archive {path} is damaged ({damage.message}); `pollux verify --repair` derives the facts anew and "
            "puts back what is on the disk, otherwise restore the archive from a backup."
        ) from error


def _damage_of_rows(path: Path) -> Damage | None:
    from pollux.archive.maintenance import readable
    from pollux.archive.verify import damage_of_rows

    try:
        archive = readable(path)
    except PolluxError:
        return None  # none that rows could be read from
    with archive:
        return damage_of_rows(archive)


def archive_file(config: Config, reason: str = "This is about the archive") -> Path:
    """Return the archive's absolute path. Raises `UsageError`, with a reason, if the library works without one."""
    if config.archive is None:
        raise UsageError(f"{reason}: leave --no-archive and POLLUX_ARCHIVE=- out.")
    return config.archive.expanduser().absolute()


def update(
    archive: Archive, config: Config, report: Reporter = no_report, *, label: str = "reading", derive: bool = True
) -> Refreshed:
    """Copy what is new in the homes into an archive that is open for writing.

    Args:
        archive: to write to.
        config: names the homes.
        report: told how far the work is.
        label: the name of the work in that report.
        derive: whether facts are derived from the new bytes too.

    """
    from pollux.archive.refresh import refresh

    with report(label) as progress:
        result = refresh(
            archive, config.current_homes(), memory=project_memory.load(config), progress=progress, derives=derive
        )
    _remember_projects(archive, config, result)
    return result


@contextmanager
def writing(config: Config, report: Reporter = no_report, *, create: bool = False) -> Iterator[tuple[Archive, Refresh]]:
    """Hold the archive as its only writer, up to date with the homes.

    Raises `PolluxError` if there is none or it cannot be written, also if another process is writing to it.
    """
    from pollux.archive.maintenance import writable

    with writable(archive_file(config), create=create) as archive:
        result = update(archive, config, report)
        yield archive, Refresh(result.located, _freshness(archive, result))


def sync(config: Config, report: Reporter, waiting: Announce, *, derive: bool = True) -> SyncReport:
    """Copy what is new in the homes into the archive, and make the archive if there is none.

    Calls get no prices here: a watch may have another price table than the user, and each would price all calls anew.

    Args:
        config: names the archive and the homes.
        report: told how far the work is.
        waiting: told who else is writing to the archive; the call waits for that process.
        derive: whether facts are derived from the new bytes too.

    """
    from pollux.archive.maintenance import writable
    from pollux.archive.watch import sync_report

    def wait(process: str) -> None:
        waiting(f"Waiting for {process}, which is writing to the archive …")

    with writable(archive_file(config, NOTHING_TO_SYNC), create=True, wait=wait) as archive:
        return sync_report(archive, update(archive, config, report, label="taking in", derive=derive))


def _refresh(archive: Archive, config: Config, prices: Prices, report: Reporter, *, add_up: bool) -> Refresh:
    from pollux.archive.pricing import price_calls
    from pollux.archive.refresh import refresh_to_read
    from pollux.reports import usage_sql

    memory = project_memory.load(config)
    with report("reading") as progress:
        result = refresh_to_read(archive, config.homes, memory=memory, progress=progress)
    if archive.is_writable:
        price_calls(archive.database, prices)
        if add_up:
            usage_sql.update_time_parts(archive.database, prices.version)
    _remember_projects(archive, config, result)
    return Refresh(result.located, _freshness(archive, result))


def _remember_projects(archive: Archive, config: Config, result: Refreshed) -> None:
    """Store the project paths that new sessions prove."""
    from pollux.reports.sessions import SessionQuery, projects

    if result.sessions:
        project_memory.store(config, projects(archive.database, SessionQuery(subagents=True, empty=True)))


def _freshness(archive: Archive, result: Refreshed) -> Freshness:
    state, reason = _state(archive, result.located)
    return Freshness(
        state,
        reason,
        archive.lock_is_taken,
        result.n_files,
        result.n_bytes,
        result.n_gone,
        tuple(result.problems),
    )


def _state(archive: Archive, located: Located) -> tuple[Source, str]:
    """Return whether an archive answers better than the files on the disk, and whether it lacks something."""
    from pollux.archive import schema
    from pollux.archive.refresh import files_say_more, lacks_files

    if archive.is_writable:
        return Source.CURRENT, ""
    database, why = archive.database, archive.why_not
    if archive.lock_is_taken:
        if not schema.are_current(database) or schema.are_empty(database):
            return Source.FILES, f"The archive does not hold everything yet: {why}"
        is_behind = schema.are_behind(database) or lacks_files(database, located)
        return (Source.BEHIND if is_behind else Source.CURRENT), why
    if not schema.are_current(database) or files_say_more(database, located):
        return Source.FILES, f"The archive cannot be brought up to date: {why}"
    return Source.BEHIND, why


def read_only(path: Path) -> Archive:
    """Open an archive for reading only."""
    from pollux.archive import store

    return store.opened(path, write=False)
