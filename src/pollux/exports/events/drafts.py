"""Draft the events of a message, before they get their place in a session.

A session file records the result of a tool call with the call, so both events belong to the message that made the call.
A saved history holds contents and nothing else: its events follow the parts, with one second per entry and one
millisecond per part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from pollux.exports.fields import FAILED, PROMPT_ORIGINS
from pollux.formats.origins import user_origin
from pollux.formats.tools import ToolInfo, strip_call_prefix, tool
from pollux.model import FunctionCall, FunctionResponse, Json, Kind, Message, Origin, Text, TextDisplay, ToolCall
from pollux.text.encode import encode

_FINISHED = FAILED | {"success"}
_EMPTY: Mapping[str, Any] = {}
_LAST_MILLISECOND = 999  # a part stays within the second of its entry


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
    """Identifies it among the events of its message, however often the message is recorded."""
    fields: Mapping[str, Any] = _EMPTY
    metadata: Mapping[str, Json] = _EMPTY
    synthesised: tuple[str, ...] = ()
    """Which of `id` and `timestamp` the file does not record for this event."""
    answers: str | None = None
    """The call that it is the result of."""
    is_fallback: bool = False
    """Whether it is taken from the response to the model, which counts only if the call itself has no result."""


def message_drafts(message: Message, include: Collection[str]) -> Iterator[Draft]:
    """Yield the events of a message in a session file, in the order in which they happened."""
    origin = _known_origin(message)
    if origin in PROMPT_ORIGINS:
        yield _prompt(message, message.text, message.id, message.at, "prompt")
    elif origin is Origin.MODEL:
        yield from _answer(message, include)
        yield from _calls(message)
    elif origin is Origin.TOOL_RESPONSE:
        yield from _responses(message)
    else:
        yield from _client_events(message, include)


def history_drafts(message: Message, include: Collection[str]) -> Iterator[Draft]:
    """Yield the events of an entry of a saved history, in the order of its parts."""
    origin = _known_origin(message)
    if "thoughts" in include:
        yield from _thoughts(message)
    parts = message.display if origin in PROMPT_ORIGINS and message.display else message.parts
    for place, part in enumerate(parts, len(message.thoughts)):
        at, id_, slot = _part_time(message.at, place), f"{message.id}.{place}", str(place)
        match part:
            case Text(text=text) if origin in PROMPT_ORIGINS or _is_typed_beside_responses(origin, text):
                yield _prompt(message, text, id_, at, slot)
            case Text(text=text) if origin is Origin.MODEL and "text" in include:
                yield Draft("text", id_, at, slot, {"message": text}, _model_metadata(message))
            case FunctionCall(id=call_id, name=name, args=args):
                info = tool(name)
                fields, metadata = _use_fields(info, args), _tool_metadata(info, name, call_id)
                yield Draft("tool_use", call_id or id_, at, slot, fields, metadata)
            case FunctionResponse():
                yield _response(part, id_, at, slot)
            case _:
                pass
    if origin not in {*PROMPT_ORIGINS, Origin.MODEL, Origin.TOOL_RESPONSE}:
        yield from _client_events(message, include)


def outcome(response: Json) -> Outcome:
    """Return how a call ended, from its response to the model: an `error` may also be inside `content`."""
    if not isinstance(response, dict):
        return Outcome(success=True, output=_text(response))
    content = response.get("content")
    error = response.get("error")
    if error is None and isinstance(content, dict):
        error = content.get("error")
    output = response.get("output")
    if output is None and error is None:
        others = {key: value for key, value in response.items() if key != "name"}
        output = content if content is not None else others or None
    return Outcome(success=error is None, output=_text(output), error=_text(error))


def _known_origin(message: Message) -> Origin | None:
    """Return the origin of a message, or None for an unknown kind of message."""
    return None if message.kind is Kind.UNKNOWN else message.origin


def _prompt(message: Message, text: str, id_: str, at: datetime | None, slot: str) -> Draft:
    is_typed = message.origin in (Origin.HUMAN, Origin.TOOL_RESPONSE)
    metadata: dict[str, Json] = {} if is_typed else {"origin": message.origin}
    if message.attachments:
        metadata["attachments"] = [attachment.media_type for attachment in message.attachments]
    return Draft("user_prompt", id_, at, slot, {"message": text}, metadata)


def _answer(message: Message, include: Collection[str]) -> Iterator[Draft]:
    if "thoughts" in include:
        yield from _thoughts(message)
    if "text" in include and (text := message.text).strip():
        metadata: dict[str, Json] = {"model": message.model} if message.model else {}
        yield Draft("text", message.id, message.at, "text", {"message": text}, metadata)
    if "usage" in include and message.tokens is not None:
        counts = {"tokens": msgspec.to_builtins(message.tokens)}
        yield Draft("usage", f"{message.id}/usage", message.at, "usage", {}, _model_metadata(message) | counts)


def _thoughts(message: Message) -> Iterator[Draft]:
    for number, thought in enumerate(message.thoughts):
        slot, at = f"thought/{number}", thought.at or message.at
        metadata = _model_metadata(message) | ({"subject": thought.subject} if thought.subject else {})
        yield Draft("thought", f"{message.id}/{slot}", at, slot, {"message": thought.text}, metadata)


def _calls(message: Message) -> Iterator[Draft]:
    """Yield calls and results; calls made together have the same time, at which all of them were done."""
    called_at = message.at
    synthesised: tuple[str, ...] = ()
    for done_at, batch in groupby(enumerate(message.tool_calls), lambda numbered: numbered[1].at):
        calls = list(batch)
        for number, call in calls:
            yield _use(message, call, number, called_at, synthesised)
        for number, call in calls:
            if _is_finished(call):
                yield _result(message, call, number)
        if done_at:  # old releases put the calls of several answers into one message
            called_at, synthesised = done_at, ("timestamp",)


def _use(message: Message, call: ToolCall, number: int, at: datetime | None, synthesised: tuple[str, ...]) -> Draft:
    return Draft(
        "tool_use",
        call.id or f"{message.id}/{number}",
        at,
        f"use/{number}",
        _use_fields(call, call.args),
        _call_metadata(message, call),
        synthesised if call.id else ("id", *synthesised),
    )


def _result(message: Message, call: ToolCall, number: int) -> Draft:
    metadata = _call_metadata(message, call) | {"status": call.status}
    if call.exit_code is not None:
        metadata["exit_code"] = call.exit_code
    synthesised = [name for name, value in (("id", call.id), ("timestamp", call.at)) if value is None]
    return Draft(
        "tool_result",
        f"{call.id or f'{message.id}/{number}'}/result",
        call.at or message.at,
        f"result/{number}",
        {"tool_name": call.canonical, "tool_result": _call_outcome(call)},
        metadata,
        tuple(synthesised),
        _call_key(call.id, call.name),
    )


def _call_outcome(call: ToolCall) -> Outcome:
    output = call.output
    if output is None and call.error is None:
        if call.response is not None:
            output = outcome(call.response).output
        elif isinstance(call.display, TextDisplay):  # captured output has nothing else
            output = call.display.text
    return Outcome(success=call.error is None and call.status not in FAILED, output=output, error=call.error)


def _is_finished(call: ToolCall) -> bool:
    has_result = call.output is not None or call.error is not None or call.response is not None
    return call.status in _FINISHED or has_result


def _responses(message: Message) -> Iterator[Draft]:
    """Yield the results in a message to the model, for calls whose results are not recorded elsewhere."""
    for place, part in enumerate(message.parts):
        if isinstance(part, FunctionResponse):
            draft = _response(part, f"{message.id}/{place}", message.at, f"response/{place}")
            yield draft._replace(synthesised=() if part.id else ("id",), is_fallback=True)


def _response(part: FunctionResponse, id_: str, at: datetime | None, slot: str) -> Draft:
    info = tool(part.name)
    return Draft(
        "tool_result",
        f"{part.id}/result" if part.id else id_,
        at,
        slot,
        {"tool_name": info.canonical, "tool_result": outcome(part.response)},
        _tool_metadata(info, part.name, part.id),
        answers=_call_key(part.id, part.name),
    )


def _client_events(message: Message, include: Collection[str]) -> Iterator[Draft]:
    """Yield what neither a human nor the model wrote, if it is included."""
    if "fates" in include and message.origin is Origin.STATE_SNAPSHOT:
        yield Draft("compaction", f"{message.id}/compaction", message.at, "compaction")
    if "notices" in include:
        metadata: dict[str, Json] = {"kind": message.kind, "origin": message.origin}
        yield Draft("notice", message.id, message.at, "notice", {"message": message.text}, metadata)


def _use_fields(info: ToolInfo | ToolCall, args: Json) -> dict[str, Any]:
    return {"tool_name": info.canonical} | ({"tool_input": args} if args else {})


def _tool_metadata(info: ToolInfo | ToolCall, name: str, call_id: str | None) -> dict[str, Json]:
    metadata: dict[str, Json] = {"raw_tool_name": name, "category": info.category}
    if info.mcp_server:
        metadata["mcp_server"] = info.mcp_server
    if call_id:
        metadata["call_id"] = call_id
    return metadata


def _call_metadata(message: Message, call: ToolCall) -> dict[str, Json]:
    agent: dict[str, Json] = {"agent_session_id": call.agent_id} if call.agent_id else {}
    return {"message_id": message.id} | _tool_metadata(call, call.name, call.id) | agent


def _model_metadata(message: Message) -> dict[str, Json]:
    metadata: dict[str, Json] = {"message_id": message.id}
    if message.model:
        metadata["model"] = message.model
    return metadata


def _call_key(call_id: str | None, name: str) -> str | None:
    """Return what a call and its response have in common: since 0.43 only one ID contains the name of the tool."""
    return strip_call_prefix(call_id, name) if call_id else None


def _is_typed_beside_responses(origin: Origin | None, text: str) -> bool:
    return origin is Origin.TOOL_RESPONSE and user_origin(text)[0] is Origin.HUMAN


def _part_time(at: datetime | None, place: int) -> datetime | None:
    """Return the time of a part: after its entry, and one second after the start of the session at the earliest."""
    try:
        return at + timedelta(seconds=1, milliseconds=min(place + 1, _LAST_MILLISECOND)) if at else None
    except OverflowError:  # the clock shows the last representable second
        return at


def _text(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else encode(value).decode()
