"""Find words in a whole session: scan the bytes of its files, then compare the text of the messages that match.

The bytes are JSON, in which some characters are escaped, so only a run of plain characters of the words is searched for
in them. Words without such a run are compared with every message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pollux.model import Code, CodeResult, Json, Message, Text, ToolCall
from pollux.sessions.replay.reading import build_message

if TYPE_CHECKING:
    from pollux.library.windows import OpenConversation

MOST_FOUND = 5_000
_PLAIN = re.compile(r"[A-Za-z0-9 .,:;_()=+*-]+")
"""Characters that no writer of JSON escapes."""


class FoundMessages(NamedTuple):
    """The messages of a session that contain some words."""

    at: tuple[int, ...]
    """Their numbers, from 1; at most `MOST_FOUND`."""
    n_messages: int
    """Messages that were searched."""
    has_more: bool


def find_in_session(conversation: OpenConversation, words: str, most: int = MOST_FOUND) -> FoundMessages:
    """Return the messages that contain some words, in any case."""
    needle = words.strip().casefold()
    timeline = conversation.timeline
    if not needle:
        return FoundMessages((), len(timeline), has_more=False)
    runs = sorted(_PLAIN.findall(needle), key=len)
    places: Iterable[int] = range(len(timeline))
    if runs and needle.isascii():
        places = sorted(_candidates(conversation, runs[-1].encode()))
    numbers: list[int] = []
    for place in places:
        if _contains(build_message(*timeline.entry(place)), needle):
            if len(numbers) == most:
                return FoundMessages(tuple(numbers), len(timeline), has_more=True)
            numbers.append(place + 1)
    return FoundMessages(tuple(numbers), len(timeline), has_more=False)


def _candidates(conversation: OpenConversation, needle: bytes) -> set[int]:
    """Return the places of the messages whose recorded bytes contain a run of ASCII characters, in any case."""
    timeline = conversation.timeline
    places: set[int] = set()
    for reading, spans in zip(timeline.readings, timeline.spans, strict=True):
        for offset in _offsets(reading.source.blocks(), needle):
            places.update(spans.places_at(offset))
    return places


def _offsets(blocks: Iterable[bytes], needle: bytes) -> Iterator[int]:
    """Yield where a text begins in a stream of bytes."""
    before, position = b"", 0
    for block in blocks:
        data = before + block.lower()
        start = position - len(before)
        at = data.find(needle)
        while at >= 0:
            yield start + at
            at = data.find(needle, at + 1)
        position += len(block)
        before = data[-(len(needle) - 1) :] if len(needle) > 1 else b""


def _contains(message: Message, needle: str) -> bool:
    return any(needle in text.casefold() for text in _texts(message))


def _texts(message: Message) -> Iterator[str]:
    yield message.text
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Code):
            yield part.code
        elif isinstance(part, CodeResult):
            yield part.output
    for thought in message.thoughts:
        yield from (thought.subject, thought.text)
    for call in message.tool_calls:
        yield from _call_texts(call)


def _call_texts(call: ToolCall) -> Iterator[str]:
    yield from filter(None, (call.name, call.label, call.display_name, call.description, call.output, call.error))
    yield from _strings(call.args)
    if call.display is not None:
        yield from _strings(msgspec.to_builtins(call.display))


def _strings(value: Json) -> Iterator[str]:
    """Yield the strings in a JSON value, keys excluded."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, dict):
            waiting += inner.values()
        elif isinstance(inner, list | tuple):
            waiting += inner
