"""Group files into sessions: one session may be spread over many files.

Files are first bundled by the eight characters of the session ID in their names, so that only files which may belong
together are in memory at the same time. The IDs inside the files then decide.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import msgspec

from pollux.formats import lenient
from pollux.formats.records import ID_INSIDE, LAST_UPDATED, START_TIME
from pollux.formats.source import HEAD
from pollux.model import Fate, Json, Kind, Message, ModelCall, Origin, Problem, Role, Tokens
from pollux.sessions.locate import SessionFile, id8_in, name_facts
from pollux.sessions.replay import IMPORTED
from pollux.sessions.replay.reading import FileReading, build_message, cannot_derive, read, reason_of, state
from pollux.sessions.replay.replay import RecordedCall, ReplayResult, TimelineEntry
from pollux.text.escape import escape_surrogates
from pollux.text.times import parse_time

FullId: TypeAlias = Callable[[SessionFile, str], str | None]
"""Returns the full ID of a session whose file has lost its header, given the eight characters in its name."""

_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})
_EARLIEST = datetime.min.replace(tzinfo=UTC)


class LocatedReading(msgspec.Struct, eq=False):
    """A reading, the file it was read from, and the file's role in its session."""

    reading: FileReading
    file: SessionFile | None = None
    role: Role = Role.MAIN
    version_id: int = 0
    """Version of the file in the archive."""
    is_main: bool = False
    """Whether the client would load this file."""

    def parts(self) -> list[LocatedReading]:
        """Return one reading for each session in the file."""
        parts = self.reading.parts()
        return [msgspec.structs.replace(self, reading=part) for part in parts] if len(parts) > 1 else [self]

    @property
    def seen(self) -> dict[str, Json]:
        """All metadata in the file."""
        return self.reading.replay.seen

    @property
    def timeline(self) -> list[TimelineEntry]:
        """The messages in the file."""
        return self.reading.replay.timeline

    @property
    def started(self) -> datetime | None:
        """When the session started: the earliest of its header, first message and file name."""
        stamps = (parse_time(self.seen.get(START_TIME)), *(parse_time(entry.at) for entry in self.timeline[:1]))
        return min((at for at in stamps if at), default=None) or name_facts(self.reading.path.name)[0]

    @property
    def updated(self) -> datetime | None:
        """When the client last updated the session, by its header or else by its messages."""
        stamps = (parse_time(entry.at) for entry in self.timeline)
        return parse_time(self.seen.get(LAST_UPDATED)) or max((at for at in stamps if at), default=None)

    @property
    def is_import(self) -> bool:
        """Whether the file came from another archive and was never read on this machine."""
        return self.reading.original.is_import

    @property
    def is_stub(self) -> bool:
        """Whether only the preamble was ever recorded in this file."""
        return all(entry.origin == Origin.SESSION_CONTEXT for entry in self.timeline)


class OpenSession(msgspec.Struct):
    """A session assembled from its files: each message once, each model call once."""

    id: str
    kind: str
    files: list[LocatedReading]
    parent: str | None = None
    parent_call: str | None = None
    timeline: list[tuple[LocatedReading, TimelineEntry]] = msgspec.field(default_factory=list)
    calls: dict[str, ModelCall] = msgspec.field(default_factory=dict)

    @property
    def main(self) -> LocatedReading:
        """The file that the client would load."""
        return next(located for located in self.files if located.is_main)

    @property
    def primary_files(self) -> list[LocatedReading]:
        """The files that describe the session: imports only if the main file is one."""
        is_import = self.main.is_import
        return [located for located in self.files if located.is_import == is_import]

    @property
    def n_imported(self) -> int:
        """Number of messages that only imports contain; 0 if all files are imports."""
        if all(located.is_import for located in self.files):
            return 0
        return sum(located.is_import for located, _ in self.timeline)

    @property
    def entries(self) -> list[TimelineEntry]:
        """The messages of all files."""
        return [entry for _, entry in self.timeline]

    def messages(self, *, shortened: bool = False) -> Iterator[Message]:
        """Yield the timeline one message at a time; `shortened` cuts very long texts (see `build_message`)."""
        for located, entry in self.timeline:
            yield build_message(located.reading, entry, shortened=shortened)

    def state(self) -> Iterator[Json]:
        """Yield the messages that the client itself would load, as it recorded them."""
        for data in state(self.main.reading):
            yield lenient.decode(data)

    def usage(self) -> tuple[ModelCall, ...]:
        """Return every model call whose token counts are in the files, once."""
        return tuple(self.calls.values())


