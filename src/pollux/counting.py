"""The quick way to count: the model calls of files that need no replay, at the speed of their decoding.

Most files hold no checkpoint, no torn line and no second recording under another id. What became of their messages, and
which calls they hold, follows from the ids of their lines alone. Of anything else this module says nothing, and the
whole reading decides: both give the same calls, to the last field.

Whoever reads a part of the files also adds it up. Only where two parts may hold the same call, or the same session, are
the calls themselves looked at once more.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from pollux import formats, locate
from pollux.formats import document, log
from pollux.formats.records import Wire, fields, metadata
from pollux.home import Home
from pollux.locate import Located, SessionFile
from pollux.model import Json, Kind, ModelCall, Problem, Role, Session, Tokens
from pollux.project_claims import known_paths
from pollux.sessions import Progress, Reader, in_chunks
from pollux.times import instant, microseconds

_HEAD = 64 << 10
_LARGE = document.AT_ONCE
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
class _Read:
    """What counting needs of one file."""

    seen: dict[str, Json] = field(default_factory=dict)
    messages: dict[str, Wire] = field(default_factory=dict)
    """The last recording of each, with what it leaves out of earlier ones."""
    alive: dict[str, None] = field(default_factory=dict)


class _NeedsReplayError(Exception):
    """The file holds something that only a whole reading can tell about."""


_Sum = TypeVar("_Sum")
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


class Counts(NamedTuple, Generic[_Sum]):
    """All calls of some homes, added up."""

    located: Located
    sums: list[_Sum]
    problems: list[Problem]


class _Part(NamedTuple, Generic[_Sum]):
    """Some sessions of some homes."""

    sums: list[_Sum]
    marks: bytes
    """A number for each session and each call: what is nowhere twice cannot be counted twice."""
    sessions: bytes
    """Packed: seldom looked at."""
    problems: list[Problem]


def counts(
    homes: Iterable[Home],
    price: Price,
    add_up: Callable[[Iterable[Counted]], list[_Sum]],
    *,
    memory: Mapping[str, str] | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Counts[_Sum]:
    """Count the calls of some homes, each once; sums may come in several pieces."""
    located = locate.locate(homes)
    problems = [*located.problems, *(one for home in located.homes for one in known_paths(home).problems)]
    sums: list[_Sum] = []
    packed: list[bytes] = []
    marks = array("q")
    for part in in_chunks(located, partial(_part, Reader(memory or {}), price, add_up), progress):
        sums += part.sums
        packed.append(part.sessions)
        marks.frombytes(part.marks)
        problems += part.problems
    if len(set(marks)) != len(marks):
        sums = add_up(_once([one for each in packed for one in pickle.loads(each)]))  # noqa: S301  of our own copies
    return Counts(located, sums, list(dict.fromkeys(problems)))


def _once(sessions: list[Counted]) -> list[Counted]:
    """Leave each call to one session: an imported session repeats the messages of another, tokens and all.

    A session that comes twice is one.
    """
    owners: dict[Row, str] = {}
    seen: set[Row] = set()
    found = []
    for one in sorted(sessions, key=lambda one: one.rank):
        own = [call for call in one.calls if call[:2] not in seen]
        own = [call for call in own if owners.setdefault(_what(call), one.id) == one.id]
        seen.update(call[:2] for call in own)
        found.append(one._replace(calls=own))
    return found


def _what(call: Row) -> Row:
    """Tell what makes a call the same as another: its message and its counts."""
    return call[1], call[5:11]


def _part(
    reader: Reader,
    price: Price,
    add_up: Callable[[Iterable[Counted]], list[_Sum]],
    chunk: Sequence[Sequence[SessionFile]],
) -> _Part[_Sum]:
    found, problems = _count_chunk(reader, price, chunk)
    problems += [problem for one in found for problem in one.problems]
    marks = array("q", [hash(one.id) for one in found])
    marks.extend(hash(_what(call)) for one in found for call in one.calls)
    return _Part(add_up(found), marks.tobytes(), pickle.dumps(found, pickle.HIGHEST_PROTOCOL), problems)


def _count_chunk(
    reader: Reader, price: Price, chunk: Sequence[Sequence[SessionFile]]
) -> tuple[list[Counted], list[Problem]]:
    found: list[Counted] = []
    for bundle in chunk:
        quick = quick_sessions(bundle, price)
        found += [_summed_up(one, price) for one in reader.sessions(bundle)] if quick is None else quick
    problems, reader.problems = reader.problems, []
    return found, problems


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
    start = (call.session_id, call.message_id, microseconds(call.at), call.model, str(call.fate))
    return *start, *_numbers(call.tokens), *price(call.model, call.at, call.tokens)


def _numbers(one: Tokens) -> Row:
    return one.input, one.cached, one.output, one.thoughts, one.tool, one.total, one.is_consistent


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
        [_wire_row(id_, one, found.alive, price) for one in found.messages.values() if one.tokens is not None],
    )


def _counted(file: SessionFile) -> _Read:
    """Read one file, as far as counting goes."""
    if file.size > _LARGE:
        raise _NeedsReplayError
    with open(file.place, "rb", buffering=0) as stream:  # noqa: PTH123  a hot loop
        data = stream.read()
    head = data[:_HEAD]
    name = next((one.name for one in formats.GENERATIONS if one.sniff(head)), "")
    if name == "log":
        return _log(data)
    if name == "document":
        return _document(data)
    raise _NeedsReplayError


def _log(data: bytes) -> _Read:
    found = _Read()
    view, find, is_touch = memoryview(data), data.find, log.TOUCH.fullmatch
    start, whole = 0, len(data)
    while start < whole:
        end = find(b"\n", start)
        end = whole if end < 0 else end
        if not is_touch(data, start, end):
            wire = _decode_wire(view[start:end])
            if wire.id is not msgspec.UNSET and wire.rewind_to is msgspec.UNSET:
                _put(found, wire)
                if wire.tokens is None and _may_be_copy(wire):
                    raise _NeedsReplayError
            else:
                _other(found, wire, data[start:end], is_first=start == 0)
        start = end + 1
    return found


def _put(found: _Read, wire: Wire) -> None:
    id_ = str(wire.id)
    before = found.messages.get(id_)
    if before is not None:
        _complete(wire, before)
    found.messages[id_] = wire
    found.alive.setdefault(id_)


def _complete(wire: Wire, before: Wire) -> None:
    """Take over what a new recording leaves out; counts go with the model that was recorded with them."""
    wire.timestamp = before.timestamp or wire.timestamp
    if wire.tokens is None:
        if wire.model and before.model and wire.model != before.model:
            raise _NeedsReplayError
        wire.tokens = before.tokens
    wire.model = wire.model or before.model


def _may_be_copy(wire: Wire) -> bool:
    """Tell whether an answer may repeat another under a new id: then the other lives on through it."""
    return wire.type == Kind.GEMINI and not (wire.model or wire.tool_calls) and bytes(wire.content)[:1] == b"["


def _other(found: _Read, wire: Wire, data: bytes, *, is_first: bool) -> None:
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
    elif wire.is_header and is_first:
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
    is_same = ids.keys() <= found.alive.keys() and all(found.messages[one].type in _NOTICES for one in missing)
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
    stamps = (instant(found.seen.get("startTime")), instant(first.timestamp) if first else None)
    return min((at for at in stamps if at), default=None)


def _wire_row(session_id: str, wire: Wire, alive: Container[str], price: Price) -> Row:
    """Write the same row of a recording, without the steps between."""
    one = wire.tokens
    assert one is not None
    tokens = Tokens(one.input or 0, one.cached or 0, one.output or 0, one.thoughts or 0, one.tool or 0, one.total or 0)
    id_, at = str(wire.id), instant(wire.timestamp)
    fate = "active" if id_ in alive else "rewound"
    return session_id, id_, microseconds(at), wire.model, fate, *_numbers(tokens), *price(wire.model, at, tokens)
