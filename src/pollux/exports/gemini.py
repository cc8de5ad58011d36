"""The state, as the client's own `/export-session` writes it and `gemini --session-file` takes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from pollux.exports.source import Subject
from pollux.formats import lenient
from pollux.formats.parts import is_resumable, title_words
from pollux.model import Json
from pollux.sessions.replay.reading import Reading, state
from pollux.sessions.replay.reading import first_words as whole_first_words
from pollux.text.times import stamp

_KEYS = ("sessionId", "projectHash", "startTime", "lastUpdated", "summary", "memoryScratchpad", "directories", "kind")


def render(subject: Subject) -> Iterator[bytes]:
    """Write a session's state."""
    return written(subject.group.main.reading, subject.clean if subject.redactor else None)


def written(reading: Reading, clean: Callable[[Json], Json] | None = None) -> Iterator[bytes]:
    """Write one file's state as pretty JSON, message by message: a huge session never stands whole in memory."""
    n_messages, n_user, has_content = 0, 0, False
    first_words = whole_first_words(reading)
    head = _head(reading)
    if clean:
        head, first_words = {key: clean(value) for key, value in head.items()}, first_words and str(clean(first_words))
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


def _head(reading: Reading) -> dict[str, Any]:
    found = reading.replay.metadata or reading.replay.seen
    if reading.replay.document:
        return {key: value for key, value in found.items() if key not in ("userMessageCount", "hasResumableContent")}
    head = {key: found[key] for key in _KEYS if key in found}
    first = next((entry.at for entry in reading.replay.timeline if entry.at), None) or stamp(reading.source.modified)
    for key in ("startTime", "lastUpdated"):
        head[key] = head.get(key) or first
    return head


def _tail(
    reading: Reading, n_messages: int, n_user: int, first_words: str | None, *, has_content: bool
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
        data.decode("utf-8")  # the fast one does not look
        return msgspec.json.format(data, indent=2)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _dumps(lenient.decode(data), indent=2)


def _dumps(value: object, indent: int | None = None) -> bytes:
    """Encode as JavaScript does: text as it is, a lone surrogate as an escape."""
    return json.dumps(value, ensure_ascii=False, indent=indent).encode("utf-8", "backslashreplace")
