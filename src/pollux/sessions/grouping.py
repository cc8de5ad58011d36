"""Files → sessions: one session may be spread over many files.

Files are first put together by the eight characters of the session id that their names carry, so that only what may
belong together is in memory at the same time; the ids inside decide.
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
from pollux.sessions.replay.entries import IMPORTED
from pollux.sessions.replay.reading import Reading, cannot_derive, read, reason_of, state, whole
from pollux.sessions.replay.replay import Call, Entry, Replay
from pollux.text.times import instant
from pollux.text.unicode import sound

FullId: TypeAlias = Callable[[SessionFile, str], str | None]
"""Knows the whole id of a session whose file has lost its header, from the eight characters in its name."""

_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})
_EARLIEST = datetime.min.replace(tzinfo=UTC)


class Placed(msgspec.Struct, eq=False):
    """A reading, and where its file was found."""

    reading: Reading
    file: SessionFile | None = None
    role: Role = Role.MAIN
    version_id: int = 0
    """Which version of the file in the archive it is."""
    is_main: bool = False
    """Whether it is the file that the client would load."""

    def parts(self) -> list[Placed]:
        """Return one for each session that the file holds."""
        parts = self.reading.parts()
        return [msgspec.structs.replace(self, reading=part) for part in parts] if len(parts) > 1 else [self]

    @property
    def seen(self) -> dict[str, Json]:
        """All metadata of the file."""
        return self.reading.replay.seen

    @property
    def timeline(self) -> list[Entry]:
        """The messages of the file."""
        return self.reading.replay.timeline

    @property
    def started(self) -> datetime | None:
        """When the session began, by the earliest evidence."""
        stamps = (instant(self.seen.get(START_TIME)), *(instant(entry.at) for entry in self.timeline[:1]))
        return min((at for at in stamps if at), default=None) or name_facts(self.reading.path.name)[0]

    @property
    def updated(self) -> datetime | None:
        """When the client last touched the session, as it says, or as its messages say."""
        stamps = (instant(entry.at) for entry in self.timeline)
        return instant(self.seen.get(LAST_UPDATED)) or max((at for at in stamps if at), default=None)

    @property
    def is_import(self) -> bool:
        """Whether it came from another archive, so that this machine has not read the file itself."""
        return self.reading.original.is_import

    @property
    def is_stub(self) -> bool:
        """Whether nothing but the preamble was ever recorded here."""
        return all(entry.origin == Origin.SESSION_CONTEXT for entry in self.timeline)


class Group(msgspec.Struct):
    """One session put together from its files: each message once, each model call once."""

    id: str
    kind: str
    files: list[Placed]
    parent: str | None = None
    parent_call: str | None = None
    timeline: list[tuple[Placed, Entry]] = msgspec.field(default_factory=list)
    calls: dict[str, ModelCall] = msgspec.field(default_factory=dict)

    @property
    def main(self) -> Placed:
        """The file that the client would load."""
        return next(one for one in self.files if one.is_main)

    @property
    def speakers(self) -> list[Placed]:
        """The files that say what the session is: imports only where the main file is one."""
        is_import = self.main.is_import
        return [one for one in self.files if one.is_import == is_import]

    @property
    def n_imported(self) -> int:
        """Messages that imports add to what this machine has read itself; none where all files are imports."""
        if all(one.is_import for one in self.files):
            return 0
        return sum(placed.is_import for placed, _ in self.timeline)

    @property
    def entries(self) -> list[Entry]:
        """The messages of all files."""
        return [entry for _, entry in self.timeline]

    def messages(self, *, shortened: bool = False) -> Iterator[Message]:
        """Yield the timeline, one message at a time: whole, or for reading only with very long texts cut (`whole`)."""
        for placed, entry in self.timeline:
            yield whole(placed.reading, entry, shortened=shortened)

    def state(self) -> Iterator[Json]:
        """Yield the messages that the client itself would load, in its own words."""
        for data in state(self.main.reading):
            yield lenient.decode(data)

    def usage(self) -> tuple[ModelCall, ...]:
        """Return every model call that the files hold the counts of, once."""
        return tuple(self.calls.values())


def bundle_of(file: SessionFile) -> str:
    """Name what a file belongs to, as far as can be told without reading it: the beginning of the session's id."""
    if file.parent:
        return file.parent[:8]
    return id8_in(os.path.basename(file.place)) or _id8_on_disk(file) or file.place  # noqa: PTH119  a hot loop


def id8_inside(head: bytes) -> str | None:
    """Tell the same of a file that somebody gave another name, by its first bytes."""
    found = ID_INSIDE.search(head)
    return found[1].decode("ascii", "replace") if found else None


def _id8_on_disk(file: SessionFile) -> str | None:
    try:
        with open(file.place, "rb") as stream:  # noqa: PTH123  a hot loop
            return id8_inside(stream.read(HEAD))
    except OSError:
        return None  # told by whoever reads it


