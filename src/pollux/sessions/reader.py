"""The sessions of some homes: found, put together, linked, and each told which project it belongs to."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from pollux.disk.regular_files import PROMPT_LOG, read_side_file
from pollux.errors import AmbiguousSessionError, NoSuchSessionError, UnreadableFileError
from pollux.formats import prompts
from pollux.formats.records import PROJECT_HASH
from pollux.model import ModelCall, Origin, Problem, Project, Session
from pollux.sessions import homes as home
from pollux.sessions import locate, subagents
from pollux.sessions.family import link_children
from pollux.sessions.grouping import Group, bundles, group_from, groups, regroup
from pollux.sessions.homes import Home
from pollux.sessions.locate import Located, SessionFile, id8_in
from pollux.sessions.ownership import find_owners, session_holder
from pollux.sessions.parallel import side_by_side
from pollux.sessions.projects import resolve
from pollux.sessions.projects.claims import NOTHING_KNOWN, Known, known_paths
from pollux.sessions.replay.reading import Reading, arguments, cannot_derive, read, reason_of, whole
from pollux.sessions.summary import summary
from pollux.text.integers import parse_integer

_Result = TypeVar("_Result")
Progress = Callable[[int, int], None]
"""Told after each bundle: bytes read, bytes in all."""

_LATEST = "latest"
_WORTH_PROCESSES = 64 << 20
"""Bytes from which on all cores read."""
_CHUNK = 4 << 20
"""Bytes that are worth a trip to another process, at least."""
_TRIPS = 32
"""Of all processes together: enough to keep all busy to the end, few enough to cost nothing."""


class RepeatedCall(msgspec.Struct, frozen=True):
    """A model call in the files of a session that does not own it."""

    session_id: str
    owner_id: str
    call: ModelCall


class History(msgspec.Struct, frozen=True):
    """The sessions of some homes, read from their files."""

    located: Located
    sessions: tuple[Session, ...] = ()
    """Newest first; subagents and stubs included. Each has the model calls that it owns."""
    problems: tuple[Problem, ...] = ()
    """Those that belong to no session."""
    repeated: tuple[RepeatedCall, ...] = ()
    """The model calls that sessions hold besides their own."""

    @property
    def main(self) -> tuple[Session, ...]:
        """What a list shows: no subagents, nothing that is only a stub."""
        return tuple(session for session in self.sessions if session.is_listed)

    @property
    def unreadable(self) -> tuple[Session, ...]:
        """Sessions of whose files nothing could be read; their problems say why."""
        return tuple(session for session in self.sessions if session.is_stub and session.problems)


def homes(*given: str | Path) -> tuple[Home, ...]:
    """Tell which homes to read: those given, else what the environment says, else the user's own."""
    return home.homes([Path(one) for one in given], os.environ, Path.home())


def history(
    homes: Iterable[Home],
    *,
    memory: Mapping[str, str] | None = None,
    progress: Progress = lambda _done, _all: None,
) -> History:
    """Read all sessions of some homes; memory grows with their number, not with their size."""
    located = locate.locate(homes)
    sessions: list[Session] = []
    problems = list(located.problems)
    for found in in_chunks(located, partial(_read_bundles, Reader(memory or {})), progress):
        sessions += found.sessions
        problems += found.problems
    reader = Reader(memory or {})
    sessions = _reunited(located, sessions, reader)
    problems += reader.problems
    owned, repeated = _with_own_calls(sessions)
    sessions = resolve.agreed_projects(owned)
    return History(located, in_order(sessions), tuple(dict.fromkeys(problems)), tuple(repeated))


def saved(located: Located, *, memory: Mapping[str, str] | None = None) -> History:
    """Read the conversations that `/chat save` stored in some homes, each as a session of its own."""
    reader = Reader(memory or {})
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
    return History(located, in_order(sessions), tuple(dict.fromkeys([*problems, *reader.problems])))


def saved_tag(session: Session) -> str:
    """Return the tag that a saved conversation has in `/chat list`; the oldest releases saved one without a tag."""
    tag = session.extra.get("tag")
    return tag if isinstance(tag, str) else session.id


def _reunited(located: Located, sessions: list[Session], reader: Reader) -> list[Session]:
    """Read those files together that say they are one session, though their names say otherwise."""
    counts = Counter(one.id for one in sessions)
    twice = {id_ for id_, count in counts.items() if count > 1}
    if not twice:
        return sessions
    paths = {ref.path for one in sessions if one.id in twice for ref in one.files}
    again = reader.sessions([file for file in located.files if file.path in paths])
    twice &= {one.id for one in again}  # what cannot be read together stays as it was
    return [*(one for one in sessions if one.id not in twice), *(one for one in again if one.id in twice)]