def bundle_key(file: SessionFile) -> str:
    """Return the first 8 characters of the session ID that a file seems to belong to, else the file's path."""
    if file.parent:
        return file.parent[:8]
    return id8_in(os.path.basename(file.place)) or _id8_on_disk(file) or file.place  # noqa: PTH119  a hot loop


def find_id8(head: bytes) -> str | None:
    """Return the first 8 characters of the session ID in the first bytes of a file, for files that were renamed."""
    match = ID_INSIDE.search(head)
    return match[1].decode("ascii", "replace") if match else None


def _id8_on_disk(file: SessionFile) -> str | None:
    try:
        with open(file.place, "rb") as stream:  # noqa: PTH123  a hot loop
            return find_id8(stream.read(HEAD))
    except OSError:
        return None  # reported when the file is read


def bundles(files: Iterable[SessionFile]) -> list[list[SessionFile]]:
    """Return the files grouped by the session that they seem to belong to."""
    by_key: dict[str, list[SessionFile]] = defaultdict(list)
    for file in files:
        by_key[bundle_key(file)].append(file)
    return list(by_key.values())


def open_bundle(bundle: Iterable[SessionFile], full_id: FullId) -> tuple[list[OpenSession], list[Problem]]:
    """Read the files of one bundle and return their sessions; an error while reading a file becomes a problem."""
    readings: list[LocatedReading] = []
    problems: list[Problem] = []
    for file in bundle:
        try:
            readings.append(LocatedReading(read(file.path), file))
        except OSError as error:
            problems.append(Problem("unreadable-file", f"cannot be read: {error.strerror}", str(file.path)))
        except Exception as error:  # noqa: BLE001  reported; the other files must be read
            problems.append(cannot_derive(file.path, reason_of(error)))
    return group_readings(readings, full_id), problems


def group_readings(readings: list[LocatedReading], full_id: FullId) -> list[OpenSession]:
    """Return the sessions of some files, grouped by the session IDs inside them."""
    parts = [part for located in readings for part in located.parts()]
    members: dict[tuple[str, str], list[LocatedReading]] = defaultdict(list)
    ids = _IdCompleter(parts, full_id)
    for part in parts:
        members[_session_key(part, ids)].append(part)
    return [_assemble(kind, id_, files) for (kind, id_), files in members.items()]


def open_file(path: Path) -> OpenSession:
    """Read a file as a session of its own. Raises `OSError` if it cannot be opened."""
    located = LocatedReading(read(path))
    kind = "subagent" if located.seen.get("kind") == "subagent" else "main"
    return _assemble(kind, located.reading.id or id8_in(path.name) or path.stem, [located])


def open_readings(kind: str, id_: str, readings: Iterable[FileReading]) -> OpenSession:
    """Assemble a session whose files are known."""
    files = []
    for number, reading in enumerate(readings):
        own_parts = [part for part in reading.parts() if part.id == id_] or [reading]
        files += [LocatedReading(part, version_id=number) for part in own_parts]
    return _assemble(kind, id_, files)


