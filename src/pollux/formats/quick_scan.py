"""Count the model calls of one file without a replay, as fast as the file can be decoded.

Most files contain no checkpoint, no broken line and no copies under new IDs. The fates of their messages and their
model calls follow from the IDs of their lines alone. For all other files the caller falls back to a replay.
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
from pollux.text.times import parse_time

_LARGE = document.AT_ONCE
_NAMING = frozenset({"sessionId", "projectHash", "startTime", "kind"})
_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})
_IMPORTED, _IMPORT_LINES = "import-", 3


class Scanned(NamedTuple):
    """The values of a session that counting needs."""

    id: str
    started: datetime
    calls: list[Wire]
    """The last recording with token counts of each message."""
    alive: dict[str, None]
    """IDs of the messages in the conversation."""


class _Document(msgspec.Struct, rename="camel"):
    """The fields of a document that counting needs."""

    messages: list[Wire]
    session_id: Json = None
    project_hash: Json = None
    kind: Json = None
    start_time: Json = None


_decode_document = msgspec.json.Decoder(_Document).decode
_decode_wire = msgspec.json.Decoder(Wire).decode
_decode_messages = msgspec.json.Decoder(list[Wire]).decode


class _Read(msgspec.Struct):
    seen: dict[str, Json] = msgspec.field(default_factory=dict)
    messages: dict[str, Wire] = msgspec.field(default_factory=dict)
    """The last recording of each message, completed from earlier ones."""
    alive: dict[str, None] = msgspec.field(default_factory=dict)


class _NeedsReplayError(Exception):
    """The calls of this file can only be counted by a replay."""


def scanned(place: str, size: int, *, has_parent: bool) -> Scanned | None:
    """Return the calls of a file; None if it needs a replay.

    `has_parent`: whether the file's folder names the session that started this subagent.
    """
    try:
        return _scanned(_read(place, size), has_parent=has_parent)
    except (_NeedsReplayError, OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None


def _scanned(state: _Read, *, has_parent: bool) -> Scanned:
    id_, kind = state.seen.get("sessionId"), state.seen.get("kind")
    if not isinstance(id_, str) or not id_ or (kind == "subagent" and not has_parent):
        raise _NeedsReplayError
    started = _started(state)
    is_import = any(message_id.startswith(_IMPORTED) for message_id in islice(state.messages, _IMPORT_LINES))
    if started is None or is_import:
        raise _NeedsReplayError
    calls = [message for message in state.messages.values() if message.tokens is not None]
    if any(_may_be_first_chunk(call, following) for call, following in pairwise(calls)):
        raise _NeedsReplayError
    return Scanned(id_, started, calls, state.alive)


def _may_be_first_chunk(call: Wire, following: Wire) -> bool:
    """Return whether two messages may have the token counts of the same call."""
    assert call.tokens is not None
    assert following.tokens is not None
    return call.tokens.input == following.tokens.input and bool(call.tool_calls)


def _read(place: str, size: int) -> _Read:
    if size > _LARGE:
        raise _NeedsReplayError
    with open(place, "rb", buffering=0) as stream:  # noqa: PTH123  a hot loop
        data = stream.read()
    head = data[:HEAD]
    name = next((generation.name for generation in formats.GENERATIONS if generation.sniff(head)), "")
    if name == "log":
        return _log(data)
    if name == "document":
        return _document(data)
    raise _NeedsReplayError


def _log(data: bytes) -> _Read:
    state = _Read()
    view, find, is_touch = memoryview(data), data.find, log.TOUCH.fullmatch
    start, size = 0, len(data)
    while start < size:
        end = find(b"\n", start)
        end = size if end < 0 else end
        if not is_touch(data, start, end):
            wire = _decode_wire(view[start:end])
            if wire.id is not msgspec.UNSET and wire.rewind_to is msgspec.UNSET:
                _put(state, wire)
                if wire.tokens is None and _may_be_copy(wire):
                    raise _NeedsReplayError
            else:
                _other(state, wire, data[start:end], is_first=start == 0)
        start = end + 1
    return state


def _put(state: _Read, wire: Wire) -> None:
    id_ = str(wire.id)
    before = state.messages.get(id_)
    if before is not None:
        _complete(wire, before)
    state.messages[id_] = wire
    state.alive.setdefault(id_)


def _complete(wire: Wire, before: Wire) -> None:
    """Add the fields that a new recording lacks; token counts belong to the model that was recorded with them."""
    wire.timestamp = before.timestamp or wire.timestamp
    if wire.tokens is None:
        if wire.model and before.model and wire.model != before.model:
            raise _NeedsReplayError
        wire.tokens = before.tokens
    wire.model = wire.model or before.model


def _may_be_copy(wire: Wire) -> bool:
    """Return whether an answer may be a copy under a new ID, through which the original stays active."""
    return wire.type == Kind.GEMINI and not (wire.model or wire.tool_calls) and bytes(wire.content)[:1] == b"["


def _other(state: _Read, wire: Wire, data: bytes, *, is_first: bool) -> None:
    if wire.rewind_to is not msgspec.UNSET:
        if wire.rewind_to not in state.alive:
            raise _NeedsReplayError
        drop_from(state.alive, wire.rewind_to)
    elif memoryview(wire.set).nbytes:
        raw = fields(bytes(wire.set))
        if "messages" in raw:
            _checkpoint(state, raw["messages"])
        if any(state.seen.get(key) != value for key, value in metadata(raw).items() if key in _NAMING):
            raise _NeedsReplayError
    elif wire.is_header and is_first:
        raw = fields(data)
        if "messages" in raw:
            raise _NeedsReplayError
        state.seen |= metadata(raw)
    else:
        raise _NeedsReplayError


def _checkpoint(state: _Read, array: bytes) -> None:
    """Apply a list of messages that is the first, or contains all active messages and no new one."""
    wires = _decode_messages(array)
    ids = dict.fromkeys(str(wire.id) for wire in wires if type(wire.id) is str)
    missing = (id_ for id_ in state.alive if id_ not in ids)
    is_same = ids.keys() <= state.alive.keys() and all(state.messages[id_].type in _NOTICES for id_ in missing)
    if len(ids) != len(wires) or not (is_same or not state.messages):
        raise _NeedsReplayError
    for wire in wires:
        _put(state, wire)
    state.alive = ids


def _document(data: bytes) -> _Read:
    decoded = _decode_document(data)
    state = _Read(seen={"sessionId": decoded.session_id, "projectHash": decoded.project_hash, "kind": decoded.kind})
    state.seen["startTime"] = decoded.start_time
    for wire in decoded.messages:
        if type(wire.id) is not str:
            raise _NeedsReplayError
        _put(state, wire)
    return state


def _started(state: _Read) -> datetime | None:
    first = next(iter(state.messages.values()), None)
    stamps = (parse_time(state.seen.get("startTime")), parse_time(first.timestamp) if first else None)
    return min((at for at in stamps if at), default=None)
