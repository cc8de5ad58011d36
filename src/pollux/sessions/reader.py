"""Read the sessions of Gemini homes: find files, assemble sessions, link subagents and resolve projects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from pollux.disk.read import PROMPT_LOG, read_side_file
from pollux.errors import AmbiguousSessionError, SessionNotFoundError, UnreadableFileError
from pollux.formats import prompts
from pollux.formats.records import PROJECT_HASH
from pollux.model import ModelCall, Origin, Problem, Project, Session
from pollux.sessions import locate, subagents
from pollux.sessions.family import find_owners, link_children, session_holder
from pollux.sessions.grouping import OpenSession, bundles, open_bundle, open_file, open_readings
from pollux.sessions.homes import Home
from pollux.sessions.locate import HomeScan, SessionFile, id8_in
from pollux.sessions.parallel import map_in_processes
from pollux.sessions.projects import resolve
from pollux.sessions.projects.resolve import NO_CLAIMS, ProjectClaims, read_claims
from pollux.sessions.replay.reading import FileReading, build_message, call_arguments, cannot_derive, read, reason_of
from pollux.sessions.summary import summarize
from pollux.text.numbers import parse_integer

_Result = TypeVar("_Result")
Progress = Callable[[int, int], None]
"""Called after each chunk of files with the number of bytes read and the total."""

_LATEST = "latest"
_WORTH_PROCESSES = 64 << 20
"""Use all cores to read more bytes than this."""
_CHUNK = 4 << 20
"""Send at least this many bytes to a worker at a time."""
_N_CHUNKS = 32
"""At most: enough to keep all workers busy to the end, and few enough to cost nothing."""
_CALLS_SEARCHED = 5
"""Messages with tool calls in which to search for the project's path."""


class RepeatedCall(msgspec.Struct, frozen=True):
    """A model call in the files of a session that does not own it."""

    session_id: str
    owner_id: str
    call: ModelCall


class History(msgspec.Struct, frozen=True):
    """The sessions of some homes, read from their files."""

    located: HomeScan
    sessions: tuple[Session, ...] = ()
    """Newest first; subagents and stubs included. Each has the model calls that it owns."""
    problems: tuple[Problem, ...] = ()
    """Those that belong to no session."""
    repeated: tuple[RepeatedCall, ...] = ()
    """The model calls that sessions hold besides their own."""
    derived: Mapping[str, Any] = {}
    """What `derive` returned, by session ID; without sessions that have to be opened again."""

    @property
    def main(self) -> tuple[Session, ...]:
        """The sessions that a list shows: neither subagents nor stubs."""
        return tuple(session for session in self.sessions if session.is_listed)

    @property
    def unreadable(self) -> tuple[Session, ...]:
        """Sessions without a readable file; their problems say why."""
        return tuple(session for session in self.sessions if session.is_stub and session.problems)


def history(
    homes: Iterable[Home],
    *,
    memory: Mapping[str, str] | None = None,
    progress: Progress = lambda _done, _all: None,
) -> History:
    """Read all sessions of some homes; the memory needed grows with their number, not with their size."""
    return located_history(locate.locate(homes), memory=memory, progress=progress)


def located_history(
    located: HomeScan,
    *,
    memory: Mapping[str, str] | None = None,
    progress: Progress = lambda _done, _all: None,
    derive: Callable[[OpenSession], object] | None = None,
) -> History:
    """Read all sessions of some homes whose files were located.

    `derive` is called with each session while its files are open, so that they need not be read twice.
    """
    sessions: list[Session] = []
    problems = list(located.problems)
    derived: dict[str, Any] = {}
    for result in in_chunks(located, partial(_read_bundles, SessionReader(memory or {}), derive), progress):
        sessions += result.sessions
        problems += result.problems
        derived |= result.derived
    split = {id_ for id_, count in Counter(session.id for session in sessions).items() if count > 1}
    reader = SessionReader(memory or {})
    sessions = _merge_split_sessions(located, sessions, split, reader)
    problems += reader.problems
    owned, repeated = _with_own_calls(sessions)
    sessions = resolve.agreed_projects(owned)
    whole = {id_: value for id_, value in derived.items() if id_ not in split}
    return History(located, sort_sessions(sessions), tuple(dict.fromkeys(problems)), tuple(repeated), whole)


