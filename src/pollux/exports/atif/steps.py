"""A message as a step of a trajectory: text, reasoning, tool calls with their results, token counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pollux.exports.atif.client_values import call_json, part_json, thought_json, tokens_json, without_none
from pollux.exports.fields import (
    NANO,
    arguments,
    call_cost,
    call_id,
    call_result,
    completion_tokens,
    prompt_tokens,
    reasoning,
)
from pollux.exports.source import ExportSource
from pollux.model import (
    Attachment,
    FunctionCall,
    FunctionResponse,
    Json,
    Kind,
    Message,
    ModelCall,
    Origin,
    Part,
    Text,
    ToolCall,
)
from pollux.prices import Prices
from pollux.text.times import client_timestamp
from pollux.views import attachments

_AUDIO = frozenset(f"audio/{kind}" for kind in ("wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff"))
_SOURCES = {Kind.USER: "user", Kind.GEMINI: "agent"}
_COPIED = "token counts of a model call that belongs to another session (the step is marked as copied)"


@dataclass(frozen=True, slots=True)
class StepContext:
    """What the steps of a session share."""

    source: ExportSource
    calls: Mapping[str, ModelCall]
    """The session's own model calls by message ID."""
    agents: Mapping[str | None, list[str]]
    """IDs of subagents by the tool call that started them."""
    numbers: Iterator[int]
    """For the names of side files."""
    has_audio: bool = False
    """Whether the trajectory has a version with audio parts."""


def step(context: StepContext, message: Message) -> dict[str, Json]:
    """Return the step of a message, without its number."""
    is_agent = message.kind is Kind.GEMINI
    tool_calls = message.tool_calls if is_agent else ()
    parts, client_parts = _content(context, message.parts, tool_calls)
    call = context.calls.get(message.id)
    is_foreign = message.tokens is not None and call is None
    if is_foreign:
        context.source.losses[_COPIED] += 1
    is_synthetic = message.origin is Origin.SYNTHETIC and not message.thoughts and call is None
    results: list[Json] = []
    for index, tool_call in enumerate(tool_calls):
        results += _results(context, message, index, tool_call)
    return without_none(
        timestamp=client_timestamp(message.at) if message.at else None,
        source=_SOURCES.get(message.kind, "system"),
        model_name=message.model if is_agent else None,
        message=_message_content(parts),
        reasoning_content=reasoning(message) if is_agent else None,
        tool_calls=[_tool_call(message, index) for index in range(len(tool_calls))] or None,
        observation={"results": results} if results else None,
        metrics=_metrics(call, context.source.prices) if call and is_agent else None,
        llm_call_count=(0 if is_synthetic else 1) if is_agent else None,
        is_copied_context=True if is_foreign or message.origin is Origin.LOADED else None,
        extra=_message_extra(message, client_parts),
    )


def result_carrier(message: Message, known_calls: set[str]) -> dict[str, Json]:
    """Return a message that sends results to the model, without results that are exported with their call."""
    content = []
    for part in message.parts:
        if isinstance(part, FunctionResponse) and part.id in known_calls:
            content.append(part_json(FunctionResponse(part.id, part.name, None)))
        else:
            content.append(part_json(part))
    return without_none(
        timestamp=client_timestamp(message.at) if message.at else None,
        source="user",
        message="",
        extra=_message_extra(message, content),
    )


def is_audio(attachment: Attachment) -> bool:
    """Return whether ATIF 1.8 has an audio part for an attachment."""
    return _media_type(attachment) in _AUDIO


def _message_extra(message: Message, client_parts: list[Json]) -> Json:
    client: dict[str, Json] = {
        **message.extra,
        **without_none(
            id=message.id,
            type=message.kind,
            content=client_parts or None,
            displayContent=[part_json(part) for part in message.display] if message.display else None,
            thoughts=[thought_json(thought) for thought in message.thoughts] or None,
        ),
    }
    return {"gemini": client, "pollux": {"origin": message.origin, "fate": message.fate}}


