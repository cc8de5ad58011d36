"""Follow a session that the client is still writing, and report the messages that changed.

Incomplete lines and documents are left for the next reading. All files of the session are followed, including those
that appear later: a resumed `.json` continues in a `.jsonl`, and subagents have their own files. The replay of a log
stays in memory, so that only its new lines are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from pollux import formats
from pollux.formats import lenient, log
from pollux.formats.operations import Record
from pollux.formats.source import Source, Span, end_of_lines
from pollux.model import Fate, Origin, Session
from pollux.sessions import subagents
from pollux.sessions.family import with_subagents
from pollux.sessions.grouping import LocatedReading, OpenSession, bundle_key, group_readings, open_readings
from pollux.sessions.locate import SessionFile
from pollux.sessions.reader import SessionReader, sort_sessions
from pollux.sessions.replay import TimelineEntry
from pollux.sessions.replay.reading import FileReading, finish_reading, record_lookups
from pollux.sessions.replay.replay import Replayer, replay
from pollux.sessions.summary import summarize

Stamp: TypeAlias = tuple[int, int, int]
"""Size, modification time and inode of a file."""

_FRESH = 1.0
"""Seconds during which an unreadable document is assumed to be half written; after that it is broken."""
_EDGE = 4096
"""Bytes at the start and end of the lines read so far that identify a file which grew."""
_TYPED = frozenset({Origin.HUMAN, Origin.LOADED})


class LiveMember(NamedTuple):
    """The followed session or one of its subagents."""

    session: Session
    group: OpenSession


class _Log(msgspec.Struct):
    """A log, and the replay of the lines that were read so far."""

    source: Source
    """Stays open: the replay reads earlier records from it."""
    inode: int
    replayer: Replayer
    end: int = 0
    line: int = 0
    edges: tuple[bytes, bytes] = (b"", b"")

    def is_continued_by(self, source: Source, inode: int, end: int) -> bool:
        """Return whether a file is still the one that was read, perhaps with more lines at its end."""
        if inode != self.inode or end < self.end or _edges(source, self.end) != self.edges:
            return False
        return end == self.end or self._ends_line or source.slice(Span(self.end, self.end + 1)) == b"\n"

    @property
    def _ends_line(self) -> bool:
        return self.edges[1][-1:] in (b"", b"\n")

    def continue_reading(self, source: Source, end: int) -> None:
        """Read the lines up to an offset."""
        start = self.end if self._ends_line or self.end == end else self.end + 1
        for line in _cut(source, end).lines(start, self.line):
            self.line = line.number
            for operation in log.operations(line, source.path):
                self.replayer.apply(operation)
        self.end, self.edges = end, _edges(source, end)


class LiveSession:
    """A session and its subagents, read from the disk again whenever their files change."""

    def __init__(self, session: Session, memory: Mapping[str, str], *, clock: Callable[[], datetime]) -> None:
        """Follow a session; `memory` holds the project paths that were proven earlier."""
        self._session = session
        self._clock = clock
        self._reader = SessionReader(memory)
        self._stamps: dict[Path, Stamp] = {}
        self._logs: dict[Path, _Log] = {}

    def look(self, files: Iterable[SessionFile]) -> list[LiveMember]:
        """Return the session and its subagents, read from those of the files that are theirs; [] if none changed."""
        own = self._own(list(files))
        if not any(self._has_changed(file.path, _stamp(file)) for file in own):
            return []
        read = [(file, self._read(file.path, _stamp(file))) for file in own]
        readings = [LocatedReading(reading, file) for file, reading in read if reading]
        summarized = self._reader.summarize(group_readings(readings, self._full_id))
        groups = {group.id: group for group, _ in summarized}
        by_id = {session.id: session for session in sort_sessions(session for _, session in summarized)}
        followed = by_id.get(self._session.id)
        if followed is None:
            return []
        return [LiveMember(session, groups[session.id]) for session in with_subagents(followed, by_id)]

    def look_at(self, path: Path) -> list[LiveMember]:
        """Return the session in one file, at any path; [] if it did not change."""
        try:
            status = path.stat()
        except OSError:
            return []  # deleted, or being replaced
        stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
        reading = self._read(path, stamp) if self._has_changed(path, stamp) else None
        if reading is None:
            return []
        group = open_readings(self._session.kind, self._session.id, [reading])
        subagents.mark_prompts(group)
        return [LiveMember(summarize(group, self._session.project), group)]

    def _own(self, files: list[SessionFile]) -> list[SessionFile]:
        paths = {ref.path for ref in self._session.files}
        keys = {bundle_key(file) for file in files if file.path in paths}
        keys.add((self._session.parent or self._session.id)[:8])
        return [file for file in files if bundle_key(file) in keys]

    def _full_id(self, file: SessionFile, id8: str) -> str | None:
        return self._session.id if self._session.id.startswith(id8) else self._reader.full_id(file, id8)

    def _has_changed(self, path: Path, stamp: Stamp) -> bool:
        return self._stamps.get(path) != stamp

    def _read(self, path: Path, stamp: Stamp) -> FileReading | None:
        """Return the reading of the complete part of a file; None if no part is complete yet."""
        try:
            source = Source(path)
        except OSError:
            return None  # deleted since it was listed
        opened = formats.opened(source)
        if opened.format == "log":
            reading = self._read_log(source, stamp[2])
        else:
            result = replay(opened.operations, *record_lookups(opened.source))
            reading = finish_reading(opened.source, opened.format, result, source)
            if _is_torn(reading) and (self._clock() - source.modified).total_seconds() < _FRESH:
                reading = None
        if reading:
            self._stamps[path] = stamp
        return reading

    def _read_log(self, source: Source, inode: int) -> FileReading | None:
        end = _end_of_complete_lines(source)
        followed = self._logs.get(source.path)
        if followed is None or not followed.is_continued_by(source, inode, end):
            followed = _Log(source, inode, Replayer(*record_lookups(source)))
        self._logs[source.path] = followed
        followed.continue_reading(source, end)
        if not end:
            return None
        result = followed.replayer.result
        entries = [copy(entry) for entry in result.timeline]  # grouping changes them
        copied = msgspec.structs.replace(result, timeline=entries, problems=[*result.problems])
        return finish_reading(source, "log", copied, source)


def _stamp(file: SessionFile) -> Stamp:
    return file.size, file.mtime_ns, file.inode


def _end_of_complete_lines(source: Source) -> int:
    """Return the offset after the last complete line of a log; its last line may lack a newline."""
    end = end_of_lines(source, 0)
    return source.size if _is_json(source.slice(Span(end, source.size))) else end


def _cut(source: Source, end: int) -> Source:
    return Source(source.path, read=lambda start, stop: source.slice(Span(start, max(start, min(stop, end)))), size=end)


def _is_json(data: bytes) -> bool:
    try:
        lenient.decode(data)
    except ValueError:
        return False
    return True


def _is_torn(reading: FileReading) -> bool:
    """Return whether a file that the client writes in one go seems to be incomplete."""
    if reading.format == "document":
        return reading.replay.document is None or reading.replay.document.salvaged
    torn = (problem.code.startswith("torn-") for problem in reading.replay.problems)
    return reading.format == "unreadable" or any(torn)


def _edges(source: Source, end: int) -> tuple[bytes, bytes]:
    return source.slice(Span(0, min(_EDGE, end))), source.slice(Span(max(0, end - _EDGE), end))


class MessageChange(NamedTuple):
    """A message that is new or changed."""

    number: int
    """Number of messages that appeared before it."""
    placed: LocatedReading
    entry: TimelineEntry
    was: Fate | None
    """Its fate before the change; None for a new message."""

    @property
    def is_dropped(self) -> bool:
        """Whether it just left the conversation."""
        return self.was is Fate.ACTIVE and self.entry.fate is not Fate.ACTIVE


class _Seen(NamedTuple):
    number: int
    fate: Fate
    recordings: tuple[object, ...]


class ChangeTracker:
    """Remembers the messages of a session, to find those that changed."""

    def __init__(self) -> None:
        """Create a tracker to which all messages are new."""
        self._seen: dict[str, _Seen] = {}

    def changes(self, timeline: Iterable[tuple[LocatedReading, TimelineEntry]]) -> list[MessageChange]:
        """Return the messages that are new or changed since the last call, in order, and remember them."""
        timeline = list(timeline)
        n_responses = sum(len(entry.content.responses) for _, entry in timeline)
        changes = []
        for located, entry in timeline:
            before = self._seen.get(entry.id)
            number = before.number if before else len(self._seen)
            now = _Seen(number, entry.fate, _recordings(located, entry, n_responses))
            if now != before:
                self._seen[entry.id] = now
                changes.append(MessageChange(number, located, entry, before.fate if before else None))
        return changes

    def is_in_doubt(self, timeline: Iterable[tuple[LocatedReading, TimelineEntry]]) -> bool:
        """Return whether the client may be recording its history again at the end; the next lines will decide."""
        prompts: set[str] = set()
        in_doubt = False
        for _, entry in timeline:
            if entry.origin in _TYPED:
                in_doubt = in_doubt or (entry.id not in self._seen and entry.prompt in prompts)
                prompts.add(entry.prompt)
            elif entry.tokens is not None:
                in_doubt = False
        return in_doubt


def _recordings(located: LocatedReading, entry: TimelineEntry, n_responses: int) -> tuple[object, ...]:
    """Return a value that differs if any part of a message was recorded again."""
    file = str(located.reading.path)
    spans = (_span(entry.content), _span(entry.calls_from), _span(entry.thoughts_from))
    elsewhere = n_responses if entry.content.asked and not entry.calls else 0  # its results are in other messages
    return (file, *spans, entry.origin, entry.tokens, entry.model, elsewhere)


def _span(record: Record | None) -> Sequence[int] | None:
    return record.span if record else None