def saved(located: HomeScan, *, memory: Mapping[str, str] | None = None) -> History:
    """Read the conversations that `/chat save` stored in some homes, each as its own session."""
    reader = SessionReader(memory or {})
    sessions: list[Session] = []
    problems: list[Problem] = []
    for folder in located.folders:
        for path in folder.checkpoints:
            try:
                status = path.stat()
            except OSError as error:
                problems.append(Problem("vanished-file", f"cannot be read: {error.strerror}", str(path)))
                continue
            stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
            sessions += reader.sessions([SessionFile(str(path), folder.home, folder.name, None, *stamp, "session")])
    return History(located, sort_sessions(sessions), tuple(dict.fromkeys([*problems, *reader.problems])))


def _merge_split_sessions(
    located: HomeScan, sessions: list[Session], split: set[str], reader: SessionReader
) -> list[Session]:
    """Merge sessions with the same ID, whose files were in different bundles because of their names."""
    if not split:
        return sessions
    paths = {ref.path for session in sessions if session.id in split for ref in session.files}
    merged = reader.sessions([file for file in located.files if file.path in paths])
    joined = split & {session.id for session in merged}  # sessions that cannot be read together stay as they were
    others = [session for session in sessions if session.id not in joined]
    return others + [session for session in merged if session.id in joined]


