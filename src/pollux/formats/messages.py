"""Convert the client's message records to messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pollux.formats.origins import user_origin
from pollux.formats.parts import parts, thoughts
from pollux.formats.tool_calls import KNOWN_FIELDS_OF_CALLS, tool_calls
from pollux.model import (
    Fate,
    Json,
    Kind,
    Message,
    Origin,
    Part,
    Text,
    Thought,
    Tokens,
)
from pollux.text.times import parse_time

KNOWN_FIELDS = frozenset(
    {"id", "timestamp", "type", "content", "displayContent", "thoughts", "tokens", "model", "toolCalls"}
)


def message(
    content: dict[str, Any],
    *,
    calls: dict[str, Any] | None = None,
    thinking: dict[str, Any] | None = None,
    origin: Origin = Origin.HUMAN,
    fate: Fate = Fate.ACTIVE,
    tokens: Tokens | None = None,
    model: str | None = None,
    file: str | None = None,
    line: int | None = None,
) -> Message:
    """Build a message from the recordings with its text, its calls and its thoughts."""
    all_parts = parts(content.get("content"))
    return Message(
        id=str(content.get("id", "")),
        kind=_kind(content.get("type")),
        origin=origin,
        fate=fate,
        at=parse_time(content.get("timestamp")),
        parts=tuple(part for part in all_parts if not isinstance(part, Thought)),
        thoughts=thoughts((thinking or content).get("thoughts"))
        or tuple(part for part in all_parts if isinstance(part, Thought)),
        tool_calls=tool_calls((calls or content).get("toolCalls")),
        display=_typed(parts(content.get("displayContent")), all_parts) if origin in _TYPED else None,
        model=model,
        tokens=tokens,
        file=file,
        line=line,
        extra={key: value for key, value in content.items() if key not in KNOWN_FIELDS},
    )


def unknown_fields(value: Json) -> Iterator[str]:
    """Yield the fields of a message and of its tool calls that no known release writes."""
    if not isinstance(value, dict):
        return
    yield from (key for key in value if key not in KNOWN_FIELDS)
    calls = value.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            yield from (f"toolCalls.{key}" for key in call if key not in KNOWN_FIELDS_OF_CALLS)


_TYPED = frozenset({Origin.HUMAN, Origin.LOADED})


def _typed(shown: tuple[Part, ...], sent: tuple[Part, ...]) -> tuple[Part, ...] | None:
    """Return what was typed, if it differs from what was sent: files, hooks and the client itself add to a prompt."""
    text = "".join(part.text for part in shown or sent if isinstance(part, Text))
    typed = user_origin(text)[1]
    return (Text(typed),) if typed != text.strip() else shown or None


def _kind(value: object) -> Kind:
    try:
        return Kind(str(value))
    except ValueError:
        return Kind.UNKNOWN
