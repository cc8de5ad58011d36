"""Refresh the archive before it is read, or decide what to read instead."""
# ruff: noqa: PLC0415  imported when an archive is opened

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.errors import PolluxError
from pollux.library import project_memory
from pollux.library.config import UsageError
from pollux.reports.freshness import Freshness, FreshnessState
from pollux.text.times import microseconds

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from pollux.archive.damage import Damage
    from pollux.archive.refresh import RefreshResult
    from pollux.archive.store import Archive
    from pollux.archive.watch import SyncReport
    from pollux.library.config import Config
    from pollux.library.filters import Announce
    from pollux.model import Problem
    from pollux.prices import Prices
    from pollux.search.build import IndexBuilder
    from pollux.sessions.locate import HomeScan
    from pollux.sessions.reader import Progress

Reporter = Callable[[str], AbstractContextManager["Progress"]]
"""Starts a progress bar with a label, and returns the function that updates it."""
NOTHING_TO_SYNC = "There is nothing to do without an archive"


def no_report(_label: str) -> AbstractContextManager[Progress]:
    """Show no progress bar."""
    return nullcontext(lambda _done, _all: None)


class Refresh(msgspec.Struct, frozen=True):
    """The result of a refresh: the files of the homes, and what to read."""

    located: HomeScan
    freshness: Freshness
    archive: Path | None = None
    """The archive to read; None for session files."""
    n_files: int | None = None
    """The number of session files, if `located` leaves them out."""

    def is_confirmed_by(self, synced: SyncReport) -> bool:
        """Return whether a later sync of an archive that was up to date has found nothing new."""
        return (
            self.freshness.state == FreshnessState.CURRENT
            and not self.freshness.is_locked
            and not (synced.n_files or synced.n_deleted or synced.sessions)
            and synced.problems == self.freshness.problems
            and synced.homes == tuple(str(home.root) for home in self.located.homes)
            and synced.n_projects == len(self.located.folders)
        )

    def packed(self) -> bytes:
        """Return the same without its files, for `unpacked`.

        A long-running process locates session files again if it needs them. It has to drop this value before it unpacks
        the other: each string of a path that both share keeps a megabyte of the files from being released.
        """
        import pickle

        n_files = sum(len(folder.files) for folder in self.located.folders) if self.n_files is None else self.n_files
        return pickle.dumps(msgspec.structs.replace(self, located=self.located.without_files(), n_files=n_files))


def unpacked(packed: bytes) -> Refresh:
    """Return what `Refresh.packed` has packed in this process."""
    import pickle

    state = pickle.loads(packed)  # noqa: S301  of this process
    assert isinstance(state, Refresh)
    return state


class Scratch:
    """A temporary folder, created when it is needed."""

    def __init__(self) -> None:
        """Create nothing yet."""
        self._folder: TemporaryDirectory[str] | None = None

    @property
    def folder(self) -> Path:
        """The folder, which only the user may enter. Raises `OSError` if none can be created."""
        if self._folder is None:
            from tempfile import TemporaryDirectory

            self._folder = TemporaryDirectory(prefix="pollux-")
        return Path(self._folder.name)

    def close(self) -> None:
        """Delete the folder."""
        if self._folder:
            self._folder.cleanup()
            self._folder = None


def refresh(
    config: Config, prices: Prices, scratch: Scratch, report: Reporter = no_report, *, add_up: bool = False
) -> Refresh:
    """Bring the archive up to date with the homes, or decide what to read instead.

    Every model call gets its cost; with `add_up`, the sums by time are stored too, which `usage` starts from.
    An archive that cannot be written is copied to `scratch` if it lacks files and has others that are deleted.
    """
    from pollux.archive import store
    from pollux.errors import MissingArchiveError, UnfinishedArchiveError
    from pollux.sessions.locate import locate

    reason = ""
    if config.archive is not None:
        try:
            archive = store.open_archive(config.archive, machine=config.machine)
        except UnfinishedArchiveError as error:
            reason = f"The archive is not ready yet: {error.reason}"
        except MissingArchiveError as error:
            reason = f"No archive can be created at {config.archive} ({error.reason})"
        except OSError as error:  # in a folder that the user may not enter
            reason = f"No archive can be created at {config.archive} ({error.strerror})"
        else:
            with archive:
                state = _refresh(archive, config, prices, report, add_up=add_up)
                if state.freshness.state == FreshnessState.COMBINED:
                    state = _refresh_copy(archive, state, config, prices, scratch, report)
                return state
    return Refresh(locate(config.homes), Freshness(FreshnessState.FILES, reason))