def in_chunks(
    located: Located, work: Callable[[list[list[SessionFile]]], _Result], progress: Progress = lambda _done, _all: None
) -> Iterator[_Result]:
    """Have the bundles of some homes worked on, several at a time and by all cores where that is worth it."""
    files = list(located.files)
    n_bytes, done = sum(file.size for file in files), 0
    chunks = list(_chunks(bundles(files), max(_CHUNK, n_bytes // _TRIPS)))
    results = side_by_side(work, chunks, is_worth_it=n_bytes > _WORTH_PROCESSES)
    for chunk, result in zip(chunks, results, strict=True):
        yield result
        done += sum(file.size for bundle in chunk for file in bundle)
        progress(done, n_bytes)


class _Found(NamedTuple):
    sessions: list[Session]
    problems: list[Problem]


def _read_bundles(reader: Reader, chunk: Sequence[Sequence[SessionFile]]) -> _Found:
    return _Found([session for bundle in chunk for session in reader.sessions(bundle)], reader.problems)


def _chunks(found: Iterable[list[SessionFile]], enough: int) -> Iterator[list[list[SessionFile]]]:
    """Put bundles together until they are worth a trip to another process."""
    chunk: list[list[SessionFile]] = []
    n_bytes = 0
    for bundle in found:
        chunk.append(bundle)
        n_bytes += sum(file.size for file in bundle)
        if n_bytes > enough:
            yield chunk
            chunk, n_bytes = [], 0
    if chunk:
        yield chunk


def opened(session: Session) -> Group:
    """Put a session together again, to read its messages. Raises `UnreadableFileError`."""
    try:
        return from_readings(session, [read(ref.path) for ref in session.files])
    except OSError as error:
        raise UnreadableFileError(error.filename, error.strerror) from None


def from_readings(session: Session, readings: Iterable[Reading]) -> Group:
    """Put a session together again from the readings of its files."""
    group = regroup(session.kind, session.id, readings)
    group.parent, group.parent_call = session.parent, session.parent_call
    subagents.mark_prompts(group)
    return group


def from_file(path: Path) -> tuple[Session, Group]:
    """Read a file that somebody named. Raises `UnreadableFileError`."""
    try:
        group = group_from(path)
    except OSError as error:
        raise UnreadableFileError(path, error.strerror) from None
    subagents.mark_prompts(group)
    return summary(group, _project(group, NOTHING_KNOWN, None, {})), group


def select(found: History, wanted: str) -> Session:
    """Return the session that a name means: an ID, a prefix or the eight digits of one, a stem, `latest` or `@2`."""
    if wanted == _LATEST or wanted.startswith("@"):
        number = 1 if wanted == _LATEST else parse_integer(wanted[1:]) if wanted[1:].isdecimal() else None
        if number is not None and 1 <= number <= len(found.main):
            return found.main[number - 1]
        raise NoSuchSessionError(wanted, len(found.main))
    exact = [one for one in found.sessions if wanted == one.id or _has_stem(one, wanted)]
    fitting = exact or [one for one in found.sessions if one.id.lower().startswith(wanted.lower())]
    fitting = fitting or [one for one in found.sessions if short_id(one).lower() == wanted.lower()]
    fitting = [one for one in fitting if one.kind == "main"] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise AmbiguousSessionError(wanted, [one.id for one in fitting])
    raise NoSuchSessionError(wanted, len(found.sessions))


def failed_files(problems: Iterable[Problem], wanted: str) -> dict[Path, Problem]:
    """Return the files without a session that somebody means: by path, name, stem, or the start of the ID.

    Raises `AmbiguousSessionError` if they belong to several sessions.
    """
    found = {Path(one.file): one for one in problems if one.code in _WITHOUT_SESSION and one.file}
    meant = {path: problem for path, problem in found.items() if _is_called(path, wanted)}
    ids = {id8_in(path.name) or path.stem for path in meant}
    if len(ids) > 1:
        raise AmbiguousSessionError(wanted, sorted(ids))
    return meant


_WITHOUT_SESSION = ("cannot-derive", "damaged-archive")
"""Problems for which a file may belong to no session at all."""


def _is_called(path: Path, wanted: str) -> bool:
    if Path(wanted).absolute() == path or wanted in (path.name, path.stem):
        return True
    id8 = id8_in(path.name)
    typed = wanted.lower()
    if id8 is None:
        return path.stem.lower().startswith(typed)
    return id8.lower().startswith(typed) or typed.startswith(id8.lower())


def short_id(session: Session) -> str:
    """Return the eight characters that name a session on screens; an ID that is a file's stem has them at its end."""
    return short_id_of(session.id)


def short_id_of(session_id: str) -> str:
    """Return the eight characters that name a session on screens."""
    return id8_in(f"{session_id}.json") or session_id[:8]


LOGS = "logs.json"


def _logs_beside(file: SessionFile) -> bytes | None:
    try:
        return read_side_file(file.home.tmp / file.folder / LOGS, within=file.home.tmp, limit=PROMPT_LOG)
    except OSError:
        return None  # reported where the prompts themselves are wanted


def claims_on_disk(home: Home) -> Known:
    """Return what a home says about the paths of its projects."""
    return claims(home.root, lambda: known_paths(home.root, home.tmp, home.link_limit))


def claims(root: Path, look_up: Callable[[], Known]) -> Known:
    """Look up what a home says about paths; an error that this raises is a problem of the home, not of its sessions."""
    try:
        return look_up()
    except Exception as error:  # noqa: BLE001  reported; sessions are read without these paths
        return Known(problems=(cannot_derive(root, reason_of(error)),))


class Reader:
    """Makes sessions of files, with what each home knows about projects and prompts, looked up once."""

    def __init__(
        self,
        memory: Mapping[str, str],
        known: Callable[[Home], Known] = claims_on_disk,
        logs: Callable[[SessionFile], bytes | None] = _logs_beside,
    ) -> None:
        """Take the paths that were proven before, and where to look for claims and logged prompts: on the disk."""
        self._known_by = known
        self._logs = logs
        self._known: dict[Home, Known] = {}
        self._logged: dict[tuple[Home, str], list[str]] = {}
        self._memory = memory
        self.problems: list[Problem] = []

    def sessions(self, bundle: Sequence[SessionFile]) -> list[Session]:
        """Read a bundle of files, and sum up its sessions; an error that this raises is a problem of its files."""
        try:
            found, problems = groups(bundle, self.full_id)
            summed_up = self.summed_up(found)
        except Exception as error:  # noqa: BLE001  reported; the other bundles must be read
            self.problems += [cannot_derive(file.path, reason_of(error)) for file in bundle]
            return []
        self.problems += problems
        return [session for _, session in summed_up]

    def summed_up(self, found: list[Group]) -> list[tuple[Group, Session]]:
        """Link the groups of a bundle to each other, and sum each up."""
        subagents.link(found)
        for group in found:
            subagents.mark_prompts(group)
        return [(group, summary(group, self._project(group))) for group in found]

    def _project(self, group: Group) -> Project:
        file = group.main.file
        if file is None:
            return _project(group, NOTHING_KNOWN, None, self._memory)
        home = file.home
        if home not in self._known:
            self._known[home] = self._known_by(home)
            self.problems += self._known[home].problems
        return _project(group, self._known[home], file.folder, self._memory)

    def full_id(self, file: SessionFile, id8: str) -> str | None:
        """Look a whole id up in the prompts that the client logs beside the sessions."""
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


def _project(group: Group, known: Known, folder: str | None, memory: Mapping[str, str]) -> Project:
    seen = group.main.seen
    digest = seen.get(PROJECT_HASH)
    digest = digest if isinstance(digest, str) and digest else None
    directories = seen.get("directories")
    is_known = digest in known.by_hash
    return resolve.resolve(
        digest,
        folder,
        known,
        directories=[one for one in directories if isinstance(one, str)] if isinstance(directories, list) else (),
        session_context=() if is_known else tuple(_context_directories(group)),
        arguments=_argument_paths(group),
        memory=memory,
    )


def _context_directories(group: Group) -> Iterator[str]:
    for placed, entry in group.timeline[:3]:
        if entry.origin == Origin.SESSION_CONTEXT:
            yield from resolve.workspace_directories(whole(placed.reading, entry, shortened=True).text)


def _argument_paths(group: Group) -> Iterator[str]:
    """Look for paths in the first few tool calls; their ancestors may prove which folder it was."""
    with_calls = (one for one in group.timeline if one[1].calls_from)
    for placed, entry in islice(with_calls, _CALLS_LOOKED_AT):
        for args in arguments(placed.reading, entry):
            yield from resolve.argument_paths(args)


_CALLS_LOOKED_AT = 5


def in_order(sessions: Iterable[Session]) -> tuple[Session, ...]:
    """Return the sessions with their children, the one last used first."""
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


def _has_stem(session: Session, wanted: str) -> bool:
    return any(wanted in (ref.path.stem, ref.path.name, str(ref.path)) for ref in session.files)
