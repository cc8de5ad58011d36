"""Messages and tool calls with good defaults."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pollux.formats.tools import tool
from pollux.model import Fate, Json, Kind, Message, Origin, Part, Text, ToolCall

START = datetime(2026, 11, 15, 19, 2, tzinfo=UTC)
ROOT = "/home/alice/webapp"


def message(
    *parts: Part | str,
    kind: Kind = Kind.GEMINI,
    origin: Origin = Origin.MODEL,
    fate: Fate = Fate.ACTIVE,
    minute: int = 0,
    **more: Any,  # noqa: ANN401  other fields of a message
) -> Message:
    text_parts = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    at = START + timedelta(minutes=minute)
    return Message(**{"id": "m", "kind": kind, "origin": origin, "fate": fate, "at": at, "parts": text_parts, **more})


def prompt(*parts: Part | str, **more: Any) -> Message:  # noqa: ANN401
    return message(*parts, **{"kind": Kind.USER, "origin": Origin.HUMAN, **more})


def notice(text: str, kind: Kind = Kind.INFO, **more: Any) -> Message:  # noqa: ANN401
    return message(text, **{"kind": kind, "origin": Origin.NOTICE, **more})


def added(origin: Origin, text: str, **more: Any) -> Message:  # noqa: ANN401
    return message(text, **{"kind": Kind.USER, "origin": origin, **more})


def call(name: str, args: Json = None, *, status: str = "success", **more: Any) -> ToolCall:  # noqa: ANN401
    row = tool(name, more.get("display_name"))
    fields: dict[str, Any] = {
        "canonical": row.canonical,
        "category": row.category,
        "kind": row.kind,
        "label": row.label,
    }
    return ToolCall(**{"id": "c", "name": name, **fields, "status": status, "args": args or {}, **more})