def as_it_is(config: Config) -> Refresh | None:
    """Return the archive without a refresh; None if there is none with sessions that this version can read."""
    from pollux.archive import schema
    from pollux.archive.refresh import count_session_files
    from pollux.sessions.locate import locate

    if config.archive is None:
        return None
    try:
        with read_only(config.archive) as archive:
            if not schema.are_current(archive.database) or schema.are_empty(archive.database):
                return None
            n_files = count_session_files(archive.database)
    except (PolluxError, OSError):
        return None  # the refresh reports it
    reason = "new session files are still being read"
    freshness = Freshness(FreshnessState.BEHIND, reason, is_locked=True, is_filling=True)
    folders = locate(config.homes, of_folders=lambda _path: False)  # all files of a large home take a second
    return Refresh(folders, freshness, config.archive, n_files)


def bytes_on_disk(config: Config) -> int:
    """Return the size of all session files in the homes."""
    from pollux.sessions.locate import locate

    return sum(file.size for file in locate(config.homes).files)


def bytes_read(config: Config) -> int:
    """Return how many of these bytes another process has copied into the archive and read."""
    from pollux.archive.refresh import bytes_done

    if config.archive is None:
        return 0
    try:
        with read_only(config.archive) as archive:
            return bytes_done(archive.database)
    except (PolluxError, OSError):
        return 0  # it has only just begun


@contextmanager
def explained_damage(path: Path | None) -> Iterator[None]:
    """Replace an exception by a `PolluxError` if damaged rows of the archive caused it."""
    try:
        yield
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        damage = _damage_of_rows(path) if path else None
        if damage is None:
            raise
        raise PolluxError(
            f"The archive {path} is damaged ({damage.message}). Run `pollux verify --repair`, or restore the archive "
            "from a backup."
        ) from error


def _damage_of_rows(path: Path) -> Damage | None:
    from pollux.archive.maintenance import readable
    from pollux.archive.verify import damage_of_rows

    try:
        archive = readable(path)
    except PolluxError:
        return None  # it cannot even be opened
    with archive:
        return damage_of_rows(archive)


def archive_file(config: Config, reason: str = "This command needs the archive") -> Path:
    """Return the archive's absolute path. Raises `UsageError` with the reason if the library has no archive."""
    if config.archive is None:
        raise UsageError(f"{reason}: leave --no-archive and POLLUX_ARCHIVE=- out.")
    return config.archive.expanduser().absolute()


def update(
    archive: Archive, config: Config, report: Reporter = no_report, *, label: str = "reading", derive: bool = True
) -> RefreshResult:
    """Copy new files of the homes into an archive that is open for writing.

    Args:
        archive: the open archive.
        config: names the homes.
        report: shows progress.
        label: the label of the progress bar.
        derive: also derive facts from the new bytes.

    """
    from pollux.archive.refresh import refresh

    _remove_expired_copies(archive, config)
    with report(label) as progress:
        result = refresh(
            archive,
            config.current_homes(),
            clock=config.clock,
            memory=project_memory.load(config),
            progress=progress,
            derives=derive,
        )
    _remember_projects(archive, config, result)
    return result


@contextmanager
def writing(config: Config, report: Reporter = no_report, *, create: bool = False) -> Iterator[tuple[Archive, Refresh]]:
    """Refresh the archive and keep it locked for writing.

    Raises `PolluxError` if there is no archive, it is read-only, or another process is writing to it.
    """
    from pollux.archive.maintenance import writable

    with writable(archive_file(config), machine=config.machine, create=create) as archive:
        result = update(archive, config, report)
        yield archive, Refresh(result.located, _freshness(archive, result), archive.path)


def sync(
    config: Config,
    report: Reporter,
    waiting: Announce,
    *,
    derive: bool = True,
) -> SyncReport:
    """Copy new files of the homes into the archive; create the archive if there is none.

    Model calls are not priced: a watching process may use another price table than the user, and the two would reprice
    all calls in turn.

    Args:
        config: names the archive and the homes.
        report: shows progress.
        waiting: receives a note if another process is writing to the archive, which the call then waits for.
        derive: also derive facts from the new bytes.

    """
    from pollux.archive.maintenance import writable
    from pollux.archive.watch import sync_report

    def wait(process: str) -> None:
        waiting(f"Waiting for {process}, which is writing to the archive …")

    path = archive_file(config, NOTHING_TO_SYNC)
    with writable(path, machine=config.machine, create=True, wait=wait) as archive:
        return sync_report(archive, update(archive, config, report, label="archiving", derive=derive))


