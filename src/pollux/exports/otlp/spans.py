"""The spans of a trace: an agent, its model calls and its tool calls, with times and attributes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from pollux.exports.fields import NANO, call_cost, completion_tokens, prompt_tokens
from pollux.exports.otlp.attributes import (
    CONVENTIONS,
    OPENINFERENCE,
    Convention,
    Value,
    answer_message,
    attributes,
    result_value,
)
from pollux.exports.source import ExportSource
from pollux.model import Json, Kind, Message, ModelCall, Tokens, ToolCall
from pollux.text.encode import text
from pollux.text.times import microseconds

CONTENT, OPEN_INFERENCE = "content", "openinference"
PROVIDER = "gcp.gen_ai"
"""A guess: session files do not record which API was used."""
_INTERNAL, _CLIENT = 1, 3
_ERROR = 2
_FAILED = {"error": "tool_error", "cancelled": "cancelled"}
_KINDS = {"invoke_agent": "AGENT", "generate_content": "LLM", "execute_tool": "TOOL"}


@dataclass(slots=True)
class AgentTrace:
    """One agent's part of a trace, while it is being written."""

    source: ExportSource
    id: str
    agent: str
    calls: dict[str, ModelCall]
    """The model calls that no span has used yet."""
    first: datetime | None
    last: datetime | None
    """When the latest span ended."""
    input_messages: list[Json] = field(default_factory=list)
    """Messages to the model since its last call."""
    events: list[Json] = field(default_factory=list)
    tool_span_ids: set[str] = field(default_factory=set)
    """Some sessions use a call ID twice."""

    @property
    def convention(self) -> Convention:
        """The conventions, in the version that the user chose."""
        return CONVENTIONS[self.source.export_options.semconv]

    @property
    def has_content(self) -> bool:
        """Whether message text is included."""
        return CONTENT in self.source.export_options.include

    @property
    def session_id(self) -> str:
        """The session of the agent."""
        return self.source.session.id

    def advance(self, at: datetime | None) -> tuple[datetime | None, datetime | None]:
        """Return start and end of a span that ended at a time: it starts where the previous one ended."""
        end = at or self.last
        if end is None:
            return None, None
        start = min(self.last or end, end)
        self.first, self.last = min(self.first or end, end), max(self.last or end, end)
        return start, end


def span_id(session_id: str, *names: str) -> str:
    """Return a span ID that is the same in every export."""
    return hashlib.sha256("/".join(("pollux/span", session_id, *names)).encode("utf-8", "replace")).hexdigest()[:16]


def agent_span(trace: AgentTrace) -> dict[str, Json]:
    """Return the span of the agent itself; call it after all its other spans."""
    session = trace.source.session
    named: dict[str, Value] = {
        "operation": "invoke_agent",
        "provider": PROVIDER,
        "agent": trace.agent,
        "agent_id": session.id,
    }
    own: dict[str, Value] = {
        "pollux.session.kind": session.kind,
        "pollux.client.generation": session.generation,
        "pollux.project.hash": session.project.hash,
        "pollux.start_time_source": "recorded" if session.started else "unknown",
    }
    if trace.has_content:
        own |= {"pollux.title": session.title, "pollux.project.path": session.project.path}
    named = {name: value for name, value in named.items() if name not in trace.convention.not_on_agents}
    parent = span_id(session.parent, "tool", session.parent_call or "") if session.parent else None
    span = _span(trace, _agent_id(trace), parent, (trace.first, trace.last), named, own)
    return {**span, "events": trace.events} if trace.events else span


def model_span(trace: AgentTrace, message: Message | None, call: ModelCall | None) -> dict[str, Json]:
    """Return the span of a model call, from its message, its counts or both."""
    assert message or call
    model = call.model if call else message.model if message else None
    id_ = message.id if message else call.message_id if call else ""
    fate = call.fate if call else message.fate if message else None
    at = message.at if message else call.at if call else None
    named: dict[str, Value] = {
        "operation": "generate_content",
        "provider": PROVIDER,
        "request_model": model,
        "response_model": model,
    }
    own: dict[str, Value] = {"pollux.message.id": id_, "pollux.fate": fate}
    if call:
        cost = call_cost(call, trace.source.prices)
        named |= _usage(call.tokens, cost)
        own |= _own_usage(call.tokens, cost)
    losses = trace.source.losses
    if message and trace.has_content:
        answer = answer_message(message, trace.source, has_finish_reason=trace.convention.has_finish_reasons)
        named |= {"input": text(trace.input_messages, losses), "output": text([answer], losses)}
        trace.input_messages = []
    elif message and (message.text or message.thoughts):
        losses["the text of an answer (--include content adds it)"] += 1
    return _span(trace, span_id(trace.session_id, "call", id_), _agent_id(trace), trace.advance(at), named, own)


