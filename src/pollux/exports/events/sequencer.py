"""Gives events their place in a session: ids that are unique, times in order, marks where they are made up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from pollux import __version__
from pollux.errors import BadFilterError
from pollux.exports.events.draft import Draft, Outcome
from pollux.exports.events.histories import history_drafts
from pollux.exports.events.messages import message_drafts
from pollux.exports.source import Subject
from pollux.model import Json, Message
from pollux.sessions.changes import Change
from pollux.sessions.grouping import Placed
from pollux.text.times import instant, stamp

INCLUDABLE = ("text", "thoughts", "usage", "notices", "fates")
"""What comes only when it is asked for."""
HARNESS = "gemini_cli"
_HISTORIES = ("history", "shared")
_NO_IDS = (*_HISTORIES, "stream")
"""Formats whose messages have no ids of their own."""
_STEP = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing that happened."""

    id: str
    """Unique in its session, and the same each time."""
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


class Teller:
    """Gives the events of a session their ids and times; each is told once."""

    def __init__(self, subject: Subject) -> None:
        """Begin. Raises `BadFilterError` for something unknown to include."""
        self._include = subject.wanted.include
        if unknown := sorted(self._include - {*INCLUDABLE}):
            raise BadFilterError("--include", unknown[0], ", ".join(INCLUDABLE))
        self._told: set[tuple[str, str]] = set()
        self._ids: set[str] = set()
        self._answered: set[str] = set()
        self._n_fates: dict[str, int] = {}
        self._last = _EPOCH

    def start(self, subject: Subject) -> Event:
        """Begin a session: when is in its header, that it does is not."""
        session = subject.session
        self._last = session.started or self._last
        made_up = ["id"] if _has_own_start(subject) else ["id", "timestamp"]
        stem = subject.clean(subject.group.main.reading.path.stem)
        metadata: dict[str, Json] = {"stem": stem, "synthesised": made_up, "pollux": __version__}
        metadata |= {"parent_session_id": session.parent} if session.parent else {}
        return _event(subject, "session_start", f"{session.id}/start", self._last, metadata)

    def end(self, subject: Subject) -> Event:
        """End a session with its last record: no file says that it is over."""
        is_history = subject.group.main.reading.format in _HISTORIES
        if is_history and subject.session.started:
            at = _later(subject.session.started, timedelta(seconds=len(subject.group.timeline) + 1))
        else:
            at = max(self._last, subject.session.ended or self._last)
        metadata: dict[str, Json] = {"synthesised": ["id", "timestamp"], "sources": subject.sources()}
        return _event(subject, "session_end", f"{subject.session.id}/end", at, metadata)

    def told(self, subject: Subject, index: int, placed: Placed, message: Message) -> Iterator[Event]:
        """Tell the events of a message, apart from those that were told before."""
        format_ = placed.reading.format
        give = history_drafts if format_ in _HISTORIES else message_drafts
        for draft in give(message, self._include):
            if self._is_new(message, draft):
                yield self._placed(subject, index, message, draft, _made_up(placed, message, draft))

    def fate(self, subject: Subject, change: Change) -> Iterator[Event]:
        """Tell that a message which was told has another fate now; no line of a file says when."""
        fate, own = change.entry.fate, change.entry.id
        if "fates" not in self._include or change.was in (None, fate):
            return
        self._n_fates[own] = number = self._n_fates.get(own, 0) + 1
        metadata: dict[str, Json] = {"content_index": change.number, "message_id": own, "fate": fate}
        metadata["synthesised"] = ["id", "timestamp"]
        yield _event(subject, "fate", f"{own}/fate/{number}", self._last, metadata)

    def _is_new(self, message: Message, draft: Draft) -> bool:
        """Note an event; one that was told already, by whoever, is not told again."""
        key = (message.id, draft.slot)
        if key in self._told or (draft.is_second_hand and draft.answers in self._answered):
            return False
        self._told.add(key)
        if draft.answers:
            self._answered.add(draft.answers)
        return True

    def _placed(self, subject: Subject, index: int, message: Message, draft: Draft, made_up: tuple[str, ...]) -> Event:
        at = draft.at or _later(self._last, _STEP)
        own = self._own_id(draft.id)
        made_up = made_up if own == draft.id or "id" in made_up else ("id", *made_up)
        metadata: dict[str, Json] = {"content_index": index, **draft.metadata}
        metadata |= _agent(subject, draft)
        metadata |= {"fate": message.fate} if "fates" in self._include else {}
        metadata |= {"synthesised": made_up} if made_up else {}
        self._last = max(self._last, at)
        return _event(subject, draft.type, own, at, metadata, draft.fields)

    def _own_id(self, wanted: str) -> str:
        """Give an id that no other event of the session has."""
        id_, number = wanted, 1
        while id_ in self._ids:
            number += 1
            id_ = f"{wanted}#{number}"
        self._ids.add(id_)
        return id_


def _event(
    subject: Subject,
    type_: str,
    id_: str,
    at: datetime,
    metadata: Mapping[str, Json],
    fields: Mapping[str, Any] | None = None,
) -> Event:
    return Event(
        id=id_,
        timestamp=stamp(at),
        harness=HARNESS,
        type=type_,
        session_id=subject.session.id,
        cwd=subject.session.project.path,
        metadata=metadata,
        **(fields or {}),
    )


def _made_up(placed: Placed, message: Message, draft: Draft) -> tuple[str, ...]:
    """Tell which of id and timestamp of an event its file does not have."""
    has_no_id = placed.reading.format in _NO_IDS or message.id == f"line-{message.line}"
    has_no_time = (
        draft.at is None
        or placed.reading.format in _HISTORIES
        or (placed.reading.format == "stream" and stamp(draft.at) == stamp(placed.reading.original.modified))
    )
    is_own = "id" in draft.made_up or (has_no_id and draft.id.startswith(message.id))
    is_timed = "timestamp" in draft.made_up or has_no_time
    return (("id",) if is_own else ()) + (("timestamp",) if is_timed else ())


def _agent(subject: Subject, draft: Draft) -> dict[str, Json]:
    """Name the subagent that a call started, where the call itself does not."""
    call_id = draft.metadata.get("call_id")
    if call_id is None or "agent_session_id" in draft.metadata:
        return {}
    started = (one for one in subject.session.children if one in subject.by_id)
    found = next((one for one in started if subject.by_id[one].parent_call == call_id), None)
    return {"agent_session_id": found} if found else {}


def _has_own_start(subject: Subject) -> bool:
    main = subject.group.main
    return main.reading.format in ("document", "log") and instant(main.seen.get("startTime")) is not None


def _later(at: datetime, span: timedelta) -> datetime:
    try:
        return at + span
    except OverflowError:  # a clock at the end of time
        return at