def bundles(files: Iterable[SessionFile]) -> list[list[SessionFile]]:
    """Put together what may belong to the same session."""
    found: dict[str, list[SessionFile]] = defaultdict(list)
    for file in files:
        found[bundle_of(file)].append(file)
    return list(found.values())


def groups(bundle: Iterable[SessionFile], full_id: FullId) -> tuple[list[Group], list[Problem]]:
    """Read one bundle of files and put its sessions together; a file whose reading raises an error is a problem."""
    placed: list[Placed] = []
    problems: list[Problem] = []
    for file in bundle:
        try:
            placed.append(Placed(read(file.path), file))
        except OSError as error:
            problems.append(Problem("unreadable-file", f"cannot be read: {error.strerror}", str(file.path)))
        except Exception as error:  # noqa: BLE001  reported; the other files must be read
            problems.append(cannot_derive(file.path, reason_of(error)))
    return put_together(placed, full_id), problems


def put_together(placed: list[Placed], full_id: FullId) -> list[Group]:
    """Put the sessions together whose files are read; the ids inside decide."""
    placed = [part for one in placed for part in one.parts()]
    members: dict[tuple[str, str], list[Placed]] = defaultdict(list)
    complete = _Complete(placed, full_id)
    for one in placed:
        members[_key(one, complete)].append(one)
    return [_group(kind, id_, files) for (kind, id_), files in members.items()]


def group_from(path: Path) -> Group:
    """Read one file that somebody named, wherever it stands. Raises `OSError` if it cannot be opened."""
    one = Placed(read(path))
    kind = "subagent" if one.seen.get("kind") == "subagent" else "main"
    return _group(kind, one.reading.id or id8_in(path.name) or path.stem, [one])


def regroup(kind: str, id_: str, readings: Iterable[Reading]) -> Group:
    """Put a session together again whose files are known."""
    placed = []
    for number, reading in enumerate(readings):
        placed += [Placed(part, version_id=number) for part in _parts(reading, id_)]
    return _group(kind, id_, placed)


def _parts(reading: Reading, id_: str) -> list[Reading]:
    """Return the parts of a file that belong to a session; all of it, if it does not say whose it is."""
    return [part for part in reading.parts() if part.id == id_] or [reading]


class _Complete:
    """Completes the beginnings of session IDs, each once; imports complete no ID of a file that was read here."""

    def __init__(self, placed: list[Placed], full_id: FullId) -> None:
        self._ids = dict.fromkeys(one.reading.id for one in placed if one.reading.id)
        self._own = dict.fromkeys(one.reading.id for one in placed if one.reading.id and not one.is_import)
        self._full_id = full_id
        self._inside: dict[tuple[str, bool], str | None] = {}

    def id(self, file: SessionFile, id8: str, *, is_import: bool) -> str:
        """Return the ID that another file of the bundle or a logged prompt has, else the beginning itself."""
        key = (id8, is_import)
        if key not in self._inside:
            ids = self._ids if is_import else self._own
            self._inside[key] = next((id_ for id_ in ids if id_ and id_.startswith(id8)), None)
        return self._inside[key] or self._full_id(file, id8) or id8


def _key(one: Placed, complete: _Complete) -> tuple[str, str]:
    """Tell which session a file belongs to."""
    assert one.file is not None
    id_, stem = one.reading.id, one.reading.path.name.partition(".")[0]
    if one.file.parent:
        return "subagent", id_ or stem
    if id_ is None:
        id_ = complete.id(one.file, id8_in(one.reading.path.name) or stem, is_import=one.is_import)
    if one.seen.get("kind") == "subagent":
        return "subagent", f"{id_}:{stem}"  # up to 0.36 it had its parent's id, and only the file was its own
    return "main", id_


def _group(kind: str, id_: str, files: list[Placed]) -> Group:
    files.sort(key=_oldest_first)
    _give_roles(files)
    found = Group(id_, kind, files)
    if kind == "subagent":
        parent = next((one.file.parent for one in files if one.file and one.file.parent), None)
        found.parent = sound(parent) if parent else id_.rpartition(":")[0] or None
    places: dict[str, int] = {}
    for one in files:
        for entry in one.timeline:
            place = places.setdefault(entry.id, len(found.timeline))
            if place == len(found.timeline):
                found.timeline.append((one, entry))
            else:
                found.timeline[place] = _better(found.timeline[place], (one, entry))
    owners = {entry.id: placed for placed, entry in found.timeline}
    partial = {id_ for one in files for id_ in _first_chunks(one.reading.replay)}
    calls = [(one, call) for one in files for call in one.reading.replay.calls.values()]
    for _, call in calls:
        if call.id in partial:
            call.entry.tokens = None
    _share_fates(found.entries)
    fates = {entry.id: entry.fate for entry in found.entries}
    for one, call in calls:
        if one.is_import and not owners.get(call.entry.id, one).is_import:
            continue  # what our own file says of a message stands, also if it says that nothing was billed
        if call.id not in partial:
            fate = fates.get(call.entry.id, call.entry.fate)
            found.calls.setdefault(call.id, _model_call(id_, one, call, fate))
    return found