def _usage(tokens: Tokens, cost: tuple[int, str] | None) -> dict[str, Value]:
    return {
        "input_tokens": prompt_tokens(tokens),
        "output_tokens": completion_tokens(tokens),
        "total_tokens": tokens.total,
        "cached_tokens": tokens.cached,
        "thought_tokens": tokens.thoughts,
        "cost": cost[0] / NANO if cost else None,
    }


def _own_usage(tokens: Tokens, cost: tuple[int, str] | None) -> dict[str, Value]:
    """Return the attributes that the conventions do not define."""
    return {
        "pollux.usage.tool_tokens": tokens.tool,
        "pollux.usage.total_tokens": tokens.total,
        "pollux.usage.is_consistent": tokens.is_consistent,
        "pollux.cost.nano_usd": cost[0] if cost else None,
        "pollux.cost.price_id": cost[1] if cost else None,
    }


def tool_span(trace: AgentTrace, message: Message, index: int, call: ToolCall) -> dict[str, Json]:
    """Return the span of a tool call."""
    id_ = span_id(trace.session_id, "tool", call.id or f"{message.id}#{index}")
    if id_ in trace.tool_span_ids:
        id_ = span_id(trace.session_id, "tool", message.id, str(index))
    trace.tool_span_ids.add(id_)
    named: dict[str, Value] = {
        "operation": "execute_tool",
        "tool": call.name,
        "tool_type": "function",
        "call": call.id,
        "error": _FAILED.get(call.status),
    }
    own: dict[str, Value] = {
        "pollux.message.id": message.id,
        "pollux.fate": message.fate,
        "pollux.tool.status": call.status,
        "pollux.tool.canonical": call.canonical,
        "pollux.tool.category": call.category,
        "pollux.tool.kind": call.kind,
        "pollux.tool.mcp_server": call.mcp_server,
        "pollux.tool.exit_code": call.exit_code,
    }
    losses = trace.source.losses
    if trace.has_content:
        result = result_value(call)
        named |= {"arguments": text(call.args, losses), "result": None if result is None else text(result, losses)}
    else:
        losses["the arguments and the result of a call (--include content adds them)"] += 1
    span = _span(trace, id_, _agent_id(trace), trace.advance(call.at or message.at), named, own)
    return {**span, "status": {"code": _ERROR}} if call.status in _FAILED else span


def event(trace: AgentTrace, message: Message) -> dict[str, Json]:
    """Return the event of a prompt or a notice."""
    _, at = trace.advance(message.at)
    fields: dict[str, Value] = {
        "pollux.message.id": message.id,
        "pollux.message.kind": message.kind,
        "pollux.message.origin": message.origin,
        "pollux.message.chars": len(message.text),
        "pollux.fate": message.fate,
    }
    if not trace.has_content:
        trace.source.losses["the text of a prompt or notice (--include content adds it)"] += 1
    elif message.kind is not Kind.USER:
        fields["pollux.message.text"] = message.text
    return {"timeUnixNano": _nanoseconds(at), "name": "pollux.message", "attributes": attributes(fields)}


def _agent_id(trace: AgentTrace) -> str:
    return span_id(trace.session_id, "agent")


def _span(
    trace: AgentTrace,
    id_: str,
    parent_id: str | None,
    times: tuple[datetime | None, datetime | None],
    named: dict[str, Value],
    own: dict[str, Value],
) -> dict[str, Json]:
    """Return a span with the attributes of the conventions and, if included, of OpenInference."""
    operation = str(named["operation"])
    target = named.get("agent") or named.get("request_model") or named.get("tool")
    named = {**named, "conversation": trace.session_id, "kind": _KINDS[operation]}
    fields: dict[str, Value] = {
        trace.convention.names[name]: value for name, value in named.items() if name in trace.convention.names
    }
    if OPEN_INFERENCE in trace.source.export_options.include:
        fields |= {OPENINFERENCE[name]: value for name, value in named.items() if name in OPENINFERENCE}
    fields |= {"pollux.start_time_source": "derived" if times[0] else "unknown"} | own
    span: dict[str, Json] = {
        "traceId": trace.id,
        "spanId": id_,
        "name": f"{operation} {target}" if target else operation,
        "kind": _CLIENT if operation == "generate_content" else _INTERNAL,
        "startTimeUnixNano": _nanoseconds(times[0]),
        "endTimeUnixNano": _nanoseconds(times[1]),
        "attributes": attributes(fields),
    }
    return span | {"parentSpanId": parent_id} if parent_id else span


def _nanoseconds(at: datetime | None) -> str:
    return str((microseconds(at) or 0) * 1000)
