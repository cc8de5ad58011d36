"""Traces for the Hugging Face Hub: sessions in the format of Pi, one entry per line, and the card of the data set.

The Hub has no format for Gemini CLI. Of those that `datasets` and the Hub's viewer know, Pi's keeps calls, thoughts,
IDs and errors; the header names the real client. Only prompts of a human or an agent become user messages, so that no
model learns to speak like the client; the client's own messages are entries of another type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pollux import __version__
from pollux.exports import ExportedSession
from pollux.exports.fields import (
    FAILED,
    NANO,
    PROMPT_ORIGINS,
    TOKEN_RULE,
    arguments,
    call_cost,
    call_id,
    call_result,
    completion_tokens,
    message_text,
    price_table,
    reasoning,
)
from pollux.exports.source import RETRACTED, ExportSource
from pollux.model import Json, Kind, Message, ModelCall, Origin
from pollux.prices import Prices, uncached, usage_of
from pollux.text.encode import encode
from pollux.text.times import client_timestamp, microseconds

VERSION = 3
HARNESS = "gemini-cli"

_CARD = """\
---
pretty_name: Gemini CLI sessions
tags:
- agent-traces
- gemini-cli
- pollux
configs:
- config_name: default
  data_files: "*.jsonl"
---

# Gemini CLI sessions

{n_sessions:,} sessions of Gemini CLI, a file each, written by Pollux {version} in the shape of Pi's session files.

| What | How many |
| --- | --- |
| sessions | {n_sessions:,} |
| of them subagents | {n_subagents:,} |
| prompts | {n_prompts:,} |
| tool calls | {n_tools:,} |
| model calls | {n_calls:,} |
| tokens | {n_tokens:,} |
| models | {models} |

```python
from datasets import load_dataset

traces = load_dataset("json", data_files="*.jsonl", split="train")
```

`teich` must be installed beside `datasets`; it turns each file into `messages` and `tools`.
It takes these files for Pi's own and adds Pi's tools to `tools`; `harness` in the header says whose they are.

## Before you publish

