"""What a message says, as the formats of others want it: one text for reasoning and results, an id for every call."""

from __future__ import annotations

from pollux.model import Message, Text, ToolCall
from pollux.text.encode import encode


def words(message: Message) -> str:
    """Give what was sent or answered; what was typed may be less."""
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def reasoning(message: Message) -> str | None:
    """Tell the thoughts as one text."""
    told = ("\n".join(filter(None, (one.subject, one.text))) for one in message.thoughts)
    return "\n\n".join(filter(None, told)) or None


def call_id(message: Message, index: int) -> str:
    """Name a call; one without an id gets one."""
    return message.tool_calls[index].id or f"{message.id}#{index}"


def result(call: ToolCall) -> str | None:
    """Tell what came of a call, failed or not, as JSON if it is no text; nothing if it never came back."""
    if call.output is None and call.error is None and call.response is not None:
        return encode(call.response).decode()
    return call.error if call.output is None else call.output
