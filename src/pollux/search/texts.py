"""Read the messages of hits from the archive, decoding only the lines that they are on.

Opening a session replays its whole file. A hit needs one message of it, and the facts say on which lines that is
recorded. So the line is decoded alone where that is enough; where it is not, the session is opened.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from pollux.archive.load_sessions import AMONG, ids_as_json
from pollux.archive.raw import UNDECODABLE, CheckedSegments, UncheckedBytes, unchecked_bytes
from pollux.archive.readings import source_of
from pollux.formats import log
from pollux.formats.document import AT_ONCE
from pollux.formats.operations import Header, Put, Record, Update
from pollux.formats.records import record, wire
from pollux.formats.source import LONG, Line, Source, Span
from pollux.model import Fate, Message, Origin
from pollux.search.parts import PartKind, digest_of, message_parts
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
Digests = Callable[[Mapping[str, Collection[int]]], Mapping[tuple[str, int], bytes]]
"""Returns the digests of some messages by session and position, as far as they are known."""
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


_COLUMNS = "message_id, seq, kind, origin, fate, at_us, model, file_version_id, line, text_line, calls_line"


def message_rows(database: sqlite3.Connection, session_id: str, seqs: Collection[int]) -> dict[int, MessageRow]:
    """Return the facts of some messages of a session by their position in the timeline."""
    rows = database.execute(
        f"SELECT {_COLUMNS} FROM messages WHERE session_id = ? AND seq IN (SELECT value FROM json_each(?))",  # noqa: S608
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
        digests: Digests | None = None,
    ) -> None:
        """Store where to read from.

        Args:
            database: the facts.
            open_session: opens a session if single lines are not enough.
            has_bytes: whether the database contains the bytes of the files.
            checked: segments whose bytes need no check any more.
            digests: returns the digests of the texts of messages, so that the bytes before them need no check.

        """
        self.database, self._open, self._has_bytes = database, open_session, has_bytes
        self._digests_of = digests
        self._rows: dict[str, dict[int, MessageRow]] = {}
        self._digests: Mapping[tuple[str, int], bytes] = {}
        self._formats: Mapping[tuple[str, int], str] = {}
        self._beginnings: dict[int, _Beginning] = {}
        self._checked: CheckedSegments = {} if checked is None else checked
        self._opened: tuple[str, OpenSession] | None = None
        self.n_opened = 0
        """Number of sessions that were replayed as a whole."""
        self.n_versions = 0
        """Number of file versions of which lines were decompressed."""

    def prepare(self, wanted: Mapping[str, Collection[int]]) -> None:
        """Read the facts of some messages of several sessions and of their files, before their texts are read."""
        self._rows = {session_id: message_rows(self.database, session_id, seqs) for session_id, seqs in wanted.items()}
        self._digests, self._formats, self._beginnings = {}, {}, {}
        if self._digests_of and self._has_bytes and wanted:
            self._digests = self._digests_of(wanted)
            self._formats = _formats_of(self.database, wanted)
            version_ids = {row.version_id for rows in self._rows.values() for row in rows.values()}
            for version_id, unchecked in unchecked_bytes(self.database, version_ids).items():
                self._beginnings[version_id] = _Beginning(unchecked)

    def rows(self, session_id: str, seqs: Collection[int]) -> dict[int, MessageRow]:
        """Return the facts of some messages of a session by their position in the timeline."""
        prepared = self._rows.get(session_id, {})
        if all(seq in prepared for seq in seqs):
            return {seq: prepared[seq] for seq in seqs}
        return message_rows(self.database, session_id, seqs)

    def quick(self, session_id: str, rows: Mapping[int, MessageRow]) -> dict[int, dict[PartKind, str]]:
        """Return the parts of those messages that can be read from single lines."""
        parts = self._with_digests(session_id, rows)
        missing = {seq: row for seq, row in rows.items() if seq not in parts}
        parts |= {seq: parts_by_kind(message) for seq, message in self._quick(session_id, missing)}
        return parts

    def _with_digests(self, session_id: str, rows: Mapping[int, MessageRow]) -> dict[int, dict[PartKind, str]]:
        """Return the parts of those messages whose texts have the digests of the index."""
        parts: dict[int, dict[PartKind, str]] = {}
        for version_id, recorded in _by_version(rows).items():
            beginning = self._beginnings.get(version_id)
            format_ = _FORMATS.get(self._formats.get((session_id, version_id), ""))
            if beginning is None or format_ is None:
                continue
            self.n_versions += 1
            try:
                records = format_.read(beginning.source, format_.places_from(beginning, recorded))
                for seq, message in _messages(beginning.source, records, recorded):
                    texts = message_parts(message)
                    if digest_of(texts) == self._digests.get((session_id, seq)):
                        parts[seq] = {part.kind: part.text for part in texts}
            except UNDECODABLE:
                del self._beginnings[version_id]  # the checked bytes tell what is wrong
        return parts

    def messages(self, session_id: str, seqs: Collection[int]) -> dict[int, Message]:
        """Return messages of a session by their position; very long texts are shortened."""
        messages = dict(self._quick(session_id, message_rows(self.database, session_id, seqs)))
        missing = {*seqs} - messages.keys()
        return messages | self._full(session_id, missing) if missing else messages

    def _quick(self, session_id: str, rows: Mapping[int, MessageRow]) -> Iterator[tuple[int, Message]]:
        if not self._has_bytes or not rows:
            return
        formats = _formats_of(self.database, [session_id])
        for version_id, recorded in _by_version(rows).items():
            format_ = _FORMATS.get(formats.get((session_id, version_id), ""))
            if format_:
                self.n_versions += 1
                source = source_of(self.database, version_id, checked=self._checked)
                records = format_.read(source, format_.places(source, recorded))
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


class _Beginning:
    """The bytes of a file from its beginning on, read as far as its messages need them.

    Bytes before the first line that is wanted are only counted: to keep them takes longer than to decompress them.
    """

    def __init__(self, bytes_: UncheckedBytes) -> None:
        self._bytes, self._data = bytes_, bytes_.data
        self._offsets = [0]
        """Where each block ends."""
        self._line_numbers = [1]
        """The number of the line that each block ends in."""
        self._has_lines = False
        self.source = Source(Path(), read=self._read)

    def _read(self, start: int, end: int) -> bytes:
        first = self._bytes.start
        return bytes(self._data[start - first : end - first]) if start >= first else b""

    def lines(self, rows: Iterable[MessageRow]) -> Iterator[tuple[int, Span]]:
        """Yield the number and position of the lines on which some messages are recorded."""
        for number in sorted({number for row in rows for number in row.lines}):
            start = self._start_of_line(number)
            if start is not None:
                self._has_lines = True
                end = self._find(b"\n", start)
                yield number, Span(start, end if end >= 0 else self._bytes.end)

    def _start_of_line(self, number: int) -> int | None:
        """Return the offset of a line, the first of which is 1; None if there are fewer, or if it was dropped."""
        while self._line_numbers[-1] < number and (self._offsets[-1] < self._bytes.end or self._bytes.read_on()):
            n_ends = self._data.count(b"\n", self._offsets[-1] - self._bytes.start)
            self._offsets.append(self._bytes.end)
            self._line_numbers.append(self._line_numbers[-1] + n_ends)
            if self._line_numbers[-1] < number and not self._has_lines:
                self._bytes.drop()
        if self._line_numbers[-1] < number:
            return None
        block = max(bisect_left(self._line_numbers, number) - 1, 0)
        first, offset = self._bytes.start, self._offsets[block]
        if offset < first:
            return None
        return first + _after_lines(self._data, offset - first, number - self._line_numbers[block])

    def elements(self, rows: Iterable[MessageRow]) -> Iterator[tuple[int, Span]]:
        """Yield the line and position of what may be the elements of a document in which some messages are recorded."""
        for row in rows:
            at = self._find(msgspec.json.encode(row.id), 0)
            start = self._data.rfind(_START_OF_MESSAGE, 0, max(at, 0))
            end = self._find(_END_OF_MESSAGE, at) if start >= 0 else -1
            if end >= 0 and len(set(row.lines)) == 1:
                yield row.text_line, Span(start + len(_START_OF_MESSAGE) - 1, end + len(_END_OF_MESSAGE))

    def _find(self, text: bytes, start: int) -> int:
        """Return the offset of a text from an offset on, or -1 if it is not there."""
        while (at := self._data.find(text, max(start - self._bytes.start, 0))) < 0:
            start = max(start, self._bytes.end - len(text) + 1)
            if not self._bytes.read_on():
                return -1
        return self._bytes.start + at


def _by_version(rows: Mapping[int, MessageRow]) -> dict[int, list[MessageRow]]:
    by_version: dict[int, list[MessageRow]] = {}
    for row in rows.values():
        by_version.setdefault(row.version_id, []).append(row)
    return by_version


def _formats_of(database: sqlite3.Connection, session_ids: Collection[str]) -> dict[tuple[str, int], str]:
    """Return the format of each file of some sessions, by session and version."""
    query = f"SELECT session_id, file_version_id, format FROM session_files WHERE {AMONG}"  # noqa: S608  ours
    rows = database.execute(query, (ids_as_json(session_ids),))
    return {(session_id, version_id): format_ for session_id, version_id, format_ in rows}


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


def _records_of_log(source: Source, lines: Iterable[tuple[int, Span]]) -> LineRecords:
    """Return the records on some lines of a log; of several with the same ID, the last one."""
    records: LineRecords = {}
    for number, span in lines:
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


def _lines_of_log(source: Source, rows: Collection[MessageRow]) -> Iterator[tuple[int, Span]]:
    return _line_spans(source, rows, b"\n")


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


def _after_lines(data: bytes | bytearray, at: int, n_lines: int) -> int:
    """Return the offset after some line ends, counted from an offset; there must be as many."""
    while (n_here := data.count(b"\n", at, at + _STEP)) < n_lines:
        n_lines -= n_here
        at += _STEP
    for _ in range(n_lines):
        at = data.index(b"\n", at) + 1
    return at


def _elements_of_document(source: Source, rows: Collection[MessageRow]) -> Iterator[tuple[int, Span]]:
    """Yield the line and position of the elements in which some messages are recorded."""
    if source.size > AT_ONCE:
        return
    data = source.whole()
    for number, line in _line_spans(source, rows, _START_OF_MESSAGE):
        start, end = data.find(b"{", line.start, line.end), data.find(_END_OF_MESSAGE, line.start)
        if start >= 0 and end >= 0:
            yield number, Span(start, end + len(_END_OF_MESSAGE))


def _records_of_document(source: Source, elements: Iterable[tuple[int, Span]]) -> LineRecords:
    """Return the records in some elements of a document, if it is indented as the client does it."""
    records: LineRecords = {}
    for number, span in elements:
        element = source.slice(span)
        try:
            decoded, _ = wire(element)
        except ValueError:
            continue  # indented in another way, or broken
        new = record(decoded, element, span, number)
        records[number, new.id] = new
    return records


Places = Iterable[tuple[int, Span]]
"""The lines and positions of records."""


class _Format(NamedTuple):
    """How the records of some messages are read from a file."""

    places: Callable[[Source, Collection[MessageRow]], Places]
    places_from: Callable[[_Beginning, Collection[MessageRow]], Places]
    """The same for a file that is read as far as necessary."""
    read: Callable[[Source, Places], LineRecords]


_FORMATS: Mapping[str, _Format] = {
    "log": _Format(_lines_of_log, _Beginning.lines, _records_of_log),
    "document": _Format(_elements_of_document, _Beginning.elements, _records_of_document),
}
