"""A message as a step of a trajectory: words, reasoning, calls with their results, counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from pollux.exports.atif import words
from pollux.exports.atif.words import filled
from pollux.exports.message_text import call_id, reasoning, result
from pollux.exports.source import Subject
from pollux.exports.tokens import completion, cost, prompt
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
from pollux.text.times import stamp
from pollux.views import attachments

NANO = 1_000_000_000
_AUDIO = frozenset(f"audio/{kind}" for kind in ("wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff"))
_SOURCES = {Kind.USER: "user", Kind.GEMINI: "agent"}
_COPIED = "counts of a model call that belongs to another session (the step is marked as copied)"


@dataclass(frozen=True, slots=True)
class Family:
    """What a step needs to know of its session."""

    subject: Subject
    calls: Mapping[str, ModelCall]
    """Its own model calls by message."""
    agents: Mapping[str | None, list[str]]
    """The subagents by the call that started them."""
    numbers: Iterator[int]
    """For the names of the files beside the trajectory."""
    has_sound: bool = False
    """Whether the trajectory is of a version that has parts for sounds."""


def step(family: Family, message: Message) -> dict[str, Json]:
    """Write a message; the number is left to the caller."""
    is_agent = message.kind is Kind.GEMINI
    made = message.tool_calls if is_agent else ()
    parts, odd = _content(family, message.parts, made)
    call = family.calls.get(message.id)
    is_copied = message.origin is Origin.LOADED or (message.tokens is not None and call is None)
    if message.tokens is not None and call is None:
        family.subject.losses[_COPIED] += 1
    is_synthetic = message.origin is Origin.SYNTHETIC and not message.thoughts and call is None
    calls = [_call(message, index, one) for index, one in enumerate(made)]
    results = [one for index, each in enumerate(made) for one in _results(family, message, index, each)]
    return filled(
        timestamp=stamp(message.at) if message.at else None,
        source=_SOURCES.get(message.kind, "system"),
        model_name=message.model if is_agent else None,
        message=_message(parts),
        reasoning_content=reasoning(message) if is_agent else None,
        tool_calls=calls or None,
        observation={"results": results} if results else None,
        metrics=metrics(call, family.subject.prices) if call and is_agent else None,
        llm_call_count=(0 if is_synthetic else 1) if is_agent else None,
        is_copied_context=True if is_copied else None,
        extra={
            "gemini": _own_words(message, odd),
            "pollux": {"origin": message.origin, "fate": message.fate},
        },
    )


def carrier(message: Message, known: set[str]) -> dict[str, Json]:
    """Write a message that carries results to the model; those that stand with their call are only named."""
    content = [
        words.part(FunctionResponse(one.id, one.name, None) if _is_known(one, known) else one) for one in message.parts
    ]
    return filled(
        timestamp=stamp(message.at) if message.at else None,
        source="user",
        message="",
        extra={
            "gemini": _own_words(message, content),
            "pollux": {"origin": message.origin, "fate": message.fate},
        },
    )


def _is_known(part: Part, known: set[str]) -> TypeGuard[FunctionResponse]:
    return isinstance(part, FunctionResponse) and part.id in known


def metrics(call: ModelCall, prices: Prices) -> dict[str, Json]:
    """Count and price a model call; the API's own six counts stand beside."""
    priced = cost(call, prices)
    return filled(
        prompt_tokens=prompt(call.tokens),
        completion_tokens=completion(call.tokens),
        cached_tokens=call.tokens.cached,
        cost_usd=priced[0] / NANO if priced else None,
        extra={"gemini": words.tokens(call.tokens), "is_consistent": call.tokens.is_consistent},
    )


def is_sound(attachment: Attachment) -> bool:
    """Tell whether the newest version has a part for it."""
    return attachment.media_type.partition(";")[0].strip().lower() in _AUDIO


def _own_words(message: Message, odd: list[Json]) -> dict[str, Json]:
    return {
        **message.extra,
        **filled(
            id=message.id,
            type=message.kind,
            content=odd or None,
            displayContent=[words.part(one) for one in message.display] if message.display else None,
            thoughts=[words.thought(one) for one in message.thoughts] or None,
        ),
    }


def _call(message: Message, index: int, call: ToolCall) -> Json:
    own = words.call(call)
    if not isinstance(call.args, dict):
        own["args"] = call.args
    return {
        "tool_call_id": call_id(message, index),
        "function_name": call.name,
        "arguments": call.args if isinstance(call.args, dict) else {"value": call.args},
        "extra": {
            "gemini": own if call.id else {**own, "id": None},
            "pollux": filled(
                canonical=call.canonical,
                category=call.category,
                kind=call.kind,
                mcp_server=call.mcp_server,
                exit_code=call.exit_code,
            ),
        },
    }


def _results(family: Family, message: Message, index: int, call: ToolCall) -> Iterator[Json]:
    """Write what came of a call, failed or not; a call that never came back has no result."""
    agents: list[Json] = [{"trajectory_id": one, "session_id": one} for one in family.agents.get(call.id, ())]
    told = result(call)
    if told is None and not call.attachments and not agents:
        return
    parts, odd = _content(family, call.attachments)
    if told is not None:
        parts.insert(0, {"type": "text", "text": told})
    own = filled(
        response=call.response,
        error=call.error if call.output is not None else None,
        parts=odd or None,
    )
    if call.output is None and call.error is not None:
        own["is_error"] = True
    yield filled(
        source_call_id=call_id(message, index),
        content=_message(parts) if parts else None,
        subagent_trajectory_ref=agents or None,
        extra={"gemini": own} if own else None,
    )


def _message(parts: list[Json]) -> Json:
    """Write plain words as a text, and only more than that as a list."""
    match parts:
        case []:
            return ""
        case [{"type": "text", "text": text}]:
            return text
        case _:
            return parts


def _content(
    family: Family, parts: tuple[Part, ...], calls: tuple[ToolCall, ...] = ()
) -> tuple[list[Json], list[Json]]:
    """Give the parts that a trajectory can hold; if it cannot hold one of them, all again in the client's words."""
    told: list[Json] = []
    kept: list[Json] = []
    is_odd = False
    for one in parts:
        match one:
            case Text(text):
                told.append({"type": "text", "text": text})
                kept.append(words.part(one))
            case Attachment():
                found, own = _attachment(family, one)
                told += [found] if found else []
                kept.append(own)
                is_odd = is_odd or found is None
            case FunctionCall(id_) if any(id_ == call.id for call in calls):
                pass  # told as a call
            case FunctionResponse():
                pass  # told as the result of its call
            case _:
                kept.append(words.part(one))
                is_odd = True
    return told, kept if is_odd else []


def _attachment(family: Family, attachment: Attachment) -> tuple[Json, Json]:
    """Put a picture, sound or file beside the trajectory: as a part if it has one for it, and in the client's words."""
    subject = family.subject
    path = attachment.uri
    if path is None and subject.beside and (data := attachments.data(attachment)) is not None:
        path = subject.beside(attachments.name(attachment, next(family.numbers)), data)
    if path is None:
        subject.losses[f"the bytes of an attachment, {attachment.media_type}"] += 1
        return None, words.part(attachment)
    own = {"fileData": {"mimeType": attachment.media_type, "fileUri": path}}
    kind = attachment.media_type.partition(";")[0].strip().lower()
    if attachments.is_picture(attachment):
        return {"type": "image", "source": {"media_type": kind, "path": path}}, own
    if family.has_sound and is_sound(attachment):
        return {"type": "audio", "source": {"media_type": kind, "path": path}}, own
    return None, own