def index(config: Config, report: Reporter, builder: IndexBuilder | None = None) -> tuple[str, tuple[Problem, ...]]:
    """Index what a sync has added; return a note if that is not possible, and sessions that cannot be read.

    Other processes may write to the archive meanwhile. A builder that is used for several syncs is faster.
    """
    from pollux.library.indexing import update_index

    with read_only(archive_file(config, NOTHING_TO_SYNC)) as archive:
        return update_index(archive, report, builder)


def _refresh(archive: Archive, config: Config, prices: Prices, report: Reporter, *, add_up: bool) -> Refresh:
    from pollux.archive.pricing import price_calls
    from pollux.archive.refresh import refresh_to_read
    from pollux.reports.usage_days import Days, update_day_sums

    memory = project_memory.load(config)
    with report("reading") as progress:
        result = refresh_to_read(archive, config.homes, clock=config.clock, memory=memory, progress=progress)
    if archive.is_writable:
        _remove_expired_copies(archive, config)
        price_calls(archive.database, prices)
        if add_up:
            update_day_sums(archive.database, Days(prices, *config.zone()))
    _remember_projects(archive, config, result)
    freshness = _freshness(archive, result)
    return Refresh(result.located, freshness, None if freshness.state == FreshnessState.FILES else archive.path)


def _remove_expired_copies(archive: Archive, config: Config) -> None:
    """Delete undo copies that are too old."""
    from pollux.archive.store import undo_folder

    if undo_folder(archive.path).is_dir():
        from pollux.archive.undo import remove_expired

        remove_expired(archive.path, microseconds(config.clock()) or 0)


def _refresh_copy(
    archive: Archive, state: Refresh, config: Config, prices: Prices, scratch: Scratch, report: Reporter
) -> Refresh:
    """Add the files that a read-only archive lacks to a copy of it; without room for that, read the archive alone."""
    from pollux.archive.maintenance import temporary_copy
    from pollux.errors import ArchiveError

    alone = Refresh(state.located, msgspec.structs.replace(state.freshness, state=FreshnessState.BEHIND), archive.path)
    try:
        copy = temporary_copy(archive, scratch.folder / "archive.db", machine=config.machine)
    except (OSError, ArchiveError):
        return alone
    with copy:
        combined = _refresh(copy, config, prices, report, add_up=False)
    if combined.freshness.state != FreshnessState.CURRENT:
        return alone
    freshness = msgspec.structs.replace(state.freshness, problems=combined.freshness.problems)
    return Refresh(combined.located, freshness, copy.path)


def _remember_projects(archive: Archive, config: Config, result: RefreshResult) -> None:
    """Store the project paths that new sessions prove."""
    from pollux.reports.sessions import SessionQuery, projects

    if result.sessions:
        project_memory.store(config, projects(archive.database, SessionQuery(subagents=True, empty=True)))


def _freshness(archive: Archive, result: RefreshResult) -> Freshness:
    state, reason = _state(archive, result.located)
    return Freshness(
        state,
        reason,
        archive.lock_is_taken,
        result.n_files,
        result.n_bytes,
        result.n_deleted,
        tuple(result.problems),
    )


def _state(archive: Archive, located: HomeScan) -> tuple[FreshnessState, str]:
    """Return whether to read the archive or the files, and why."""
    from pollux.archive import schema
    from pollux.archive.refresh import has_deleted_files, lacks_bytes, lacks_files

    if archive.is_writable:
        return FreshnessState.CURRENT, ""
    database, reason = archive.database, archive.read_only_reason
    if archive.lock_is_taken:
        if not schema.are_current(database) or schema.are_empty(database):
            return FreshnessState.FILES, f"The archive does not hold everything yet: {reason}"
        is_behind = schema.are_behind(database) or lacks_files(database, located)
        return (FreshnessState.BEHIND if is_behind else FreshnessState.CURRENT), reason
    if schema.are_current(database):
        if not lacks_bytes(database, located):
            return FreshnessState.BEHIND, reason
        if has_deleted_files(database):
            return FreshnessState.COMBINED, reason
    return FreshnessState.FILES, f"The archive cannot be brought up to date: {reason}"


def read_only(path: Path) -> Archive:
    """Open an archive for reading only."""
    from pollux.archive import store

    return store.open_archive(path, write=False)
