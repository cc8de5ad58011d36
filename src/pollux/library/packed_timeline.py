"""The timeline of an open session in little memory, so that a server can have long sessions open.

As objects, 50,000 messages take more than 100 MB. Here a few numbers of each message are in arrays, for what is asked
about all messages: windows, fates, prompts, model calls, and where the files record what. Everything else is packed in
blocks, of which the last few that were read stay unpacked.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import zstandard
from msgspec.structs import astuple

from pollux.model import Cost, Fate, Kind, Origin, Tokens, Usage
from pollux.sessions.replay import TimelineEntry
from pollux.text.times import from_microseconds, microseconds, parse_time
from pollux.views.excerpts import line

if TYPE_CHECKING:
    from pollux.sessions.grouping import OpenSession
    from pollux.sessions.replay.reading import FileReading

BLOCK = 64
"""Messages that are packed together."""
UNPACKED = 6
"""Blocks that stay unpacked: a window has two or three."""
EXCERPT = 100
"""Characters of a prompt in an outline."""
_LEVEL = 1
_FATES = tuple(Fate)
_FATE_NUMBERS = {fate: number for number, fate in enumerate(_FATES)}
_TYPED, _LOADED, _ERROR = 1, 2, 4
_NO_TIME = -(1 << 63)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[TimelineEntry]).decode


class RecordSpans(NamedTuple):
    """Where a file records messages, in the order of their first bytes."""

    starts: array[int]
    stops: array[int]
    places: array[int]
    """The place of each message in the timeline."""

    def places_at(self, offset: int) -> Iterator[int]:
        """Yield the places of the messages that are recorded at an offset."""
        index = bisect_right(self.starts, offset) - 1
        while index >= 0 and self.stops[index] > offset:
            yield self.places[index]
            index -= 1


class PackedTimeline:
    """The messages of an open session, by their places from 0."""

    def __init__(self, group: OpenSession, usages: Mapping[str, Usage]) -> None:
        """Pack the timeline of a session, and tokens and cost of its messages by their IDs."""
        self.readings = [located.reading.without_replay() for located in group.files]
        files = {id(located): number for number, located in enumerate(group.files)}
        self._owners = array("H", (files[id(located)] for located, _ in group.timeline))
        self._fates = bytearray(_FATE_NUMBERS[entry.fate] for _, entry in group.timeline)
        self._marks = bytearray(_mark(entry) for _, entry in group.timeline)
        self._times = array("q", (_time_number(entry.at) for _, entry in group.timeline))
        self._prompts = array("I", (place for place, mark in enumerate(self._marks) if mark & (_TYPED | _LOADED)))
        self._words = [line(group.timeline[place][1].prompt, EXCERPT) for place in self._prompts]
        self._usages = _UsageByPlace(group.timeline, usages)
        self.spans = [_record_spans(group, number) for number in range(len(group.files))]
        compressor = zstandard.ZstdCompressor(_LEVEL)
        self._blocks = []
        for start in range(0, len(group.timeline), BLOCK):
            entries = [entry for _, entry in group.timeline[start : start + BLOCK]]
            self._blocks.append(compressor.compress(_encode(entries)))
        self._unpacked: OrderedDict[int, list[TimelineEntry]] = OrderedDict()
        self.n_unpacked = 0
        """Number of messages that were unpacked so far, for tests."""

    def __len__(self) -> int:
        return len(self._owners)

    def entry(self, place: int) -> tuple[FileReading, TimelineEntry]:
        """Return a message, and the file that it is in."""
        return self.readings[self._owners[place]], self._block(place // BLOCK)[place % BLOCK]

    def entries(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[FileReading, TimelineEntry]]:
        """Yield the messages from one place to another, which is excluded."""
        for place in range(*slice(start, stop).indices(len(self))):
            yield self.entry(place)

    def _block(self, number: int) -> list[TimelineEntry]:
        entries = self._unpacked.get(number)
        if entries is None:
            entries = self._unpacked[number] = _decode(zstandard.ZstdDecompressor().decompress(self._blocks[number]))
            self.n_unpacked += len(entries)
            if len(self._unpacked) > UNPACKED:
                self._unpacked.popitem(last=False)
        else:
            self._unpacked.move_to_end(number)
        return entries

    @property
    def held(self) -> int:
        """Number of messages that are unpacked now."""
        return sum(map(len, self._unpacked.values()))

    def fate(self, place: int) -> Fate:
        """Return the fate of a message."""
        return _FATES[self._fates[place]]

    def fates(self) -> list[Fate]:
        """Return the fate of each message."""
        return [_FATES[number] for number in self._fates]

    def at(self, place: int) -> datetime | None:
        """Return when a message was written."""
        time = self._times[place]
        return None if time == _NO_TIME else from_microseconds(time)

    def is_error(self, place: int) -> bool:
        """Return whether a message is an error of the client."""
        return bool(self._marks[place] & _ERROR)

    def is_prompt(self, place: int) -> bool:
        """Return whether a message is a prompt, typed in this session or loaded with a saved conversation."""
        return bool(self._marks[place] & (_TYPED | _LOADED))

    def is_typed(self, place: int) -> bool:
        """Return whether a message is a prompt that was typed in this session."""
        return bool(self._marks[place] & _TYPED)

    @property
    def prompts(self) -> array[int]:
        """The places of the prompts."""
        return self._prompts

    def prompt_words(self, number: int) -> str:
        """Return the start of a prompt, by its number from 0."""
        return self._words[number]

    def usage(self, place: int) -> Usage | None:
        """Return tokens and cost of the model calls that produced a message; None for other messages."""
        return self._usages.get(place)

    def usages(self) -> Iterator[tuple[int, Usage]]:
        """Yield the messages that model calls produced, with tokens and cost."""
        return self._usages.items()


def _mark(entry: TimelineEntry) -> int:
    is_prompt = entry.kind != Kind.UNKNOWN and entry.origin in (Origin.HUMAN, Origin.LOADED)
    if is_prompt:
        return _TYPED if entry.origin is Origin.HUMAN else _LOADED
    return _ERROR if entry.kind == Kind.ERROR else 0


def _time_number(at: str | None) -> int:
    number = microseconds(parse_time(at))
    return _NO_TIME if number is None else number


def _record_spans(group: OpenSession, number: int) -> RecordSpans:
    """Return where a file of a session records messages."""
    located = group.files[number]
    spans: list[tuple[int, int, int]] = []
    for place, (owner, entry) in enumerate(group.timeline):
        if owner is located:
            records = filter(None, (entry.content, entry.calls_from, entry.thoughts_from))
            spans += {(record.span.start, record.span.end, place) for record in records}
    spans.sort()
    columns = zip(*spans, strict=True) if spans else ((), (), ())
    starts, stops, places = (array("q", column) for column in columns)
    return RecordSpans(starts, stops, places)


class UsageById(Mapping[str, Usage]):
    """Tokens and cost of messages by their IDs, as numbers: objects would take five times as much memory."""

    def __init__(self, usages: Mapping[str, Usage]) -> None:
        """Pack tokens and cost of some messages."""
        self._indexes = {id_: index for index, id_ in enumerate(usages)}
        self._packed = _PackedUsages()
        for usage in usages.values():
            self._packed.append(usage)

    def __getitem__(self, id_: str) -> Usage:
        return self._packed[self._indexes[id_]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._indexes)

    def __len__(self) -> int:
        return len(self._indexes)


class _PackedUsages:
    """A list of tokens and costs."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._large: dict[int, Usage] = {}
        """Those with a number of more than 64 bits."""

    def append(self, usage: Usage) -> None:
        try:
            numbers = array("q", _usage_numbers(usage))
        except OverflowError:
            self._large[len(self._numbers) // _N_NUMBERS] = usage
            numbers = array("q", [0] * _N_NUMBERS)
        self._numbers.extend(numbers)

    def __getitem__(self, index: int) -> Usage:
        if index in self._large:
            return self._large[index]
        return _usage_of_numbers(*self._numbers[index * _N_NUMBERS : (index + 1) * _N_NUMBERS])


class _UsageByPlace:
    """Tokens and cost of messages by their places."""

    def __init__(self, timeline: Sequence[tuple[object, TimelineEntry]], usages: Mapping[str, Usage]) -> None:
        self._places = array("I")
        self._packed = _PackedUsages()
        for place, (_, entry) in enumerate(timeline):
            usage = usages.get(entry.id)
            if usage is not None:
                self._places.append(place)
                self._packed.append(usage)

    def get(self, place: int) -> Usage | None:
        index = bisect_left(self._places, place)
        is_there = index < len(self._places) and self._places[index] == place
        return self._packed[index] if is_there else None

    def items(self) -> Iterator[tuple[int, Usage]]:
        for index, place in enumerate(self._places):
            yield place, self._packed[index]


def _usage_numbers(usage: Usage) -> tuple[int, ...]:
    cost = usage.cost
    own = (usage.calls, usage.inconsistent, cost.nanousd, cost.unpriced_calls)
    return (*own, *astuple(usage.tokens), *astuple(cost.unpriced_tokens))


def _usage_of_numbers(calls: int, inconsistent: int, nanousd: int, unpriced_calls: int, *counts: int) -> Usage:
    tokens, unpriced = Tokens(*counts[:_N_COUNTS]), Tokens(*counts[_N_COUNTS:])
    return Usage(calls, tokens, Cost(nanousd, unpriced_calls, unpriced), inconsistent=inconsistent)


_N_COUNTS = len(astuple(Tokens()))
_N_NUMBERS = len(_usage_numbers(Usage()))
