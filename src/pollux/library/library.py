"""`Library`: every question that a front end may ask, answered with values."""
# ruff: noqa: PLC0415  imported when a question needs it

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Self

from pollux.library import freshness
from pollux.library.file_tables import FileTables
from pollux.library.filters import Announce, ignore_note
from pollux.library.freshness import Refresh, Reporter, no_report
from pollux.library.snapshot import Snapshot, archived_snapshot
from pollux.reports.filters import ALL, Filter
from pollux.reports.freshness import Freshness, Source
from pollux.reports.sessions import FIRST_PAGE, Page

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from pollux.archive.damage import VerifyReport
    from pollux.archive.store import Archive
    from pollux.archive.watch import SyncReport
    from pollux.exports.source import Wanted
    from pollux.formats.source import Source as ByteSource
    from pollux.library.archive_tools import ArchiveTools
    from pollux.library.config import Config
    from pollux.library.export import ExportResult, Selection
    from pollux.library.export_options import RedactionOptions
    from pollux.library.follow import Following
    from pollux.library.output_guard import OutputGuard
    from pollux.library.references import Ref
    from pollux.library.resume import ResumePlan
    from pollux.library.sinks import Sink
    from pollux.library.stats import StatsQuery
    from pollux.library.status import OverviewReport
    from pollux.library.today import Today
    from pollux.library.transcript import Transcript
    from pollux.library.usage import UsageQuery
    from pollux.model import FileRef, Json, Message, Problem
    from pollux.prices import Prices
    from pollux.reports.audit import AuditReport
    from pollux.reports.doctor import Diagnosis
    from pollux.reports.projects import ProjectList
    from pollux.reports.sessions import SavedPage, SessionPage, SessionRow
    from pollux.reports.stats import Statistics
    from pollux.reports.status import StatusReport
    from pollux.reports.usage import Report
    from pollux.sessions.family import SessionTree
    from pollux.views.contracts.archive import RestorePlan
    from pollux.views.transcript import Options