def _metrics(call: ModelCall, prices: Prices) -> dict[str, Json]:
    cost = call_cost(call, prices)
    return without_none(
        prompt_tokens=prompt_tokens(call.tokens),
        completion_tokens=completion_tokens(call.tokens),
        cached_tokens=call.tokens.cached,
        cost_usd=cost[0] / NANO if cost else None,
        extra={"gemini": tokens_json(call.tokens), "is_consistent": call.tokens.is_consistent},
    )


def _tool_call(message: Message, index: int) -> Json:
    call = message.tool_calls[index]
    client = call_json(call)
    if not isinstance(call.args, dict):
        client["args"] = call.args
    if not call.id:
        client["id"] = None
    return {
        "tool_call_id": call_id(message, index),
        "function_name": call.name,
        "arguments": arguments(call),
        "extra": {
            "gemini": client,
            "pollux": without_none(
                canonical=call.canonical,
                category=call.category,
                kind=call.kind,
                mcp_server=call.mcp_server,
                exit_code=call.exit_code,
            ),
        },
    }


def _results(context: StepContext, message: Message, index: int, call: ToolCall) -> Iterator[Json]:
    """Yield the result of a call, failed or not; a call without a response has none."""
    agents: list[Json] = [{"trajectory_id": id_, "session_id": id_} for id_ in context.agents.get(call.id, ())]
    text = call_result(call)
    if text is None and not call.attachments and not agents:
        return
    parts, client_parts = _content(context, call.attachments)
    if text is not None:
        parts.insert(0, {"type": "text", "text": text})
    client = without_none(
        response=call.response,
        error=call.error if call.output is not None else None,
        parts=client_parts or None,
    )
    if call.output is None and call.error is not None:
        client["is_error"] = True
    yield without_none(
        source_call_id=call_id(message, index),
        content=_message_content(parts) if parts else None,
        subagent_trajectory_ref=agents or None,
        extra={"gemini": client} if client else None,
    )


def _message_content(parts: list[Json]) -> Json:
    """Return a single text as a string, and anything else as a list of parts."""
    match parts:
        case []:
            return ""
        case [{"type": "text", "text": text}]:
            return text
        case _:
            return parts


def _content(
    context: StepContext, parts: tuple[Part, ...], calls: tuple[ToolCall, ...] = ()
) -> tuple[list[Json], list[Json]]:
    """Return the parts that a trajectory can represent; if it cannot represent all, also all parts as client values."""
    content: list[Json] = []
    client_parts: list[Json] = []
    is_lossy = False
    for part in parts:
        match part:
            case Text(text):
                content.append({"type": "text", "text": text})
                client_parts.append(part_json(part))
            case Attachment():
                attachment, client_part = _attachment(context, part)
                if attachment:
                    content.append(attachment)
                else:
                    is_lossy = True
                client_parts.append(client_part)
            case FunctionCall(id_) if any(id_ == call.id for call in calls):
                pass  # exported as a tool call
            case FunctionResponse():
                pass  # exported as the result of its call
            case _:
                client_parts.append(part_json(part))
                is_lossy = True
    return content, client_parts if is_lossy else []


def _attachment(context: StepContext, attachment: Attachment) -> tuple[Json, Json]:
    """Write an attachment to a side file; return its part, or None if the format has no such part, and client value."""
    source = context.source
    path = attachment.uri
    if path is None and source.write_side_file and (data := attachments.decode(attachment)) is not None:
        path = source.write_side_file(attachments.file_name(attachment, next(context.numbers)), data)
    if path is None:
        source.losses[f"the bytes of an attachment, {attachment.media_type}"] += 1
        return None, part_json(attachment)
    client_part = {"fileData": {"mimeType": attachment.media_type, "fileUri": path}}
    part_source: Json = {"media_type": _media_type(attachment), "path": path}
    if attachments.is_picture(attachment):
        return {"type": "image", "source": part_source}, client_part
    if context.has_audio and is_audio(attachment):
        return {"type": "audio", "source": part_source}, client_part
    return None, client_part


def _media_type(attachment: Attachment) -> str:
    return attachment.media_type.partition(";")[0].strip().lower()
