"""The entries of a session in the shape of Pi, each naming the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pollux.exports.message_text import call_id, reasoning, result, words
from pollux.exports.source import Subject
from pollux.exports.tokens import completion, cost
from pollux.model import Json, Kind, Message, ModelCall, Origin, ToolCall
from pollux.prices import Prices, uncached
from pollux.text.encode import encode
from pollux.text.times import microseconds, stamp

HARNESS = "gemini-cli"
_ASKED = frozenset({Origin.HUMAN, Origin.AGENT_PROMPT, Origin.LOADED})
_FAILED = frozenset({"error", "cancelled"})
_NANO = 1_000_000_000


@dataclass(slots=True)
class Chain:
    """The entries so far."""

    subject: Subject
    calls: dict[str, ModelCall]
    """The model calls that no entry has told of yet."""
    last: str | None = None
    model: str | None = None
    taken: set[str] = field(default_factory=set)

    def entry(self, type_: str, id_: str, of: Message, fields: dict[str, Json]) -> bytes:
        """Write an entry about a message."""
        while id_ in self.taken:
            id_ += "~"
        self.taken.add(id_)
        at = of.at or self.subject.session.started
        told = {"type": type_, "id": id_, "parentId": self.last, "timestamp": stamp(at) if at else None, **fields}
        self.last = id_
        return encode(told, self.subject.losses) + b"\n"

    def message(self, id_: str, of: Message, told: dict[str, Json]) -> bytes:
        """Write an entry that is part of the conversation."""
        at = microseconds(of.at)
        return self.entry("message", id_, of, {"message": told if at is None else {**told, "timestamp": at // 1000}})


def entries(chain: Chain, message: Message) -> Iterator[bytes]:
    """Write all that a message becomes."""
    n_attachments = len(message.attachments) + sum(len(call.attachments) for call in message.tool_calls)
    if n_attachments:
        chain.subject.losses["a picture or file"] += n_attachments
    custom = f"{HARNESS}.{message.origin}"
    if message.kind is Kind.GEMINI and message.origin is not Origin.SYNTHETIC:
        yield from _answer(chain, message)
    elif message.kind is not Kind.USER:
        data = {"kind": message.kind, "text": words(message)}
        yield chain.entry("custom", message.id, message, {"customType": custom, "data": data})
    elif message.origin in _ASKED:
        yield chain.message(
            message.id, message, {"role": "user", "content": [{"type": "text", "text": words(message)}]}
        )
    elif message.origin is Origin.STATE_SNAPSHOT:
        summed_up: dict[str, Json] = {"summary": words(message), "firstKeptEntryId": message.id}
        yield chain.entry("compaction", message.id, message, summed_up)
    elif message.origin is not Origin.TOOL_RESPONSE:
        added: dict[str, Json] = {"customType": custom, "content": words(message), "display": False}
        yield chain.entry("custom_message", message.id, message, added)


def left_out(chain: Chain, messages: list[Message]) -> bytes:
    """Say how many messages are left out here."""
    first = messages[0]
    told = f"{len(messages)} message{'s' * (len(messages) != 1)} taken back by the user or the client, and left out"
    return chain.entry("branch_summary", f"{first.id}~left-out", first, {"fromId": chain.last, "summary": told})


def _answer(chain: Chain, message: Message) -> Iterator[bytes]:
    """Write an answer, the model before it if it has changed, and the results of its calls after it."""
    call = chain.calls.pop(message.id, None)
    if message.model and message.model != chain.model:
        chain.model = message.model
        change: dict[str, Json] = {"provider": "google", "modelId": message.model}
        yield chain.entry("model_change", f"{message.id}~model", message, change)
    told: dict[str, Json] = {
        "role": "assistant",
        "content": [*_blocks(message)],
        "api": "google-generative-ai",
        "provider": "google",
        "model": message.model or chain.model,
        "stopReason": _stop_reason(message),
    }
    yield chain.message(message.id, message, told | {"usage": _usage(call, chain.subject.prices)} if call else told)
    for index, one in enumerate(message.tool_calls):
        if (came := result(one)) is not None:
            yield _result(chain, message, index, came)


def _blocks(message: Message) -> Iterator[Json]:
    if thoughts := reasoning(message):
        yield {"type": "thinking", "thinking": thoughts}
    if text := words(message):
        yield {"type": "text", "text": text}
    for index, call in enumerate(message.tool_calls):
        yield {"type": "toolCall", "id": call_id(message, index), "name": call.name, "arguments": _arguments(call)}


def _result(chain: Chain, message: Message, index: int, came: str) -> bytes:
    call = message.tool_calls[index]
    told: dict[str, Json] = {
        "role": "toolResult",
        "toolCallId": call_id(message, index),
        "toolName": call.name,
        "content": [{"type": "text", "text": came}],
        "isError": call.status in _FAILED,
    }
    return chain.message(f"{message.id}~result-{index}", message, told)


def _arguments(call: ToolCall) -> Json:
    return call.args if isinstance(call.args, dict) else {"value": call.args}


def _stop_reason(message: Message) -> str:
    """Tell from its calls why an answer ended; files do not record it."""
    if any(call.status == "cancelled" for call in message.tool_calls):
        return "aborted"
    return "toolUse" if message.tool_calls else "stop"


def _usage(call: ModelCall, prices: Prices) -> dict[str, Json]:
    tokens, priced = call.tokens, cost(call, prices)
    usage: dict[str, Json] = {
        "input": uncached(tokens),
        "output": completion(tokens),
        "cacheRead": tokens.cached,
        "cacheWrite": 0,
        "totalTokens": tokens.total,
    }
    return usage | {"cost": {"total": priced[0] / _NANO}} if priced else usage
