"""Readings of archived files, continued from where the last one stopped.

The state of a replay is stored as a snapshot, so that of a file that grew only the new lines have to be read. Snapshots
are derived like the facts and dropped with them. They are plain data, since an archive may come from someone else; a
checksum detects damage, and the file is then read from its beginning.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec
import zstandard
from msgspec.structs import force_setattr

from pollux import formats
from pollux.archive.inventory import original_path
from pollux.archive.raw import CheckedSegments, damaged, reader
from pollux.formats import log
from pollux.formats.operations import Document, Record
from pollux.formats.source import Source, Span, end_of_lines
from pollux.model import Fate, Problem, Tokens
from pollux.sessions.replay import RecordedCall, TimelineEntry
from pollux.sessions.replay.copies import Fingerprint
from pollux.sessions.replay.reading import FileReading, finish_reading, record_lookups
from pollux.sessions.replay.replay import Replayer, ReplayResult

SNAPSHOT_SIZE = 1 << 20
"""Smaller files get no snapshot: reading them again is faster."""


class DamagedSnapshotError(Exception):
    """A snapshot is damaged."""


class _Call(msgspec.Struct, frozen=True, array_like=True):
    id: str
    entry: int
    model: str | None
    tokens: Tokens
    line: int


class _Document(msgspec.Struct, frozen=True, array_like=True):
    spans: tuple[Span, ...]
    salvaged: bool
    has_list: bool


class ReplaySnapshot(msgspec.Struct, frozen=True, array_like=True):
    """The state of a replay, and how far it has read."""

    offset: int
    line: int
    format: str
    metadata: str
    """As JSON, because it may contain unpaired surrogates, which msgpack cannot encode."""
    seen: str
    state: list[int | Record]
    """Records; the index of an entry where that has the same record, which is the usual case."""
    document: _Document | None
    entries: list[msgspec.Raw]
    """Each encoded by itself, so that equal values in one are decoded to one object before the next is decoded."""
    calls: list[_Call]
    problems: list[Problem]
    first_words: str | None
    scratchpad_is_stale: bool | None
    has_checkpoints: bool
    by_id: dict[str, list[int]]
    """Indexes of entries by ID, without IDs that name just the entry with the same ID."""
    alive: list[int | str]
    """IDs, or the indexes of the entries that have them."""
    new: list[int | str]
    repeats: bool


_LEVEL = 3
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ReplaySnapshot).decode
_decode_entry = msgspec.msgpack.Decoder(TimelineEntry).decode


def source_of(
    database: sqlite3.Connection,
    version_id: int,
    n_bytes: int | None = None,
    checked: CheckedSegments | None = None,
) -> Source:
    """Open the archived bytes of a version, or only the first `n_bytes` of them.

    Segments that are in `checked` are not compared with their SHA-256 again. Raises `DamagedArchiveError` if its rows
    are missing or damaged; so does reading damaged bytes.
    """
    row = database.execute(
        "SELECT files.home, files.path, versions.mtime_ns, versions.archived_bytes, "
        "versions.id IN (SELECT version_id FROM imported) "
        "FROM versions JOIN files ON files.id = versions.file_id WHERE versions.id = ?",
        (version_id,),
    ).fetchone()
    if row is None:
        raise damaged(database, version_id, "its row is missing")
    home, path, mtime_ns, length, is_import = row
    if not (isinstance(home, str) and isinstance(path, str) and isinstance(mtime_ns, int) and isinstance(length, int)):
        raise damaged(database, version_id, "its row holds values of the wrong type")
    read = reader(database, version_id, checked)
    if read.size != length:
        raise damaged(database, version_id, f"only {read.size} of {length} bytes are stored")
    modified = datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    size = min(n_bytes, read.size) if n_bytes is not None and n_bytes >= 0 else read.size
    clipped = read if size == read.size else lambda start, end: read(start, min(end, size))
    return Source(original_path(home, path), read=clipped, size=size, modified=modified, is_import=bool(is_import))


def continue_reading(source: Source, snapshot: bytes | None) -> tuple[FileReading, bytes]:
    """Read a file, continuing from a snapshot if there is one; return the reading and the snapshot for the next time.

    The old snapshot is returned again if little was added since: reading that twice costs less than a new snapshot.
    """
    if snapshot and (state := _unpacked(source, snapshot)):
        before, running = state
        if before.format == "log":
            if source.size - before.offset < SNAPSHOT_SIZE:
                return _read_to_end(source, running, before.offset, before.line), snapshot
            return _read_log(source, running, before.offset, before.line)
    original = source
    source, format_, operations = formats.opened(original)
    running = Replayer(*record_lookups(source))
    if format_ == "log":
        return _read_log(source, running, 0, 0)
    for operation in operations:
        running.apply(operation)
    packed = _packed_if_large(running, source, source.size, 0, format_)
    return finish_reading(source, format_, running.result, original), packed


def load_reading(source: Source, snapshot: bytes) -> FileReading:
    """Return the reading of a file from its snapshot, plus what was added since."""
    state = _unpacked(source, snapshot) if snapshot else None
    if state is None:
        return continue_reading(source, None)[0]
    before, running = state
    if before.format == "log":
        return _read_to_end(source, running, before.offset, before.line)
    if before.format == "document":
        return finish_reading(source, "document", running.result, source)
    return continue_reading(source, None)[0]


def compare_versions(versions: Sequence[FileReading]) -> list[bool]:
    """Compare the versions of a file, oldest first; return for each whether a later one contains all its messages.

    Old releases rewrite a document at every turn and remove rewound messages from it. So a message that the last
    version lacks gets the fate `rewound`. Versions that this machine has read itself are compared only with each other:
    an import neither supersedes them nor rewinds their messages.
    """
    ids = [{entry.id for part in reading.parts() for entry in part.replay.timeline} for reading in versions]
    is_import = [reading.original.is_import for reading in versions]
    is_superseded = []
    for number, reading in enumerate(versions):
        same_kind = [index for index, kind in enumerate(is_import) if kind == is_import[number]]
        candidates = [index for index in same_kind if index > number]
        if is_import[number]:
            candidates += [index for index, kind in enumerate(is_import) if not kind]
        is_superseded.append(any(ids[number] <= ids[index] for index in candidates))
        if reading.format == "document" and not is_superseded[-1]:
            for entry in reading.replay.timeline:
                if entry.id not in ids[same_kind[-1]]:
                    entry.fate = Fate.REWOUND
    return is_superseded


def _unpacked(source: Source, snapshot: bytes) -> tuple[ReplaySnapshot, Replayer] | None:
    """Return the replay of a snapshot, or None if that is damaged: then the file is read from its beginning."""
    try:
        return unpack_replay(snapshot, *record_lookups(source))
    except DamagedSnapshotError:
        return None


def _read_log(source: Source, running: Replayer, offset: int, line: int) -> tuple[FileReading, bytes]:
    """Continue reading a log; the snapshot ends with the last complete line, since a partial one may still grow."""
    end = end_of_lines(source, offset)
    for text_line in source.lines(offset, line):
        if text_line.start >= end:
            break
        line = text_line.number
        for operation in log.operations(text_line, source.path):
            running.apply(operation)
    packed = _packed_if_large(running, source, end, line, "log")
    return _read_to_end(source, running, end, line), packed


def _packed_if_large(running: Replayer, source: Source, offset: int, line: int, format_: str) -> bytes:
    if source.size < SNAPSHOT_SIZE or running.result.earlier:  # several sessions in one file are rare
        return b""
    return pack_replay(running, offset=offset, line=line, format_=format_)


def _read_to_end(source: Source, running: Replayer, offset: int, line: int) -> FileReading:
    for text_line in source.lines(offset, line):
        for operation in log.operations(text_line, source.path):
            running.apply(operation)
    return finish_reading(source, "log", running.result, source)


def pack_replay(running: Replayer, *, offset: int, line: int, format_: str) -> bytes:
    """Return the snapshot of a replay that has read a file up to an offset and a line."""
    result, timeline = running.result, running.timeline
    places = {entry.id: place for place, entry in enumerate(result.timeline)}
    data = _encode(
        ReplaySnapshot(
            offset=offset,
            line=line,
            format=format_,
            metadata=json.dumps(result.metadata),
            seen=json.dumps(result.seen),
            state=[_record_or_place(record, places, result.timeline) for record in result.state.values()],
            document=_document(result.document),
            entries=[msgspec.Raw(_encode(entry)) for entry in result.timeline],
            calls=[
                _Call(call.id, places[call.entry.id], call.model, call.tokens, call.line)
                for call in result.calls.values()
            ],
            problems=result.problems,
            first_words=result.first_words,
            scratchpad_is_stale=result.scratchpad_is_stale,
            has_checkpoints=result.has_checkpoints,
            by_id={
                id_: [places[entry.id] for entry in entries]
                for id_, entries in timeline.by_id.items()
                if [entry.id for entry in entries] != [id_]
            },
            alive=[places.get(id_, id_) for id_ in timeline.alive],
            new=[places.get(id_, id_) for id_ in timeline.new],
            repeats=timeline.repeats,
        )
    )
    return zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compress(data)


def unpack_replay(
    data: bytes, fingerprint: Callable[[Record], Fingerprint], words: Callable[[Record], str | None]
) -> tuple[ReplaySnapshot, Replayer]:
    """Return a snapshot and a replay in the same state. Raises `DamagedSnapshotError`."""
    try:
        state = _decode(zstandard.ZstdDecompressor().decompress(data))
        entries = _decoded_entries(state.entries)
    except (zstandard.ZstdError, msgspec.DecodeError, UnicodeDecodeError, TypeError, MemoryError) as error:
        raise DamagedSnapshotError(error) from None
    result = ReplayResult(
        metadata=json.loads(state.metadata),
        seen=json.loads(state.seen),
        state={record.id: record for record in _records(state.state, entries)},
        document=_restored_document(state.document),
        timeline=entries,
        calls={
            call.id: RecordedCall(call.id, entries[call.entry], call.model, call.tokens, call.line)
            for call in state.calls
        },
        problems=state.problems,
        first_words=state.first_words,
        scratchpad_is_stale=state.scratchpad_is_stale,
        has_checkpoints=state.has_checkpoints,
    )
    running = Replayer(fingerprint, words, result)
    timeline = running.timeline
    timeline.by_id = {entry.id: [entry] for entry in entries}
    timeline.by_id |= {id_: [entries[place] for place in places] for id_, places in state.by_id.items()}
    timeline.put_in_conversation({id_: timeline.by_id[id_] for id_ in _ids(state.alive, entries)})
    timeline.new = [*_ids(state.new, entries)]
    timeline.repeats = state.repeats
    return state, running


def _decoded_entries(stored: list[msgspec.Raw]) -> list[TimelineEntry]:
    """Decode entries; values that several recordings of a message have are the same objects again, as in the replay.

    The list is emptied meanwhile. Without this, a long session would need nearly twice the memory while it is opened.
    """
    entries, words = [], dict[str, str]()
    stored.reverse()
    while stored:
        entry = _decode_entry(stored.pop())
        if entry.calls_from == entry.content:
            entry.calls_from = entry.content
        if entry.thoughts_from == entry.content:
            entry.thoughts_from = entry.content
        if entry.model is not None:
            entry.model = words.setdefault(entry.model, entry.model)
        for record in filter(None, (entry.content, entry.calls_from, entry.thoughts_from)):
            for name in _SHARED:
                value = getattr(entry, name)
                if value is not None and getattr(record, name) == value:
                    force_setattr(record, name, value)
        entries.append(entry)
    return entries


_SHARED = ("id", "at", "model", "tokens", "prompt", "calls")
"""Fields of a record that a message mostly has from it."""


def _document(document: Document | None) -> _Document | None:
    return _Document(document.spans, document.salvaged, document.has_list) if document else None


def _restored_document(stored: _Document | None) -> Document | None:
    return Document({}, (), stored.spans, stored.salvaged, stored.has_list) if stored else None


def _record_or_place(record: Record, places: dict[str, int], entries: list[TimelineEntry]) -> int | Record:
    place = places.get(record.id, -1)
    return place if place >= 0 and entries[place].content is record else record


def _records(places: list[int | Record], entries: list[TimelineEntry]) -> Iterator[Record]:
    return (place if isinstance(place, Record) else entries[place].content for place in places)


def _ids(places: list[int | str], entries: list[TimelineEntry]) -> Iterator[str]:
    return (place if isinstance(place, str) else entries[place].id for place in places)
