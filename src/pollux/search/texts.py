"""Read the messages of hits from the archive, decoding only the lines that they are on.

Opening a session replays its whole file. A hit needs one message of it, and the facts say on which lines that is
recorded. So the line is decoded alone where that is enough; where it is not, the session is opened.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from pollux.archive.raw import CheckedSegments
from pollux.archive.readings import source_of
from pollux.formats import log
from pollux.formats.document import AT_ONCE
from pollux.formats.operations import Header, Put, Record, Update
from pollux.formats.records import record, wire
from pollux.formats.source import LONG, Line, Source, Span
from pollux.model import Fate, Message, Origin
from pollux.search.parts import PartKind, message_parts
from pollux.search.terms import Node
from pollux.search.values import TextSpan
from pollux.sessions.grouping import OpenSession
from pollux.sessions.replay import TimelineEntry
from pollux.sessions.replay.reading import FileReading, build_message
from pollux.sessions.replay.replay import ReplayResult
from pollux.text.times import from_microseconds

LineRecords = dict[tuple[int, str], Record]
"""Records by their line and by the ID of their message."""
_STEP = 1 << 12
"""Bytes in which line ends are counted at once."""
_START_OF_MESSAGE, _END_OF_MESSAGE = b"\n    {", b"\n    }"
"""In a document that the client wrote, which is indented by two spaces; JSON strings contain no line ends."""
Opener = Callable[[str], OpenSession]
"""Opens the session with an ID."""


class MessageHead(NamedTuple):
    """What a hit says about its message."""

    id: str
    seq: int
    """Its position in the session's timeline; the first is 0."""
    role: str
    fate: str
    at: datetime | None


class PartMatch(NamedTuple):
    """A part of a message that satisfies conditions."""

    head: MessageHead
    kind: PartKind
    text: str
    groups: list[list[TextSpan]]
    """The highlights of each condition."""
    conditions: tuple[Node, ...]


class MessageRow(NamedTuple):
    """The facts of a message that are needed to read it."""

    id: str
    seq: int
    role: str
    origin: str
    fate: str
    at_us: int | None
    model: str | None
    version_id: int
    line: int
    text_line: int
    calls_line: int | None

    @property
    def lines(self) -> list[int]:
        """The lines on which its text and its tool calls are recorded."""
        return [self.text_line] if self.calls_line is None else [self.text_line, self.calls_line]

    @property
    def head(self) -> MessageHead:
        """What a hit says about it."""
        return MessageHead(self.id, self.seq, self.role, self.fate, from_microseconds(self.at_us))


def message_rows(database: sqlite3.Connection, session_id: str, seqs: Collection[int]) -> dict[int, MessageRow]:
    """Return the facts of some messages of a session by their position in the timeline."""
    rows = database.execute(
        "SELECT message_id, seq, kind, origin, fate, at_us, model, file_version_id, line, text_line, calls_line "
        "FROM messages WHERE session_id = ? AND seq IN (SELECT value FROM json_each(?))",
        (session_id, msgspec.json.encode(sorted(seqs)).decode()),
    )
    return {row[1]: MessageRow(*row) for row in rows}


class TextReader:
    """Reads the texts of messages; each session is opened at most once, and only if single lines are not enough."""

    def __init__(
        self,
        database: sqlite3.Connection,
        open_session: Opener,
        *,
        has_bytes: bool,
        checked: CheckedSegments | None = None,
    ) -> None:
        """Store where to read from.

        Args:
            database: the facts.
            open_session: opens a session if single lines are not enough.
            has_bytes: whether the database contains the bytes of the files.
            checked: segments whose bytes need no check any more.

        """
        self.database, self._open, self._has_bytes = database, open_session, has_bytes
        self._checked: CheckedSegments = {} if checked is None else checked
        self._opened: tuple[str, OpenSession] | None = None
        self.n_opened = 0
        """Number of sessions that were replayed as a whole."""
        self.n_versions = 0
        """Number of file versions of which lines were decompressed."""

    def quick(self, session_id: str, rows: Mapping[int, MessageRow]) -> dict[int, dict[PartKind, str]]:
        """Return the parts of those messages that can be read from single lines."""
        return {seq: parts_by_kind(message) for seq, message in self._quick(session_id, rows)}

    def messages(self, session_id: str, seqs: Collection[int]) -> dict[int, Message]:
        """Return messages of a session by their position; very long texts are shortened."""
        messages = dict(self._quick(session_id, message_rows(self.database, session_id, seqs)))
        missing = {*seqs} - messages.keys()
        return messages | self._full(session_id, missing) if missing else messages

    def _quick(self, session_id: str, rows: Mapping[int, MessageRow]) -> Iterator[tuple[int, Message]]:
        if not self._has_bytes:
            return
        by_version: dict[int, list[MessageRow]] = {}
        for row in rows.values():
            by_version.setdefault(row.version_id, []).append(row)
        formats = dict(
            self.database.execute(
                "SELECT file_version_id, format FROM session_files WHERE session_id = ?", (session_id,)
            )
        )
        for version_id, recorded in by_version.items():
            find_records = _RECORDS.get(formats.get(version_id, ""))
            if find_records:
                self.n_versions += 1
                source = source_of(self.database, version_id, checked=self._checked)
                records = find_records(source, recorded)
                yield from _messages(source, records, recorded)

    def full(self, session_id: str, seqs: Iterable[int]) -> dict[int, dict[PartKind, str]]:
        """Return the parts of messages, read by opening the session; very long texts are shortened as in the index."""
        return {seq: parts_by_kind(message) for seq, message in self._full(session_id, seqs).items()}

    def _full(self, session_id: str, seqs: Iterable[int]) -> dict[int, Message]:
        if self._opened is None or self._opened[0] != session_id:
            self._opened = session_id, self._open(session_id)
            self.n_opened += 1
        timeline = self._opened[1].timeline
        messages = {}
        for seq in seqs:
            if 0 <= seq < len(timeline):
                located, entry = timeline[seq]
                messages[seq] = build_message(located.reading, entry, shortened=True)
        return messages


