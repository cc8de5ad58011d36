"""`Library`: the public API, which front ends call; every method returns values and prints nothing."""
# ruff: noqa: PLC0415  imported by the method that needs it

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import msgspec

from pollux.library import freshness
from pollux.library.file_tables import FileTables
from pollux.library.filters import Announce, ignore_note
from pollux.library.freshness import Refresh, Reporter, no_report
from pollux.library.snapshot import Snapshot, ThreadConnections, archived_snapshot
from pollux.reports.filters import ALL, Filter
from pollux.reports.freshness import Freshness
from pollux.reports.sessions import FIRST_PAGE, Page

if TYPE_CHECKING:
    from pathlib import Path

    from pollux.archive.damage import VerifyReport
    from pollux.archive.schema import ChangeMark
    from pollux.archive.watch import SyncReport
    from pollux.exports.source import ExportOptions
    from pollux.formats.source import Source as ByteSource
    from pollux.library.archive_tools import ArchiveTools
    from pollux.library.config import Config
    from pollux.library.dashboard import Dashboard
    from pollux.library.export import ExportResult, Selection
    from pollux.library.export_options import RedactionOptions
    from pollux.library.file_history import FileHistory, UsedFiles
    from pollux.library.follow import FollowedSession
    from pollux.library.health import HealthReport
    from pollux.library.outputs import OutputGuard, Sink
    from pollux.library.references import Ref
    from pollux.library.remembered import RememberedResults
    from pollux.library.resume import ResumePlan
    from pollux.library.stats import StatsQuery
    from pollux.library.status import OverviewReport
    from pollux.library.transcript import Transcript
    from pollux.library.usage import Today, UsageQuery
    from pollux.library.usage_summary import UsageSummary
    from pollux.library.windows import OpenConversation
    from pollux.model import FileRef, Json, Message, Problem, Project
    from pollux.prices import Prices
    from pollux.reports.audit import AuditReport
    from pollux.reports.doctor import Diagnosis
    from pollux.reports.projects import ProjectList
    from pollux.reports.recent_calls import CallTokens, DailyUse
    from pollux.reports.sessions import SavedPage, SessionPage, SessionRow
    from pollux.reports.stats import Statistics
    from pollux.reports.status import StatusReport
    from pollux.reports.usage import UsageReport
    from pollux.search.build import IndexBuilder
    from pollux.search.values import CommandPage, FilePage, HitPage
    from pollux.sessions.family import SessionTree
    from pollux.sessions.homes import Home
    from pollux.views.contracts.archive import RestorePlan
    from pollux.views.transcript import TranscriptOptions

FIRST_HITS = Page(20)


class _WatchStoppedError(Exception):
    """Ends a watch from within, as it asks for the homes."""


