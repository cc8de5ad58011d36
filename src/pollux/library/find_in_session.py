"""Find words in a whole session: scan the bytes of its files, then compare the text of the messages that match.

The bytes are JSON, in which some characters are escaped, so only a part of the words is searched for in them: a
character beyond ASCII, in both cases and as it may be escaped, or else a run of plain characters. Words without such a
part are compared with every message.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pollux.model import Code, CodeResult, Json, Message, Text, ToolCall
from pollux.search.highlight import snippet
from pollux.search.values import Snippet, TextSpan
from pollux.sessions.replay.reading import build_message

if TYPE_CHECKING:
    from pollux.library.windows import OpenConversation

MOST_FOUND = 5_000
_MOST_MARKED = 20
"""Occurrences of the words in a message that an excerpt is chosen from."""
_PLAIN = re.compile(r"[A-Za-z0-9 .,:;_()=+*-]+")
"""Characters that no writer of JSON escapes."""
LAST_CASED = 0x1E921
"""The last character that has another case; a test checks it."""


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
    places: Iterable[int] = range(len(timeline))
    anchors = _anchors(needle)
    if anchors:
        places = sorted(_candidates(conversation, anchors))
    numbers: list[int] = []
    for place in places:
        if _contains(build_message(*timeline.entry(place)), needle):
            if len(numbers) == most:
                return FoundMessages(tuple(numbers), len(timeline), has_more=True)
            numbers.append(place + 1)
    return FoundMessages(tuple(numbers), len(timeline), has_more=False)


def excerpt(message: Message, words: str) -> Snippet:
    """Return the text around some words in a message that contains them."""
    needle = words.strip().casefold()
    for text in _texts(message):
        if spans := _spans(text, needle):
            return snippet(text, spans)
    return Snippet("", ())


def _spans(text: str, needle: str) -> list[TextSpan]:
    """Return the first places of a casefolded needle in a text, as offsets in the text itself."""
    folded = text.casefold()
    places: Sequence[int] = range(len(text) + 1)
    if len(folded) != len(text):  # a character such as ß became two
        places = [place for place, char in enumerate(text) for _ in char.casefold()] + [len(text)]
    spans: list[TextSpan] = []
    at = folded.find(needle)
    while at >= 0 and len(spans) < _MOST_MARKED:
        end = at + len(needle)
        spans.append(TextSpan(places[at], places[end - 1] + 1))
        at = folded.find(needle, end)
    return spans


def _anchors(needle: str) -> list[bytes]:
    """Return bytes in lower case of which a recorded text contains some if it contains the needle; [] if unknown."""
    beyond = next((char for char in needle if not char.isascii()), "")
    if beyond:
        return [form for char in (beyond, *_unfolded().get(beyond, ())) for form in _forms(char)]
    run = max(_PLAIN.findall(needle), key=len, default="")
    others = dict.fromkeys(char for folded in run for char in _unfolded().get(folded, ()) if not char.isascii())
    return [run.encode(), *(form for char in others for form in _forms(char))] if run else []


@cache
def _unfolded() -> Mapping[str, list[str]]:
    """Return the other characters that become a character in `casefold`, such as ẞ and ß for s."""
    unfolded: dict[str, list[str]] = defaultdict(list)
    for char in map(chr, range(LAST_CASED + 1)):
        for folded in char.casefold() if char.casefold() != char else ():
            unfolded[folded].append(char)
    return unfolded


def _forms(char: str) -> tuple[bytes, bytes]:
    """Return a character beyond ASCII as it is recorded: as UTF-8, and escaped."""
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
    return char.encode("utf-8", "surrogatepass").lower(), escaped.encode()


def _candidates(conversation: OpenConversation, anchors: Sequence[bytes]) -> set[int]:
    """Return the places of the messages whose recorded bytes contain one of some texts, in any case."""
    timeline = conversation.timeline
    places: set[int] = set()
    for reading, spans in zip(timeline.readings, timeline.spans, strict=True):
        for offset in _offsets(reading.source.blocks(), anchors):
            places.update(spans.places_at(offset))
    return places


def _offsets(blocks: Iterable[bytes], needles: Sequence[bytes]) -> Iterator[int]:
    """Yield where one of some texts begins in a stream of bytes."""
    overlap = max(map(len, needles)) - 1
    before, position = b"", 0
    for block in blocks:
        data = before + block.lower()
        start = position - len(before)
        is_plain = data.isascii() and b"\\u" not in data
        for needle in needles:
            if is_plain and not (needle.isascii() and needle[:1] != b"\\"):
                continue  # no character beyond ASCII is recorded here
            at = data.find(needle)
            while at >= 0:
                yield start + at
                at = data.find(needle, at + 1)
        position += len(block)
        before = data[-overlap:] if overlap else b""


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
