"""The contents of the files of a restored session.

They are the archived bytes, with a new time of last update, a header where that was lost, and new IDs if requested. Of
a log, only the part is restored from which the client can resume: all of it as a rule. Over ACP, `session/load` empties
the conversation in the file that it loads; then it is the part before that record. Where the client recorded several
sessions in one file, it is the lines from the header of the session to the next header.
"""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pollux.archive.readings import continue_reading, source_of
from pollux.disk.write import Writing, below
from pollux.formats import lenient, log, rewrite
from pollux.formats.log import SEPARATORS, has_separator
from pollux.formats.operations import Header, Operation, Put, Record, Rewind, Update, drop_from
from pollux.formats.parts import is_resumable
from pollux.formats.source import Source, Span
from pollux.model import Json, Role, Session
from pollux.sessions.locate import name_facts
from pollux.sessions.projects.resolve import project_hash
from pollux.sessions.replay.reading import FileReading, record_lookups, state
from pollux.sessions.replay.replay import Replayer

EARLIEST = datetime.min.replace(tzinfo=UTC)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_NOT_SESSIONS = ("chats", "logs", "tool-outputs")


class ResumableExcerpt(NamedTuple):
    """The part of a file that the client can resume."""

    reading: FileReading
    is_resumable: bool
    is_before_emptying: bool = False
    """Whether the records that emptied the conversation are left out."""
    others: tuple[str, ...] = ()
    """The IDs of other sessions in the file, whose lines are left out."""


@dataclass(frozen=True, slots=True)
class ArchivedReading:
    """An archived version of a session's file."""

    version_id: int
    home: str
    folder: str
    name: str
    role: str
    excerpt: ResumableExcerpt

    @property
    def reading(self) -> FileReading:
        """The part of the file that can be restored."""
        return self.excerpt.reading

    @property
    def n_messages(self) -> int:
        """The number of messages in it."""
        return len(self.reading.replay.timeline)

    @property
    def message_ids(self) -> set[str]:
        """The IDs of the messages in it."""
        return {entry.id for entry in self.reading.replay.timeline}

    @property
    def is_import(self) -> bool:
        """Whether it was imported from another archive."""
        return self.reading.original.is_import

    def rank(self, main: set[str]) -> tuple[bool, bool, bool, int, bool, datetime, int]:
        """Return a sort key: files that this machine read itself, then the fullest, then the newest.

        Args:
            main: the messages of the file that the client would load. Another file that lacks some of them is a
                different part of the session, from which the client cannot continue.

        """
        replay = self.reading.replay
        return (
            self.excerpt.is_resumable,
            not self.is_import,
            self.role != Role.PART or self.message_ids >= main,
            self.n_messages,
            replay.is_readable,
            rewrite.last_updated(replay.seen) or EARLIEST,
            self.version_id,
        )


def excerpt_for(session_id: str, source: Source) -> ResumableExcerpt:
    """Read a file, or the part of it from which the client can resume a session."""
    reading = continue_reading(source, None)[0]
    others: tuple[str, ...] = ()
    if reading.replay.earlier and (spans := _spans_of(session_id, reading)):
        ids = dict.fromkeys(part.id for part in reading.parts())
        others = tuple(id_ for id_ in ids if id_ and id_ != session_id)
        reading = continue_reading(_excerpt(source, spans), None)[0]
    if has_conversation(reading):
        return ResumableExcerpt(reading, is_resumable=True, others=others)
    if reading.format == "log" and (end := _end_of_conversation(reading.original)):
        before = continue_reading(_excerpt(reading.original, [Span(0, end)]), None)[0]
        return ResumableExcerpt(before, is_resumable=True, is_before_emptying=True, others=others)
    return ResumableExcerpt(reading, is_resumable=False, others=others)


def has_conversation(reading: FileReading) -> bool:
    """Return whether the client would find messages to resume in a file."""
    return any(_is_resumable(data) for data in state(reading))


def new_ids(database: sqlite3.Connection, old: str, new: str) -> dict[str, str]:
    """Return new IDs for a session and its subagents."""
    agents = {Path(path).stem for _, _, path, _ in _companion_files(database, [_safe(old)]) if _is_chat(path)}
    namespace = uuid.UUID(new)
    return {old: new, **{agent: str(uuid.uuid5(namespace, agent)) for agent in sorted(agents)}}


def companions(
    database: sqlite3.Connection, id_: str, best: ArchivedReading, folder: Path, ids: Mapping[str, str]
) -> Iterator[Writing]:
    """Yield the files of subagents, tool outputs, plans and logs of a session."""
    own = _safe(id_)
    agents = {Path(path).stem for _, _, path, _ in _companion_files(database, [own]) if _is_chat(path)}
    rows = sorted(_companion_files(database, [own, *agents]), key=lambda row: row[:2] != (best.home, best.folder))
    sources = [(path, source_of(database, version_id)) for _, _, path, version_id in rows]
    chosen: dict[str, Source] = {}
    for path, source in sorted(sources, key=lambda item: item[1].is_import):
        chosen.setdefault(path, source)
    for path, source in sorted(chosen.items()):
        yield _companion(source, folder, path, ids)


def pieces_of(best: ArchivedReading, session: Session, ids: Mapping[str, str], now: datetime) -> Iterator[bytes]:
    """Yield the session's own file, with a new time of last update and with the header that the client needs."""
    source, replace_ids = best.reading.original, rewrite.id_replacer(ids)
    fields = _header(best, session, ids, now)
    is_readable = best.reading.replay.is_readable
    if best.reading.format == "log" and not _is_one_line(source):
        return _log(source, replace_ids, b"" if is_readable else rewrite.line(fields), now)
    if is_readable and any(rewrite.has_update_time(piece) for piece in _lines(source)):
        return (replace_ids(rewrite.with_update_time(piece, now)) for piece in _lines(source))
    return _document(best.reading, replace_ids, fields)


