"""Read one file, and build complete messages from its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from pollux import formats
from pollux.formats import lenient, tool_calls
from pollux.formats.messages import message
from pollux.formats.operations import Record
from pollux.formats.parts import parts, title_words
from pollux.formats.records import SESSION_ID
from pollux.formats.short import LEFT_OUT, value_at
from pollux.formats.source import LONG, Source, Span
from pollux.model import FunctionCall, FunctionResponse, Json, Kind, Message, Problem, Text
from pollux.sessions.replay.replay import Fingerprint, ReplayResult, TimelineEntry, replay
from pollux.text.escape import escape_surrogates
from pollux.text.numbers import has_large_integer, with_doubles


class FileReading(msgspec.Struct):
    """A file that was read, and its replay."""

    path: Path
    format: str
    source: Source
    """The bytes that the spans of its records refer to."""
    replay: ReplayResult
    original: Source
    """The file itself; differs from `source` if the file was converted from another format."""
    _responses: dict[str, Record] | None = None

    def response(self, call_id: str | None) -> Record | None:
        """Return the last message that answers a call."""
        if self._responses is None:
            records = [entry.content for entry in self.replay.timeline]
            self._responses = {id_: record for record in records for id_ in record.responses if id_}
        return self._responses.get(call_id) if call_id else None

    def calls_line(self, entry: TimelineEntry) -> int | None:
        """Return the line on which the calls of a message are recorded, else the last on which one is answered."""
        if entry.calls_from or not entry.tool_calls:
            return entry.calls_from.line if entry.calls_from else None
        answers = [self.response(call.id) for call in entry.tool_calls]
        return max(record.line for record in (entry.content, *answers) if record)

    def parts(self) -> list[FileReading]:
        """Return one reading for each session in the file; mostly only this one."""
        earlier = [msgspec.structs.replace(self, replay=result, _responses=None) for result in self.replay.earlier]
        return [*earlier, self]

    def without_replay(self) -> FileReading:
        """Return a reading of the same file that can still build messages, but has no replay, which is large."""
        asked: set[str | None] = set()
        for entry in self.replay.timeline:
            if not entry.calls:
                asked.update(call.id for call in entry.content.asked)
        responses = {id_: record for id_ in asked if id_ and (record := self.response(id_))}
        return msgspec.structs.replace(self, replay=ReplayResult(), _responses=responses)

    @property
    def id(self) -> str | None:
        """The session ID in the file's metadata."""
        id_ = self.replay.metadata.get(SESSION_ID) or self.replay.seen.get(SESSION_ID)
        return escape_surrogates(id_) if isinstance(id_, str) and id_ else None


def read(path: Path) -> FileReading:
    """Read one file of any generation. Raises `OSError` if it cannot be opened."""
    original = Source(path)
    source, format_, operations = formats.opened(original)
    return finish_reading(source, format_, replay(operations, *record_lookups(source)), original)


def record_lookups(source: Source) -> tuple[Callable[[Record], Fingerprint], Callable[[Record], str | None]]:
    """Return two functions for the replay that read a record again: for its fingerprint, and for a title."""
    return (
        lambda record: _fingerprint(source, record),
        lambda record: title_words(_object(source, record.span, shortened=True)),
    )


def first_words(reading: FileReading) -> str | None:
    """Return the text of the first prompt in full; of a very long one the replay has only the start and the end."""
    words = reading.replay.first_words
    if words is None or LEFT_OUT not in words:
        return words
    for entry in reading.replay.timeline:
        span = entry.content.span
        if entry.kind == Kind.USER and span.end - span.start > LONG:
            full_words = title_words(_object(reading.source, span))
            if full_words is not None and title_words(_object(reading.source, span, shortened=True)) == words:
                return full_words
    return words


def finish_reading(source: Source, format_: str, result: ReplayResult, original: Source) -> FileReading:
    """Return the reading of a replayed file; a file that the client cannot read gets at least one problem."""
    _round_large_integers(result, source.path)
    if not result.is_readable and not result.problems and format_ in ("document", "log"):
        result.problems.append(_refused(result, source.path))
    return FileReading(source.path, format_, source, result, original)


def cannot_derive(path: object, reason: str) -> Problem:
    """Return the problem for a file that raises an error when read, which is a bug in Pollux."""
    text = f"Pollux failed to read this file ({reason}). Please report this; `pollux raw FILE` still prints the file"
    return Problem("cannot-derive", text, str(path))


def reason_of(error: Exception) -> str:
    """Return the type and message of an error on one short line."""
    words = " ".join(str(error).split())
    return escape_surrogates(f"{type(error).__name__}: {words}"[:_REASON] if words else type(error).__name__)


_REASON = 200


