"""A session that is still being written, read from the disk again each time that its files have changed.

The client writes while we read: a line is waited for until it is whole, a document until it can be read. All files of
the session are looked at, also those that come later: a resumed `.json` goes on in a `.jsonl`, and subagents have files
of their own. Of a log only what is new is read: its replay stays in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from pollux import formats
from pollux.formats import lenient, log
from pollux.formats.source import Source, Span, end_of_lines
from pollux.model import Session
from pollux.sessions import subagents
from pollux.sessions.family import with_subagents
from pollux.sessions.grouping import Group, Placed, bundle_of, put_together, regroup
from pollux.sessions.locate import SessionFile
from pollux.sessions.reader import Reader, in_order
from pollux.sessions.replay.reading import Reading, finished, looks
from pollux.sessions.replay.replay import Running, replay
from pollux.sessions.summary import summary

Stamp: TypeAlias = tuple[int, int, int]
"""Size, time and identity of a file."""

_FRESH = 1.0
"""Seconds after which a document that cannot be read is broken, and not half written."""
_EDGE = 4096
"""Bytes by which a file that grew is known again."""


class Member(NamedTuple):
    """A session, open to be read."""

    session: Session
    group: Group


class _Log(msgspec.Struct):
    """A log as far as it was read."""

    source: Source
    """Where the replay looks up what it has read; stays open."""
    inode: int
    running: Running
    end: int = 0
    line: int = 0
    edges: tuple[bytes, bytes] = (b"", b"")

    def is_of(self, source: Source, inode: int, end: int) -> bool:
        """Tell whether a file is still the one that was read, with perhaps more lines at its end."""
        if inode != self.inode or end < self.end or _edges(source, self.end) != self.edges:
            return False
        return (
            end == self.end or self.edges[1][-1:] in (b"", b"\n") or source.slice(Span(self.end, self.end + 1)) == b"\n"
        )

    def read_on(self, source: Source, end: int) -> None:
        """Read the lines up to some place."""
        start = self.end + 1 if self.end < end and self.edges[1][-1:] not in (b"", b"\n") else self.end
        for found in _cut(source, end).lines(start, self.line):
            self.line = found.number
            for operation in log.operations(found, source.path):
                self.running.take(operation)
        self.end, self.edges = end, _edges(source, end)


class Growing:
    """A session and its subagents, as far as the disk has them."""

    def __init__(self, session: Session, memory: Mapping[str, str], *, clock: Callable[[], float] = time.time) -> None:
        """Take the session as it was found, and the project paths that were proven before."""
        self._session = session
        self._clock = clock
        self._reader = Reader(memory)
        self._stamps: dict[Path, Stamp] = {}
        self._logs: dict[Path, _Log] = {}

    def look(self, files: Iterable[SessionFile]) -> list[Member]:
        """Read what belongs to the session among some files: itself first; nothing if all is as it was."""
        mine = self._own(list(files))
        if not any(self._has_changed(one.path, _stamp(one)) for one in mine):
            return []
        read = [(one, self._read(one.path, _stamp(one))) for one in mine]
        placed = [Placed(reading, one) for one, reading in read if reading]
        found = self._reader.summed_up(put_together(placed, self._full_id))
        groups = {group.id: group for group, _ in found}
        by_id = {one.id: one for one in in_order(session for _, session in found)}
        session = by_id.get(self._session.id)
        return [Member(one, groups[one.id]) for one in with_subagents(session, by_id)] if session else []

    def look_at(self, path: Path) -> list[Member]:
        """Read one file that somebody named, wherever it is."""
        try:
            found = path.stat()
        except OSError:
            return []  # between two versions of it, or gone
        stamp = (found.st_size, found.st_mtime_ns, found.st_ino)
        reading = self._read(path, stamp) if self._has_changed(path, stamp) else None
        if reading is None:
            return []
        group = regroup(self._session.kind, self._session.id, [reading])
        subagents.mark_prompts(group)
        return [Member(summary(group, self._session.project), group)]

    def _own(self, files: list[SessionFile]) -> list[SessionFile]:
        paths = {ref.path for ref in self._session.files}
        names = {bundle_of(one) for one in files if one.path in paths}
        names.add((self._session.parent or self._session.id)[:8])
        return [one for one in files if bundle_of(one) in names]

    def _full_id(self, file: SessionFile, id8: str) -> str | None:
        return self._session.id if self._session.id.startswith(id8) else self._reader.full_id(file, id8)

    def _has_changed(self, path: Path, stamp: Stamp) -> bool:
        return self._stamps.get(path) != stamp

    def _read(self, path: Path, stamp: Stamp) -> Reading | None:
        """Read a file as far as it is whole; nothing if there is nothing whole yet."""
        try:
            source = Source(path)
        except OSError:
            return None  # gone since it was listed
        found = formats.opened(source)
        if found.format == "log":
            reading = self._read_log(source, stamp[2])
        else:
            reading = finished(found.source, found.format, replay(found.operations, *looks(found.source)), source)
            if _is_torn(reading) and self._clock() - source.modified.timestamp() < _FRESH:
                reading = None
        if reading:
            self._stamps[path] = stamp
        return reading

    def _read_log(self, source: Source, inode: int) -> Reading | None:
        end = _whole_end(source)
        one = self._logs.get(source.path)
        if one is None or not one.is_of(source, inode, end):
            one = _Log(source, inode, Running(*looks(source)))
        self._logs[source.path] = one
        one.read_on(source, end)
        if not end:
            return None
        found = one.running.result
        entries = [copy(entry) for entry in found.timeline]  # whoever puts a session together writes into them
        copied = msgspec.structs.replace(found, timeline=entries, problems=[*found.problems])
        return finished(source, "log", copied, source)


def _stamp(file: SessionFile) -> Stamp:
    return file.size, file.mtime_ns, file.inode


def _whole_end(source: Source) -> int:
    """Find the end of the last line of a log that is whole."""
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


def _is_torn(reading: Reading) -> bool:
    """Tell whether a file that is written as a whole seems to be cut."""
    if reading.format == "document":
        return reading.replay.document is None or reading.replay.document.salvaged
    torn = (problem.code.startswith("torn-") for problem in reading.replay.problems)
    return reading.format == "unreadable" or any(torn)


def _edges(source: Source, end: int) -> tuple[bytes, bytes]:
    return source.slice(Span(0, min(_EDGE, end))), source.slice(Span(max(0, end - _EDGE), end))
