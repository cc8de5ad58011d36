"""The quick way to count: the model calls of files that need no replay, at the speed of their decoding.

Most files hold no checkpoint, no torn line and no second recording under another id. What became of their messages, and
which calls they hold, follows from the ids of their lines alone. Of anything else this module says nothing, and the
whole reading decides: both give the same calls, to the last field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeAlias

import msgspec

from pollux import formats, locate
from pollux.formats import document
from pollux.formats.records import Wire, fields, metadata
from pollux.formats.times import instant, microseconds
from pollux.home import Home
from pollux.locate import Located, SessionFile
from pollux.model import Fate, Json, Kind, ModelCall, Problem, Role, Session, Tokens
from pollux.project_claims import known_paths
from pollux.sessions import Progress, Reader, in_chunks

_HEAD = 64 << 10
_LARGE = document.AT_ONCE
_TOUCH = re.compile(rb'\{"\$set":\{"lastUpdated":"[-0-9T:.Z]{24}"\}\}')
"""Says only when the session was last touched, as every second line does."""
_NAMING = frozenset({"sessionId", "projectHash", "startTime", "kind"})
_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})
_IMPORTED, _LOOKED_AT = "import-", 3
_NEVER = 1 << 62


class _Document(msgspec.Struct, rename="camel"):
    """A whole session of the time of documents, as far as counting goes."""

    messages: list[Wire]
    session_id: Json = None
    project_hash: Json = None
    kind: Json = None
    start_time: Json = None


_decode_document = msgspec.json.Decoder(_Document).decode
_decode_wire = msgspec.json.Decoder(Wire).decode
_decode_messages = msgspec.json.Decoder(list[Wire]).decode


@dataclass(slots=True)
class _Message:
    at: str | None
    model: str | None = None
    call: Wire | None = None
    """The last recording with counts."""
    is_notice: bool = False


@dataclass(slots=True)
class _Read:
    """What counting needs of one file."""

    seen: dict[str, Json] = field(default_factory=dict)
    messages: dict[str, _Message] = field(default_factory=dict)
    alive: dict[str, None] = field(default_factory=dict)


class _NeedsReplayError(Exception):
    """The file holds something that only a whole reading can tell about."""


Price: TypeAlias = Callable[[str | None, datetime | None, Tokens], tuple[int | None, str]]
"""Says what a call costs, in nano-dollars, and by which price."""
Row: TypeAlias = tuple[object, ...]
"""A call as a row of `model_calls`: its session, its id, when, model, fate, seven counts, cost and price."""


class Counted(NamedTuple):
    """A session and its calls; plain values, since they come from another process."""

    id: str
    kind: str
    parent: str | None
    project_hash: str | None
    folder: str | None
    rank: tuple[bool, int, str]
    """Which session a call belongs to that several have: the least."""
    calls: list[Row]
    problems: tuple[Problem, ...] = ()


class Counts(NamedTuple):
    """All sessions of some homes, with their calls."""

    located: Located
    sessions: list[Counted]
    problems: list[Problem]
    """Those that belong to no session."""


def counts(
    homes: Iterable[Home],
    price: Price,
    *,
    memory: Mapping[str, str] | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Counts:
    """Count the calls of some homes, each once."""
    located = locate.locate(homes)
    sessions: list[Counted] = []
    problems = [*located.problems, *(one for home in located.homes for one in known_paths(home).problems)]
    for found, more in in_chunks(located, partial(_count_chunk, Reader(memory or {}), price), progress):
        sessions += found
        problems += more
    return Counts(located, _once(sessions), list(dict.fromkeys(problems)))


def _once(sessions: list[Counted]) -> list[Counted]:
    """Leave each call to one session: an imported session repeats the messages of another, tokens and all."""
    owners: dict[Row, str] = {}
    found = []
    for one in sorted(sessions, key=lambda one: one.rank):
        own = [call for call in one.calls if owners.setdefault((call[1], call[5:11]), one.id) == one.id]
        found.append(one._replace(calls=own))
    return found


def _count_chunk(
    reader: Reader, price: Price, chunk: Sequence[Sequence[SessionFile]]
) -> tuple[list[Counted], list[Problem]]:
    found: list[Counted] = []
    for bundle in chunk:
        quick = quick_sessions(bundle, price)
        found += [_summed_up(one, price) for one in reader.sessions(bundle)] if quick is None else quick
    return found, reader.problems


def _summed_up(session: Session, price: Price) -> Counted:
    """Take of a session that was read as a whole what counting needs."""
    is_import = any(ref.role == Role.IMPORT for ref in session.files)
    return Counted(
        session.id,
        session.kind,
        session.parent,
        session.project.hash,
        session.project.slug,
        _rank(session.id, session.started, is_import=is_import),
        [_row(call, price) for call in session.calls],
        session.problems,
    )


def _rank(id_: str, started: datetime | None, *, is_import: bool = False) -> tuple[bool, int, str]:
    began = microseconds(started)
    return is_import, _NEVER if began is None else began, id_


def _row(call: ModelCall, price: Price) -> Row:
    one = call.tokens
    numbers = (one.input, one.cached, one.output, one.thoughts, one.tool, one.total, one.is_consistent)
    start = (call.session_id, call.message_id, microseconds(call.at), call.model, str(call.fate))
    return *start, *numbers, *price(call.model, call.at, one)


def quick_sessions(bundle: Sequence[SessionFile], price: Price) -> list[Counted] | None:
    """Return the sessions of a bundle with their calls, or nothing where that takes a replay."""
    sessions: dict[str, Counted] = {}
    for file in bundle:
        try:
            session = _session(file, price)
        except (_NeedsReplayError, OSError, ValueError, msgspec.MsgspecError, RecursionError):
            return None
        if session.id in sessions:  # two files of one session: which of them the client would load decides
            return None
        sessions[session.id] = session
    return list(sessions.values())


def _session(file: SessionFile, price: Price) -> Counted:
    found = _counted(file)
    id_, digest, kind = (found.seen.get(key) for key in ("sessionId", "projectHash", "kind"))
    if not isinstance(id_, str) or not id_ or (kind == "subagent" and not file.parent):
        raise _NeedsReplayError
    started = _started(found)
    is_import = any(one.startswith(_IMPORTED) for one in islice(found.messages, _LOOKED_AT))
    if started is None or is_import:
        raise _NeedsReplayError
    return Counted(
        id_,
        "subagent" if file.parent else "main",
        file.parent,
        digest if isinstance(digest, str) and digest else None,
        file.folder,
        _rank(id_, started),
        [_row(_call(id_, key, one, found), price) for key, one in found.messages.items() if one.call is not None],
    )


def _counted(file: SessionFile) -> _Read:
    """Read one file, as far as counting goes."""
    if file.size > _LARGE:
        raise _NeedsReplayError
    data = file.path.read_bytes()
    head = data[:_HEAD]
    name = next((one.name for one in formats.GENERATIONS if one.sniff(head)), "")
    if name == "log":
        return _log(data)
    if name == "document":
        return _document(data)
    raise _NeedsReplayError


def _log(data: bytes) -> _Read:
    found = _Read()
    view, find, is_touch = memoryview(data), data.find, _TOUCH.fullmatch
    start, number, whole = 0, 0, len(data)
    while start < whole:
        end = find(b"\n", start)
        end = whole if end < 0 else end
        number += 1
        if not is_touch(data, start, end):
            wire = _decode_wire(view[start:end])
            if type(wire.id) is str and wire.rewind_to is msgspec.UNSET:
                _put(found, wire)
                if wire.tokens is None and _may_be_copy(wire):
                    raise _NeedsReplayError
            else:
                _other(found, wire, data[start:end], number)
        start = end + 1
    return found


def _put(found: _Read, wire: Wire) -> None:
    id_ = str(wire.id)
    one = found.messages.get(id_)
    if one is None:
        one = found.messages[id_] = _Message(wire.timestamp)
    found.alive.setdefault(id_)
    one.at = one.at or wire.timestamp
    one.model = wire.model or one.model
    one.is_notice = wire.type in _NOTICES
    if wire.tokens is not None:
        one.call = wire


def _may_be_copy(wire: Wire) -> bool:
    """Tell whether an answer may repeat another under a new id: then the other lives on through it."""
    return wire.type == Kind.GEMINI and not (wire.model or wire.tool_calls) and bytes(wire.content)[:1] == b"["


def _other(found: _Read, wire: Wire, data: bytes, line: int) -> None:
    """Take what is no message: who the session is, what was taken back, and what was written anew."""
    if wire.rewind_to is not msgspec.UNSET:
        ids = list(found.alive)
        if wire.rewind_to not in found.alive:
            raise _NeedsReplayError
        for one in ids[ids.index(wire.rewind_to) :]:
            del found.alive[one]
    elif memoryview(wire.set).nbytes:
        raw = fields(bytes(wire.set))
        if "messages" in raw:
            _checkpoint(found, raw["messages"])
        if any(found.seen.get(key) != value for key, value in metadata(raw).items() if key in _NAMING):
            raise _NeedsReplayError
    elif wire.is_header and line == 1:
        raw = fields(data)
        if "messages" in raw:
            raise _NeedsReplayError
        found.seen |= metadata(raw)
    else:
        raise _NeedsReplayError


def _checkpoint(found: _Read, array: bytes) -> None:
    """Take a new list of messages that is the first, or has all that were alive and nothing new."""
    wires = _decode_messages(array)
    ids = dict.fromkeys(str(wire.id) for wire in wires if type(wire.id) is str)
    missing = (one for one in found.alive if one not in ids)
    is_same = ids.keys() <= found.alive.keys() and all(found.messages[one].is_notice for one in missing)
    if len(ids) != len(wires) or not (is_same or not found.messages):
        raise _NeedsReplayError
    for wire in wires:
        _put(found, wire)
    found.alive = ids


def _document(data: bytes) -> _Read:
    whole = _decode_document(data)
    found = _Read(seen={"sessionId": whole.session_id, "projectHash": whole.project_hash, "kind": whole.kind})
    found.seen["startTime"] = whole.start_time
    for wire in whole.messages:
        if type(wire.id) is not str:
            raise _NeedsReplayError
        _put(found, wire)
    return found


def _started(found: _Read) -> datetime | None:
    first = next(iter(found.messages.values()), None)
    stamps = (instant(found.seen.get("startTime")), instant(first.at) if first else None)
    return min((at for at in stamps if at), default=None)


def _call(session_id: str, id_: str, message: _Message, found: _Read) -> ModelCall:
    wire = message.call
    assert wire is not None
    assert wire.tokens is not None
    one = wire.tokens
    return ModelCall(
        session_id,
        id_,
        instant(message.at),
        wire.model or message.model,
        Fate.ACTIVE if id_ in found.alive else Fate.REWOUND,
        Tokens(one.input or 0, one.cached or 0, one.output or 0, one.thoughts or 0, one.tool or 0, one.total or 0),
    )
