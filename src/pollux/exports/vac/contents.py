"""Parts, results and counts in the client's newest words, which a record carries as they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

from pollux.exports.vac.values import LARGEST, told
from pollux.model import (
    Attachment,
    Code,
    CodeResult,
    FunctionCall,
    FunctionResponse,
    Json,
    Part,
    Text,
    Thought,
    Tokens,
    ToolCall,
    Unknown,
)


def content(parts: Sequence[Part]) -> Json:
    """Give one text as text, and everything else as a list of parts."""
    match parts:
        case []:
            return ""
        case [Text(text=text)]:
            return text
        case _:
            return [block(part) for part in parts]


def block(part: Part) -> Json:
    """Give a part as the client writes it."""
    match part:
        case Text(text=text):
            return {"text": text}
        case Thought(text=text):
            return {"text": text, "thought": True}
        case FunctionCall(id=id_, name=name, args=args):
            return {"functionCall": told(id=id_, name=name) | {"args": args}}
        case FunctionResponse(id=id_, name=name, response=response):
            return {"functionResponse": told(id=id_, name=name) | {"response": response}}
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


def untold(parts: Iterable[Part], calls: Sequence[ToolCall]) -> list[Part]:
    """Leave out the requests that have a call of their own."""
    ids = {call.id for call in calls if call.id}
    nameless = [(call.name, call.args) for call in calls if not call.id]
    return [
        part
        for part in parts
        if not isinstance(part, FunctionCall)
        or not (part.id in ids or (part.id is None and (part.name, part.args) in nameless))
    ]


def response(call: ToolCall) -> Json:
    """Give back what the model was told; `None` if nothing was."""
    return call.response if call.response is not None else told(output=call.output, error=call.error) or None


def output(call: ToolCall) -> Json:
    """Give the result of a call as the client's list of parts: the response, then what was attached to it."""
    answer = response(call)
    answered = [] if answer is None else [block(FunctionResponse(call.id, call.name, answer))]
    return [*answered, *map(block, call.attachments)]


def token_usage(tokens: Tokens) -> dict[str, Json]:
    """Give the counts; one that is no natural number has no place here."""
    counts = {
        "input": tokens.input,
        "output": tokens.output,
        "cached": tokens.cached,
        "reasoning": tokens.thoughts,
        "total": tokens.total,
        "thoughts": tokens.thoughts,
        "tool": tokens.tool,
    }
    return {name: count for name, count in counts.items() if 0 <= count <= LARGEST}
