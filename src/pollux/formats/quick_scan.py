"""The model calls of one file, without a replay, at the speed of its decoding.

Most files hold no checkpoint, no torn line and no second recording under another id. What became of their messages, and
which calls they hold, follows from the ids of their lines alone. Of anything else nothing is said here.
"""

from __future__ import annotations

from datetime import datetime
from itertools import islice, pairwise
from typing import NamedTuple

import msgspec

from pollux import formats
from pollux.formats import document, log
from pollux.formats.operations import drop_from
from pollux.formats.records import Wire, fields, metadata
from pollux.formats.source import HEAD
from pollux.model import Json, Kind
from pollux.text.times import instant

_LARGE = document.AT_ONCE
_NAMING = frozenset({"sessionId", "projectHash", "startTime", "kind"})
_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})
_IMPORTED, _LOOKED_AT = "import-", 3


class Scanned(NamedTuple):
    """A session, as far as counting goes."""

    id: str
    started: datetime
    calls: list[Wire]
    """The last recording with counts of each message."""
    alive: dict[str, None]
    """The ids that are still part of the conversation."""


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


class _Read(msgspec.Struct):
    """What counting needs of one file."""

    seen: dict[str, Json] = msgspec.field(default_factory=dict)
    messages: dict[str, Wire] = msgspec.field(default_factory=dict)
    """The last recording of each, with what it leaves out of earlier ones."""
    alive: dict[str, None] = msgspec.field(default_factory=dict)


class _NeedsReplayError(Exception):
    """The file holds something that only a whole reading can tell about."""


def scanned(place: str, size: int, *, has_parent: bool) -> Scanned | None:
    """Return the calls of a file, or nothing where only a whole reading can tell.

    `has_parent`: whether its folder names the session that started this subagent.
    """
    try:
        return _scanned(_read(place, size), has_parent=has_parent)
    except (_NeedsReplayError, OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None


def _scanned(found: _Read, *, has_parent: bool) -> Scanned:
    id_, kind = found.seen.get("sessionId"), found.seen.get("kind")
    if not isinstance(id_, str) or not id_ or (kind == "subagent" and not has_parent):
        raise _NeedsReplayError
    started = _started(found)
    is_import = any(one.startswith(_IMPORTED) for one in islice(found.messages, _LOOKED_AT))
    if started is None or is_import:
        raise _NeedsReplayError
    calls = [one for one in found.messages.values() if one.tokens is not None]
    if any(_may_be_first_chunk(one, after) for one, after in pairwise(calls)):
        raise _NeedsReplayError
    return Scanned(id_, started, calls, found.alive)


def _may_be_first_chunk(one: Wire, after: Wire) -> bool:
    """Return whether one call may be counted twice, in two messages."""
    assert one.tokens is not None
    assert after.tokens is not None
    return one.tokens.input == after.tokens.input and bool(one.tool_calls)


def _read(place: str, size: int) -> _Read:
    """Read one file, as far as counting goes."""
    if size > _LARGE:
        raise _NeedsReplayError
    with open(place, "rb", buffering=0) as stream:  # noqa: PTH123  a hot loop
        data = stream.read()
    head = data[:HEAD]
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
        if wire.rewind_to not in found.alive:
            raise _NeedsReplayError
        drop_from(found.alive, wire.rewind_to)
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
