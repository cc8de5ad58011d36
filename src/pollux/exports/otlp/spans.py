"""The spans of a trace: an agent, its model calls, its tool calls, each with its times and its attributes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from pollux.exports.otlp import content
from pollux.exports.otlp.attributes import CONVENTIONS, OPENINFERENCE, Convention, Value, attributes
from pollux.exports.source import Subject
from pollux.exports.tokens import completion, cost, prompt
from pollux.model import Json, Kind, Message, ModelCall, Tokens, ToolCall
from pollux.text.encode import text
from pollux.text.times import microseconds

CONTENT, OPEN_INFERENCE = "content", "openinference"
PROVIDER = "gcp.gen_ai"
"""Files do not tell by which way the model was reached."""
_INTERNAL, _CLIENT = 1, 3
_ERROR = 2
_NANO = 1_000_000_000
_FAILED = {"error": "tool_error", "cancelled": "cancelled"}
_KINDS = {"invoke_agent": "AGENT", "generate_content": "LLM", "execute_tool": "TOOL"}


@dataclass(slots=True)
class Trace:
    """One agent's part of a trace, as far as it has been told."""

    subject: Subject
    id: str
    agent: str
    calls: dict[str, ModelCall]
    """The model calls that no message has told of yet."""
    first: datetime | None
    last: datetime | None
    """When the newest thing ended."""
    asked: list[Json] = field(default_factory=list)
    """What goes to the model with its next call."""
    events: list[Json] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    """The ids of tool spans: some sessions have a call id twice."""

    @property
    def convention(self) -> Convention:
        """The names of things, in the version asked for."""
        return CONVENTIONS[self.subject.wanted.semconv]

    @property
    def has_content(self) -> bool:
        """Whether words were asked for."""
        return CONTENT in self.subject.wanted.include

    @property
    def session_id(self) -> str:
        """Whose part it is."""
        return self.subject.session.id

    def until(self, at: datetime | None) -> tuple[datetime | None, datetime | None]:
        """Give the times of something that ended then, and remember it."""
        end = at or self.last
        if end is None:
            return None, None
        start = min(self.last or end, end)
        self.first, self.last = min(self.first or end, end), max(self.last or end, end)
        return start, end


def span_id(session_id: str, *names: str) -> str:
    """Name a span so that a second export gives it the same name."""
    return hashlib.sha256("/".join(("pollux/span", session_id, *names)).encode("utf-8", "replace")).hexdigest()[:16]


def agent_span(trace: Trace) -> dict[str, Json]:
    """Tell of the agent itself, once all it did is told."""
    session = trace.subject.session
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


def model_span(trace: Trace, message: Message | None, call: ModelCall | None) -> dict[str, Json]:
    """Tell of a model call: what a message says of it, or its counts alone, or both."""
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
        priced = cost(call, trace.subject.prices)
        named |= _usage(call.tokens, priced)
        own |= _own_usage(call.tokens, priced)
    losses = trace.subject.losses
    if message and trace.has_content:
        answer = content.answered(message, trace.subject, has_finish_reason=trace.convention.has_finish_reasons)
        named |= {"input": text(trace.asked, losses), "output": text([answer], losses)}
        trace.asked = []
    elif message and (message.text or message.thoughts):
        losses["the words of an answer (--include content keeps them)"] += 1
    return _span(trace, span_id(trace.session_id, "call", id_), _agent_id(trace), trace.until(at), named, own)


def _usage(tokens: Tokens, priced: tuple[int, str] | None) -> dict[str, Value]:
    return {
        "input_tokens": prompt(tokens),
        "output_tokens": completion(tokens),
        "total_tokens": tokens.total,
        "cached_tokens": tokens.cached,
        "thought_tokens": tokens.thoughts,
        "cost": priced[0] / _NANO if priced else None,
    }


def _own_usage(tokens: Tokens, priced: tuple[int, str] | None) -> dict[str, Value]:
    """Return what no convention has a name for."""
    return {
        "pollux.usage.tool_tokens": tokens.tool,
        "pollux.usage.total_tokens": tokens.total,
        "pollux.usage.is_consistent": tokens.is_consistent,
        "pollux.cost.nano_usd": priced[0] if priced else None,
        "pollux.cost.price_id": priced[1] if priced else None,
    }


def tool_span(trace: Trace, message: Message, index: int, call: ToolCall) -> dict[str, Json]:
    """Tell of a tool call."""
    id_ = span_id(trace.session_id, "tool", call.id or f"{message.id}#{index}")
    if id_ in trace.taken:
        id_ = span_id(trace.session_id, "tool", message.id, str(index))
    trace.taken.add(id_)
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
    losses = trace.subject.losses
    if trace.has_content:
        told = content.result(call)
        named |= {"arguments": text(call.args, losses), "result": None if told is None else text(told, losses)}
    else:
        losses["the arguments and the result of a call (--include content keeps them)"] += 1
    span = _span(trace, id_, _agent_id(trace), trace.until(call.at or message.at), named, own)
    return {**span, "status": {"code": _ERROR}} if call.status in _FAILED else span


def event(trace: Trace, message: Message) -> dict[str, Json]:
    """Tell of a prompt or a notice."""
    _, at = trace.until(message.at)
    told: dict[str, Value] = {
        "pollux.message.id": message.id,
        "pollux.message.kind": message.kind,
        "pollux.message.origin": message.origin,
        "pollux.message.chars": len(message.text),
        "pollux.fate": message.fate,
    }
    if not trace.has_content:
        trace.subject.losses["the words of a prompt or notice (--include content keeps them)"] += 1
    elif message.kind is not Kind.USER:
        told["pollux.message.text"] = message.text
    return {"timeUnixNano": _nanoseconds(at), "name": "pollux.message", "attributes": attributes(told)}


def _agent_id(trace: Trace) -> str:
    return span_id(trace.session_id, "agent")


def _span(
    trace: Trace,
    id_: str,
    parent_id: str | None,
    times: tuple[datetime | None, datetime | None],
    named: dict[str, Value],
    own: dict[str, Value],
) -> dict[str, Json]:
    """Write a span, in the names of the conventions and, if asked for, of OpenInference too."""
    operation = str(named["operation"])
    what = named.get("agent") or named.get("request_model") or named.get("tool")
    named = {**named, "conversation": trace.session_id, "kind": _KINDS[operation]}
    told: dict[str, Value] = {
        trace.convention.names[name]: value for name, value in named.items() if name in trace.convention.names
    }
    if OPEN_INFERENCE in trace.subject.wanted.include:
        told |= {OPENINFERENCE[name]: value for name, value in named.items() if name in OPENINFERENCE}
    told |= {"pollux.start_time_source": "derived" if times[0] else "unknown"} | own
    span: dict[str, Json] = {
        "traceId": trace.id,
        "spanId": id_,
        "name": f"{operation} {what}" if what else operation,
        "kind": _CLIENT if operation == "generate_content" else _INTERNAL,
        "startTimeUnixNano": _nanoseconds(times[0]),
        "endTimeUnixNano": _nanoseconds(times[1]),
        "attributes": attributes(told),
    }
    return span | {"parentSpanId": parent_id} if parent_id else span


def _nanoseconds(at: datetime | None) -> str:
    return str((microseconds(at) or 0) * 1000)
