"""The names that OpenTelemetry's conventions for generative AI give to things, by version.

They are still in development and have moved to a repository of their own, so the table is ours: 1.41 is the last set
that was published with the others, `dev` is what has changed since. What they have no name for is called `pollux.…`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pollux.model import Json

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
    """None while it is not published."""
    has_finish_reasons: bool
    """Whether a message says why it ended."""
    not_on_agents: frozenset[str] = frozenset()
    """What the span of a local agent does not say."""


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
"""The names of OpenInference for the same things; both sets stand side by side."""


def attributes(named: Mapping[str, Value]) -> list[Json]:
    """Write attributes; what is not known is left out."""
    return [{"key": key, "value": _value(value)} for key, value in named.items() if value is not None]


def _value(value: Value) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}  # in JSON, whole numbers of 64 bits are texts
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [{"stringValue": one} for one in value]}}
        case _:
            return {"stringValue": str(value)}