class Library:
    """The history of some homes, in an archive or in files.

    One library serves all threads: each has a read-only connection of its own, each answer is one snapshot, and one
    thread at a time refreshes.
    """

    def __init__(self, config: Config, report: Reporter = no_report, announce: Announce = ignore_note) -> None:
        """Take the settings, and functions that are told about long work and about what Pollux does meanwhile."""
        self.config = config
        self._report, self._announce = report, announce
        self._refreshing = threading.RLock()
        self._state: Refresh | None = None
        self._prices: Prices | None = None
        self._opening = threading.Lock()
        self._archives: dict[threading.Thread, Archive] = {}
        self._files = FileTables(config, report)
        self._outputs: OutputGuard | None = None

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._opening:
            for archive in self._archives.values():
                archive.close()
            self._archives.clear()
        self._files.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def prices(self) -> Prices:
        """The price table with the user's own prices."""
        if self._prices is None:
            self._prices = self.config.prices()
        return self._prices

    def refresh(self, *, quiet: bool = False, add_up: bool = False) -> Freshness:
        """Bring the archive up to date with the homes, and price new calls.

        Args:
            quiet: whether to report nothing meanwhile.
            add_up: whether to store the sums by time too, which makes `usage` faster.

        """
        return self._refresh(no_report if quiet else self._report, add_up=add_up).freshness

    def sessions(self, wanted: Filter = ALL, page: Page = FIRST_PAGE) -> SessionPage:
        """Return a page of the sessions that a filter chooses, the last used first."""
        from pollux.library.listing import session_page

        with self.snapshot() as snapshot:
            return session_page(snapshot, wanted, page, self._announce)

    def session(self, reference: str = "latest", wanted: Filter = ALL) -> SessionRow:
        """Return the one session that an ID, a prefix, `latest`, `@2` or the name of a file means."""
        from pollux.library.listing import session_row

        with self.snapshot() as snapshot:
            return session_row(snapshot, reference, wanted)

    def saved(self, wanted: Filter = ALL, limit: int | None = None) -> SavedPage:
        """Return the conversations that `/chat save` stored in the homes."""
        from pollux.library.listing import saved_page

        with self.snapshot() as snapshot:
            return saved_page(snapshot, wanted, limit)

    def usage(self, query: UsageQuery | None = None) -> Report:
        """Return tokens and money, every model call counted once."""
        from pollux.library import usage

        query = query or usage.UsageQuery()
        if self.config.archive is None and not query.needs_sessions:
            return usage.quick_report(self.config, query, self.prices, self._report)
        if self._state is None:
            self.refresh(add_up=not query.needs_sessions)
        with self.snapshot(tools=query.by == "tool") as snapshot:
            return usage.usage_report(snapshot, query, self.prices, self._announce)

    def stats(self, query: StatsQuery | None = None) -> Statistics:
        """Return what was asked, answered and done."""
        from pollux.library import stats

        with self.snapshot(tools=True) as snapshot:
            return stats.stats_report(snapshot, query or stats.StatsQuery(), self._announce)

    def today(self, *, everywhere: bool = False) -> Today:
        """Return what the project of the current folder has used today, or all projects."""
        from pollux.library.today import used_today

        with self.snapshot() as snapshot:
            return used_today(snapshot, everywhere=everywhere)

    def status(self, wanted: Filter = ALL) -> StatusReport:
        """Return when and why the client deletes each session, and whether the archive has it."""
        from pollux.library.status import status_report

        with self.snapshot() as snapshot:
            return status_report(snapshot, wanted, self._report, self._announce)

    def overview(self) -> OverviewReport:
        """Return what there is, what is new, and what the client is going to delete."""
        from pollux.library.status import overview_report

        with self.snapshot() as snapshot:
            return overview_report(snapshot, self._report)

    def deletions(self) -> dict[str, str]:
        """Return in a word when the client deletes each session that it deletes within a week."""
        from pollux.library.status import soon_deleted

        with self.snapshot() as snapshot:
            return soon_deleted(snapshot, self._report)

    @contextmanager
    def transcript(
        self, reference: Ref = "latest", options: Options | None = None, wanted: Filter = ALL
    ) -> Iterator[Transcript]:
        """Open a session by its name, or the session in a file, to be read."""
        from pollux.library.transcript import NORMAL, open_transcript

        with self.snapshot_for(reference) as snapshot:
            yield open_transcript(snapshot, reference, options or NORMAL, wanted, self.prices)

    def messages(self, reference: Ref = "latest", start: int = 0, stop: int | None = None) -> Iterator[Message]:
        """Yield the messages of a session, one at a time, from one number to another; the first is 0."""
        with self.transcript(reference) as transcript:
            yield from transcript.messages(start, stop)

    def state(self, reference: Ref = "latest") -> Iterator[Json]:
        """Yield the messages of a session that the client itself would load, in its own words."""
        with self.transcript(reference) as transcript:
            yield from transcript.state()

    def tree(self, reference: Ref = "latest", wanted: Filter = ALL) -> SessionTree:
        """Return a session and its subagents, from the one at the top down."""
        from pollux.library.tree import session_tree

        with self.snapshot() as snapshot:
            return session_tree(snapshot, reference, wanted)

    def files(self, reference: Ref = "latest", wanted: Filter = ALL) -> tuple[FileRef, ...]:
        """Return the files of a session, also of one that Pollux fails to read."""
        from pollux.library.raw import files_of

        with self.snapshot_for(reference) as snapshot:
            return files_of(snapshot, reference, wanted)

    def raw(
        self, reference: Ref = "latest", number: int | None = None, wanted: Filter = ALL
    ) -> AbstractContextManager[ByteSource]:
        """Open the n-th file of a session, or its main file, to be read byte for byte."""
        from pollux.library.raw import open_raw

        return open_raw(self, reference, number, wanted)

    def audit(self, reference: Ref = "latest", wanted: Filter = ALL) -> AuditReport:
        """Return how the cost of a session and its subagents comes about."""
        from pollux.library.audit import audit_report

        with self.snapshot_for(reference) as snapshot:
            return audit_report(snapshot, reference, wanted, self.prices)

    def follow(
        self, reference: Ref = "latest", wanted: Filter = ALL, tell: Announce = ignore_note, *, wait: bool = False
    ) -> Following:
        """Follow a running session; `tell` is told what the user should know meanwhile."""
        from pollux.library.follow import follow

        return follow(self, reference, wanted, tell, wait=wait)

    def resume(self, reference: str = "latest", wanted: Filter = ALL, *, may_rename: bool = False) -> ResumePlan:
        """Return how a session is continued in the client."""
        from pollux.library.resume import resume_plan

        with self.snapshot() as snapshot:
            return resume_plan(snapshot, reference, wanted, may_rename=may_rename)

    @property
    def outputs(self) -> OutputGuard:
        """Writes files that the user names, except over archives, keys and files of the client."""
        from pollux.library.output_guard import guard_outputs

        if self._outputs is None:  # looked up once: an export may write thousands of files
            self._outputs = guard_outputs(self.config)
        return self._outputs

    def export(
        self,
        what: Selection | Filter | Sequence[Ref],
        name: str,
        sink: Sink,
        options: Wanted | None = None,
        redaction: RedactionOptions | None = None,
    ) -> ExportResult:
        """Write sessions in a format of `export_options.FORMATS` to a stream, a file or a folder."""
        from pollux.library.export import run_export

        return run_export(self, what, name, sink, options, redaction, self._report, self._announce)

    def projects(self, wanted: Filter = ALL, *, scan: bool = False) -> ProjectList:
        """Return the projects that have sessions, the last used first; with `scan`, look for unknown paths first."""
        from pollux.library.projects import project_list

        with self.snapshot() as snapshot:
            return project_list(snapshot, wanted, self._announce, scan=scan)

    def problems(self, wanted: Filter = ALL) -> tuple[Problem, ...]:
        """Return what could not be read of the sessions that a filter chooses, and of their homes."""
        from pollux.library.listing import problems

        with self.snapshot() as snapshot:
            return problems(snapshot, wanted)

    def doctor(self) -> Diagnosis:
        """Return what was found where, and all that could not be read or is unknown."""
        from pollux.library.doctor import examine

        with self.snapshot() as snapshot:
            return examine(snapshot, self._report)

    @property
    def archive(self) -> ArchiveTools:
        """Tools that look after the archive itself."""
        from pollux.library.archive_tools import ArchiveTools

        return ArchiveTools(self, self._report)

    def sync(self, *, derive: bool = True, waiting: Announce = ignore_note) -> SyncReport:
        """Copy what is new in the homes into the archive; with `derive`, read what is in it too."""
        with self.stale(), freshness.explained_damage(self.config.archive):
            return freshness.sync(self.config, self._report, waiting, derive=derive)

    def watch(self, *, poll: bool = False, tell: Announce = ignore_note) -> Iterator[SyncReport]:
        """Sync at once and again at every change, without end; yield what each sync copied."""
        from pollux.archive.watch import watch

        freshness.archive_file(self.config, freshness.NOTHING_TO_SYNC)
        return watch(self.config.current_homes, lambda: self.sync(waiting=tell), poll=poll, tell=tell)

    def verify(self, *, repair: bool = False, deep: bool = False) -> VerifyReport:
        """Compare archived bytes with their hashes and rows with their digests; repair what can be repaired."""
        from pollux.library.verify import verify

        with self.stale() if repair else nullcontext():
            return verify(self.config, self._report, repair=repair, deep=deep)

    def restore(
        self, ref: str, wanted: Filter = ALL, *, to: Path | None = None, new_id: bool = False, dry_run: bool = False
    ) -> RestorePlan:
        """Write a session back below a Gemini home, so that the client can resume it."""
        from pollux.library.restore import restore

        with self.snapshot() as snapshot:
            return restore(snapshot, ref, wanted, to=to, new_id=new_id, dry_run=dry_run)

    @contextmanager
    def writing(self, *, create: bool = False) -> Iterator[Snapshot]:
        """Hold the archive as its only writer, up to date with the homes. Raises `PolluxError` if that fails."""
        with self.stale(), freshness.writing(self.config, self._report, create=create) as (archive, state):
            self._state = state
            yield archived_snapshot(self.config, archive, state)

    @contextmanager
    def stale(self) -> Iterator[None]:
        """Let nobody refresh meanwhile, and let the next question refresh, since the archive has changed."""
        with self._refreshing:
            try:
                yield
            finally:
                self._state = None

    def freshness(self) -> Freshness:
        """Return how complete answers are, as of the last refresh."""
        return (self._state or self._refresh(self._report)).freshness

    @contextmanager
    def snapshot(self, *, tools: bool = False) -> Iterator[Snapshot]:
        """Hold one consistent state of the facts; the first one refreshes.

        Args:
            tools: whether tool calls, messages and touched files are needed, which files are read again for.

        """
        state = self._state or self._refresh(self._report)
        if state.freshness.state == Source.FILES or self.config.archive is None:
            with self._files.snapshot(self.prices, state.freshness, tools=tools) as snapshot:
                yield snapshot
        else:
            with self._archived_snapshot(state) as snapshot:
                yield snapshot

    def _refresh(self, report: Reporter, *, add_up: bool = False) -> Refresh:
        with self._refreshing, freshness.explained_damage(self.config.archive):
            state = self._state = freshness.refresh(self.config, self.prices, report, add_up=add_up)
            self._files.clear()
            return state

    def snapshot_for(self, reference: Ref) -> AbstractContextManager[Snapshot | None]:
        """Return the snapshot that a name is looked up in; a path needs none."""
        return self.snapshot() if isinstance(reference, str) else nullcontext()

    @contextmanager
    def _archived_snapshot(self, state: Refresh) -> Iterator[Snapshot]:
        from pollux.archive import store
        from pollux.archive.pricing import priced_view

        archive = self._archive_of_thread()
        database = archive.database
        with (
            freshness.explained_damage(archive.path),
            store.explained_errors(archive.path),
            store.read_transaction(database),
            priced_view(database, self.prices),
        ):
            yield archived_snapshot(self.config, archive, state)

    def _archive_of_thread(self) -> Archive:
        """Return the connection of this thread; a new one takes the place of those of threads that have ended."""
        thread = threading.current_thread()
        archive = self._archives.get(thread)
        if archive is None:
            assert self.config.archive is not None
            archive = freshness.read_only(self.config.archive)
            with self._opening:
                for ended in [other for other in self._archives if not other.is_alive()]:
                    self._archives.pop(ended).close()
                self._archives[thread] = archive
        return archive