def _is_resumable(data: bytes) -> bool:
    value = lenient.decode(data)
    return isinstance(value, dict) and is_resumable(value)


def _spans_of(session_id: str, reading: FileReading) -> list[Span]:
    """Return where a session is recorded in a file with several sessions."""
    source = reading.source
    running = Replayer(*record_lookups(source))
    starts = [0]
    for line in source.lines():
        for operation in log.operations(line, source.path):
            running.apply(operation)
        if len(running.result.earlier) == len(starts):  # this line starts another session
            starts.append(line.start)
    spans = map(Span, starts, [*starts[1:], source.size])
    return [span for span, part in zip(spans, reading.parts(), strict=True) if part.id == session_id]


def _excerpt(source: Source, spans: list[Span]) -> Source:
    """Return a source that consists of these spans of another one."""

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
    """Return the start of the record that last emptied the conversation; None if it was always empty."""
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
    """Counts the messages that can be resumed, so that a rewind costs no more than the messages it drops."""

    def __init__(self, source: Source) -> None:
        self.n_resumable = 0
        self._source = source
        self._state: dict[str, bool] = {}

    def take(self, operation: Operation) -> None:
        """Apply an operation as the client does, which ignores records that only Pollux can read (`salvaged`)."""
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


def _safe(id_: str) -> str:
    """Return an ID as the client writes it in file names."""
    return _UNSAFE.sub("_", id_)


def _is_chat(path: str) -> bool:
    return path.startswith("chats/")


def _companion_files(database: sqlite3.Connection, ids: Iterable[str]) -> Iterator[tuple[str, str, str, int]]:
    """Yield the files that belong to sessions besides their own: home, project folder, path in it, version."""
    own = tuple(f"{id_}/" for id_ in ids if id_.lower() not in _NOT_SESSIONS)
    logs = tuple(f"logs/session-{id_}.jsonl" for id_ in ids)
    prefixes = (*own, *(f"{top}{id_}/" for top in ("chats/", "tool-outputs/session-") for id_ in ids))
    rows = database.execute(
        "SELECT home, path, version_id FROM files "
        "WHERE path LIKE 'tmp/%' AND version_id IS NOT NULL AND forgotten_us IS NULL ORDER BY home, path"
    )
    for home, path, version_id in rows:
        _, folder, *inner = path.split("/", 2)
        if inner and (inner[0].startswith(prefixes) or inner[0] in logs):
            yield home, folder, inner[0], version_id


def _companion(source: Source, folder: Path, path: str, ids: Mapping[str, str]) -> Writing:
    target = below(folder, *(_renamed_part(part, ids) for part in path.split("/")))
    if not _is_chat(path):
        return Writing(target, lambda: _lines(source))
    replace_ids = rewrite.id_replacer(ids)
    if path.endswith(".jsonl"):
        return Writing(target, lambda: (_escaped(replace_ids(piece)) for piece in _lines(source)))
    return Writing(target, lambda: (replace_ids(piece) for piece in _lines(source)))


def _renamed_part(part: str, ids: Mapping[str, str]) -> str:
    for old, new in ids.items():
        if match := re.fullmatch(rf"(session-)?{re.escape(_safe(old))}(\.jsonl?)?", part):
            return f"{match[1] or ''}{new}{match[2] or ''}"
    return part


def _is_one_line(source: Source) -> bool:
    """Return whether a file is a document without line ends, which some releases of the client cannot read."""
    return sum(1 for _ in source.lines()) == 1


def _header(best: ArchivedReading, session: Session, ids: Mapping[str, str], now: datetime) -> dict[str, Json]:
    started = session.started or name_facts(best.name)[0] or now
    path = session.project.path
    digest = session.project.hash or (project_hash(path) if path else "")
    new_id = ids.get(session.id, session.id)
    return rewrite.header(best.reading.replay.seen, session.id, new_id, digest, started, now)


def _log(source: Source, replace_ids: Callable[[bytes], bytes], header: bytes, now: datetime) -> Iterator[bytes]:
    if header:
        yield header
    end = b"\n"
    for piece in _lines(source):
        yield _escaped(replace_ids(piece))
        end = piece[-1:] or end
    if end != b"\n":
        yield b"\n"
    yield rewrite.update_record(now)


def _escaped(data: bytes) -> bytes:
    """Escape the characters at which newer releases of Node.js split a line; in JSON they occur only in strings."""
    if not has_separator(data):
        return data
    for separator in SEPARATORS:
        data = data.replace(separator, f"\\u{ord(separator.decode()):04x}".encode())
    return data


def _document(
    reading: FileReading, replace_ids: Callable[[bytes], bytes], fields: Mapping[str, Json]
) -> Iterator[bytes]:
    """Yield a document that is built from the readable messages of another one."""
    lines = [b"  " + lenient.encode(key) + b": " + lenient.encode(value) for key, value in fields.items()]
    yield b"{\n" + b",\n".join(lines) + b',\n  "messages": ['
    for number, data in enumerate(state(reading)):
        yield (b"," if number else b"") + b"\n    " + replace_ids(data)
    yield b"\n  ]\n}"


def _lines(source: Source) -> Iterator[bytes]:
    """Yield a file in large pieces that end at the end of a line."""
    partial: list[bytes] = []
    for block in source.blocks():
        last = block.rfind(b"\n") + 1
        if last:
            yield b"".join([*partial, block[:last]])
            partial = []
        partial.append(block[last:])
    if tail := b"".join(partial):
        yield tail
