"""One file → its readings, and from them whole messages: where the operations, the replay and the bytes meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from pollux import formats
from pollux.formats import lenient
from pollux.formats.messages import message
from pollux.formats.operations import Record
from pollux.formats.parts import parts, title_words
from pollux.formats.records import SESSION_ID
from pollux.formats.short import LEFT_OUT, value_at
from pollux.formats.source import LONG, Source, Span
from pollux.model import FunctionCall, FunctionResponse, Json, Kind, Message, Problem, Text
from pollux.sessions.replay.replay import Entry, Fingerprint, Replay, replay
from pollux.text.integers import has_large_integer, with_doubles
from pollux.text.unicode import sound


class Reading(msgspec.Struct):
    """One file, read."""

    path: Path
    format: str
    source: Source
    """What the spans of its records refer to."""
    replay: Replay
    original: Source
    """The file as it is; another only where a file of another shape was written anew to be read."""
    _responses: dict[str, Record] | None = None

    def response(self, call_id: str | None) -> Record | None:
        """Return the last message that answers a call."""
        if self._responses is None:
            records = [entry.content for entry in self.replay.timeline]
            self._responses = {id_: record for record in records for id_ in record.responses if id_}
        return self._responses.get(call_id) if call_id else None

    def calls_line(self, entry: Entry) -> int | None:
        """Return the line on which the calls of a message are recorded, or were answered."""
        if entry.calls_from or not entry.tool_calls:
            return entry.calls_from.line if entry.calls_from else None
        answers = [self.response(call.id) for call in entry.tool_calls]
        return max(record.line for record in (entry.content, *answers) if record)

    def parts(self) -> list[Reading]:
        """Return the reading of each session that the file holds: mostly one, this."""
        earlier = [msgspec.structs.replace(self, replay=one, _responses=None) for one in self.replay.earlier]
        return [*earlier, self]

    @property
    def id(self) -> str | None:
        """The session id that the file gives itself."""
        found = self.replay.metadata.get(SESSION_ID) or self.replay.seen.get(SESSION_ID)
        return sound(found) if isinstance(found, str) and found else None


def read(path: Path) -> Reading:
    """Read one file of whatever generation. Raises `OSError` if it cannot be opened."""
    original = Source(path)
    source, format_, operations = formats.opened(original)
    return finished(source, format_, replay(operations, *looks(source)), original)


def looks(source: Source) -> tuple[Callable[[Record], Fingerprint], Callable[[Record], str | None]]:
    """Return what the replay asks where the head of a record is not enough: its fingerprint, and words for a title."""
    return (
        lambda record: _fingerprint(source, record),
        lambda record: title_words(_object(source, record.span, shortened=True)),
    )


def first_words(reading: Reading) -> str | None:
    """Return the first words of a user in full; of very long ones the replay has only the beginning and the end."""
    words = reading.replay.first_words
    if words is None or LEFT_OUT not in words:
        return words
    for entry in reading.replay.timeline:
        span = entry.content.span
        if entry.kind == Kind.USER and span.end - span.start > LONG:
            whole_words = title_words(_object(reading.source, span))
            if whole_words is not None and title_words(_object(reading.source, span, shortened=True)) == words:
                return whole_words
    return words


def finished(source: Source, format_: str, result: Replay, original: Source) -> Reading:
    """Return a reading; a file that the client cannot read has at least one problem."""
    _round_large_integers(result, source.path)
    if not result.is_readable and not result.problems and format_ in ("document", "log"):
        result.problems.append(_refused(result, source.path))
    return Reading(source.path, format_, source, result, original)


def cannot_derive(path: object, reason: str) -> Problem:
    """Return the problem of a file whose reading raises an error, which is a fault in Pollux."""
    text = f"Pollux failed to read this file ({reason}); please report this, `pollux raw FILE` still prints it"
    return Problem("cannot-derive", text, str(path))


def reason_of(error: Exception) -> str:
    """Return the type and the message of an error on one line, short enough for a list."""
    words = " ".join(str(error).split())
    return sound(f"{type(error).__name__}: {words}"[:_REASON] if words else type(error).__name__)


_REASON = 200


def _round_large_integers(result: Replay, path: Path) -> None:
    """Round integers in the metadata that no table can hold as the client does, and report them."""
    both = [*result.seen.items(), *result.metadata.items()]
    large = dict.fromkeys(key for key, value in both if has_large_integer(value))
    for key in large:
        text = f"an integer in '{sound(key)[:80]}' needs more than 64 bits and is rounded to a double"
        result.problems.append(Problem("value-out-of-range", text, str(path)))
    if large:
        result.seen = {key: with_doubles(value) for key, value in result.seen.items()}
        result.metadata = {key: with_doubles(value) for key, value in result.metadata.items()}


def state(reading: Reading) -> Iterator[bytes]:
    """Yield the messages that the client would load, as they stand in the file."""
    for span in reading.replay.spans:
        yield reading.source.slice(span)


def shortened_state(reading: Reading) -> Iterator[dict[str, Any]]:
    """Yield the same, decoded, and of very long texts only the beginning and the end; what is no object is empty."""
    for span in reading.replay.spans:
        yield _object(reading.source, span, shortened=True)


def whole(reading: Reading, entry: Entry, *, shortened: bool = False) -> Message:
    """Build one message from the recordings that hold its words, its calls and its thoughts.

    Args:
        reading: the file.
        entry: the message.
        shortened: whether very long texts are replaced by their beginning, their end, and a sentence about the rest.

    """
    loaded: dict[Span, dict[str, Any]] = {}

    def load(record: Record | None) -> dict[str, Any] | None:
        if record is None:
            return None
        if record.span not in loaded:
            loaded[record.span] = _object(reading.source, record.span, shortened=shortened)
        return loaded[record.span]

    content = load(entry.content) or {}
    if not entry.calls and entry.content.asked:
        content = content | {"toolCalls": _answered(reading, content, shortened=shortened)}
    return message(
        {"id": entry.id, "type": entry.kind, **content, "timestamp": entry.at},
        calls=_own_calls(entry, load(entry.calls_from)),
        thinking=load(entry.thoughts_from),
        origin=entry.origin,
        fate=entry.fate,
        tokens=entry.tokens,
        model=entry.model,
        file=str(reading.path),
        line=entry.line,
    )


def _own_calls(entry: Entry, recorded: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a recording of calls without those that other messages made."""
    if recorded is None or entry.calls_from is None or entry.calls == entry.calls_from.calls:
        return recorded
    ids = {call.id for call in entry.calls}
    calls = recorded.get("toolCalls")
    own = (
        [call for call in calls if isinstance(call, dict) and call.get("id") in ids] if isinstance(calls, list) else []
    )
    return recorded | {"toolCalls": own}


