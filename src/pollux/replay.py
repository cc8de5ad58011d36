"""Operations → the three readings of one file: state, timeline and usage.

The state follows the client's own reader to the letter. The timeline keeps every message the file ever held, once: what
the client recorded a second time under another id (resume, compression, masking of tool output) is folded into the
original, and each message gets the fate that befell it in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pollux.copies import Fingerprint
from pollux.entries import Call, Entry
from pollux.formats.operations import Document, Header, Operation, Put, Record, Rewind, Update
from pollux.formats.source import Span
from pollux.model import Json, Kind, Problem
from pollux.timeline import Timeline

__all__ = ["Call", "Entry", "Fingerprint", "Replay", "replay"]


@dataclass(slots=True)
class Replay:
    """What the operations of one file come to."""

    metadata: dict[str, Json] = field(default_factory=dict)
    """Of the state: what the client would load."""
    seen: dict[str, Json] = field(default_factory=dict)
    """All metadata that could be read, also from lines that the client cannot read."""
    state: dict[str, Record] = field(default_factory=dict)
    document: Document | None = None
    timeline: list[Entry] = field(default_factory=list)
    calls: dict[str, Call] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    first_words: str | None = None
    """What the client would show as the title: the first words of a user that are any."""
    scratchpad_is_stale: bool | None = None
    n_headers: int = 0
    has_checkpoints: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether the client's own reader accepts this file."""
        if self.document:
            return not self.document.salvaged
        return bool(self.metadata.get("sessionId")) and bool(self.metadata.get("projectHash"))

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
    result = Replay()
    timeline = Timeline(result.timeline, result.calls, result.problems, fingerprint)
    for operation in operations:
        match operation:
            case Problem():
                result.problems.append(operation)
            case Put(record, salvaged):
                if not salvaged:
                    result.state[record.id] = record
                    _note_first_words(result, record, words)
                    _note_stale(result)
                timeline.put(record, is_new_only=salvaged)
            case Rewind(line, target, salvaged):
                if not salvaged:
                    _drop_from(result.state, target)
                    _note_stale(result)
                timeline.rewind(target, line)
            case Update(_, fields, records, salvaged):
                result.seen |= fields
                if not salvaged:
                    _update_state(result, fields, records, words)
                if records is not None and not salvaged:
                    result.has_checkpoints = True
                    timeline.checkpoint(records)
                for record in records or () if salvaged else ():
                    timeline.put(record, is_new_only=True)
            case Header(_, fields, records, salvaged):
                result.seen |= fields
                if not salvaged:
                    result.n_headers += 1
                    result.metadata |= fields
                for record in records:
                    if not salvaged:
                        result.state[record.id] = record
                        _note_first_words(result, record, words)
                    timeline.put(record)
            case Document(fields, records):
                result.document = operation
                result.seen |= fields
                result.metadata |= fields
                for record in records:
                    timeline.put(record)
    return result


def _update_state(
    result: Replay,
    fields: Mapping[str, Json],
    records: tuple[Record, ...] | None,
    words: Callable[[Record], str | None],
) -> None:
    if "memoryScratchpad" in fields:
        result.scratchpad_is_stale = False if fields["memoryScratchpad"] else None
    if records is not None:
        result.state = {record.id: record for record in records}
        for record in records:
            _note_first_words(result, record, words)
    result.metadata |= fields


def _note_first_words(result: Replay, record: Record, words: Callable[[Record], str | None]) -> None:
    if not result.first_words and record.kind == Kind.USER and (found := words(record)) is not None:
        result.first_words = found


def _note_stale(result: Replay) -> None:
    if result.scratchpad_is_stale is not None:
        result.scratchpad_is_stale = True


def _drop_from(state: dict[str, Record], target: str) -> list[str]:
    """Drop a message and all after it, or everything if it is not there: as the client does."""
    ids = list(state)
    dropped = ids[ids.index(target) :] if target in state else ids
    for one in dropped:
        del state[one]
    return dropped
