"""Compute the three readings of one file from its operations: state, timeline and usage.

The state equals what the client's own reader loads. The timeline contains every message that was ever in the file,
once: copies that the client recorded under new IDs (after a resume, a compression, or masking of tool output) are
merged into the original, and each message has its final fate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from pollux.formats.operations import Document, Header, Operation, Put, Record, Rewind, Update, drop_from
from pollux.formats.records import MEMORY_SCRATCHPAD, PROJECT_HASH, SESSION_ID, START_TIME
from pollux.formats.source import Span
from pollux.model import Json, Kind, Problem
from pollux.sessions.replay import RecordedCall, TimelineEntry
from pollux.sessions.replay.copies import Fingerprint
from pollux.sessions.replay.timeline import Timeline
from pollux.text.times import parse_time

__all__ = ["Fingerprint", "RecordedCall", "ReplayResult", "TimelineEntry", "replay"]


class ReplayResult(msgspec.Struct):
    """The readings of one file."""

    metadata: dict[str, Json] = msgspec.field(default_factory=dict)
    """Metadata that the client would load."""
    seen: dict[str, Json] = msgspec.field(default_factory=dict)
    """All metadata that could be read, including lines that the client cannot read."""
    state: dict[str, Record] = msgspec.field(default_factory=dict)
    document: Document | None = None
    timeline: list[TimelineEntry] = msgspec.field(default_factory=list)
    calls: dict[str, RecordedCall] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)
    first_words: str | None = None
    """What the client would show as the title: the text of the first prompt that has any."""
    scratchpad_is_stale: bool | None = None
    has_checkpoints: bool = False
    earlier: list[ReplayResult] = msgspec.field(default_factory=list)
    """Earlier sessions in the same file: they started in the same minute, with IDs that start with the same digits."""

    @property
    def is_readable(self) -> bool:
        """Whether the client's own reader accepts this file."""
        if self.document:
            return not self.document.salvaged
        return bool(self.metadata.get(SESSION_ID)) and bool(self.metadata.get(PROJECT_HASH))

    @property
    def spans(self) -> Iterable[Span]:
        """Byte ranges of the messages of the state, in order."""
        return self.document.spans if self.document else (record.span for record in self.state.values())


def replay(
    operations: Iterable[Operation],
    fingerprint: Callable[[Record], Fingerprint],
    words: Callable[[Record], str | None],
) -> ReplayResult:
    """Apply the operations of one file; the callables read a record again if its head is not enough."""
    replayer = Replayer(fingerprint, words)
    for operation in operations:
        replayer.apply(operation)
    return replayer.result


_JS_FALSE: tuple[Json, ...] = (None, False, 0, "")


class Replayer:
    """A replay that can be continued: when a file grows, only its new operations need to be applied."""

    def __init__(
        self,
        fingerprint: Callable[[Record], Fingerprint],
        words: Callable[[Record], str | None],
        result: ReplayResult | None = None,
    ) -> None:
        """Start a replay, or continue from a stored result, for which the caller also restores the timeline's state."""
        self.result = result or ReplayResult()
        self.timeline = Timeline(self.result.timeline, self.result.calls, self.result.problems, fingerprint)
        self._fingerprint = fingerprint
        self._words = words

    def apply(self, operation: Operation) -> None:
        """Apply one operation to state and timeline."""
        result, timeline = self.result, self.timeline
        match operation:
            case Put(record, salvaged):  # by far the most frequent, therefore first
                if not salvaged:
                    result.state[record.id] = record
                    if not result.first_words:
                        _note_first_words(result, record, self._words)
                    _note_stale(result)
                timeline.put(record, is_new_only=salvaged)
            case Update(_, fields, records, salvaged):
                self._update(fields, records, salvaged=salvaged)
            case Problem():
                result.problems.append(operation)
            case Rewind(line, target, salvaged):
                if not salvaged:
                    drop_from(result.state, target)
                    _note_stale(result)
                timeline.rewind(target, line)
            case Header(_, fields, records, salvaged):
                if not salvaged and _is_other_id(result.seen.get(SESSION_ID), fields.get(SESSION_ID)):
                    self._start_session()
                started = result.seen.get(START_TIME)
                result.seen |= fields
                if _is_earlier(started, result.seen.get(START_TIME)):  # a resume in the first minute adds a header
                    result.seen[START_TIME] = started
                if not salvaged:
                    result.metadata |= fields
                for record in records:
                    if not salvaged:
                        result.state[record.id] = record
                        _note_first_words(result, record, self._words)
                    timeline.put(record)
            case Document(fields, records):
                result.document = operation
                result.seen |= fields
                result.metadata |= fields
                for record in records:
                    timeline.put(record)

    def _start_session(self) -> None:
        """Set aside the messages recorded under another session ID; the state continues, as in the client."""
        result = self.result
        result.earlier.append(
            ReplayResult(
                metadata=result.seen,
                seen=result.seen,
                state={id_: entries[0].content for id_, entries in self.timeline.alive.items()},
                timeline=result.timeline,
                calls=result.calls,
                first_words=result.first_words,
                has_checkpoints=result.has_checkpoints,
            )
        )
        result.seen, result.timeline, result.calls = {}, [], {}
        self.timeline = Timeline(result.timeline, result.calls, result.problems, self._fingerprint)

    def _update(self, fields: Mapping[str, Json], records: tuple[Record, ...] | None, *, salvaged: bool) -> None:
        result = self.result
        result.seen |= fields
        if salvaged:
            for record in records or ():
                self.timeline.put(record, is_new_only=True)
            return
        if MEMORY_SCRATCHPAD in fields:
            result.scratchpad_is_stale = None if fields[MEMORY_SCRATCHPAD] in _JS_FALSE else False
        if records is not None:
            result.has_checkpoints = True
            result.state = {record.id: record for record in records}
            for record in records:
                _note_first_words(result, record, self._words)
            self.timeline.checkpoint(records)
        result.metadata |= fields


def _is_other_id(before: Json, now: Json) -> bool:
    return isinstance(before, str) and isinstance(now, str) and bool(before) and bool(now) and before != now


def _is_earlier(one: Json, other: Json) -> bool:
    first, second = parse_time(one), parse_time(other)
    return first is not None and (second is None or first < second)


def _note_first_words(result: ReplayResult, record: Record, words: Callable[[Record], str | None]) -> None:
    if not result.first_words and record.kind == Kind.USER:
        text = words(record)
        if text is not None:
            result.first_words = text


def _note_stale(result: ReplayResult) -> None:
    if result.scratchpad_is_stale is not None:
        result.scratchpad_is_stale = True
