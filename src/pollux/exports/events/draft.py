"""An event before it has its place in a session, and what all kinds of files make such drafts from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from pollux.formats.tools import Tool, strip_call_prefix, tool
from pollux.model import FunctionResponse, Json, Kind, Message, Origin, ToolCall
from pollux.text.encode import encode

ASKED = frozenset({Origin.HUMAN, Origin.AGENT_PROMPT, Origin.LOADED})
_NOTHING: Mapping[str, Any] = {}


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a call ended."""

    success: bool
    output: str | None = None
    error: str | None = None


class Draft(NamedTuple):
    """An event before it has its place among the others."""

    type: str
    id: str
    at: datetime | None
    slot: str
    """What tells it from the other events of its message, however often that is recorded."""
    fields: Mapping[str, Any] = _NOTHING
    metadata: Mapping[str, Json] = _NOTHING
    made_up: tuple[str, ...] = ()
    """Which of id and timestamp the file does not have, though it has those of the message."""
    answers: str | None = None
    """The call whose result it is."""
    is_second_hand: bool = False
    """Said by the response that went to the model: only news where the call itself says nothing."""


def outcome(response: Json) -> Outcome:
    """Tell from what the model was sent how a call ended: an error is one by its name, alone or inside `content`."""
    if not isinstance(response, dict):
        return Outcome(success=True, output=_text(response))
    content = response.get("content")
    error = response.get("error")
    if error is None and isinstance(content, dict):
        error = content.get("error")
    output = response.get("output")
    if output is None and error is None:
        rest = {key: value for key, value in response.items() if key != "name"}
        output = content if content is not None else rest or None
    return Outcome(success=error is None, output=_text(output), error=_text(error))


def known_origin(message: Message) -> Origin | None:
    """Tell what a message is; nothing for a kind that nobody knows."""
    return None if message.kind is Kind.UNKNOWN else message.origin


def prompt(message: Message, text: str, id_: str, at: datetime | None, slot: str) -> Draft:
    """Draft what somebody asked."""
    is_typed_here = message.origin in (Origin.HUMAN, Origin.TOOL_RESPONSE)
    metadata: dict[str, Json] = {} if is_typed_here else {"origin": message.origin}
    if message.attachments:
        metadata["attachments"] = [one.media_type for one in message.attachments]
    return Draft("user_prompt", id_, at, slot, {"message": text}, metadata)


def thoughts(message: Message) -> Iterator[Draft]:
    """Draft the reasoning of a message."""
    for number, thought in enumerate(message.thoughts):
        slot, at = f"thought/{number}", thought.at or message.at
        metadata = by_model(message) | ({"subject": thought.subject} if thought.subject else {})
        yield Draft("thought", f"{message.id}/{slot}", at, slot, {"message": thought.text}, metadata)


def result(part: FunctionResponse, own: str, at: datetime | None, slot: str) -> Draft:
    """Draft what a response to the model says of a call; its id is the call's, or else its own."""
    known = tool(part.name)
    return Draft(
        "tool_result",
        f"{part.id}/result" if part.id else own,
        at,
        slot,
        {"tool_name": known.canonical, "tool_result": outcome(part.response)},
        tool_metadata(known, part.name, part.id),
        answers=call_key(part.id, part.name),
    )


def asides(message: Message, include: Collection[str]) -> Iterator[Draft]:
    """Draft what neither a human nor the model said; only where it is asked for."""
    if "fates" in include and message.origin is Origin.STATE_SNAPSHOT:
        yield Draft("compaction", f"{message.id}/compaction", message.at, "compaction")
    if "notices" in include:
        metadata: dict[str, Json] = {"kind": message.kind, "origin": message.origin}
        yield Draft("notice", message.id, message.at, "notice", {"message": message.text}, metadata)


def use_fields(known: Tool | ToolCall, args: Json) -> dict[str, Any]:
    """Give the tool that was called, and with what."""
    return {"tool_name": known.canonical} | ({"tool_input": args} if args else {})


def tool_metadata(known: Tool | ToolCall, name: str, call_id: str | None) -> dict[str, Json]:
    """Give what else is known of a tool and a call of it."""
    found: dict[str, Json] = {"raw_tool_name": name, "category": known.category}
    found |= {"mcp_server": known.mcp_server} if known.mcp_server else {}
    return found | ({"call_id": call_id} if call_id else {})


def by_model(message: Message) -> dict[str, Json]:
    """Give the message and the model that an event comes from."""
    return {"message_id": message.id} | model(message)


def model(message: Message) -> dict[str, Json]:
    """Give the model that said something."""
    return {"model": message.model} if message.model else {}


def call_key(call_id: str | None, name: str) -> str | None:
    """Give what a call and its response have in common: since 0.43 only one of them has the tool's name in its id."""
    return strip_call_prefix(call_id, name) if call_id else None


def _text(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else encode(value).decode()