class _IdCompleter:
    """Completes the first characters of session IDs; imports never complete the ID of a file that was read here."""

    def __init__(self, readings: list[LocatedReading], full_id: FullId) -> None:
        self._ids = dict.fromkeys(located.reading.id for located in readings if located.reading.id)
        own = [located for located in readings if not located.is_import]
        self._own = dict.fromkeys(located.reading.id for located in own if located.reading.id)
        self._full_id = full_id
        self._cache: dict[tuple[str, bool], str | None] = {}

    def complete(self, file: SessionFile, id8: str, *, is_import: bool) -> str:
        """Return the full ID from another file of the bundle or a logged prompt, else `id8` itself."""
        key = (id8, is_import)
        if key not in self._cache:
            ids = self._ids if is_import else self._own
            self._cache[key] = next((id_ for id_ in ids if id_ and id_.startswith(id8)), None)
        return self._cache[key] or self._full_id(file, id8) or id8


def _session_key(located: LocatedReading, ids: _IdCompleter) -> tuple[str, str]:
    assert located.file is not None
    id_, stem = located.reading.id, located.reading.path.name.partition(".")[0]
    if located.file.parent:
        return "subagent", id_ or stem
    if id_ is None:
        id8 = id8_in(located.reading.path.name) or stem
        id_ = ids.complete(located.file, id8, is_import=located.is_import)
    if located.seen.get("kind") == "subagent":
        return "subagent", f"{id_}:{stem}"  # up to 0.36 a subagent had its parent's ID in a file of its own
    return "main", id_


def _assemble(kind: str, id_: str, files: list[LocatedReading]) -> OpenSession:
    """Merge the timelines and model calls of a session's files."""
    files.sort(key=_oldest_first)
    _assign_roles(files)
    session = OpenSession(id_, kind, files)
    timeline = session.timeline
    if kind == "subagent":
        parent = next((located.file.parent for located in files if located.file and located.file.parent), None)
        session.parent = escape_surrogates(parent) if parent else id_.rpartition(":")[0] or None
    positions: dict[str, int] = {}
    for located in files:
        for entry in located.timeline:
            position = positions.setdefault(entry.id, len(timeline))
            if position == len(timeline):
                timeline.append((located, entry))
            else:
                timeline[position] = _better(timeline[position], (located, entry))
    entries = session.entries
    partial = {id_ for located in files for id_ in _first_chunks(located.reading.replay)}
    calls = [(located, call) for located in files for call in located.reading.replay.calls.values()]
    for _, call in calls:
        if call.id in partial:
            call.entry.tokens = None
    _share_fates(entries)
    fates = {entry.id: entry.fate for entry in entries}
    owners = {entry.id: located for located, entry in timeline} if any(located.is_import for located in files) else {}
    for located, call in calls:
        if owners and located.is_import and not owners.get(call.entry.id, located).is_import:
            continue  # our own file decides about a message, even if it says that nothing was billed
        if call.id not in partial:
            fate = fates.get(call.entry.id, call.entry.fate)
            session.calls.setdefault(call.id, _model_call(id_, located, call, fate))
    return session


def _share_fates(entries: list[TimelineEntry]) -> None:
    """Set the same fate for an answer and for the message that the client created for its tool calls.

    The client loads only one of the two again: the answer if it has text, else the message with the calls. The other
    one is lost, but looks active.
    """
    before: TimelineEntry | None = None  # an answer not yet followed by a user's message
    for entry in entries:
        if entry.kind == Kind.GEMINI:
            if before and entry.calls and not entry.tokens and not entry.content.n_chars:
                if entry.fate == Fate.ACTIVE:
                    entry.fate = before.fate
                elif before.fate == Fate.ACTIVE and not before.content.n_chars and not before.calls:
                    before.fate = entry.fate
            before = entry
        elif entry.kind == Kind.USER:
            before = None


def _first_chunks(replay: ReplayResult) -> set[str]:
    """Return the IDs of messages whose token counts repeat the first chunk of the next answer: one call, billed once.

    Up to 0.43 the client attaches the first counts that arrive to the last message without any, which may be one that
    it created for tool calls. Later releases record a response between the two.
    """
    ids = set()
    before: TimelineEntry | None = None
    is_after_notice = was_notice = False  # the client creates such a message after a notice between answer and calls
    for entry in replay.timeline:
        if entry.kind == Kind.GEMINI:
            if before and before.calls and not before.content.n_chars and not before.thoughts_from:
                first, final = replay.calls.get(before.id), replay.calls.get(entry.id)
                if first and final and _is_chunk(first.tokens, final.tokens, is_after_notice=is_after_notice):
                    ids.add(before.id)
            before, is_after_notice = entry, was_notice
        elif entry.origin == Origin.TOOL_RESPONSE:
            before = None
        was_notice = entry.kind in _NOTICES
    return ids


