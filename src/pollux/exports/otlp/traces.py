"""A session as a trace: the agent, its model calls and tool calls as spans, subagents below the call that began them.

Nothing of what was said is told unless asked for. Files record when something was finished and not when it began: a
span begins where the one before it ended, and says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from pollux import __version__
from pollux.errors import BadFilterError
from pollux.exports.otlp import content
from pollux.exports.otlp.attributes import CONVENTIONS, attributes
from pollux.exports.otlp.spans import CONTENT, OPEN_INFERENCE, Trace, agent_span, event, model_span, tool_span
from pollux.exports.source import Subject
from pollux.exports.tokens import RULE, price_table
from pollux.model import Json, Kind, Message, Origin, ToolCall
from pollux.text.encode import encode

INCLUDABLE = (CONTENT, OPEN_INFERENCE)
AGENT = "gemini-cli"

MAPPING: tuple[tuple[str, str, str], ...] = (
    ("session", "a trace; span `invoke_agent gemini-cli`, INTERNAL", "trace id: SHA-256 of the main session's id"),
    ("session id", "`gen_ai.conversation.id`", "on every span"),
    (
        "model call",
        "span `generate_content {model}`, CLIENT",
        "also without counts; start derived from what came before",
    ),
    ("model", "`gen_ai.request.model`, `gen_ai.response.model`", "files know one name"),
    ("the way to the model", "`gen_ai.provider.name` = `gcp.gen_ai`", "files do not tell; with `dev` not on agents"),
    ("input + tool tokens", "`gen_ai.usage.input_tokens`", "with the cached ones"),
    ("output + thoughts tokens", "`gen_ai.usage.output_tokens`", "absent without counts"),
    ("cached tokens", "`gen_ai.usage.cache_read.input_tokens`", "a part of the input"),
    ("thoughts tokens", "`gen_ai.usage.reasoning.output_tokens`", "a part of the output"),
    ("cost", "`pollux.cost.nano_usd`, `pollux.cost.price_id`", "estimated; no convention has a name for it"),
    ("tool call", "span `execute_tool {name}`, INTERNAL", "`gen_ai.tool.name`, `.type`, `.call.id`"),
    ("failed or cancelled call", "status ERROR, `error.type`", "`tool_error` or `cancelled`"),
    ("subagent", "span `invoke_agent {name}`", "below the `execute_tool` span of the call that began it"),
    ("prompt, notice", "event `pollux.message` of the agent's span", "who, when and how long; no words"),
    ("rewound, compressed …", "`pollux.fate`", "it was paid for, so it is there"),
    ("arguments, results", "`gen_ai.tool.call.arguments`, `.result`", "with `--include content`"),
    (
        "words, thoughts",
        "`gen_ai.input.messages`, `gen_ai.output.messages`",
        "with `--include content`; input since the last call",
    ),
    ("source files", "`pollux.source.sha256` of the resource", "without their paths"),
)
"""What becomes what: ours, theirs, and how."""


def render(subject: Subject) -> Iterator[bytes]:
    """Write one session with its subagents as one line. Raises `BadFilterError` for something unknown to include."""
    if unknown := sorted(subject.wanted.include - {*INCLUDABLE}):
        raise BadFilterError("--include", unknown[0], " or ".join(INCLUDABLE))
    losses, table = subject.losses, price_table(subject)
    resource = attributes(
        {
            "service.name": AGENT,
            "pollux.token_rule": RULE,
            "pollux.semconv": subject.wanted.semconv,
            "pollux.prices": f"estimated with {table['estimated_with']} of {table['date']}",
            "pollux.source.sha256": [str(one["sha256"]) for one in subject.sources()],
        }
    )
    scope = {"name": "pollux", "version": __version__}
    yield b'{"resourceSpans":[{"resource":' + encode({"attributes": resource}, losses)
    yield b',"scopeSpans":[{"scope":' + encode(scope, losses) + b',"spans":['
    trace_id = hashlib.sha256(f"pollux/trace/{_root(subject)}".encode("utf-8", "replace")).hexdigest()[:32]
    for number, span in enumerate(_spans(subject, trace_id, AGENT, {subject.session.id})):
        yield (b"," if number else b"") + encode(span, losses)
    url = CONVENTIONS[subject.wanted.semconv].schema_url
    yield b"]" + (b',"schemaUrl":' + encode(url, losses) if url else b"") + b"}]}]}\n"


def _root(subject: Subject) -> str:
    """Find the session that all began with: a subagent belongs to its trace, even when it is handed over alone."""
    session, seen = subject.session, set[str]()
    while session.parent and session.id not in seen:
        seen.add(session.id)
        above = subject.by_id.get(session.parent)
        if above is None:
            return session.parent
        session = above
    return session.id


def _spans(subject: Subject, trace_id: str, agent: str, above: set[str]) -> Iterator[dict[str, Json]]:
    """Yield the spans of an agent, then those of its subagents."""
    session = subject.session
    calls = {call.message_id: call for call in session.calls}
    trace = Trace(subject, trace_id, agent, calls, session.started, session.started)
    names: dict[str | None, str] = {}
    for message in subject.messages():
        yield from _message(trace, message)
        names |= {call.id: _agent_name(call) for call in message.tool_calls if call.id}
    for call in trace.calls.values():  # recorded under the id of a copy
        yield model_span(trace, None, call)
    yield agent_span(trace)
    for child in subject.children():
        if child.session.id not in above:
            name = names.get(child.session.parent_call, "subagent")
            yield from _spans(child, trace_id, name, above | {child.session.id})


def _message(trace: Trace, message: Message) -> Iterator[dict[str, Json]]:
    if message.kind is not Kind.GEMINI or message.origin is Origin.SYNTHETIC:
        if message.origin is not Origin.TOOL_RESPONSE:
            trace.events.append(event(trace, message))
            if trace.has_content and message.kind is Kind.USER:
                trace.asked.append(content.asked(message, trace.subject))
        return
    call = trace.calls.pop(message.id, None)
    if message.tokens is not None and call is None:
        trace.subject.losses["a model call that belongs to another session, with its tool calls"] += 1
        return
    yield model_span(trace, message, call)
    for index, one in enumerate(message.tool_calls):
        yield tool_span(trace, message, index, one)
    if trace.has_content:
        trace.asked += content.results(message)


def _agent_name(call: ToolCall) -> str:
    """Name the agent that a call starts: an argument says which, or the tool is the agent."""
    told = call.args.get("agent_name") if isinstance(call.args, dict) else None
    return told if isinstance(told, str) and told else call.name