class Library:
    """The history of some homes, read from an archive or from session files.

    A library is thread-safe: each thread has its own connection, and each result comes from one snapshot.
    """

    def __init__(self, config: Config, report: Reporter = no_report, announce: Announce = ignore_note) -> None:
        """Store the settings, and callbacks for progress bars and for notes to the user."""
        self.config = config
        self._report, self._announce = report, announce
        self._refreshing = threading.RLock()
        self._state: Refresh | None = None
        self._connections = ThreadConnections()
        self._files = FileTables(config, report)
        self._scratch = freshness.Scratch()
        self._index_note = ""
        self._adds_up = False

    def close(self) -> None:
        """Close the connections of all threads."""
        self._connections.close()
        self._files.clear()
        self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @cached_property
    def _remembered(self) -> RememberedResults:
        from pollux.library.remembered import RememberedResults

        return RememberedResults()

    @cached_property
    def prices(self) -> Prices:
        """The price table with the user's own prices."""
        return self.config.prices()

    def refresh(self, *, quiet: bool = False, add_up: bool = False) -> Freshness:
        """Copy new files into the archive, derive facts, price calls and, with `add_up`, store the sums for `usage`.

        Later refreshes store them too, also those by which other methods begin.
        """
        return self._refresh(no_report if quiet else self._report, add_up=add_up).freshness

    @property
    def has_state(self) -> bool:
        """Whether methods answer at once; otherwise the next call refreshes first."""
        return self._state is not None

    def changes(self, after: ChangeMark | None = None) -> tuple[ChangeMark, frozenset[str]]:
        """Return a mark for the archive's newest change, and the IDs of the sessions that changed after a mark.

        It does not matter which call or process archived the changes. Without an archive there are none.
        """
        from pollux.archive.schema import NO_CHANGE, changes_after

        with self.snapshot() as snapshot:
            if not snapshot.is_archived:
                return NO_CHANGE, frozenset()
            return changes_after(snapshot.database, after or NO_CHANGE)

    def count_deleted(self) -> int:
        """Return the number of sessions that the client has deleted and the archive still has."""
        from pollux.reports.health import deleted_sessions

        with self.snapshot() as snapshot:
            return deleted_sessions(snapshot.database, snapshot.ids, limit=0)[1]

    def last_change(self) -> ChangeMark:
        """Return a mark for the archive's newest change, which `changes` takes."""
        from pollux.archive.schema import NO_CHANGE, newest_change

        with self.snapshot() as snapshot:
            return newest_change(snapshot.database) if snapshot.is_archived else NO_CHANGE

    def read_as_it_is(self) -> bool:
        """Answer from the archive without a refresh until the next one; return whether it has any sessions."""
        state = freshness.as_it_is(self.config)
        if state is None:
            return False
        packed = state.packed()
        state = None  # before it is unpacked
        with self._refreshing:
            self._state = self._state or freshness.unpacked(packed)
        return True

    def sessions(
        self, wanted: Filter = ALL, page: Page = FIRST_PAGE, query: str = "", *, sort: str = "newest"
    ) -> SessionPage:
        """Return a page of the sessions that match a filter and a query of `search`.

        `sort` is `newest` or `oldest` (by their last use), `begun` (the last begun first), `prompts`, `cost` or
        `tokens` (the largest first).
        """
        from pollux.library.listing import check_order, session_page

        order = None if sort == "newest" else sort
        if order:
            check_order(order)
        if not query.strip():
            with self.snapshot() as snapshot:
                return session_page(snapshot, wanted, page, self._announce, order=order)
        from pollux.library import search

        parsed = search.parse(self.config, query)
        with self.snapshot(tools=search.needs_messages(parsed)) as snapshot:
            matching = search.matching_sessions(snapshot, parsed, wanted, self._report, self._announce)
            return session_page(snapshot, wanted, page, self._announce, matching, order)

    def project_names(self, like: Iterable[Project] | None = None) -> dict[str, str]:
        """Return the name of each project by its key, so that a table can tell projects of the same name apart.

        With projects that a table shows, return only those with the same names, which is quicker.
        """
        from pollux.library.listing import project_names

        with self.snapshot() as snapshot:
            return project_names(snapshot, like)

    def session(self, reference: str = "latest", wanted: Filter = ALL) -> SessionRow:
        """Return the session that a reference names: an ID, a prefix of one, `latest`, `@2` or a file name."""
        from pollux.library.listing import session_row

        with self.snapshot() as snapshot:
            return snapshot.once(("row", reference, wanted), lambda: session_row(snapshot, reference, wanted))

    def sessions_like(self, reference: str, limit: int) -> tuple[SessionRow, ...]:
        """Return the sessions whose IDs begin most like an unknown one, in which a character may be wrong."""
        from pollux.library.listing import rows_like

        with self.snapshot() as snapshot:
            return rows_like(snapshot, reference, limit)

    def neighbours(self, session_id: str) -> tuple[SessionRow | None, SessionRow | None]:
        """Return the sessions of the same project that were used before and after a session."""
        from pollux.library.listing import neighbour_rows

        with self.snapshot() as snapshot:
            return snapshot.once(("neighbours", session_id), lambda: neighbour_rows(snapshot, session_id))

    def search(  # noqa: PLR0913  options
        self,
        query: str,
        page: Page = FIRST_HITS,
        *,
        wanted: Filter = ALL,
        sort: str = "relevance",
        scan: bool = False,
        count: bool = False,
        hits_per_session: int = 3,
        fields: str = "",
        is_typing: bool = False,
        facets: bool = False,
    ) -> HitPage:
        """Return a page of the sessions that match a query, with their best hits; `docs/search.md` has the language.

        Args:
            query: words, phrases, fields and more. Raises `InvalidQueryError`.
            page: how many sessions, and after which.
            wanted: the common filters.
            sort: `relevance`, `newest`, `oldest` or `cost`.
            scan: read all texts instead of using the index.
            count: return the exact numbers of hits and sessions, and no sessions.
            hits_per_session: the maximum number of hits of a session.
            fields: fields of the language that have to match besides the whole query.
            is_typing: whether the user has not finished the query, so that its last word may be the start of one.
            facets: count the matching sessions by project, model, month, tool, fate and part.

        """
        from pollux.library import search

        options = search.SearchOptions(
            sort=sort, scan=scan, count=count, hits_per_session=hits_per_session, facets=facets
        )
        parsed = search.parse(self.config, query, fields, is_typing=is_typing)
        with self.snapshot(tools=facets or search.needs_messages(parsed)) as snapshot:
            return search.search_page(snapshot, parsed, wanted, page, options, self._report, self._announce)

    def touched_files(self, query: str = "", page: Page = FIRST_PAGE, *, wanted: Filter = ALL) -> FilePage:
        """Return the files that tool calls read or changed, newest first; the words of a query are in their paths."""
        from pollux.library import search

        with self.snapshot(tools=True) as snapshot:
            return search.touched_files(snapshot, search.parse(self.config, query), wanted, page, self._announce)

    def used_files(self, words: str = "", page: Page = FIRST_PAGE, *, wanted: Filter = ALL) -> UsedFiles:
        """Return the files that sessions read or changed and whose path contains all words; last touched first."""
        from pollux.library.file_history import used_files

        with self.snapshot(tools=True) as snapshot:
            return used_files(snapshot, words, wanted, page, self.prices, self._remembered, self._announce)

    def file_history(self, path: str, page: Page = FIRST_PAGE, *, wanted: Filter = ALL) -> FileHistory:
        """Return every read and change of a file, newest first, with the diffs of changes."""
        from pollux.library.file_history import file_history

        with self.snapshot(tools=True) as snapshot:
            return file_history(snapshot, path, wanted, page, self._announce)

    def touches_of_file(self, path: str, page: Page = FIRST_PAGE, *, wanted: Filter = ALL) -> FilePage:
        """Return every read and change of a file, newest first, as `touched_files` does for all files."""
        from pollux.library.file_history import touches_of_file

        with self.snapshot(tools=True) as snapshot:
            return touches_of_file(snapshot, path, wanted, page, self._announce)

    def commands_run(self, query: str = "", page: Page = FIRST_PAGE, *, wanted: Filter = ALL) -> CommandPage:
        """Return the shell commands that tool calls ran, newest first; the words of a query are in them."""
        from pollux.library import search

        with self.snapshot(tools=True) as snapshot:
            return search.commands_run(snapshot, search.parse(self.config, query), wanted, page, self._announce)

    def saved(self, wanted: Filter = ALL, limit: int | None = None) -> SavedPage:
        """Return the conversations that `/chat save` stored in the homes."""
        from pollux.library.listing import saved_page

        with self.snapshot() as snapshot:
            return saved_page(snapshot, wanted, limit)

    def usage(self, query: UsageQuery | None = None) -> UsageReport:
        """Return tokens and cost; every model call counts once."""
        from pollux.library import usage

        query = query or usage.UsageQuery()
        if self.config.archive is None and not query.needs_sessions:
            return usage.quick_report(self.config, query, self.prices, self._report)
        if self._state is None:
            self.refresh(add_up=not query.needs_sessions)
        with self.snapshot(tools=query.by == "tool") as snapshot:
            return usage.usage_report(snapshot, query, self.prices, self._announce)

    def stats(self, query: StatsQuery | None = None) -> Statistics:
        """Return counts of prompts, answers, tool calls, files and programs."""
        from pollux.library import stats

        with self.snapshot(tools=True) as snapshot:
            return stats.stats_report(snapshot, query or stats.StatsQuery(), self._announce)

    def today(self, *, everywhere: bool = False) -> Today:
        """Return today's usage of the current folder's project, or of all projects."""
        from pollux.library.usage import used_today

        with self.snapshot() as snapshot:
            return used_today(snapshot, everywhere=everywhere)

    def status(self, wanted: Filter = ALL) -> StatusReport:
        """Return when and why the client will delete each session, and whether the session is archived."""
        from pollux.library.status import status_report

        with self.snapshot() as snapshot:
            return status_report(snapshot, wanted, self._report, self._announce)

    def overview(self) -> OverviewReport:
        """Return totals, the newest sessions, and how many sessions the client will delete soon."""
        from msgspec.structs import replace

        from pollux.library.listing import project_names
        from pollux.library.status import overview_report

        with self.snapshot() as snapshot:
            report = overview_report(snapshot, self._report)
            return replace(report, project_names=project_names(snapshot, [row.project for row in report.newest]))

    def dashboard(self) -> Dashboard:
        """Return what the first page of the viewer shows: totals, days of a year, newest sessions, deletions."""
        from pollux.library.dashboard import dashboard

        with self.snapshot() as snapshot:
            return dashboard(snapshot, self.prices, self._remembered, self._report, self._announce)

    def activity(self, project: str) -> DailyUse:
        """Return on which days of the last year the sessions of a project were used. Raises `ProjectNotFoundError`."""
        from pollux.library.dashboard import activity

        with self.snapshot() as snapshot:
            return activity(snapshot, project, self.prices, self._remembered, self._announce)

    def newest_calls(self, session_ids: Sequence[str]) -> Mapping[str, tuple[CallTokens, ...]]:
        """Return the newest model calls of sessions and their subagents, the oldest first, for the strip of a row."""
        from pollux.library.dashboard import DRAWN_CALLS
        from pollux.reports.recent_calls import newest_calls

        with self.snapshot() as snapshot:
            return newest_calls(snapshot.database, session_ids, DRAWN_CALLS, snapshot.ids)

    def health(self, *, n_expiring: int = 100, n_deleted: int = 20) -> HealthReport:
        """Return what the client deletes and has deleted, the problems of files, and the state of the archive."""
        from pollux.library.health import health_report

        with self.snapshot() as snapshot:
            return health_report(
                snapshot,
                self.prices,
                self._remembered,
                self._report,
                n_expiring=n_expiring,
                n_deleted=n_deleted,
            )

    def usage_summary(self, query: UsageQuery, *, n_rows: int = 7) -> UsageSummary:
        """Return tokens and cost by period and model, by project and kind of token, and the `n_rows` largest others."""
        from pollux.library.usage_summary import usage_summary

        with self.snapshot(tools=True) as snapshot:
            return usage_summary(snapshot, query, self.prices, self._remembered, self._announce, n_rows=n_rows)

    def deletions(self, of: Collection[str] | None = None) -> dict[str, str]:
        """Return a short label (`due`, `2d left`) for each session, or some, that the client deletes within a week."""
        from pollux.library.status import soon_deleted

        with self.snapshot() as snapshot:
            return soon_deleted(snapshot, self._report, of)

    @contextmanager
    def transcript(
        self, reference: Ref = "latest", options: TranscriptOptions | None = None, wanted: Filter = ALL
    ) -> Iterator[Transcript]:
        """Open the transcript of the session that a reference names, or of a file; `ID#MESSAGE` names a message."""
        from pollux.library.transcript import NORMAL, open_transcript

        with self.snapshot_for(reference) as snapshot:
            yield open_transcript(snapshot, reference, options or NORMAL, wanted, self.prices)

    def conversation(self, row: SessionRow) -> OpenConversation:
        """Open a session of a list to read it in windows; it has its own connection, and the caller closes it."""
        from pollux.library.windows import open_conversation

        state = self._state or self._refresh(self._report)
        with ExitStack() as resources:
            if state.archive is None:
                snapshot = resources.enter_context(self.snapshot())
                return open_conversation(snapshot, row, self.prices, ExitStack())
            from pollux.archive import store

            archive = store.open_archive(state.archive, write=False)
            resources.callback(archive.close)
            with freshness.explained_damage(state.archive), store.explained_errors(state.archive):
                snapshot = archived_snapshot(self.config, archive, state)
                return open_conversation(snapshot, row, self.prices, resources.pop_all())

    def messages(
        self, reference: Ref = "latest", start: int | None = None, stop: int | None = None
    ) -> Iterator[Message]:
        """Yield messages `start` to `stop` of a session's timeline; the first is 0, or the one of `ID#MESSAGE`."""
        with self.transcript(reference) as transcript:
            yield from transcript.messages(start, stop)

    def state(self, reference: Ref = "latest") -> Iterator[Json]:
        """Yield the messages that the client would load, in the client's format."""
        with self.transcript(reference) as transcript:
            yield from transcript.state()

    def tree(self, reference: Ref = "latest", wanted: Filter = ALL) -> SessionTree:
        """Return the family of a session: the main session and all its subagents."""
        from pollux.library.family import session_tree

        with self.snapshot() as snapshot:
            return session_tree(snapshot, reference, wanted)

    def files(self, reference: Ref = "latest", wanted: Filter = ALL) -> tuple[FileRef, ...]:
        """Return the files of a session, even if Pollux cannot read them."""
        from pollux.library.raw import files_of

        with self.snapshot_for(reference) as snapshot:
            return files_of(snapshot, reference, wanted)

    def raw(
        self, reference: Ref = "latest", number: int | None = None, wanted: Filter = ALL
    ) -> AbstractContextManager[ByteSource]:
        """Open the raw bytes of file `number` of a session, or of its main file."""
        from pollux.library.raw import open_raw

        return open_raw(self, reference, number, wanted)

    def audit(self, reference: Ref = "latest", wanted: Filter = ALL) -> AuditReport:
        """Return every model call of a session and its subagents with its price and cost."""
        from pollux.library.family import audit_report

        with self.snapshot_for(reference) as snapshot:
            return audit_report(snapshot, reference, wanted, self.prices)

    def follow(
        self, reference: Ref = "latest", wanted: Filter = ALL, tell: Announce = ignore_note, *, wait: bool = False
    ) -> FollowedSession:
        """Follow a running session; `tell` receives notes for the user."""
        from pollux.library.follow import follow

        return follow(self, reference, wanted, tell, wait=wait)

    def resume(self, reference: str = "latest", wanted: Filter = ALL, *, may_rename: bool = False) -> ResumePlan:
        """Return the command that continues a session in the client, and what must be restored first."""
        from pollux.library.resume import resume_plan

        with self.snapshot() as snapshot:
            return resume_plan(snapshot, reference, wanted, may_rename=may_rename)

    @cached_property
    def outputs(self) -> OutputGuard:
        """Writes files that the user names; refuses to overwrite archives, keys and files of the client."""
        from pollux.library.outputs import guard_outputs

        return guard_outputs(self.config)

    def export(
        self,
        what: Selection | Filter | Sequence[Ref],
        name: str,
        sink: Sink,
        options: ExportOptions | None = None,
        redaction: RedactionOptions | None = None,
    ) -> ExportResult:
        """Write sessions in a format of `export_options.FORMATS` to a stream, a file or a folder."""
        from pollux.library.export import run_export

        return run_export(self, what, name, sink, options, redaction, self._report, self._announce)

    def projects(self, wanted: Filter = ALL, *, scan: bool = False) -> ProjectList:
        """Return the projects that have sessions, last used first; with `scan`, search for unknown paths first."""
        from pollux.library.projects import project_list

        with self.snapshot() as snapshot:
            return project_list(snapshot, wanted, self._announce, scan=scan)

    def problems(self, wanted: Filter = ALL) -> tuple[Problem, ...]:
        """Return the problems of the sessions that match a filter, and of their homes."""
        from pollux.library.listing import problems

        with self.snapshot() as snapshot:
            return problems(snapshot, wanted)

    def doctor(self) -> Diagnosis:
        """Return which homes were read and why, and everything in them that is unreadable or unknown."""
        from pollux.library.doctor import examine

        with self.snapshot() as snapshot:
            return examine(snapshot, self._report)

    @property
    def archive(self) -> ArchiveTools:
        """Maintenance of the archive itself: info, backup, import, forget and more."""
        from pollux.library.archive_tools import ArchiveTools

        return ArchiveTools(self, self._report)

    def sync(self, *, derive: bool = True, waiting: Announce = ignore_note) -> SyncReport:
        """Copy new files of the homes into the archive; with `derive`, also derive their facts and index them."""
        return self._sync(waiting, derive=derive)

    def _sync(
        self,
        waiting: Announce,
        builder: IndexBuilder | None = None,
        *,
        derive: bool = True,
        archived: Callable[[], None] = lambda: None,
    ) -> SyncReport:
        with freshness.explained_damage(self.config.archive):
            before = self._state
            with self.stale():
                synced = freshness.sync(self.config, self._report, waiting, derive=derive)
            if self._adds_up and before is not None and before.is_confirmed_by(synced):
                with self._refreshing:
                    self._state = self._state or before  # a second list of all files would say the same
            archived()
            if not derive:
                return synced
            note, problems = freshness.index(self.config, self._report, builder)
        if note and note != self._index_note:
            waiting(note)
        self._index_note = note
        return msgspec.structs.replace(synced, problems=(*synced.problems, *problems))

    def watch(
        self,
        *,
        poll: bool = False,
        tell: Announce = ignore_note,
        stop: threading.Event | None = None,
        archived: Callable[[], None] = lambda: None,
    ) -> Iterator[SyncReport]:
        """Sync now and at every change, until `stop` is set, which is noticed within a second; yield a report each.

        `archived` is called before the new messages are indexed, which takes most of the time in a long session.
        """
        path = freshness.archive_file(self.config, freshness.NOTHING_TO_SYNC)
        stop = stop or threading.Event()
        return self._watch(path, lambda builder: self._sync(tell, builder, archived=archived), poll, tell, stop)

    def _watch(
        self,
        path: Path,
        sync: Callable[[IndexBuilder], SyncReport],
        poll: bool,  # noqa: FBT001
        tell: Announce,
        stop: threading.Event,
    ) -> Iterator[SyncReport]:
        from pollux.archive.watch import watch
        from pollux.search.build import IndexBuilder

        def homes() -> tuple[Home, ...]:
            if stop.is_set():
                raise _WatchStoppedError
            return self.config.current_homes()

        with closing(IndexBuilder(path)) as builder, suppress(_WatchStoppedError):
            yield from watch(homes, lambda: sync(builder), poll=poll, tell=tell)

    def verify(self, *, repair: bool = False, deep: bool = False) -> VerifyReport:
        """Check archived bytes against their hashes and rows against their digests; optionally repair them."""
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
        """Refresh the archive and keep it locked for writing. Raises `PolluxError` if another process is writing."""
        with self.stale(), freshness.writing(self.config, self._report, create=create) as (archive, state):
            self._state = state
            yield archived_snapshot(self.config, archive, state)

    @contextmanager
    def stale(self) -> Iterator[None]:
        """Block refreshes while the archive is changed; the next call refreshes again."""
        with self._refreshing:
            try:
                yield
            finally:
                self._state = None

    def freshness(self) -> Freshness:
        """Return how complete results are, as of the last refresh."""
        return (self._state or self._refresh(self._report)).freshness

    @contextmanager
    def snapshot(self, *, tools: bool = False) -> Iterator[Snapshot]:
        """Open a snapshot, after a refresh by the first call; `tools` adds tool calls, messages and touched files."""
        state = self._state or self._refresh(self._report)
        if state.archive is None:
            with self._files.snapshot(self.prices, state.freshness, tools=tools) as snapshot:
                yield snapshot
        else:
            with self._archived_snapshot(state, state.archive) as snapshot:
                yield snapshot

    def _refresh(self, report: Reporter, *, add_up: bool = False) -> Refresh:
        with self._refreshing, freshness.explained_damage(self.config.archive):
            self._adds_up = add_up = add_up or self._adds_up
            state = freshness.refresh(self.config, self.prices, self._scratch, report, add_up=add_up)
            if self._adds_up:
                packed = state.packed()
                del state  # before it is unpacked
                state = freshness.unpacked(packed)
            self._state = state
            self._files.clear()
            return state

    def snapshot_for(self, reference: Ref) -> AbstractContextManager[Snapshot | None]:
        """Return the snapshot in which to look up a name; a path needs none."""
        return self.snapshot() if isinstance(reference, str) else nullcontext()

    @contextmanager
    def _archived_snapshot(self, state: Refresh, path: Path) -> Iterator[Snapshot]:
        from pollux.archive import store
        from pollux.archive.pricing import priced_view

        with (
            self._connections.reading(path) as archive,
            freshness.explained_damage(path),
            store.explained_errors(path),
            store.read_transaction(archive.database),
            priced_view(archive.database, self.prices),
        ):
            snapshot = archived_snapshot(self.config, archive, state)
            snapshot.remember = self._remember
            yield snapshot

    def _remember(self, snapshot: Snapshot, key: Hashable, make: Callable[[], Any]) -> Any:  # noqa: ANN401  of `make`
        return self._remembered.get(snapshot, self.prices, key, make)