def _is_chunk(first: Tokens, final: Tokens, *, is_after_notice: bool) -> bool:
    """Return whether counts are a first part of others; equal ones only where the client is known to repeat them."""
    if not 0 < first.input == final.input or first.output > final.output:
        return False
    return is_after_notice or first.total < final.total


def _oldest_first(located: LocatedReading) -> tuple[bool, bool, datetime, str, str]:
    """Return a sort key by start time; files that the client set aside precede those that replaced them.

    Imports come last, so that they only add messages and never move those of files that were read on this machine.
    """
    path = located.reading.path
    is_replacement = not path.suffix.startswith(".unreadable")
    return located.is_import, is_replacement, located.started or _EARLIEST, path.name, str(path)


def _main_first(located: LocatedReading) -> tuple[bool, bool, bool, datetime, bool]:
    return (
        located.reading.replay.is_readable,
        not located.is_stub,
        not located.is_import,
        located.updated or _EARLIEST,
        located.reading.format == "log",
    )


def _assign_roles(files: list[LocatedReading]) -> None:
    """Set the role of each file; the client would load the one that was updated last.

    An import is the main file only if this machine has read no file of the session that the client could load. If all
    files are imports, they have the roles that they had in the archive they came from.
    """
    main = max(files, key=_main_first)
    has_own = any(not located.is_import for located in files)
    compared = [located for located in files if not (has_own and located.is_import)]
    paths = {(located.reading.path, located.version_id) for located in compared}  # one file may have several parts
    names = Counter([path.name for path, _ in paths])
    stems = Counter([path.stem for path, _ in paths])
    for located in files:
        path = located.reading.path
        located.is_main = located is main
        if located is main:
            is_loaded = any(entry.id.startswith(IMPORTED) for entry in located.timeline[:3])
            located.role = Role.IMPORT if is_loaded or (has_own and located.is_import) else Role.MAIN
        elif has_own and located.is_import:
            located.role = Role.IMPORT
        elif path.suffix not in (".json", ".jsonl"):
            located.role = Role.UNREADABLE
        elif located.is_stub:
            located.role = Role.STUB
        elif names[path.name] > 1:
            located.role = Role.COPY
        elif path.suffix == ".json" and stems[path.stem] > 1:
            located.role = Role.TWIN
        else:
            located.role = Role.PART


def _better(
    old: tuple[LocatedReading, TimelineEntry], new: tuple[LocatedReading, TimelineEntry]
) -> tuple[LocatedReading, TimelineEntry]:
    """Return the fuller of two recordings of one message, with the fate that it has in the main file.

    An import never replaces a recording that was read on this machine.
    """
    if new[0].is_import and not old[0].is_import:
        return old
    fuller = max((old, new), key=lambda recording: (recording[1].tokens is not None, len(recording[1].calls)))
    fates = {old[1].fate, new[1].fate}
    of_main = [entry.fate for located, entry in (old, new) if located.role in (Role.MAIN, Role.IMPORT)]
    fuller[1].fate = of_main[0] if of_main else Fate.ACTIVE if Fate.ACTIVE in fates else old[1].fate
    fuller[1].at = old[1].at or new[1].at
    return fuller


def _model_call(session_id: str, located: LocatedReading, call: RecordedCall, fate: Fate) -> ModelCall:
    return ModelCall(
        session_id,
        call.id,
        parse_time(call.entry.at),
        call.model or call.entry.model,
        fate,
        call.tokens,
        str(located.reading.path),
        call.line,
    )
