"""Attributes and messages as OpenTelemetry's conventions for generative AI define them, by version.

The conventions are still in development and have moved to their own repository: 1.41 is the last version published with
the others, `dev` has the changes since. Attributes that they do not define are called `pollux.…`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from pollux.exports.fields import call_result, reasoning
from pollux.exports.source import ExportSource
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

Value = str | bool | int | float | list[str] | None

_NAMES = {
    "operation": "gen_ai.operation.name",
    "provider": "gen_ai.provider.name",
    "request_model": "gen_ai.request.model",
    "response_model": "gen_ai.response.model",
    "conversation": "gen_ai.conversation.id",
    "agent": "gen_ai.agent.name",
    "agent_id": "gen_ai.agent.id",
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cached_tokens": "gen_ai.usage.cache_read.input_tokens",
    "thought_tokens": "gen_ai.usage.reasoning.output_tokens",
    "tool": "gen_ai.tool.name",
    "tool_type": "gen_ai.tool.type",
    "call": "gen_ai.tool.call.id",
    "arguments": "gen_ai.tool.call.arguments",
    "result": "gen_ai.tool.call.result",
    "input": "gen_ai.input.messages",
    "output": "gen_ai.output.messages",
    "error": "error.type",
}


class Convention(NamedTuple):
    """A version of the conventions."""

    names: Mapping[str, str]
    schema_url: str | None
    """None for a version that is not published."""
    has_finish_reasons: bool
    """Whether output messages have a finish reason."""
    not_on_agents: frozenset[str] = frozenset()
    """Attributes that the span of a local agent does not have."""


CONVENTIONS: Mapping[str, Convention] = MappingProxyType(
    {
        "1.41": Convention(_NAMES, "https://opentelemetry.io/schemas/1.41.0", has_finish_reasons=True),
        "dev": Convention(_NAMES, None, has_finish_reasons=False, not_on_agents=frozenset({"provider", "agent_id"})),
    }
)
DEFAULT = "1.41"

OPENINFERENCE: Mapping[str, str] = MappingProxyType(
    {
        "kind": "openinference.span.kind",
        "conversation": "session.id",
        "agent": "agent.name",
        "request_model": "llm.model_name",
        "input_tokens": "llm.token_count.prompt",
        "output_tokens": "llm.token_count.completion",
        "total_tokens": "llm.token_count.total",
        "cached_tokens": "llm.token_count.prompt_details.cache_read",
        "thought_tokens": "llm.token_count.completion_details.reasoning",
        "cost": "llm.cost.total",
        "tool": "tool.name",
        "arguments": "input.value",
        "result": "output.value",
        "input": "input.value",
        "output": "output.value",
    }
)
"""OpenInference's names of the same attributes, which are added to those of the conventions."""


def attributes(named: Mapping[str, Value]) -> list[Json]:
    """Return attributes in OTLP's form, without those that are None."""
    return [{"key": key, "value": _value(value)} for key, value in named.items() if value is not None]


def _value(value: Value) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # OTLP writes 64-bit integers as JSON strings
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [{"stringValue": item} for item in value]}}
        case _:
            return {"stringValue": str(value)}


def prompt_message(message: Message, source: ExportSource) -> dict[str, Json]:
    """Return a message to the model."""
    return {"role": "user", "parts": [*_parts(message, source)]}


def answer_message(message: Message, source: ExportSource, *, has_finish_reason: bool) -> dict[str, Json]:
    """Return an answer of the model; its finish reason is inferred from its tool calls because it is not recorded."""
    parts = [*_parts(message, source)]
    if thoughts := reasoning(message):
        parts.insert(0, {"type": "reasoning", "content": thoughts})
    parts += (
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.args} for call in message.tool_calls
    )
    answer: dict[str, Json] = {"role": "assistant", "parts": parts}
    if has_finish_reason:
        answer["finish_reason"] = "tool_call" if message.tool_calls else "stop"
    return answer


def result_messages(message: Message) -> Iterator[dict[str, Json]]:
    """Yield the results of tool calls, as the next request sends them to the model."""
    for call in message.tool_calls:
        response = result_value(call)
        if response is not None:
            yield {"role": "tool", "parts": [{"type": "tool_call_response", "id": call.id, "response": response}]}


def result_value(call: ToolCall) -> Json:
    """Return the response that the model received, or else the output or error of a call."""
    return call_result(call) if call.response is None else call.response


def _parts(message: Message, source: ExportSource) -> Iterator[Json]:
    for part in message.parts:
        yield from _part(part, source)


def _part(part: Part, source: ExportSource) -> Iterator[Json]:
    match part:
        case Text(text):
            yield {"type": "text", "content": text}
        case Attachment(media_type, size, uri):
            modality = media_type.partition("/")[0]
            if uri:
                yield {"type": "uri", "mime_type": media_type, "modality": modality, "uri": uri}
            else:
                source.losses["the bytes of an attachment"] += 1
                yield {"type": "attachment", "mime_type": media_type, "modality": modality, "size": size}
        case Code(language, code):
            yield {"type": "executable_code", "language": language, "content": code}
        case CodeResult(outcome, output):
            yield {"type": "code_result", "outcome": outcome, "content": output}
        case Unknown(value):
            yield {"type": "unknown", "content": value}
        case Thought() | FunctionCall() | FunctionResponse():
            return  # written with the answer and its calls
