"""The state of a session, as the client's `/export-session` writes it and `gemini --session-file` reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from pollux.exports.source import ExportSource
from pollux.formats import lenient
from pollux.formats.parts import is_resumable, title_words
from pollux.model import Json
from pollux.sessions.replay.reading import FileReading, state
from pollux.sessions.replay.reading import first_words as first_words_of
from pollux.text.times import client_timestamp

_KEYS = ("sessionId", "projectHash", "startTime", "lastUpdated", "summary", "memoryScratchpad", "directories", "kind")


def render(source: ExportSource) -> Iterator[bytes]:
    """Yield the state of a session."""
    return render_state(source.group.main.reading, source.clean if source.redactor else None)


def render_state(reading: FileReading, clean: Callable[[Json], Json] | None = None) -> Iterator[bytes]:
    """Yield the state of one file as indented JSON, message by message to save memory."""
    n_messages, n_user, has_content = 0, 0, False
    first_words = first_words_of(reading)
    head = _head(reading)
    if clean:
        head = {key: clean(value) for key, value in head.items()}
        first_words = first_words and str(clean(first_words))
    has_list = reading.replay.document is None or reading.replay.document.has_list
    yield b"{\n" + b",\n".join(b"  " + _pair(key, value) for key, value in head.items())
    yield b',\n  "messages": [' if has_list else b""
    for original in state(reading):
        data = _dumps(clean(lenient.decode(original))) if clean else original
        yield (b"," if n_messages else b"") + b"\n    " + _pretty(data).replace(b"\n", b"\n    ")
        n_messages += 1
        value = lenient.decode(data)
        if isinstance(value, dict):
            n_user += value.get("type") == "user"
            has_content = has_content or is_resumable(value)
            if first_words is None and value.get("type") == "user":
                first_words = title_words(value)
    yield (b"\n  ]" if n_messages else b"]") if has_list else b""
    tail = _tail(reading, n_messages, n_user, first_words, has_content=has_content)
    yield b"".join(b",\n  " + _pair(key, value) for key, value in tail.items()) + b"\n}\n"


def _head(reading: FileReading) -> dict[str, Any]:
    metadata = reading.replay.metadata or reading.replay.seen
    if reading.replay.document:
        return {key: value for key, value in metadata.items() if key not in ("userMessageCount", "hasResumableContent")}
    head = {key: metadata[key] for key in _KEYS if key in metadata}
    first = next((entry.at for entry in reading.replay.timeline if entry.at), None) or client_timestamp(
        reading.source.modified
    )
    for key in ("startTime", "lastUpdated"):
        head[key] = head.get(key) or first
    return head


def _tail(
    reading: FileReading, n_messages: int, n_user: int, first_words: str | None, *, has_content: bool
) -> dict[str, Any]:
    """Return the counts that the client's reader adds."""
    if reading.replay.document:
        return {"userMessageCount": n_user, "hasResumableContent": has_content}
    tail: dict[str, Any] = {"messageCount": n_messages, "userMessageCount": n_user}
    if reading.replay.scratchpad_is_stale is not None:
        tail["memoryScratchpadIsStale"] = reading.replay.scratchpad_is_stale
    if first_words is not None:
        tail["firstUserMessage"] = first_words
    return {**tail, "hasResumableContent": has_content}


def _pair(key: str, value: object) -> bytes:
    return json.dumps(key).encode() + b": " + _pretty(_dumps(value)).replace(b"\n", b"\n  ")


def _pretty(data: bytes) -> bytes:
    try:
        data.decode("utf-8")  # msgspec does not validate UTF-8
        return msgspec.json.format(data, indent=2)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _dumps(lenient.decode(data), indent=2)


def _dumps(value: object, indent: int | None = None) -> bytes:
    """Return JSON as JavaScript writes it: text unescaped, an unpaired surrogate as an escape."""
    return json.dumps(value, ensure_ascii=False, indent=indent).encode("utf-8", "backslashreplace")
