"""Maintenance of the archive: info, compact, backup, import, forget, and checks of its seals."""
# ruff: noqa: PLC0415  imported when a tool is used

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.errors import PolluxError
from pollux.library import project_memory
from pollux.library.config import UsageError
from pollux.library.freshness import archive_file
from pollux.text.times import microseconds

if TYPE_CHECKING:
    from pollux.archive.forget import ForgetResult
    from pollux.archive.load_sessions import ArchivedFile
    from pollux.archive.maintenance import ArchiveInfo, BackupResult, CompactResult
    from pollux.archive.undo import UndoCopy, UndoResult
    from pollux.library.freshness import Reporter
    from pollux.library.library import Library
    from pollux.library.snapshot import Snapshot
    from pollux.proofs.chain import SealCopy
    from pollux.proofs.public import PublicKey
    from pollux.proofs.verdict import Verdict
    from pollux.views.contracts.archive import ImportDocument


class ForgetPlan(msgspec.Struct, frozen=True):
    """What `forget` is going to remove, for the user to confirm."""

    titles: Mapping[str, str]
    """The sessions, by ID."""
    n_subagents: int
    n_files: int
    unreadable: tuple[str, ...]
    """Files that Pollux fails to read."""
    shared: Mapping[str, list[str]]
    """Files that stay because they also contain other sessions, with the IDs of those."""


def accept(_plan: ForgetPlan) -> None:
    """Confirm a plan without asking."""


class ArchiveTools:
    """Operations on a whole archive; see `Library.archive`."""

    def __init__(self, library: Library, report: Reporter) -> None:
        """Store the library, and a callback for progress bars."""
        self._library, self._config, self._report = library, library.config, report

    @property
    def path(self) -> Path:
        """The archive's file. Raises `UsageError` if the library works without an archive."""
        return archive_file(self._config)

    def info(self) -> ArchiveInfo:
        """Return the counts and sizes of the archive, and the process that is writing to it."""
        from pollux.archive import maintenance
        from pollux.search.build import index_info

        with maintenance.readable(self.path) as archive:
            info = maintenance.info(archive)
            index = index_info(self.path, archive.database)
        n_indexed = index.coverage.n_indexed if index.coverage else 0
        return dataclasses.replace(info, n_index_bytes=index.n_bytes, n_indexed=n_indexed)

    def compact(self) -> CompactResult:
        """Merge small segments and those of the search index, rewrite the files, and delete the undo copies."""
        from pollux.archive import maintenance, undo
        from pollux.search.build import optimize_index

        with maintenance.writable(self.path) as archive, self._report("compacting") as progress:
            n_undo_copies = undo.remove_all(self.path)
            result = maintenance.compact(archive, progress=progress)
            result.n_undo_copies = n_undo_copies
        optimize_index(self.path)
        return result

    def backup(self, target: Path, *, force: bool = False) -> BackupResult:
        """Copy the archive into a file or folder, and check every byte of the copy."""
        from pollux.archive.maintenance import backup

        with self._report("copying") as progress:
            return backup(self.path, target.expanduser(), force=force, progress=progress)

    def backup_files(self, target: Path) -> list[Path]:
        """Return all files that a backup replaces or removes."""
        from pollux.archive.maintenance import backup_target

        path = backup_target(self.path, target.expanduser())
        return [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]

    def import_(self, source: Path) -> ImportDocument:
        """Import another archive. An import that fails or is interrupted changes nothing."""
        from pollux.archive import foreign, import_archive, maintenance
        from pollux.library.indexing import update_index
        from pollux.library.keys import own_public_keys
        from pollux.proofs.verify_archive import adopt_own
        from pollux.views.contracts.archive import ImportDocument

        path, source = self.path, source.expanduser().absolute()
        if not source.exists():
            raise UsageError(f"{source} does not exist.")
        if path.exists() and path.samefile(source):
            raise UsageError(f"{source} is the archive itself.")
        memory = project_memory.load(self._config)
        with (
            self._library.stale(),
            foreign.open_foreign(source) as theirs,
            maintenance.writable(path, machine=self._config.machine, create=True) as archive,
            self._report("importing") as progress,
        ):
            merged = import_archive.import_archive(
                archive, theirs, memory=memory, now_us=self._now_us(), progress=progress
            )
            document = ImportDocument(merged, source, adopt_own(archive, own_public_keys(self._config.keys_dir)))
        with maintenance.readable(path) as archive:
            update_index(archive, self._report)
        return document

    def forget(
        self, references: Sequence[str], confirm: Callable[[ForgetPlan], None] = accept, *, undo: bool = True
    ) -> ForgetResult:
        """Remove sessions and everything archived of them, after a refresh.

        Args:
            references: IDs, prefixes, `latest`, `@2`, or file names, also of unreadable files.
            confirm: receives the plan before anything is removed; an exception that it raises cancels the removal.
            undo: whether `undo_forget` can bring the sessions back for a week.

        """
        from pollux.archive import forget
        from pollux.library.indexing import remove_index

        with self._library.writing() as snapshot:
            assert snapshot.archive is not None
            ids, files = _find_sessions_and_files(snapshot, references)
            confirm(_forget_plan(snapshot, ids, files))
            remove_index(self.path)  # before, in case this process is killed
            with self._report("removing") as progress:
                result = forget.forget(
                    snapshot.archive,
                    ids,
                    {file.id: file.path for file in files},
                    now_us=self._now_us(),
                    memory=project_memory.load(self._config),
                    progress=progress,
                    undo=undo,
                )
            remove_index(self.path)  # another process may have built it in the meantime
            return result

    def undo_forget(self, references: Sequence[str] = ()) -> list[UndoResult]:
        """Bring back what `forget` removed: with the sessions whose IDs begin so, or else the last time.

        Raises `PolluxError` if there is no such undo copy.
        """
        from pollux.archive import maintenance, undo

        with self._library.stale(), maintenance.writable(self.path) as archive, self._report("reading") as progress:
            undo.remove_expired(self.path, self._now_us())
            copies = undo.undo_copies(self.path)
            if references:
                copies = [_undo_copy(copies, reference) for reference in references]
            if not copies:
                raise PolluxError("There is nothing to undo: no session was forgotten in the last 7 days.")
            memory = project_memory.load(self._config)
            chosen = [*dict.fromkeys(copies)] if references else copies[:1]
            return [undo.bring_back(archive, copy, memory=memory, progress=progress) for copy in chosen]

    def verify_seals(self, known: Sequence[PublicKey], copy: SealCopy | None = None) -> Verdict:
        """Check that no byte has changed or disappeared since the archive was sealed.

        Args:
            known: keys whose seals are trusted.
            copy: a seal that was stored elsewhere; None for those in the archive.

        """
        from pollux.archive import maintenance
        from pollux.library.verify import verify_seals

        with maintenance.readable(self.path) as archive, self._report("verifying") as progress:
            return verify_seals(archive, known, copy, progress)

    def _now_us(self) -> int:
        return microseconds(self._config.clock()) or 0


def _find_sessions_and_files(snapshot: Snapshot, references: Sequence[str]) -> tuple[list[str], list[ArchivedFile]]:
    """Return the IDs of the sessions that references name, and archived files that Pollux fails to read."""
    from pollux.archive.load_sessions import file_at
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


def _undo_copy(copies: Sequence[UndoCopy], reference: str) -> UndoCopy:
    for copy in copies:
        if any(session_id.startswith(reference) for session_id in copy.sessions):
            return copy
    raise PolluxError(f"No session that was forgotten in the last 7 days matches '{reference}'.")


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
