"""One message as one entry, with its thoughts and tool calls as children.

Messages that the client wrote in the name of the user or the model are events and not turns, so that an auditor can
count what people and models said. Parts and results keep the names of the client's newest format.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

import msgspec

from pollux.exports.vac.values import MAX_INTEGER, LazyMap, RecordEntry, members, representable, time_text
from pollux.model import (
    Attachment,
    Code,
    CodeResult,
    Fate,
    FunctionCall,
    FunctionResponse,
    Json,
    Kind,
    Message,
    Origin,
    Part,
    Text,
    Thought,
    Tokens,
    ToolCall,
    Unknown,
)
from pollux.proofs import canonical

_USERS = frozenset({Origin.HUMAN, Origin.AGENT_PROMPT, Origin.LOADED, Origin.SHELL_MODE})
_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})
_FINISHED = frozenset({"success", "error", "cancelled"})
_ROLES = {Kind.USER: "user", Kind.GEMINI: "assistant"}


class AnsweredCalls:
    """Remembers the results that were written with their calls: newer releases record them a second time."""

    def __init__(self) -> None:
        """Start without any call."""
        self._digests: dict[str | None, bytes] = {}

    def add(self, call: ToolCall) -> None:
        """Remember the result of a call."""
        self._digests[call.id] = _digest(_response(call))

    def has(self, part: Part) -> bool:
        """Return whether a part repeats a result."""
        return isinstance(part, FunctionResponse) and self._digests.get(part.id) == _digest(part.response)


def message_entry(
    message: Message, kind: str, answered: AnsweredCalls, agents: Mapping[int, RecordEntry]
) -> RecordEntry:
    """Return the entry of a message.

    Args:
        message: the message.
        kind: its type as recorded.
        answered: the results of earlier calls; those of this message are added.
        agents: members for the tool calls that started a subagent, by their number.

    """
    parts = _without_calls(message.parts, message.tool_calls)
    new_parts = [part for part in parts if not answered.has(part)]
    children = _children(message, agents)
    for call in message.tool_calls:
        if not _is_unfinished(call):
            answered.add(call)
    entry: RecordEntry = members(
        id=message.id,
        timestamp=time_text(message.at),
        model_id=message.model,
        token_usage=token_usage(message.tokens) if message.tokens else None,
        displayContent=_content(message.display) if message.display else None,
        fate=None if message.fate is Fate.ACTIVE else message.fate,
        native=dict(message.extra) or None,
    )
    repeated_ids = [part.id for part in parts if part not in new_parts and isinstance(part, FunctionResponse)]
    repeated = members(call_ids=repeated_ids or None)
    if role := _role(message, kind):
        entry |= {"type": role, "content": _content(new_parts), "origin": message.origin, **repeated}
    else:
        data = members(role=_ROLES.get(message.kind), content=_content(new_parts) if new_parts else None) | repeated
        entry |= {"type": "system-event", "event-type": _event_type(message, kind), "data": data}
    if children:
        entry["children"] = children
    return LazyMap(entry) if agents else entry


def token_usage(tokens: Tokens) -> dict[str, Json]:
    """Return the counts, without those that are negative or too large."""
    counts = {
        "input": tokens.input,
        "output": tokens.output,
        "cached": tokens.cached,
        "reasoning": tokens.thoughts,
        "total": tokens.total,
        "thoughts": tokens.thoughts,
        "tool": tokens.tool,
    }
    return {name: count for name, count in counts.items() if 0 <= count <= MAX_INTEGER}


def _role(message: Message, kind: str) -> str | None:
    """Return the role of a turn, or None for a message of the client."""
    if kind == "human":  # another name of a user, in the draft's translation document
        return "user"
    if message.kind is Kind.USER:
        return "user" if message.origin in _USERS else None
    return "assistant" if message.kind is Kind.GEMINI and message.origin is Origin.MODEL else None


def _event_type(message: Message, kind: str) -> str:
    if message.kind in _NOTICES or message.kind is Kind.UNKNOWN:
        return kind
    return message.origin.replace("_", "-")


def _children(message: Message, agents: Mapping[int, RecordEntry]) -> list[RecordEntry]:
    children: list[RecordEntry] = [_reasoning(thought) for thought in message.thoughts]
    for number, call in enumerate(message.tool_calls):
        children.append(_tool_call(call, message, agents.get(number)))
        if not _is_unfinished(call):
            children.append(_tool_result(call, message))
    return children


def _is_unfinished(call: ToolCall) -> bool:
    """Return whether a call never ended, so that a record must not claim a result."""
    return call.status not in _FINISHED and call.output is None and call.error is None and call.response is None


def _reasoning(thought: Thought) -> RecordEntry:
    subject, at = thought.subject or None, time_text(thought.at)
    return members(type="reasoning", content=thought.text, subject=subject, timestamp=at)


def _tool_call(call: ToolCall, message: Message, agent: RecordEntry | None) -> RecordEntry:
    entry = members(
        type="tool-call",
        name=call.name,
        call_id=call.id,
        timestamp=time_text(call.at or message.at),
        status=call.status,
        displayName=call.display_name,
        description=call.description,
        agentId=call.agent_id,
        canonical_name=call.canonical,
        category=call.category,
        mcp_server=call.mcp_server,
        display=_display(call) if _is_unfinished(call) else None,
        native=dict(call.extra) or None,
    )
    entry["input"] = call.args
    return LazyMap(entry, **agent) if agent else entry


def _tool_result(call: ToolCall, message: Message) -> RecordEntry:
    """Return the result of a finished call; `output` is empty if the file has none."""
    return members(
        type="tool-result",
        call_id=call.id,
        output=_output(call),
        status=call.status,
        is_error=call.status == "error" or call.error is not None,
        timestamp=time_text(call.at or message.at),
        exit_code=call.exit_code,
        display=_display(call),
        renderOutputAsMarkdown=call.markdown or None,
    )


def _display(call: ToolCall) -> Json:
    value: Json = msgspec.to_builtins(call.display) if call.display else None
    return value


def _content(parts: Sequence[Part]) -> Json:
    """Return a single text as a string, and anything else as a list of parts."""
    match parts:
        case []:
            return ""
        case [Text(text=text)]:
            return text
        case _:
            return [_part(part) for part in parts]


def _part(part: Part) -> Json:
    match part:
        case Text(text=text):
            return {"text": text}
        case Thought(text=text):
            return {"text": text, "thought": True}
        case FunctionCall(id=id_, name=name, args=args):
            return {"functionCall": members(id=id_, name=name) | {"args": args}}
        case FunctionResponse(id=id_, name=name, response=response):
            return {"functionResponse": members(id=id_, name=name) | {"response": response}}
        case Attachment(media_type=media_type, uri=uri, data=data):
            if uri is not None:
                return {"fileData": {"fileUri": uri, "mimeType": media_type}}
            return {"inlineData": {"data": data or "", "mimeType": media_type}}
        case Code(language=language, code=code):
            return {"executableCode": {"code": code, "language": language}}
        case CodeResult(outcome=outcome, output=output):
            return {"codeExecutionResult": {"outcome": outcome, "output": output}}
        case Unknown(value=value):
            return value
        case _:
            assert_never(part)


def _without_calls(parts: Iterable[Part], calls: Sequence[ToolCall]) -> list[Part]:
    """Return the parts without the function calls that are recorded as tool calls too."""
    ids = {call.id for call in calls if call.id}
    without_id = [(call.name, call.args) for call in calls if not call.id]
    remaining = []
    for part in parts:
        if isinstance(part, FunctionCall):
            is_same = part.id is None and (part.name, part.args) in without_id
            if part.id in ids or is_same:
                continue
        remaining.append(part)
    return remaining


def _response(call: ToolCall) -> Json:
    """Return the response that the model received, or None."""
    return call.response if call.response is not None else members(output=call.output, error=call.error) or None


def _output(call: ToolCall) -> Json:
    """Return the result of a call as the client's list of parts: the response, then its attachments."""
    response = _response(call)
    parts = [] if response is None else [_part(FunctionResponse(call.id, call.name, response))]
    return [*parts, *map(_part, call.attachments)]


def _digest(value: Json) -> bytes:
    return hashlib.sha256(canonical.json_bytes(representable(value, Counter()))).digest()
