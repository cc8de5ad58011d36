"""Tools that look after the archive itself: what is in it, less room, backups, other archives, sessions to forget."""
# ruff: noqa: PLC0415  imported when a tool is used

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.library import project_memory
from pollux.library.config import UsageError
from pollux.library.freshness import archive_file
from pollux.text.times import microseconds

if TYPE_CHECKING:
    from pollux.archive.backup import Copied
    from pollux.archive.files import ArchivedFile
    from pollux.archive.forget import Forgotten
    from pollux.archive.maintenance import Compacted, Info
    from pollux.library.freshness import Reporter
    from pollux.library.library import Library
    from pollux.library.snapshot import Snapshot
    from pollux.proofs.chain import Given
    from pollux.proofs.public import PublicKey
    from pollux.proofs.verdict import Verdict
    from pollux.views.contracts.archive import ImportDocument


class ForgetPlan(msgspec.Struct, frozen=True):
    """What is going to be removed for good."""

    titles: Mapping[str, str]
    """The sessions, by ID."""
    n_subagents: int
    n_files: int
    unreadable: tuple[str, ...]
    """Files of sessions that Pollux fails to read."""
    shared: Mapping[str, list[str]]
    """Files whose bytes will stay because they also hold other sessions, with the IDs of those."""


def accept(_plan: ForgetPlan) -> None:
    """Agree to a plan without asking."""


class ArchiveTools:
    """What can be done with an archive as a whole; made by `Library.archive`."""

    def __init__(self, library: Library, report: Reporter) -> None:
        """Take the library, and a function that is told about long work."""
        self._library, self._config, self._report = library, library.config, report

    @property
    def path(self) -> Path:
        """The archive's file. Raises `UsageError` if the library works without an archive."""
        return archive_file(self._config)

    def info(self) -> Info:
        """Return what the archive holds, how much room it takes, and who writes to it."""
        from pollux.archive import maintenance

        with maintenance.readable(self.path) as archive:
            return maintenance.info(archive)

    def compact(self) -> Compacted:
        """Put small segments together and write the file anew without gaps."""
        from pollux.archive import maintenance

        with maintenance.writable(self.path) as archive, self._report("compacting") as progress:
            return maintenance.compact(archive, progress=progress)

    def backup(self, target: Path, *, force: bool = False) -> Copied:
        """Copy the archive into a file or folder, and check every byte of the copy."""
        from pollux.archive.backup import backup

        with self._report("copying") as progress:
            return backup(self.path, target.expanduser(), force=force, progress=progress)

    def backup_files(self, target: Path) -> list[Path]:
        """Return all files that a backup replaces or removes."""
        from pollux.archive.backup import target_of

        path = target_of(self.path, target.expanduser())
        return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]

    def import_(self, source: Path) -> ImportDocument:
        """Import another archive; one that fails or is stopped changes nothing."""
        from pollux.archive import foreign, import_archive, maintenance
        from pollux.library.keys import own_public_keys
        from pollux.proofs.imported_seals import adopt_own
        from pollux.views.contracts.archive import ImportDocument

        path, source = self.path, source.expanduser().absolute()
        if not source.exists():
            raise UsageError(f"{source} does not exist.")
        if path.exists() and path.samefile(source):
            raise UsageError(f"{source} is the archive itself.")
        memory = project_memory.load(self._config)
        with (
            self._library.stale(),
            foreign.opened(source) as theirs,
            maintenance.writable(path, create=True) as archive,
            self._report("importing") as progress,
        ):
            merged = import_archive.take_in(archive, theirs, memory=memory, now_us=self._now_us(), progress=progress)
            return ImportDocument(merged, source, adopt_own(archive, own_public_keys(self._config.keys_dir)))

    def forget(self, references: Sequence[str], confirm: Callable[[ForgetPlan], None] = accept) -> Forgotten:
        """Remove sessions with all that is archived of them, after all that is new of them was read.

        Args:
            references: IDs, prefixes, `latest`, `@2`, or the names of files, also of those that cannot be read.
            confirm: gets the plan before anything is removed; an exception that it raises stops the removal.

        """
        from pollux.archive import forget

        with self._library.writing() as snapshot:
            assert snapshot.archive is not None
            ids, files = _find_sessions_and_files(snapshot, references)
            confirm(_forget_plan(snapshot, ids, files))
            with self._report("removing") as progress:
                return forget.forget(
                    snapshot.archive,
                    ids,
                    {file.id: file.path for file in files},
                    now_us=self._now_us(),
                    memory=project_memory.load(self._config),
                    progress=progress,
                )

    def verify_seals(self, known: Sequence[PublicKey], copy: Given | None = None) -> Verdict:
        """Check that no byte was changed or removed since the archive was sealed.

        Args:
            known: the keys whose seals to believe.
            copy: a seal that was kept elsewhere; None for those in the archive.

        """
        from pollux.archive import maintenance
        from pollux.library.verify import verify_seals

        with maintenance.readable(self.path) as archive, self._report("verifying") as progress:
            return verify_seals(archive, known, copy, progress)

    def _now_us(self) -> int:
        return microseconds(self._config.clock()) or 0


def _find_sessions_and_files(snapshot: Snapshot, references: Sequence[str]) -> tuple[list[str], list[ArchivedFile]]:
    """Return the IDs of the sessions that references name, and archived files that Pollux fails to read."""
    from pollux.archive.files import file_at
    from pollux.errors import FailedSessionError
    from pollux.library.select import find_session

    ids: dict[str, None] = {}
    files: dict[int, ArchivedFile] = {}
    for reference in references:
        try:
            ids[find_session(snapshot, _with_absolute_path(reference))] = None
        except FailedSessionError as error:
            for path in error.files:
                if file := file_at(snapshot.database, path):
                    files[file.id] = file
    return list(ids), list(files.values())


def _with_absolute_path(reference: str) -> str:
    return str(Path(reference).absolute()) if os.sep in reference else reference


def _forget_plan(snapshot: Snapshot, ids: Sequence[str], files: Sequence[ArchivedFile]) -> ForgetPlan:
    from pollux.archive import forget

    family = forget.family(snapshot.database, ids)
    titles = dict.fromkeys(ids, "")
    titles |= {session.id: session.title for session in snapshot.sessions.load(ids)}
    return ForgetPlan(
        titles,
        len(family) - len(ids),
        len(forget.files_of(snapshot.database, family)) + len(files),
        tuple(file.path for file in files),
        forget.shared_files(snapshot.database, family),
    )
