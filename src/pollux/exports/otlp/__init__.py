"""Export a session as an OpenTelemetry trace (OTLP as JSON), with the conventions for generative AI.

The agent, its model calls and its tool calls are spans; a subagent is below the call that started it. Message text is
left out unless the user includes it. Session files record when something ended, not when it began, so a span begins
where the previous one ended, and is marked so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from pollux import __version__
from pollux.errors import InvalidFilterError
from pollux.exports.fields import TOKEN_RULE, price_table
from pollux.exports.otlp.attributes import CONVENTIONS, attributes, prompt_message, result_messages
from pollux.exports.otlp.spans import CONTENT, OPEN_INFERENCE, AgentTrace, agent_span, event, model_span, tool_span
from pollux.exports.source import ExportSource
from pollux.model import Json, Kind, Message, Origin, ToolCall
from pollux.text.encode import encode

INCLUDABLE = (CONTENT, OPEN_INFERENCE)
AGENT = "gemini-cli"


def render(source: ExportSource) -> Iterator[bytes]:
    """Yield one session with its subagents as one line. Raises `InvalidFilterError` for an unknown `--include`."""
    if unknown := sorted(source.export_options.include - {*INCLUDABLE}):
        raise InvalidFilterError("--include", unknown[0], " or ".join(INCLUDABLE))
    losses, table = source.losses, price_table(source)
    resource = attributes(
        {
            "service.name": AGENT,
            "pollux.token_rule": TOKEN_RULE,
            "pollux.semconv": source.export_options.semconv,
            "pollux.prices": f"estimated with {table['estimated_with']} of {table['date']}",
            "pollux.source.sha256": [str(file["sha256"]) for file in source.sources()],
        }
    )
    scope = {"name": "pollux", "version": __version__}
    yield b'{"resourceSpans":[{"resource":' + encode({"attributes": resource}, losses)
    yield b',"scopeSpans":[{"scope":' + encode(scope, losses) + b',"spans":['
    trace_id = hashlib.sha256(f"pollux/trace/{_root_id(source)}".encode("utf-8", "replace")).hexdigest()[:32]
    for number, span in enumerate(_spans(source, trace_id, AGENT, {source.session.id})):
        yield (b"," if number else b"") + encode(span, losses)
    url = CONVENTIONS[source.export_options.semconv].schema_url
    yield b"]" + (b',"schemaUrl":' + encode(url, losses) if url else b"") + b"}]}]}\n"


def _root_id(source: ExportSource) -> str:
    """Return the ID of the main session: a subagent belongs to its trace even if it is exported alone."""
    session, visited = source.session, set[str]()
    while session.parent and session.id not in visited:
        visited.add(session.id)
        parent = source.by_id.get(session.parent)
        if parent is None:
            return session.parent
        session = parent
    return session.id


def _spans(source: ExportSource, trace_id: str, agent: str, ancestors: set[str]) -> Iterator[dict[str, Json]]:
    """Yield the spans of an agent, then those of its subagents."""
    session = source.session
    calls = {call.message_id: call for call in session.calls}
    trace = AgentTrace(source, trace_id, agent, calls, session.started, session.started)
    agent_names: dict[str | None, str] = {}
    for message in source.messages():
        yield from _message_spans(trace, message)
        agent_names |= {call.id: _agent_name(call) for call in message.tool_calls if call.id}
    for call in trace.calls.values():  # recorded under the ID of a copied message
        yield model_span(trace, None, call)
    yield agent_span(trace)
    for child in source.children():
        if child.session.id not in ancestors:
            name = agent_names.get(child.session.parent_call, "subagent")
            yield from _spans(child, trace_id, name, ancestors | {child.session.id})


def _message_spans(trace: AgentTrace, message: Message) -> Iterator[dict[str, Json]]:
    if message.kind is not Kind.GEMINI or message.origin is Origin.SYNTHETIC:
        if message.origin is not Origin.TOOL_RESPONSE:
            trace.events.append(event(trace, message))
            if trace.has_content and message.kind is Kind.USER:
                trace.input_messages.append(prompt_message(message, trace.source))
        return
    call = trace.calls.pop(message.id, None)
    if message.tokens is not None and call is None:
        trace.source.losses["a model call that belongs to another session, with its tool calls"] += 1
        return
    yield model_span(trace, message, call)
    for index, tool_call in enumerate(message.tool_calls):
        yield tool_span(trace, message, index, tool_call)
    if trace.has_content:
        trace.input_messages += result_messages(message)


def _agent_name(call: ToolCall) -> str:
    """Return the name of the agent that a call starts: an argument, or else the name of the tool."""
    name = call.args.get("agent_name") if isinstance(call.args, dict) else None
    return name if isinstance(name, str) and name else call.name
