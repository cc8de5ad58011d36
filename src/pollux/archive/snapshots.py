"""A replay, set aside: so that of a file that grew only what is new has to be read.

Derived like the facts, and thrown away with them. Plain data all through: an archive may come from somebody else.
A checksum in the packed form tells of damage; the file is read from its beginning then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import msgspec
import zstandard

from pollux.formats.operations import Document, Record
from pollux.formats.source import Span
from pollux.model import Problem, Tokens
from pollux.sessions.replay.copies import Fingerprint
from pollux.sessions.replay.entries import Call, Entry
from pollux.sessions.replay.replay import Replay, Running


class BadSnapshotError(Exception):
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


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """All that a replay knows, and how far it has read."""

    offset: int
    line: int
    format: str
    metadata: str
    """As JSON: it may hold halves of surrogate pairs, which no binary form takes."""
    seen: str
    state: list[int | Record]
    """Mostly the recordings that the entries have, too: then the place of the entry."""
    document: _Document | None
    entries: list[Entry]
    calls: list[_Call]
    problems: list[Problem]
    first_words: str | None
    scratchpad_is_stale: bool | None
    has_checkpoints: bool
    by_id: dict[str, list[int]]
    """Without the ids that stand for the entry of the same id."""
    alive: list[int | str]
    """Ids, or the places of the entries that have them."""
    new: list[int | str]
    repeats: bool


_LEVEL = 3
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Snapshot).decode


def snapshot(running: Running, *, offset: int, line: int, format_: str) -> bytes:
    """Set a replay aside."""
    result, timeline = running.result, running.timeline
    places = {entry.id: place for place, entry in enumerate(result.timeline)}
    whole = _encode(
        Snapshot(
            offset=offset,
            line=line,
            format=format_,
            metadata=json.dumps(result.metadata),
            seen=json.dumps(result.seen),
            state=[_placed(one, places, result.timeline) for one in result.state.values()],
            document=_document(result.document),
            entries=result.timeline,
            calls=[
                _Call(one.id, places[one.entry.id], one.model, one.tokens, one.line) for one in result.calls.values()
            ],
            problems=result.problems,
            first_words=result.first_words,
            scratchpad_is_stale=result.scratchpad_is_stale,
            has_checkpoints=result.has_checkpoints,
            by_id={
                one: [places[entry.id] for entry in found]
                for one, found in timeline.by_id.items()
                if [entry.id for entry in found] != [one]
            },
            alive=[places.get(one, one) for one in timeline.alive],
            new=[places.get(one, one) for one in timeline.new],
            repeats=timeline.repeats,
        )
    )
    return zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compress(whole)


def restored(
    data: bytes, fingerprint: Callable[[Record], Fingerprint], words: Callable[[Record], str | None]
) -> tuple[Snapshot, Running]:
    """Take a replay up again, to read it or to go on with it. Raises `BadSnapshotError` if it is damaged."""
    try:
        found = _decode(zstandard.ZstdDecompressor().decompress(data))
    except (zstandard.ZstdError, msgspec.DecodeError, UnicodeDecodeError, TypeError, MemoryError) as error:
        raise BadSnapshotError(error) from None
    entries = found.entries
    result = Replay(
        metadata=json.loads(found.metadata),
        seen=json.loads(found.seen),
        state={record.id: record for record in _records(found.state, entries)},
        document=_whole_document(found.document),
        timeline=entries,
        calls={one.id: Call(one.id, entries[one.entry], one.model, one.tokens, one.line) for one in found.calls},
        problems=found.problems,
        first_words=found.first_words,
        scratchpad_is_stale=found.scratchpad_is_stale,
        has_checkpoints=found.has_checkpoints,
    )
    running = Running(fingerprint, words, result)
    timeline = running.timeline
    timeline.by_id = {entry.id: [entry] for entry in entries}
    timeline.by_id |= {one: [entries[place] for place in places] for one, places in found.by_id.items()}
    timeline.put_in_conversation({one: timeline.by_id[one] for one in _ids(found.alive, entries)})
    timeline.new = [*_ids(found.new, entries)]
    timeline.repeats = found.repeats
    return found, running


def _document(found: Document | None) -> _Document | None:
    return _Document(found.spans, found.salvaged, found.has_list) if found else None


def _whole_document(kept: _Document | None) -> Document | None:
    return Document({}, (), kept.spans, kept.salvaged, kept.has_list) if kept else None


def _placed(record: Record, places: dict[str, int], entries: list[Entry]) -> int | Record:
    place = places.get(record.id, -1)
    return place if place >= 0 and entries[place].content is record else record


def _records(places: list[int | Record], entries: list[Entry]) -> Iterator[Record]:
    return (one if isinstance(one, Record) else entries[one].content for one in places)


def _ids(places: list[int | str], entries: list[Entry]) -> Iterator[str]:
    return (one if isinstance(one, str) else entries[one].id for one in places)
