"""Find the bytes of a log from which the client can resume a session.

Mostly that is the whole file. Over ACP, `session/load` empties the conversation in the file that it loads: then it is
all before the record that did so. Where the client recorded several sessions in one file, it is the lines between the
header of the session and the next one's.
"""

from __future__ import annotations

from typing import NamedTuple

from pollux.archive.readings import read_on
from pollux.formats import lenient, log
from pollux.formats.operations import Header, Operation, Put, Record, Rewind, Update, drop_from
from pollux.formats.parts import is_resumable
from pollux.formats.source import Source, Span
from pollux.sessions.replay.reading import Reading, looks, state
from pollux.sessions.replay.replay import Running


class Excerpt(NamedTuple):
    """The part of a file that holds what can be resumed."""

    reading: Reading
    is_resumable: bool
    is_before_emptying: bool = False
    """Whether the records that emptied the conversation are left out."""
    others: tuple[str, ...] = ()
    """IDs of the other sessions in the file, whose lines are left out."""


def excerpt_for(session_id: str, source: Source) -> Excerpt:
    """Read a file, or only as much of it as the client needs to resume this session."""
    reading = read_on(source, None)[0]
    others: tuple[str, ...] = ()
    if reading.replay.earlier and (spans := _spans_of(session_id, reading)):
        ids = dict.fromkeys(part.id for part in reading.parts())
        others = tuple(id_ for id_ in ids if id_ and id_ != session_id)
        reading = read_on(_only(source, spans), None)[0]
    if has_conversation(reading):
        return Excerpt(reading, is_resumable=True, others=others)
    if reading.format == "log" and (end := _end_of_conversation(reading.original)):
        before = read_on(_only(reading.original, [Span(0, end)]), None)[0]
        return Excerpt(before, is_resumable=True, is_before_emptying=True, others=others)
    return Excerpt(reading, is_resumable=False, others=others)


def has_conversation(reading: Reading) -> bool:
    """Return whether the client would find something to resume in a file."""
    return any(_is_resumable(data) for data in state(reading))


def _is_resumable(data: bytes) -> bool:
    value = lenient.decode(data)
    return isinstance(value, dict) and is_resumable(value)


def _spans_of(session_id: str, reading: Reading) -> list[Span]:
    """Return where a session is recorded in a file that holds several."""
    source = reading.source
    running = Running(*looks(source))
    starts = [0]
    for line in source.lines():
        for operation in log.operations(line, source.path):
            running.take(operation)
        if len(running.result.earlier) == len(starts):  # another session begins in this line
            starts.append(line.start)
    spans = map(Span, starts, [*starts[1:], source.size])
    return [span for span, part in zip(spans, reading.parts(), strict=True) if part.id == session_id]


def _only(source: Source, spans: list[Span]) -> Source:
    """Return a source that has only these spans of another one."""

    def read(start: int, end: int) -> bytes:
        pieces = []
        for span in spans:
            size = span.end - span.start
            if start < size and end > 0:
                pieces.append(source.slice(Span(span.start + max(start, 0), span.start + min(end, size))))
            start, end = start - size, end - size
        return b"".join(pieces)

    size = sum(span.end - span.start for span in spans)
    return Source(source.path, read=read, size=size, modified=source.modified, is_import=source.is_import)


def _end_of_conversation(source: Source) -> int | None:
    """Return where the record stands that emptied the conversation last; `None` if there never was one."""
    conversation = _Conversation(source)
    end = None
    for line in source.lines():
        was_resumable = conversation.n_resumable > 0
        for operation in log.operations(line, source.path):
            conversation.take(operation)
        if was_resumable and not conversation.n_resumable:
            end = line.start
    return end


class _Conversation:
    """Counts the messages of the state that can be resumed, so that a rewind costs no more than what it drops."""

    def __init__(self, source: Source) -> None:
        self.n_resumable = 0
        self._source = source
        self._state: dict[str, bool] = {}

    def take(self, operation: Operation) -> None:
        """Follow one operation as the client does: it ignores those that only we could read (`salvaged`)."""
        match operation:
            case Put(record, salvaged=False):
                self._put(record)
            case Header(records=records, salvaged=False):
                for record in records:
                    self._put(record)
            case Rewind(target=target, salvaged=False):
                self.n_resumable -= sum(drop_from(self._state, target))
            case Update(records=records, salvaged=False) if records is not None:
                self._state, self.n_resumable = {}, 0
                for record in records:
                    self._put(record)

    def _put(self, record: Record) -> None:
        is_new = _is_resumable(self._source.slice(record.span))
        self.n_resumable += is_new - self._state.get(record.id, False)
        self._state[record.id] = is_new