def parts_by_kind(message: Message) -> dict[PartKind, str]:
    """Return the texts of a message by their kind."""
    return {part.kind: part.text for part in message_parts(message)}


def _messages(source: Source, records: LineRecords, rows: Iterable[MessageRow]) -> Iterator[tuple[int, Message]]:
    """Yield the messages that single records are enough for."""
    reading = FileReading(source.path, "", source, ReplayResult(), source)
    for row in rows:
        content = records.get((row.text_line, row.id))
        calls = None if row.calls_line is None else records.get((row.calls_line, row.id))
        if content is None or (row.calls_line is not None and (calls is None or not calls.calls)):
            continue  # recorded under another ID, or the answers to its calls are in other messages
        yield row.seq, build_message(reading, _entry(row, content, calls), shortened=True)


def _entry(row: MessageRow, content: Record, calls: Record | None) -> TimelineEntry:
    with_thoughts = [recorded for recorded in (content, calls) if recorded and recorded.has_thoughts]
    return TimelineEntry(
        row.id,
        row.role,
        content.at,
        row.line,
        Origin(row.origin),
        content.prompt,
        content,
        Fate(row.fate),
        row.model,
        calls=calls.calls if calls else (),
        calls_from=calls,
        thoughts_from=with_thoughts[0] if with_thoughts else None,
    )


def _records_of_log(source: Source, rows: Collection[MessageRow]) -> LineRecords:
    """Return the records on the lines of some messages of a log; of several with the same ID, the last one."""
    records: LineRecords = {}
    for number, span in _line_spans(source, rows, b"\n"):
        if span.end - span.start > LONG:
            continue
        data = source.slice(span)
        if b"\r" in data.removesuffix(b"\r"):
            continue  # the client's reader splits it into several lines
        for operation in log.operations(Line(number, span.start, data.removesuffix(b"\r")), source.path):
            if isinstance(operation, Put):
                records[number, operation.record.id] = operation.record
            elif isinstance(operation, Header | Update):
                for listed in operation.records or ():
                    records[number, listed.id] = listed
    return records


def _line_spans(source: Source, rows: Iterable[MessageRow], opening: bytes) -> Iterator[tuple[int, Span]]:
    """Yield the number and position of the lines on which some messages are recorded.

    Most IDs are in one place of the file, which is found faster than by counting lines.

    Args:
        source: the file.
        rows: the messages.
        opening: what precedes the line of a record, beginning with a line end.

    """
    numbers: set[int] = set()
    data = source.whole() if source.size <= AT_ONCE else b""
    for row in rows:
        name = msgspec.json.encode(row.id)
        at = data.find(name)
        start = data.rfind(opening, 0, max(at, 0)) + 1
        if at < 0 or start == 0 or len(set(row.lines)) > 1 or data.find(name, at + 1) >= 0:
            numbers.update(row.lines)
        else:
            end = data.find(b"\n", start)
            yield row.text_line, Span(start, end if end >= 0 else len(data))
    if numbers:
        yield from _numbered_lines(source, numbers)


def _numbered_lines(source: Source, numbers: Iterable[int]) -> Iterator[tuple[int, Span]]:
    """Yield the number and position of some lines, in order; the first line is 1."""
    waiting = sorted(numbers, reverse=True)
    number, start, offset = 1, 0, 0
    for block in source.blocks():
        last = number + block.count(b"\n")
        at = 0
        while waiting and waiting[-1] < last:
            if number < waiting[-1]:
                at = _after_lines(block, at, waiting[-1] - number)
                number, start = waiting[-1], offset + at
            yield waiting.pop(), Span(start, offset + block.index(b"\n", at))
        if not waiting:
            return
        if number < last:
            number, start = last, offset + block.rindex(b"\n") + 1
        offset += len(block)
    if waiting and waiting[-1] == number:  # the last line has no end
        yield number, Span(start, offset)


def _after_lines(data: bytes, at: int, n_lines: int) -> int:
    """Return the offset after some line ends, counted from an offset; there must be as many."""
    while (n_here := data.count(b"\n", at, at + _STEP)) < n_lines:
        n_lines -= n_here
        at += _STEP
    for _ in range(n_lines):
        at = data.index(b"\n", at) + 1
    return at


def _records_of_document(source: Source, rows: Collection[MessageRow]) -> LineRecords:
    """Return the records of some messages of a document, if it is indented as the client does it."""
    records: LineRecords = {}
    if source.size > AT_ONCE:
        return records
    data = source.whole()
    for number, line in _line_spans(source, rows, _START_OF_MESSAGE):
        start, end = data.find(b"{", line.start, line.end), data.find(_END_OF_MESSAGE, line.start)
        if start < 0 or end < 0:
            continue
        span = Span(start, end + len(_END_OF_MESSAGE))
        element = data[span.start : span.end]
        try:
            decoded, _ = wire(element)
        except ValueError:
            continue  # indented in another way, or broken
        new = record(decoded, element, span, number)
        records[number, new.id] = new
    return records


_RECORDS: Mapping[str, Callable[[Source, Collection[MessageRow]], LineRecords]] = {
    "log": _records_of_log,
    "document": _records_of_document,
}
"""By the format of a file: the function that reads the records of some messages."""