def asked_calls(reading: Reading, entry: Entry) -> list[dict[str, Any]]:
    """Return the records, as the client would write them, of calls that a message asks for and that have none."""
    if entry.calls or not entry.tool_calls:
        return []
    return _answered(reading, _object(reading.source, entry.content.span), shortened=False)


def _answered(reading: Reading, content: dict[str, Any], *, shortened: bool) -> list[dict[str, Any]]:
    """Rebuild the records of calls that only a history holds: the request here, the response in a later message."""
    results: dict[Span, dict[str | None, Any]] = {}
    found = []
    for part in parts(content.get("content")):
        if isinstance(part, FunctionCall):
            call: dict[str, Any] = {"id": part.id, "name": part.name, "args": part.args}
            response = reading.response(part.id)
            if response:
                span = response.span
                if span not in results:
                    results[span] = _results(_object(reading.source, span, shortened=shortened).get("content"))
                call["result"] = results[span].get(part.id, [])
            found.append(call)
    return found


def _results(content: object) -> dict[str | None, list[Any]]:
    """Return the function responses of a message by the IDs of their calls; media that follow one belong to it."""
    found: dict[str | None, list[Any]] = {}
    mine: list[Any] = []
    for value in content if isinstance(content, list) else [content]:
        response = value.get("functionResponse") if isinstance(value, dict) else None
        if isinstance(response, dict):
            mine = found.setdefault(response.get("id"), [])
        mine.append(value)
    return found


def arguments(reading: Reading, entry: Entry) -> list[Json]:
    """Return only the arguments of a message's tool calls, shortened, without building the rest."""
    data, short = value_at(reading.source, entry.calls_from.span) if entry.calls_from else (b"{}", None)
    try:
        found = [call.args for call in _decode_calls(data).tool_calls]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [call.args for call in whole(reading, entry, shortened=True).tool_calls]
    return short.told(found) if short else found


class _Call(msgspec.Struct):
    args: Any = None


class _Calls(msgspec.Struct, rename="camel"):
    tool_calls: list[_Call] = []


_decode_calls = msgspec.json.Decoder(_Calls).decode


def _object(source: Source, span: Span, *, shortened: bool = False) -> dict[str, Any]:
    """Decode the object at a span; empty if the file was changed under our hands."""
    if not shortened:
        return _decoded(source.slice(span))
    data, short = value_at(source, span)
    found = _decoded(data)
    return short.told(found) if short else found


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        value = lenient.decode(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _fingerprint(source: Source, record: Record) -> Fingerprint:
    if record.kind == Kind.USER:  # words of others are looked for in it
        found, short = parts(_object(source, record.span).get("content")), None
    else:
        data, short = value_at(source, record.span)
        found = parts(_decoded(data).get("content"))
    ids = frozenset(part.id for part in found if isinstance(part, FunctionCall | FunctionResponse) and part.id)
    texts = (part.text.strip() for part in found if isinstance(part, Text))
    return record.kind, ids, tuple(short.exact(text) if short else text for text in texts if text)


def _refused(result: Replay, path: Path) -> Problem:
    if result.timeline:
        text = "no header: the client takes this file for corrupt and will delete it"
        return Problem("no-header", text, str(path), 1)
    return Problem("no-session", "no session could be found in this file", str(path), 1)
