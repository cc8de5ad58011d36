"""Operations → the three readings of one file: state, timeline and usage.

The state follows the client's own reader to the letter. The timeline keeps every message the file ever held, once: what
the client recorded a second time under another id (resume, compression, masking of tool output) is folded into the
original, and each message gets the fate that befell it in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from pollux.formats.operations import Document, Header, Operation, Put, Record, Rewind, Update, drop_from
from pollux.formats.records import MEMORY_SCRATCHPAD, PROJECT_HASH, SESSION_ID, START_TIME
from pollux.formats.source import Span
from pollux.model import Json, Kind, Problem
from pollux.sessions.replay.copies import Fingerprint
from pollux.sessions.replay.entries import Call, Entry
from pollux.sessions.replay.timeline import Timeline
from pollux.text.times import instant

__all__ = ["Call", "Entry", "Fingerprint", "Replay", "replay"]


class Replay(msgspec.Struct):
    """What the operations of one file come to."""

    metadata: dict[str, Json] = msgspec.field(default_factory=dict)
    """Of the state: what the client would load."""
    seen: dict[str, Json] = msgspec.field(default_factory=dict)
    """All metadata that could be read, also from lines that the client cannot read."""
    state: dict[str, Record] = msgspec.field(default_factory=dict)
    document: Document | None = None
    timeline: list[Entry] = msgspec.field(default_factory=list)
    calls: dict[str, Call] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)
    first_words: str | None = None
    """What the client would show as the title: the first words of a user that are any."""
    scratchpad_is_stale: bool | None = None
    has_checkpoints: bool = False
    earlier: list[Replay] = msgspec.field(default_factory=list)
    """Sessions that were recorded in the same file before: their IDs begin alike, and so does the minute."""

    @property
    def is_readable(self) -> bool:
        """Whether the client's own reader accepts this file."""
        if self.document:
            return not self.document.salvaged
        return bool(self.metadata.get(SESSION_ID)) and bool(self.metadata.get(PROJECT_HASH))

    @property
    def spans(self) -> Iterable[Span]:
        """Where the messages of the state stand in the file, in order."""
        return self.document.spans if self.document else (record.span for record in self.state.values())


def replay(
    operations: Iterable[Operation],
    fingerprint: Callable[[Record], Fingerprint],
    words: Callable[[Record], str | None],
) -> Replay:
    """Run the operations of one file; the callables look at the bytes of a record where its head is not enough."""
    running = Running(fingerprint, words)
    for operation in operations:
        running.take(operation)
    return running.result


_JS_FALSE: tuple[Json, ...] = (None, False, 0, "")


class Running:
    """A replay that goes on: as long as a file grows, only what is new needs to be run."""

    def __init__(
        self,
        fingerprint: Callable[[Record], Fingerprint],
        words: Callable[[Record], str | None],
        result: Replay | None = None,
    ) -> None:
        """Begin, or go on from a result that was kept; then the timeline must be given its memory back too."""
        self.result = result or Replay()
        self.timeline = Timeline(self.result.timeline, self.result.calls, self.result.problems, fingerprint)
        self._fingerprint = fingerprint
        self._words = words

    def take(self, operation: Operation) -> None:
        """Run one operation."""
        result, timeline = self.result, self.timeline
        match operation:
            case Problem():
                result.problems.append(operation)
            case Put(record, salvaged):
                if not salvaged:
                    result.state[record.id] = record
                    _note_first_words(result, record, self._words)
                    _note_stale(result)
                timeline.put(record, is_new_only=salvaged)
            case Rewind(line, target, salvaged):
                if not salvaged:
                    drop_from(result.state, target)
                    _note_stale(result)
                timeline.rewind(target, line)
            case Update(_, fields, records, salvaged):
                self._update(fields, records, salvaged=salvaged)
            case Header(_, fields, records, salvaged):
                if not salvaged and _is_another(result.seen.get(SESSION_ID), fields.get(SESSION_ID)):
                    self._begin_session()
                began = result.seen.get(START_TIME)
                result.seen |= fields
                if _is_earlier(began, result.seen.get(START_TIME)):  # a resume in its first minute adds a header
                    result.seen[START_TIME] = began
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

    def _begin_session(self) -> None:
        """Set aside what was recorded under another session ID; the state goes on, as it does for the client."""
        result = self.result
        result.earlier.append(
            Replay(
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


def _is_another(before: Json, now: Json) -> bool:
    return isinstance(before, str) and isinstance(now, str) and bool(before) and bool(now) and before != now


def _is_earlier(one: Json, other: Json) -> bool:
    first, second = instant(one), instant(other)
    return first is not None and (second is None or first < second)


def _note_first_words(result: Replay, record: Record, words: Callable[[Record], str | None]) -> None:
    if not result.first_words and record.kind == Kind.USER and (found := words(record)) is not None:
        result.first_words = found


def _note_stale(result: Replay) -> None:
    if result.scratchpad_is_stale is not None:
        result.scratchpad_is_stale = True