def _share_fates(entries: list[Entry]) -> None:
    """Give an answer and the message that the client made for its calls alone the same fate.

    The client loads only one of them again: the answer if it has words, else the message with its calls. The other is
    lost, and looks active.
    """
    before: Entry | None = None  # the answer that no user's message has followed yet
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


def _first_chunks(replay: Replay) -> set[str]:
    """Return the messages whose counts are the first chunk of the next answer's: the same call, billed once.

    Up to 0.43 the client attaches the counts that come first to the last message without any, which may be one that it
    made for tool calls. Later releases record a response between the two.
    """
    found = set()
    before: Entry | None = None
    is_after_notice = was_notice = False  # such a message is made when a notice stands between an answer and its calls
    for entry in replay.timeline:
        if entry.kind == Kind.GEMINI:
            if before and before.calls and not before.content.n_chars and not before.thoughts_from:
                first, final = replay.calls.get(before.id), replay.calls.get(entry.id)
                if first and final and _is_chunk(first.tokens, final.tokens, is_after_notice=is_after_notice):
                    found.add(before.id)
            before, is_after_notice = entry, was_notice
        elif entry.origin == Origin.TOOL_RESPONSE:
            before = None
        was_notice = entry.kind in _NOTICES
    return found


def _is_chunk(first: Tokens, final: Tokens, *, is_after_notice: bool) -> bool:
    """Return whether counts are a beginning of others; equal ones are only where the client is known to repeat them."""
    if not 0 < first.input == final.input or first.output > final.output:
        return False
    return is_after_notice or first.total < final.total


def _oldest_first(one: Placed) -> tuple[bool, bool, datetime, str, str]:
    """Order files by their beginning; what the client moved out of the way is older than what took its place.

    Imports come last, so that they only add messages and never move those of files that this machine has read itself.
    """
    path = one.reading.path
    return one.is_import, not path.suffix.startswith(".unreadable"), one.started or _EARLIEST, path.name, str(path)


def _give_roles(files: list[Placed]) -> None:
    """Give each file its role in the session; the one that was touched last is the one the client would load.

    An import is the main file only where this machine has read nothing of the session that the client could load.
    Where all files are imports, they have the roles they had in the archive they came from.
    """
    main = max(
        files,
        key=lambda one: (
            one.reading.replay.is_readable,
            not one.is_stub,
            not one.is_import,
            one.updated or _EARLIEST,
            one.reading.format == "log",
        ),
    )
    is_own = any(not one.is_import for one in files)
    beside = [one for one in files if not (is_own and one.is_import)]
    paths = {(one.reading.path, one.version_id) for one in beside}  # a file may have several parts of one session
    names = Counter(path.name for path, _ in paths)
    stems = Counter(path.stem for path, _ in paths)
    for one in files:
        path = one.reading.path
        one.is_main = one is main
        if one is main:
            is_loaded = any(entry.id.startswith(IMPORTED) for entry in one.timeline[:3])
            one.role = Role.IMPORT if is_loaded or (is_own and one.is_import) else Role.MAIN
        elif is_own and one.is_import:
            one.role = Role.IMPORT
        elif path.suffix not in (".json", ".jsonl"):
            one.role = Role.UNREADABLE
        elif one.is_stub:
            one.role = Role.STUB
        elif names[path.name] > 1:
            one.role = Role.COPY
        elif path.suffix == ".json" and stems[path.stem] > 1:
            one.role = Role.TWIN
        else:
            one.role = Role.PART


def _better(old: tuple[Placed, Entry], new: tuple[Placed, Entry]) -> tuple[Placed, Entry]:
    """Choose between two files' recordings of one message: the fuller one, with the fate the main file gives it.

    An import never replaces a recording that this machine has read itself, however full it is.
    """
    if new[0].is_import and not old[0].is_import:
        return old
    fuller = max((old, new), key=lambda one: (one[1].tokens is not None, len(one[1].calls)))
    fates = {one[1].fate for one in (old, new)}
    of_main = [entry.fate for placed, entry in (old, new) if placed.role in (Role.MAIN, Role.IMPORT)]
    fuller[1].fate = of_main[0] if of_main else Fate.ACTIVE if Fate.ACTIVE in fates else old[1].fate
    fuller[1].at = old[1].at or new[1].at
    return fuller


def _model_call(session_id: str, placed: Placed, call: Call, fate: Fate) -> ModelCall:
    return ModelCall(
        session_id,
        call.id,
        instant(call.entry.at),
        call.model or call.entry.model,
        fate,
        call.tokens,
        str(placed.reading.path),
        call.line,
    )
