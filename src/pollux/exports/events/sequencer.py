"""Give the events of a session unique IDs and ordered times, and mark those that the file does not record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from pollux import __version__
from pollux.errors import InvalidFilterError
from pollux.exports.events.drafts import Draft, Outcome, history_drafts, message_drafts
from pollux.exports.source import ExportSource
from pollux.model import Json, Message
from pollux.sessions.grouping import LocatedReading
from pollux.sessions.live import MessageChange
from pollux.text.times import client_timestamp, parse_time

INCLUDABLE = ("text", "thoughts", "usage", "notices", "fates")
"""What is left out by default."""
HARNESS = "gemini_cli"
_HISTORIES = ("history", "shared")
_NO_IDS = (*_HISTORIES, "stream")
"""Formats whose messages have no IDs."""
_STEP = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One line of the export."""

    id: str
    """Unique in its session, and the same in every export."""
    timestamp: str
    harness: str
    type: str
    session_id: str
    tool_name: str | None = None
    tool_input: Json = None
    tool_result: Outcome | None = None
    message: str | None = None
    cwd: str | None = None
    metadata: Mapping[str, Json]


class EventSequencer:
    """Turns drafts into events; an event that was emitted before is skipped."""

    def __init__(self, source: ExportSource) -> None:
        """Start a session. Raises `InvalidFilterError` for an unknown `--include`."""
        self._include = source.export_options.include
        if unknown := sorted(self._include - {*INCLUDABLE}):
            raise InvalidFilterError("--include", unknown[0], ", ".join(INCLUDABLE))
        self._emitted: set[tuple[str, str]] = set()
        self._ids: set[str] = set()
        self._answered: set[str] = set()
        self._n_fates: dict[str, int] = {}
        self._last = _EPOCH

    def start(self, source: ExportSource) -> Event:
        """Return the start of the session, which files record as a time but not as an event."""
        session = source.session
        self._last = session.started or self._last
        synthesised = ["id"] if _has_own_start(source) else ["id", "timestamp"]
        stem = source.clean(source.group.main.reading.path.stem)
        metadata: dict[str, Json] = {"stem": stem, "synthesised": synthesised, "pollux": __version__}
        metadata |= {"parent_session_id": session.parent} if session.parent else {}
        return _event(source, "session_start", f"{session.id}/start", self._last, metadata)

    def end(self, source: ExportSource) -> Event:
        """Return the end of the session at its last record: files do not record that a session ends."""
        is_history = source.group.main.reading.format in _HISTORIES
        if is_history and source.session.started:
            at = _later(source.session.started, timedelta(seconds=len(source.group.timeline) + 1))
        else:
            at = max(self._last, source.session.ended or self._last)
        metadata: dict[str, Json] = {"synthesised": ["id", "timestamp"], "sources": source.sources()}
        return _event(source, "session_end", f"{source.session.id}/end", at, metadata)

    def message_events(
        self, source: ExportSource, index: int, placed: LocatedReading, message: Message
    ) -> Iterator[Event]:
        """Yield the events of a message that were not emitted before."""
        make_drafts = history_drafts if placed.reading.format in _HISTORIES else message_drafts
        for draft in make_drafts(message, self._include):
            if self._is_new(message, draft):
                yield self._place(source, index, message, draft, _synthesised(placed, message, draft))

    def fate_events(self, source: ExportSource, change: MessageChange) -> Iterator[Event]:
        """Yield the change of a message's fate; files do not record when it happened."""
        fate, message_id = change.entry.fate, change.entry.id
        if "fates" not in self._include or change.was in (None, fate):
            return
        self._n_fates[message_id] = number = self._n_fates.get(message_id, 0) + 1
        metadata: dict[str, Json] = {"content_index": change.number, "message_id": message_id, "fate": fate}
        metadata["synthesised"] = ["id", "timestamp"]
        yield _event(source, "fate", f"{message_id}/fate/{number}", self._last, metadata)

    def _is_new(self, message: Message, draft: Draft) -> bool:
        """Register an event, and return whether it is new."""
        key = (message.id, draft.slot)
        if key in self._emitted or (draft.is_fallback and draft.answers in self._answered):
            return False
        self._emitted.add(key)
        if draft.answers:
            self._answered.add(draft.answers)
        return True

    def _place(
        self, source: ExportSource, index: int, message: Message, draft: Draft, synthesised: tuple[str, ...]
    ) -> Event:
        at = draft.at or _later(self._last, _STEP)
        id_ = self._unique_id(draft.id)
        if id_ != draft.id and "id" not in synthesised:
            synthesised = ("id", *synthesised)
        metadata: dict[str, Json] = {"content_index": index, **draft.metadata}
        metadata |= _agent(source, draft)
        metadata |= {"fate": message.fate} if "fates" in self._include else {}
        metadata |= {"synthesised": synthesised} if synthesised else {}
        self._last = max(self._last, at)
        return _event(source, draft.type, id_, at, metadata, draft.fields)

    def _unique_id(self, base: str) -> str:
        id_, number = base, 1
        while id_ in self._ids:
            number += 1
            id_ = f"{base}#{number}"
        self._ids.add(id_)
        return id_


def _event(
    source: ExportSource,
    type_: str,
    id_: str,
    at: datetime,
    metadata: Mapping[str, Json],
    fields: Mapping[str, Any] | None = None,
) -> Event:
    return Event(
        id=id_,
        timestamp=client_timestamp(at),
        harness=HARNESS,
        type=type_,
        session_id=source.session.id,
        cwd=source.session.project.path,
        metadata=metadata,
        **(fields or {}),
    )


def _synthesised(placed: LocatedReading, message: Message, draft: Draft) -> tuple[str, ...]:
    """Return which of `id` and `timestamp` of an event its file does not record."""
    has_no_id = placed.reading.format in _NO_IDS or message.id == f"line-{message.line}"
    has_no_time = (
        draft.at is None
        or placed.reading.format in _HISTORIES
        or (
            placed.reading.format == "stream"
            and client_timestamp(draft.at) == client_timestamp(placed.reading.original.modified)
        )
    )
    synthesised = []
    if "id" in draft.synthesised or (has_no_id and draft.id.startswith(message.id)):
        synthesised.append("id")
    if "timestamp" in draft.synthesised or has_no_time:
        synthesised.append("timestamp")
    return tuple(synthesised)


def _agent(source: ExportSource, draft: Draft) -> dict[str, Json]:
    """Return the subagent that a call started, unless the call itself names it."""
    call_id = draft.metadata.get("call_id")
    if call_id is None or "agent_session_id" in draft.metadata:
        return {}
    for child in source.session.children:
        if child in source.by_id and source.by_id[child].parent_call == call_id:
            return {"agent_session_id": child}
    return {}


def _has_own_start(source: ExportSource) -> bool:
    main = source.group.main
    return main.reading.format in ("document", "log") and parse_time(main.seen.get("startTime")) is not None


def _later(at: datetime, span: timedelta) -> datetime:
    try:
        return at + span
    except OverflowError:  # the clock shows the last representable second
        return at