def in_chunks(
    located: HomeScan, work: Callable[[list[list[SessionFile]]], _Result], progress: Progress = lambda _done, _all: None
) -> Iterator[_Result]:
    """Yield the result of `work` for each chunk of bundles, computed by all cores if there are enough bytes."""
    files = list(located.files)
    n_bytes, done = sum(file.size for file in files), 0
    chunks = list(_chunks(bundles(files), max(_CHUNK, n_bytes // _N_CHUNKS)))
    results = map_in_processes(work, chunks, is_worth_it=n_bytes > _WORTH_PROCESSES)
    for chunk, result in zip(chunks, results, strict=True):
        yield result
        done += sum(file.size for bundle in chunk for file in bundle)
        progress(done, n_bytes)


class _ChunkResult(NamedTuple):
    sessions: list[Session]
    problems: list[Problem]
    derived: dict[str, Any]


def _read_bundles(
    reader: SessionReader, derive: Callable[[OpenSession], object] | None, chunk: Sequence[Sequence[SessionFile]]
) -> _ChunkResult:
    sessions: list[Session] = []
    derived: dict[str, Any] = {}
    for bundle in chunk:
        opened = reader.opened(bundle)
        sessions += [session for _, session in opened]
        if derive and not any(_shares_files(group) for group, _ in opened):
            derived |= {group.id: derive(group) for group, _ in opened}
    return _ChunkResult(sessions, reader.problems, derived)


def _shares_files(group: OpenSession) -> bool:
    """Return whether a file holds several sessions, which `opened` assigns by their IDs only."""
    return any(located.reading.replay.earlier for located in group.files)


def _chunks(bundled: Iterable[list[SessionFile]], n_least: int) -> Iterator[list[list[SessionFile]]]:
    """Yield lists of bundles with more than `n_least` bytes each, except for the last."""
    chunk: list[list[SessionFile]] = []
    n_bytes = 0
    for bundle in bundled:
        chunk.append(bundle)
        n_bytes += sum(file.size for file in bundle)
        if n_bytes > n_least:
            yield chunk
            chunk, n_bytes = [], 0
    if chunk:
        yield chunk


def opened(session: Session) -> OpenSession:
    """Open a session so that its messages can be read. Raises `UnreadableFileError`."""
    try:
        return from_readings(session, [read(ref.path) for ref in session.files])
    except OSError as error:
        raise UnreadableFileError(error.filename, error.strerror) from None


def from_readings(session: Session, readings: Iterable[FileReading]) -> OpenSession:
    """Open a session whose files have been read."""
    group = open_readings(session.kind, session.id, readings)
    group.parent, group.parent_call = session.parent, session.parent_call
    subagents.mark_prompts(group)
    return group


def from_file(path: Path) -> tuple[Session, OpenSession]:
    """Read one file as a session of its own. Raises `UnreadableFileError`."""
    try:
        group = open_file(path)
    except OSError as error:
        raise UnreadableFileError(path, error.strerror) from None
    subagents.mark_prompts(group)
    return summarize(group, _project(group, NO_CLAIMS, None, {})), group


def select(history: History, reference: str) -> Session:
    """Return the session that a reference names: an ID, a prefix or short form of one, a stem, `latest` or `@2`."""
    if reference == _LATEST or reference.startswith("@"):
        number = 1 if reference == _LATEST else parse_integer(reference[1:]) if reference[1:].isdecimal() else None
        if number is not None and 1 <= number <= len(history.main):
            return history.main[number - 1]
        raise SessionNotFoundError(reference, len(history.main))
    lower = reference.lower()
    matches = [session for session in history.sessions if reference == session.id or _has_stem(session, reference)]
    matches = matches or [session for session in history.sessions if session.id.lower().startswith(lower)]
    matches = matches or [session for session in history.sessions if short_id(session).lower() == lower]
    matches = [session for session in matches if session.kind == "main"] or matches
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise AmbiguousSessionError(reference, [session.id for session in matches])
    raise SessionNotFoundError(reference, len(history.sessions))


def failed_files(problems: Iterable[Problem], reference: str) -> dict[Path, Problem]:
    """Return the unreadable files that a reference names by path, name, stem or the start of the session's ID.

    Raises `AmbiguousSessionError` if they belong to several sessions.
    """
    failed = {Path(problem.file): problem for problem in problems if problem.code in _WITHOUT_SESSION and problem.file}
    matches = {path: problem for path, problem in failed.items() if _is_named(path, reference)}
    ids = {id8_in(path.name) or path.stem for path in matches}
    if len(ids) > 1:
        raise AmbiguousSessionError(reference, sorted(ids))
    return matches


_WITHOUT_SESSION = ("cannot-derive", "damaged-archive")
"""Codes of problems because of which a file may belong to no session."""


def _is_named(path: Path, reference: str) -> bool:
    if Path(reference).absolute() == path or reference in (path.name, path.stem):
        return True
    id8 = id8_in(path.name)
    typed = reference.lower()
    if id8 is None:
        return path.stem.lower().startswith(typed)
    return id8.lower().startswith(typed) or typed.startswith(id8.lower())


def short_id(session: Session) -> str:
    """Return the eight characters that screens show for a session's ID."""
    return short_id_of(session.id)


def short_id_of(session_id: str) -> str:
    """Return the first eight characters of an ID; if the ID is a file's stem, those of the ID in it."""
    return id8_in(f"{session_id}.json") or session_id[:8]


LOGS = "logs.json"


def _logs_beside(file: SessionFile) -> bytes | None:
    try:
        return read_side_file(file.home.tmp / file.folder / LOGS, within=file.home.tmp, limit=PROMPT_LOG)
    except OSError:
        return None  # reported when the prompts themselves are read


def claims_on_disk(home: Home) -> ProjectClaims:
    """Return what a home says about the paths of its projects."""
    return claims(home.root, lambda: read_claims(home.root, home.tmp, home.link_limit))


def claims(root: Path, read: Callable[[], ProjectClaims]) -> ProjectClaims:
    """Return the claims of a home; an error while reading them becomes a problem of the home."""
    try:
        return read()
    except Exception as error:  # noqa: BLE001  reported; sessions are read without these paths
        return ProjectClaims(problems=(cannot_derive(root, reason_of(error)),))


class SessionReader:
    """Reads sessions, and caches each home's project claims and logged prompts."""

    def __init__(
        self,
        memory: Mapping[str, str],
        known: Callable[[Home], ProjectClaims] = claims_on_disk,
        logs: Callable[[SessionFile], bytes | None] = _logs_beside,
    ) -> None:
        """Create a reader.

        Args:
            memory: project paths that were proven earlier, by hash.
            known: returns the project claims of a home. Default: read from the disk.
            logs: returns the `logs.json` of a file's project. Default: read from the disk.

        """
        self._read_claims = known
        self._logs = logs
        self._claims: dict[Home, ProjectClaims] = {}
        self._logged: dict[tuple[Home, str], list[str]] = {}
        self._memory = memory
        self.problems: list[Problem] = []

    def sessions(self, bundle: Sequence[SessionFile]) -> list[Session]:
        """Read the sessions of a bundle of files; an error becomes a problem of each file."""
        return [session for _, session in self.opened(bundle)]

    def opened(self, bundle: Sequence[SessionFile]) -> list[tuple[OpenSession, Session]]:
        """Read the sessions of a bundle of files as `sessions` does, and return each with its open files."""
        try:
            groups, problems = open_bundle(bundle, self.full_id)
            summarized = self.summarize(groups)
        except Exception as error:  # noqa: BLE001  reported; the other bundles must be read
            self.problems += [cannot_derive(file.path, reason_of(error)) for file in bundle]
            return []
        self.problems += problems
        return summarized

    def summarize(self, opened: list[OpenSession]) -> list[tuple[OpenSession, Session]]:
        """Link the subagents of a bundle, and summarize each session."""
        subagents.link(opened)
        for group in opened:
            subagents.mark_prompts(group)
        return [(group, summarize(group, self._project(group))) for group in opened]

    def _project(self, group: OpenSession) -> Project:
        file = group.main.file
        if file is None:
            return _project(group, NO_CLAIMS, None, self._memory)
        home = file.home
        if home not in self._claims:
            self._claims[home] = self._read_claims(home)
            self.problems += self._claims[home].problems
        return _project(group, self._claims[home], file.folder, self._memory)

    def full_id(self, file: SessionFile, id8: str) -> str | None:
        """Return the full session ID that starts with `id8` from the prompts in the project's `logs.json`."""
        key = (file.home, file.folder)
        if key not in self._logged:
            self._logged[key] = self._logged_ids(file)
        return next((id_ for id_ in self._logged[key] if id_.startswith(id8)), None)

    def _logged_ids(self, file: SessionFile) -> list[str]:
        data = self._logs(file) or b"[]"
        try:
            logged = prompts.read(data).prompts
        except Exception as error:  # noqa: BLE001  reported; sessions are read without these ids
            self.problems.append(cannot_derive(file.home.tmp / file.folder / LOGS, reason_of(error)))
            return []
        return list(dict.fromkeys(prompt.session_id for prompt in logged))


def _project(group: OpenSession, known: ProjectClaims, folder: str | None, memory: Mapping[str, str]) -> Project:
    seen = group.main.seen
    digest = seen.get(PROJECT_HASH)
    digest = digest if isinstance(digest, str) and digest else None
    directories = seen.get("directories")
    is_known = digest in known.by_hash
    return resolve.resolve(
        digest,
        folder,
        known,
        directories=[path for path in directories if isinstance(path, str)] if isinstance(directories, list) else (),
        session_context=() if is_known else tuple(_context_directories(group)),
        arguments=_argument_paths(group),
        memory=memory,
    )


def _context_directories(group: OpenSession) -> Iterator[str]:
    for located, entry in group.timeline[:3]:
        if entry.origin == Origin.SESSION_CONTEXT:
            yield from resolve.workspace_directories(build_message(located.reading, entry, shortened=True).text)


def _argument_paths(group: OpenSession) -> Iterator[str]:
    """Yield the paths in the first few tool calls: one of their ancestors may have the project's hash."""
    with_calls = ((located, entry) for located, entry in group.timeline if entry.calls_from)
    for located, entry in islice(with_calls, _CALLS_SEARCHED):
        for args in call_arguments(located.reading, entry):
            yield from resolve.argument_paths(args)


def sort_sessions(sessions: Iterable[Session]) -> tuple[Session, ...]:
    """Return the sessions with their children linked, most recently used first."""
    return tuple(sorted(link_children(sessions), key=_newest_first))


def _with_own_calls(sessions: Sequence[Session]) -> tuple[list[Session], list[RepeatedCall]]:
    """Return the sessions with the model calls that each owns, and the calls that are owned by another session."""
    owners = find_owners(
        (holder, (call.message_id, call.tokens))
        for holder, session in zip(map(session_holder, sessions), sessions, strict=True)
        for call in session.calls
    )
    if len(owners) == sum(len(session.calls) for session in sessions):
        return [*sessions], []
    owned: list[Session] = []
    repeated: list[RepeatedCall] = []
    for session in sessions:
        calls: list[ModelCall] = []
        for call in session.calls:
            owner_id = owners[call.message_id, call.tokens].session_id
            if owner_id == session.id:
                calls.append(call)
            else:
                repeated.append(RepeatedCall(session.id, owner_id, call))
        is_same = len(calls) == len(session.calls)
        owned.append(session if is_same else msgspec.structs.replace(session, calls=tuple(calls)))
    return owned, repeated


def _newest_first(session: Session) -> tuple[float, str]:
    at = session.last_used
    return (-at.timestamp() if at else 0.0, session.id)


def _has_stem(session: Session, name: str) -> bool:
    return any(name in (ref.path.stem, ref.path.name, str(ref.path)) for ref in session.files)
