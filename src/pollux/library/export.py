"""Export sessions: select them, render each in a format, and write the result to a sink."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pollux import __version__
from pollux.archive.failures import concerns_database
from pollux.disk.write import make_private_folder
from pollux.errors import PolluxError, UnreadableFileError
from pollux.exports import ExportedSession
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.library import export_folder
from pollux.library.config import UsageError
from pollux.library.export_folder import FolderEntry, OutputFile
from pollux.library.export_options import FORMATS, RedactionOptions
from pollux.library.outputs import (
    FileSink,
    FolderSink,
    NamedSink,
    OutputError,
    PathSink,
    Sink,
    StreamSink,
    explained_failure,
)
from pollux.library.redacting import Redaction, RedactionReport
from pollux.library.references import Ref, load_families, load_session, open_file
from pollux.library.select import session_query
from pollux.model import Message, Problem, Project, Session
from pollux.reports import sessions
from pollux.reports.filters import ALL, Filter
from pollux.sessions.family import descendants, with_subagents
from pollux.sessions.grouping import OpenSession
from pollux.sessions.reader import opened
from pollux.sessions.replay.reading import reason_of

if TYPE_CHECKING:
    from pollux.library.config import Config
    from pollux.library.filters import Announce
    from pollux.library.freshness import Reporter
    from pollux.library.library import Library
    from pollux.library.outputs import OutputGuard
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices

_ALL_ERRORS: frozenset[int] = frozenset(errno.errorcode)
_OF_THE_DISK = frozenset(
    {errno.ENOSPC, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, getattr(errno, "EDQUOT", errno.ENOSPC)}
)
"""Errors that the next file in the same folder would raise, too."""


class Selection(msgspec.Struct, frozen=True):
    """Which sessions to export."""

    refs: tuple[Ref, ...] = ()
    wanted: Filter = ALL
    """References are looked up among the sessions that match."""
    everything: bool = False
    """Also export all sessions that match the filter."""

    @property
    def needs_history(self) -> bool:
        """Whether sessions must be looked up; files are read directly."""
        return self.everything or any(isinstance(ref, str) for ref in self.refs)


class ExportResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an export wrote, and what it could not write."""

    format: str
    n_chosen: int
    written: tuple[ExportedSession, ...] = ()
    """Including unchanged sessions of a folder."""
    unchanged: int = 0
    path: Path | None = None
    """The file or folder; None for a stream."""
    empty: tuple[str, ...] = ()
    """IDs of sessions without any content for the format."""
    losses: Mapping[str, int] = {}
    """What the format cannot represent, and how often that occurred."""
    redaction: RedactionReport | None = None
    foreign_pages: tuple[Path, ...] = ()
    """Pages that were not written, because files of these names exist that Pollux did not write."""
    tables: Mapping[str, int] = {}
    """Rows per table, for formats that export tables of the archive."""
    failed: tuple[Problem, ...] = ()
    """Problems of sessions that could not be written."""
    problems: tuple[Problem, ...] = ()
    """Problems of the sessions that were read, and of unreadable files."""

    @property
    def note(self) -> str:
        """How many sessions were written where, without a full stop."""
        unchanged = f", {self.unchanged} of them unchanged since" if self.unchanged else ""
        return f"{len(self.written)} session{'s' * (len(self.written) != 1)} written to {self.path}{unchanged}"


class _Chosen(NamedTuple):
    """A session to export; it is open already if the user named its file."""

    session: Session
    group: OpenSession | None = None


def selection_of(what: Selection | Filter | Sequence[Ref]) -> Selection:
    """Return the selection of some sessions, or of every session that matches a filter."""
    if isinstance(what, Selection):
        return what
    return Selection(wanted=what, everything=True) if isinstance(what, Filter) else Selection(tuple(what))