def _round_large_integers(result: ReplayResult, path: Path) -> None:
    """Round integers of more than 64 bits in the metadata to doubles, as the client does, and report them."""
    both = [*result.seen.items(), *result.metadata.items()]
    large = dict.fromkeys(key for key, value in both if has_large_integer(value))
    for key in large:
        text = f"an integer in '{escape_surrogates(key)[:80]}' needs more than 64 bits and is rounded to a double"
        result.problems.append(Problem("value-out-of-range", text, str(path)))
    if large:
        result.seen = {key: with_doubles(value) for key, value in result.seen.items()}
        result.metadata = {key: with_doubles(value) for key, value in result.metadata.items()}


def state(reading: FileReading) -> Iterator[bytes]:
    """Yield the bytes of each message that the client would load."""
    for span in reading.replay.spans:
        yield reading.source.slice(span)


def shortened_state(reading: FileReading) -> Iterator[dict[str, Any]]:
    """Yield these messages decoded, with very long texts shortened; {} for one that is not an object."""
    for span in reading.replay.spans:
        yield _object(reading.source, span, shortened=True)


def build_message(reading: FileReading, entry: TimelineEntry, *, shortened: bool = False) -> Message:
    """Build a message from the recordings with its text, its calls and its thoughts.

    Args:
        reading: the file.
        entry: the message.
        shortened: replace very long texts by their start, their end and a note about what was left out.

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
        content = tool_calls.with_calls(content, _requested_calls(reading, content, shortened=shortened))
    calls = load(entry.calls_from)
    if calls is not None and entry.calls_from and entry.calls != entry.calls_from.calls:
        calls = tool_calls.only_calls(calls, {call.id for call in entry.calls})  # other messages made the others
    return message(
        {"id": entry.id, "type": entry.kind, **content, "timestamp": entry.at},
        calls=calls,
        thinking=load(entry.thoughts_from),
        origin=entry.origin,
        fate=entry.fate,
        tokens=entry.tokens,
        model=entry.model,
        file=str(reading.path),
        line=entry.line,
    )


def asked_calls(reading: FileReading, entry: TimelineEntry) -> list[dict[str, Any]]:
    """Return records, as the client would write them, of calls that a message asks for and that were not recorded."""
    if entry.calls or not entry.tool_calls:
        return []
    return _requested_calls(reading, _object(reading.source, entry.content.span), shortened=False)


def _requested_calls(reading: FileReading, content: dict[str, Any], *, shortened: bool) -> list[dict[str, Any]]:
    """Rebuild the records of calls from the request in this message and the response in a later one."""
    results: dict[Span, dict[str | None, Any]] = {}
    calls = []
    for part in parts(content.get("content")):
        if isinstance(part, FunctionCall):
            call: dict[str, Any] = {"id": part.id, "name": part.name, "args": part.args}
            response = reading.response(part.id)
            if response:
                span = response.span
                if span not in results:
                    content = _object(reading.source, span, shortened=shortened)
                    results[span] = tool_calls.results_by_call(content.get("content"))
                call["result"] = results[span].get(part.id, [])
            calls.append(call)
    return calls


def call_arguments(reading: FileReading, entry: TimelineEntry) -> list[Json]:
    """Return the arguments of a message's tool calls, shortened, without building the message."""
    data, short = value_at(reading.source, entry.calls_from.span) if entry.calls_from else (b"{}", None)
    try:
        arguments = tool_calls.decode_arguments(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [call.args for call in build_message(reading, entry, shortened=True).tool_calls]
    return short.with_notes(arguments) if short else arguments


def _object(source: Source, span: Span, *, shortened: bool = False) -> dict[str, Any]:
    """Decode the object at a span; {} if the file was changed since it was read."""
    if not shortened:
        return _decoded(source.slice(span))
    data, short = value_at(source, span)
    value = _decoded(data)
    return short.with_notes(value) if short else value


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        value = lenient.decode(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _fingerprint(source: Source, record: Record) -> Fingerprint:
    if record.kind == Kind.USER:  # in full: it is searched for the texts of other messages
        content, short = parts(_object(source, record.span).get("content")), None
    else:
        data, short = value_at(source, record.span)
        content = parts(_decoded(data).get("content"))
    ids = frozenset(part.id for part in content if isinstance(part, FunctionCall | FunctionResponse) and part.id)
    texts = (part.text.strip() for part in content if isinstance(part, Text))
    return record.kind, ids, tuple(short.exact(text) if short else text for text in texts if text)


def _refused(result: ReplayResult, path: Path) -> Problem:
    if result.timeline:
        text = "no header: the client considers this file corrupt and will delete it"
        return Problem("no-header", text, str(path), 1)
    return Problem("no-session", "contains no session", str(path), 1)
