"""What was said, as the conventions for generative AI want messages written; only for those who ask for it."""

from __future__ import annotations

from collections.abc import Iterator

from pollux.exports import message_text
from pollux.exports.source import Subject
from pollux.model import (
    Attachment,
    Code,
    CodeResult,
    FunctionCall,
    FunctionResponse,
    Json,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    Unknown,
)


def asked(message: Message, subject: Subject) -> dict[str, Json]:
    """Write what was said to the model."""
    return {"role": "user", "parts": [*_parts(message, subject)]}


def answered(message: Message, subject: Subject, *, has_finish_reason: bool) -> dict[str, Json]:
    """Write what the model answered; why it ended is not recorded, and told from whether it asked for tools."""
    parts = [*_parts(message, subject)]
    if thoughts := message_text.reasoning(message):
        parts.insert(0, {"type": "reasoning", "content": thoughts})
    parts += (
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.args} for call in message.tool_calls
    )
    told: dict[str, Json] = {"role": "assistant", "parts": parts}
    return told | {"finish_reason": "tool_call" if message.tool_calls else "stop"} if has_finish_reason else told


def results(message: Message) -> Iterator[dict[str, Json]]:
    """Write what came of the calls, as it goes to the model with the next request."""
    for call in message.tool_calls:
        if (told := result(call)) is not None:
            yield {"role": "tool", "parts": [{"type": "tool_call_response", "id": call.id, "response": told}]}


def result(call: ToolCall) -> Json:
    """Give what the model was told of a call."""
    return message_text.result(call) if call.response is None else call.response


def _parts(message: Message, subject: Subject) -> Iterator[Json]:
    for part in message.parts:
        yield from _part(part, subject)


def _part(part: Part, subject: Subject) -> Iterator[Json]:
    match part:
        case Text(text):
            yield {"type": "text", "content": text}
        case Attachment(media_type, size, uri):
            modality = media_type.partition("/")[0]
            if uri:
                yield {"type": "uri", "mime_type": media_type, "modality": modality, "uri": uri}
            else:
                subject.losses["the bytes of an attachment"] += 1
                yield {"type": "attachment", "mime_type": media_type, "modality": modality, "size": size}
        case Code(language, code):
            yield {"type": "executable_code", "language": language, "content": code}
        case CodeResult(outcome, output):
            yield {"type": "code_result", "outcome": outcome, "content": output}
        case Unknown(value):
            yield {"type": "unknown", "content": value}
        case Thought() | FunctionCall() | FunctionResponse():
            return  # told with the answer and its calls