def run_export(
    library: Library,
    what: Selection | Filter | Sequence[Ref],
    name: str,
    sink: Sink,
    options: ExportOptions | None,
    redaction: RedactionOptions | None,
    report: Reporter,
    announce: Announce,
) -> ExportResult:
    """Write sessions in a format to a sink."""
    about = (library.config, library.prices, library.outputs, name, sink)
    job = ExportJob(*about, options or ExportOptions(), redaction or RedactionOptions())
    selection = selection_of(what)
    with library.snapshot() if selection.needs_history else nullcontext() as snapshot:
        return job.run(snapshot, selection, report, announce)


class ExportJob:
    """One export and its results so far."""

    def __init__(
        self,
        config: Config,
        prices: Prices,
        guard: OutputGuard,
        name: str,
        sink: Sink,
        options: ExportOptions,
        redaction: RedactionOptions,
    ) -> None:
        """Check the options before anything is read. Raises `UsageError`."""
        if name not in FORMATS:
            raise UsageError(f"There is no format '{name}'; the formats are {', '.join(FORMATS)}.")
        self.name, self.exporter, self.sink, self.options = name, FORMATS[name], sink, options
        self.is_dry_run = redaction.dry_run
        self.redaction = Redaction(redaction, config, is_for_others=self.exporter.is_public)
        self._config, self._prices, self.guard = config, prices, guard
        if self.exporter.reads_archive:
            self._check_tables()
        if options.split and isinstance(sink, StreamSink):
            raise UsageError(
                "--split writes several files, which a pipe cannot hold. "
                "Name a file or folder with `-o`, as in `-o out/`."
            )
        self.chosen: list[_Chosen] = []
        self.by_id: dict[str, Session] = {}
        self.written: list[ExportedSession] = []
        self.n_unchanged = 0
        self.path: Path | None = None
        self.empty: list[Session] = []
        self.losses: Counter[str] = Counter()
        self.foreign_pages: list[Path] = []
        self.tables: dict[str, int] = {}
        self.failed: list[Problem] = []
        self.problems: list[Problem] = []
        self._last: ExportSource | None = None
        """The session that was rendered last."""
        self._open = opened

    def run(
        self, snapshot: Snapshot | None, selection: Selection, report: Reporter, announce: Announce
    ) -> ExportResult:
        """Write the selected sessions. Raises `OutputError`, and `PolluxError` if none match."""
        if snapshot:
            self._open = snapshot.sessions.open
        self.chosen += self._choose(snapshot, selection, announce)
        if not self.chosen:
            raise PolluxError("No session matches. Run `pollux ls` to list sessions.")
        for session, _ in self.chosen:
            self.problems += session.problems
        if isinstance(self.sink, NamedSink):
            self.sink = self._named_sink(self.sink.path, selection)
        if self.is_dry_run:
            self._look_for_secrets()
        elif self.exporter.reads_archive:
            self._write_tables(snapshot)
        elif isinstance(self.sink, StreamSink) and (len(self.chosen) == 1 or self.exporter.is_stream):
            self.sink.write(self._stream())
        elif (path := self._folder(selection)) is not None:
            self._write_folder(path, snapshot, report, announce)
        else:
            self._write_file()
        return self.result()

    def result(self) -> ExportResult:
        """Return the results so far."""
        return ExportResult(
            format=self.name,
            n_chosen=len(self.chosen),
            written=tuple(self.written),
            unchanged=self.n_unchanged,
            path=self.path,
            empty=tuple(session.id for session in self.empty),
            losses=dict(sorted(self.losses.items())),
            redaction=self.redaction.report(),
            foreign_pages=tuple(self.foreign_pages),
            tables=self.tables,
            failed=tuple(self.failed),
            problems=tuple(self.problems),
        )

    def _choose(self, snapshot: Snapshot | None, selection: Selection, announce: Announce) -> Iterator[_Chosen]:
        """Yield the selected sessions in the order of the references, without duplicates."""
        loaded: dict[Ref, _Chosen] = {}
        for ref in selection.refs:
            if isinstance(ref, Path):
                loaded[ref] = _Chosen(*open_file(ref))
            elif snapshot:
                loaded[ref] = _Chosen(load_session(snapshot, ref, selection.wanted))
        if snapshot:
            ids = [chosen.session.id for chosen in loaded.values() if chosen.group is None]
            self.by_id = load_all(snapshot) if selection.everything else load_families(snapshot, ids)
        taken: set[str] = set()
        for chosen in loaded.values():
            if chosen.group or chosen.session.id not in taken:
                yield chosen
            taken.add(chosen.session.id)
            for child in descendants(chosen.session, self.by_id) if self.exporter.with_subagents else ():
                if child.id not in taken:
                    taken.add(child.id)
                    yield _Chosen(child)
        if snapshot and selection.everything:
            for session_id in self._all_chosen(snapshot, selection.wanted, announce):
                if session_id not in taken:
                    yield _Chosen(self.by_id[session_id])
            self.problems += dict.fromkeys([*snapshot.freshness.problems, *snapshot.sessions.problems()])

    def _all_chosen(self, snapshot: Snapshot, wanted: Filter, announce: Announce) -> list[str]:
        is_complete = self.exporter.with_subagents
        wanted = msgspec.structs.replace(wanted, subagents=is_complete, empty=is_complete)
        ids = sessions.page(snapshot.database, session_query(snapshot, wanted, announce))
        self.by_id = {session.id: session for session in snapshot.with_learned_paths(self.by_id.values())}
        return [session_id for session_id in ids if session_id in self.by_id]

    def _source(self, chosen: _Chosen, file: OutputFile | None = None) -> ExportSource:
        """Return what a renderer needs of a session."""
        group = chosen.group or self._open(chosen.session)
        redactor = self.redaction.redactor(chosen.session, self._messages(chosen.session, group))
        place: dict[str, Any] = (
            {"write_side_file": file.put, "name": file.name, "index_page": file.index_page} if file else {}
        )
        about = (chosen.session, group, self.by_id, self._open, self._prices)
        return export_source(*about, options=self.options, redactor=redactor, **place)

    def _messages(self, session: Session, group: OpenSession) -> Iterator[Message]:
        """Yield the messages of a session and of its subagents."""
        yield from group.messages()
        for child in descendants(session, self.by_id):
            yield from self._open(child).messages()

    def _rendered(self, chosen: _Chosen, file: OutputFile | None = None) -> Iterator[bytes]:
        """Yield a session rendered in the format."""
        self._last = source = self._source(chosen, file)
        n_pieces = 0
        for piece in self.exporter.render(source):
            n_pieces += 1
            yield piece
        self.losses += source.losses
        if n_pieces <= self.exporter.n_header_pieces:
            self.empty.append(chosen.session)
        elif not isinstance(self.sink, FolderSink):
            self.written.append(ExportedSession(chosen.session, file.name if file else ""))

    def _stream(self) -> Iterator[bytes]:
        """Yield all sessions; the header of a table comes only once."""
        has_begun = False
        for chosen in self.chosen:
            with self._reported(chosen.session, _ALL_ERRORS):
                for piece in islice(self._rendered(chosen), self.exporter.n_header_pieces if has_begun else 0, None):
                    has_begun = True
                    yield piece

    @contextmanager
    def _reported(self, session: Session | None, raised: frozenset[int]) -> Iterator[None]:
        """Turn an error that concerns only one session into a problem, so that the others are written.

        Args:
            session: the session; None for a page that lists all.
            raised: numbers of system errors that concern the other sessions, too, and are raised.

        """
        try:
            yield
        except UnreadableFileError as error:  # deleted since it was listed
            self.failed.append(Problem("unreadable-file", str(error)))
        except Exception as error:
            is_of_all = error.errno in raised if isinstance(error, OSError) else concerns_database(error)
            if is_of_all or (isinstance(error, PolluxError) and error.status != 1):
                raise
            reason = str(error) if isinstance(error, PolluxError) else reason_of(error)
            what = f"session {session.id}" if session else "the list of all sessions"
            path = str(session.files[0].path) if session and session.files else None
            self.failed.append(Problem("cannot-export", f"{what} could not be written as {self.name}: {reason}", path))

    def _named_sink(self, folder: Path, selection: Selection) -> FileSink | FolderSink:
        """Return a new file for one session or one table; a folder, which may exist, for several sessions."""
        is_single = len(selection.refs) == 1 and not selection.everything
        if self.exporter.reads_archive or (len(self.chosen) > 1 and not self.exporter.is_stream):
            return FolderSink(folder / f"pollux-{self.name}")
        session = self.chosen[0].session
        if self.redaction.is_wanted:  # the project's name may be one of those to redact
            session = msgspec.structs.replace(session, project=Project(slug="redacted"))
        stem = export_folder.readable_stem(session) if is_single else f"pollux-{self.name}"
        return FileSink(export_folder.new_path(folder, stem, self.exporter.suffix))

    def _folder(self, selection: Selection) -> Path | None:
        """Return the folder to write into; None if the sink is a file. Raises `UsageError` if it is neither."""
        sink = self.sink
        if isinstance(sink, PathSink):
            is_for_many = (selection.everything or len(self.chosen) > 1) and not sink.path.suffix
            sink = FolderSink(sink.path) if sink.path.is_dir() or is_for_many else FileSink(sink.path)
            self.sink = sink
        if isinstance(sink, FolderSink):
            if sink.path.is_file():
                raise UsageError(f"{sink.path} is a file: give a folder, as in `-o exports/`.")
            return sink.path
        if len(self.chosen) == 1 or (self.exporter.is_stream and isinstance(sink, FileSink)):
            return None
        agents = sum(chosen.session.kind == "subagent" for chosen in self.chosen)
        whose = f" ({agents} of them {'subagents' if agents > 1 else 'a subagent'})" if agents else ""
        raise UsageError(
            f"{len(self.chosen)} sessions{whose} do not fit into one {self.exporter.suffix} file; "
            "give a folder: `-o exports/`."
        )

    def _write_file(self) -> None:
        assert isinstance(self.sink, FileSink)
        path = self.sink.path
        with explained_failure(path):
            if len(self.chosen) > 1:
                self.guard.write(path, self._stream())
            else:
                has_room = path.is_file() or not path.exists()  # beside a device or a pipe there is none
                file = OutputFile(path.parent, path.name, self.guard, []) if has_room else None
                with self._reported(self.chosen[0].session, _ALL_ERRORS):
                    self.guard.write(path, self._rendered(self.chosen[0], file))
        if path.is_file():
            self.path = path

    def _write_folder(self, folder: Path, snapshot: Snapshot | None, report: Reporter, announce: Announce) -> None:
        """Write a file per session and the pages that list them; unchanged sessions are not written again."""
        with explained_failure(folder):
            self.guard.check(folder)
            make_private_folder(folder)
        self.path = folder
        before = export_folder.load_index(folder)
        after, taken = dict(before), set[str]()
        try:
            try:
                with report("exporting") as progress:
                    for number, chosen in enumerate(self.chosen, 1):
                        file = OutputFile(
                            folder,
                            export_folder.file_name(chosen.session, self.exporter.suffix, taken),
                            self.guard,
                            [],
                            self.exporter.index_page,
                        )
                        with self._reported(chosen.session, _OF_THE_DISK):
                            self._write_changed(file, chosen, snapshot, before, after)
                        progress(number, len(self.chosen))
                with self._reported(None, _OF_THE_DISK):
                    self._write_pages(folder, before, after)
            finally:
                export_folder.store_index(folder, after, self.guard)
        except OSError as error:
            raise OutputError(folder, error, note=self.result().note) from None
        except BaseException:
            announce(self.result().note)
            raise

    def _write_changed(
        self,
        file: OutputFile,
        chosen: _Chosen,
        snapshot: Snapshot | None,
        before: Mapping[str, FolderEntry],
        after: dict[str, FolderEntry],
    ) -> None:
        """Write the file of a session, unless it was already written from the same content."""
        family = [*with_subagents(chosen.session, self.by_id)]
        contents = export_folder.file_states if chosen.group or not snapshot else snapshot.sessions.content_key
        mark = export_folder.fingerprint(self._made_by, family, contents)
        if export_folder.is_unchanged(file.folder, file.name, before.get(file.name), mark):
            self.n_unchanged += 1
        else:
            after.pop(file.name, None)
            self.guard.write(file.path, self._rendered(chosen, file))
            after[file.name] = FolderEntry(mark, tuple(file.beside))
            export_folder.remove_leftovers(file, before.get(file.name))
        session, *agents = self._listed(chosen, family)
        self.written.append(ExportedSession(session, file.name, tuple(agents)))

    @property
    def _made_by(self) -> str:
        """Everything besides the sessions that the output depends on."""
        prices = f"{self._prices.table} {self._prices.version}"
        return f"{__version__} {self.name} {self.options} {self.redaction.made_by} {prices}"

    def _listed(self, chosen: _Chosen, family: Iterable[Session]) -> list[Session]:
        """Return a session and its subagents as a list may show them: redacted, if the export is."""
        if not self.redaction.is_wanted:
            return [*family]
        is_last = self._last and self._last.session.id == chosen.session.id
        source = self._last if self._last and is_last else self._source(chosen)
        assert source.redactor is not None
        return [source.redactor.session(session) for session in family]

    def _write_pages(self, folder: Path, before: Mapping[str, FolderEntry], after: dict[str, FolderEntry]) -> None:
        """Write the pages that list all sessions of a folder; never overwrite files of others."""
        for name, data in self.exporter.pages(self.written, self._prices):
            if name not in before and (folder / name).exists():
                self.foreign_pages.append(folder / name)
                continue
            self.guard.write(folder / name, [data])
            after[name] = FolderEntry("page")

    def _look_for_secrets(self) -> None:
        """Read the selected sessions, so that the redactors count what they would replace."""
        for chosen in self.chosen:
            with self._reported(chosen.session, _ALL_ERRORS):
                waiting = [self._source(chosen)]
                while waiting:
                    source = waiting.pop()
                    for _ in source.messages():
                        pass
                    waiting += source.children()

    def _check_tables(self) -> None:
        if self.redaction.is_wanted:
            raise UsageError(f"{self.name} cannot be redacted: leave --redact and --share out.")
        if self._config.archive is None:
            raise UsageError("Parquet exports tables of the archive: leave --no-archive out.")
        if isinstance(self.sink, StreamSink) or self.sink.path.is_file():
            raise UsageError("Parquet is a folder with one file per table: name it with `-o facts/`.")

    def _write_tables(self, snapshot: Snapshot | None) -> None:
        """Write the rows that the sessions have in the archive's tables."""
        from pollux.lake import parquet  # noqa: PLC0415  not needed by other formats

        if snapshot is None or not snapshot.is_archived:
            raise UsageError("Parquet exports tables of the archive: name sessions by ID, or use --all.")
        assert not isinstance(self.sink, StreamSink)
        self.path = self.sink.path
        ids = {chosen.session.id for chosen in self.chosen}
        with explained_failure(self.path):
            self.guard.check(self.path)
            self.tables = parquet.write(snapshot.database, self.path, self._prices, ids, check=self.guard.check)


def load_all(snapshot: Snapshot) -> dict[str, Session]:
    """Return all sessions of a snapshot by ID."""
    return {session.id: session for session in snapshot.sessions.load(snapshot.ids)}
