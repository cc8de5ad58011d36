"""One message → one entry, with its thoughts and tool calls as children.

Whatever the client put into somebody's mouth is an event and not a turn: an auditor counts what people and models said.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

import msgspec

from pollux.exports.vac.contents import content, output, response, token_usage, untold
from pollux.exports.vac.values import Entry, Open, sound, time, told
from pollux.model import Fate, FunctionResponse, Json, Kind, Message, Origin, Part, Thought, ToolCall
from pollux.proofs import canonical

_USERS = frozenset({Origin.HUMAN, Origin.AGENT_PROMPT, Origin.LOADED, Origin.SHELL_MODE})
_NOTICES = frozenset({Kind.INFO, Kind.WARNING, Kind.ERROR})
_FINISHED = frozenset({"success", "error", "cancelled"})
_ROLES = {Kind.USER: "user", Kind.GEMINI: "assistant"}


class Answers:
    """Remembers which results were told with their calls: newer releases record them a second time."""

    def __init__(self) -> None:
        """Begin with none."""
        self._digests: dict[str | None, bytes] = {}

    def remember(self, call: ToolCall) -> None:
        """Take in what a call came to."""
        self._digests[call.id] = _digest(response(call))

    def has(self, part: Part) -> bool:
        """Tell whether a part says just what was told before."""
        return isinstance(part, FunctionResponse) and self._digests.get(part.id) == _digest(part.response)


def message_entry(message: Message, kind: str, answers: Answers, agents: Mapping[int, Entry]) -> Entry:
    """Make the entry of a message.

    Args:
        message: the message.
        kind: its type as recorded.
        answers: what calls came to before; grows by those of this message.
        agents: what belongs to the tool calls that started a subagent, by their number.

    """
    parts = untold(message.parts, message.tool_calls)
    new = [part for part in parts if not answers.has(part)]
    children = _children(message, agents)
    for call in message.tool_calls:
        if not _is_unfinished(call):
            answers.remember(call)
    members: Entry = told(
        id=message.id,
        timestamp=time(message.at),
        model_id=message.model,
        token_usage=token_usage(message.tokens) if message.tokens else None,
        displayContent=content(message.display) if message.display else None,
        fate=None if message.fate is Fate.ACTIVE else message.fate,
        native=dict(message.extra) or None,
    )
    repeated = told(
        call_ids=[part.id for part in parts if part not in new and isinstance(part, FunctionResponse)] or None
    )
    if role := _role(message, kind):
        members |= {"type": role, "content": content(new), "origin": message.origin, **repeated}
    else:
        data = told(role=_ROLES.get(message.kind), content=content(new) if new else None) | repeated
        members |= {"type": "system-event", "event-type": _event(message, kind), "data": data}
    if children:
        members["children"] = children
    return Open(members) if agents else members


def _role(message: Message, kind: str) -> str | None:
    """Tell whose turn it is; nobody's, where the client speaks."""
    if kind == "human":  # seed 001 knows it as another word for a user
        return "user"
    if message.kind is Kind.USER:
        return "user" if message.origin in _USERS else None
    return "assistant" if message.kind is Kind.GEMINI and message.origin is Origin.MODEL else None


def _event(message: Message, kind: str) -> str:
    if message.kind in _NOTICES or message.kind is Kind.UNKNOWN:
        return kind
    return message.origin.replace("_", "-")


def _children(message: Message, agents: Mapping[int, Entry]) -> list[Entry]:
    children: list[Entry] = [_reasoning(thought) for thought in message.thoughts]
    for number, call in enumerate(message.tool_calls):
        children.append(_tool_call(call, message, agents.get(number)))
        if not _is_unfinished(call):
            children.append(_tool_result(call, message))
    return children


def _is_unfinished(call: ToolCall) -> bool:
    """Return whether a call has no result because it never ended, so that a record must not claim one."""
    return call.status not in _FINISHED and call.output is None and call.error is None and call.response is None


def _reasoning(thought: Thought) -> Entry:
    return told(type="reasoning", content=thought.text, subject=thought.subject or None, timestamp=time(thought.at))


def _tool_call(call: ToolCall, message: Message, agent: Entry | None) -> Entry:
    entry = told(
        type="tool-call",
        name=call.name,
        call_id=call.id,
        timestamp=time(call.at or message.at),
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
    return Open(entry, **agent) if agent else entry


def _tool_result(call: ToolCall, message: Message) -> Entry:
    """Return the result of a finished call; where the file has no result, `output` is empty."""
    return told(
        type="tool-result",
        call_id=call.id,
        output=output(call),
        status=call.status,
        is_error=call.status == "error" or call.error is not None,
        timestamp=time(call.at or message.at),
        exit_code=call.exit_code,
        display=_display(call),
        renderOutputAsMarkdown=call.markdown or None,
    )


def _display(call: ToolCall) -> Json:
    value: Json = msgspec.to_builtins(call.display) if call.display else None
    return value


def _digest(value: Json) -> bytes:
    return hashlib.sha256(canonical.json_bytes(sound(value, Counter()))).digest()