Names, addresses, keys and paths were taken out by rules, pictures and files altogether.
Rules do not understand what they read: look through the files yourself, and ask everybody whose words they hold.
This card names no licence; choose one.
"""


@dataclass(slots=True)
class EntryWriter:
    """Writes entries, each of which names the previous one."""

    source: ExportSource
    calls: dict[str, ModelCall]
    """The model calls that no entry has used yet."""
    last: str | None = None
    model: str | None = None
    used_ids: set[str] = field(default_factory=set)

    def entry(self, type_: str, id_: str, message: Message, fields: dict[str, Json]) -> bytes:
        """Return an entry about a message."""
        while id_ in self.used_ids:
            id_ += "~"
        self.used_ids.add(id_)
        at = message.at or self.source.session.started
        entry = {
            "type": type_,
            "id": id_,
            "parentId": self.last,
            "timestamp": client_timestamp(at) if at else None,
            **fields,
        }
        self.last = id_
        return encode(entry, self.source.losses) + b"\n"

    def message(self, id_: str, message: Message, fields: dict[str, Json]) -> bytes:
        """Return an entry that is part of the conversation."""
        at = microseconds(message.at)
        timed = fields if at is None else {**fields, "timestamp": at // 1000}
        return self.entry("message", id_, message, {"message": timed})


def render(source: ExportSource) -> Iterator[bytes]:
    """Yield one session, one entry per line."""
    session, losses = source.session, source.losses
    yield encode(_header(source), losses) + b"\n"
    writer = EntryWriter(source, {call.message_id: call for call in session.calls})
    retracted: list[Message] = []
    for message in source.messages():
        if message.fate in RETRACTED:
            retracted.append(message)
            losses["a retracted message"] += 1
            continue
        if retracted:
            yield _retracted_summary(writer, retracted)
            retracted = []
        yield from _entries(writer, message)
    if retracted:
        yield _retracted_summary(writer, retracted)
    if writer.calls:
        losses["the counts of a model call without a message"] += len(writer.calls)
    if session.title_from == "summary":
        info = {"type": "session_info", "id": f"{session.id}~title", "parentId": writer.last, "name": session.title}
        yield encode(info, losses) + b"\n"


def pages(exported: Sequence[ExportedSession], prices: Prices) -> Iterator[tuple[str, bytes]]:
    """Yield the card of a data set."""
    sessions = [export.session for export in exported]
    usage = usage_of((call for session in sessions for call in session.calls), prices)
    models = sorted({model for session in sessions for model in session.models})
    card = _CARD.format(
        version=__version__,
        n_sessions=len(sessions),
        n_subagents=sum(session.kind == "subagent" for session in sessions),
        n_prompts=sum(session.counts.get("user", 0) for session in sessions),
        n_tools=sum(session.tool_calls for session in sessions),
        n_calls=usage.calls,
        n_tokens=usage.tokens.total,
        models=", ".join(f"`{model}`" for model in models) or "–",
    )
    yield "README.md", card.encode("utf-8", "replace")


def _header(source: ExportSource) -> dict[str, Json]:
    session = source.session
    header: dict[str, Json] = {
        "type": "session",
        "version": VERSION,
        "id": session.id,
        "timestamp": client_timestamp(session.started) if session.started else None,
        "cwd": session.project.path or "",
        "harness": HARNESS,
        "pollux": {
            "version": __version__,
            "token_rule": TOKEN_RULE,
            "prices": price_table(source),
            "source_sha256": [file["sha256"] for file in source.sources()],
        },
    }
    return header | {"parentSession": session.parent} if session.parent else header


def _entries(writer: EntryWriter, message: Message) -> Iterator[bytes]:
    n_attachments = len(message.attachments) + sum(len(call.attachments) for call in message.tool_calls)
    if n_attachments:
        writer.source.losses["an attachment"] += n_attachments
    custom_type = f"{HARNESS}.{message.origin}"
    text = message_text(message)
    if message.kind is Kind.GEMINI and message.origin is not Origin.SYNTHETIC:
        yield from _answer(writer, message)
    elif message.kind is not Kind.USER:
        data = {"kind": message.kind, "text": text}
        yield writer.entry("custom", message.id, message, {"customType": custom_type, "data": data})
    elif message.origin in PROMPT_ORIGINS:
        yield writer.message(message.id, message, {"role": "user", "content": [{"type": "text", "text": text}]})
    elif message.origin is Origin.STATE_SNAPSHOT:
        yield writer.entry("compaction", message.id, message, {"summary": text, "firstKeptEntryId": message.id})
    elif message.origin is not Origin.TOOL_RESPONSE:
        fields: dict[str, Json] = {"customType": custom_type, "content": text, "display": False}
        yield writer.entry("custom_message", message.id, message, fields)


def _retracted_summary(writer: EntryWriter, messages: list[Message]) -> bytes:
    first = messages[0]
    summary = f"{len(messages)} message{'s' * (len(messages) != 1)} taken back by the user or the client, and left out"
    return writer.entry("branch_summary", f"{first.id}~left-out", first, {"fromId": writer.last, "summary": summary})


def _answer(writer: EntryWriter, message: Message) -> Iterator[bytes]:
    """Yield the model if it has changed, an answer, and the results of its calls."""
    call = writer.calls.pop(message.id, None)
    if message.model and message.model != writer.model:
        writer.model = message.model
        change: dict[str, Json] = {"provider": "google", "modelId": message.model}
        yield writer.entry("model_change", f"{message.id}~model", message, change)
    answer: dict[str, Json] = {
        "role": "assistant",
        "content": [*_blocks(message)],
        "api": "google-generative-ai",
        "provider": "google",
        "model": message.model or writer.model,
        "stopReason": _stop_reason(message),
    }
    if call:
        answer["usage"] = _usage(call, writer.source.prices)
    yield writer.message(message.id, message, answer)
    for index, tool_call in enumerate(message.tool_calls):
        result = call_result(tool_call)
        if result is not None:
            fields: dict[str, Json] = {
                "role": "toolResult",
                "toolCallId": call_id(message, index),
                "toolName": tool_call.name,
                "content": [{"type": "text", "text": result}],
                "isError": tool_call.status in FAILED,
            }
            yield writer.message(f"{message.id}~result-{index}", message, fields)


def _blocks(message: Message) -> Iterator[Json]:
    if thoughts := reasoning(message):
        yield {"type": "thinking", "thinking": thoughts}
    if text := message_text(message):
        yield {"type": "text", "text": text}
    for index, call in enumerate(message.tool_calls):
        yield {"type": "toolCall", "id": call_id(message, index), "name": call.name, "arguments": arguments(call)}


def _stop_reason(message: Message) -> str:
    """Return why an answer ended, inferred from its calls because files do not record it."""
    if any(call.status == "cancelled" for call in message.tool_calls):
        return "aborted"
    return "toolUse" if message.tool_calls else "stop"


def _usage(call: ModelCall, prices: Prices) -> dict[str, Json]:
    tokens, cost = call.tokens, call_cost(call, prices)
    usage: dict[str, Json] = {
        "input": uncached(tokens),
        "output": completion_tokens(tokens),
        "cacheRead": tokens.cached,
        "cacheWrite": 0,
        "totalTokens": tokens.total,
    }
    return usage | {"cost": {"total": cost[0] / NANO}} if cost else usage
