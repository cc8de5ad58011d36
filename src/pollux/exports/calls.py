"""One record per model call, with the field names of usage dashboards: prompt, tools, tokens, cost.

Input tokens are those billed at the input price: the prompt without its cached part, and tool tokens. Output tokens
include thoughts, which are billed alike. Calls that an import only repeats are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from pollux import __version__
from pollux.exports.fields import PROMPT_ORIGINS, call_cost, completion_tokens
from pollux.exports.source import ExportSource
from pollux.formats import lenient
from pollux.model import Json, Message, ModelCall, Text, ToolCall
from pollux.prices import uncached
from pollux.text.encode import csv_row, encode, escape_formula
from pollux.text.shell import commands
from pollux.text.times import client_timestamp

MAX_PROMPT = 500
"""Characters of a prompt that are exported."""
COLUMNS = (
    *("tool", "session_id", "parent_session_id", "message_id", "dedup_key", "timestamp", "timestamp_from", "project"),
    *("model", "fate", "input_tokens", "output_tokens", "cached_input_tokens", "cache_read_input_tokens"),
    *("cache_creation_input_tokens", "reasoning_tokens", "tool_prompt_tokens", "total_tokens", "total_is_consistent"),
    *("cost_nanousd", "price_id", "tools", "bash_commands", "is_canceled", "user_message", "prompt_chars"),
    *("response_chars", "elapsed_ms", "code_blocks", "source_file", "source_line", "source_sha256", "pollux"),
)
_LINE_ID = re.compile(r"line-\d+")  # stands in for a missing message ID
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def render_lines(source: ExportSource) -> Iterator[bytes]:
    """Yield one JSON object per line."""
    for record in records(source):
        yield encode(record) + b"\n"


def render_csv(source: ExportSource) -> Iterator[bytes]:
    """Yield CSV with a header line; lists are JSON."""
    yield csv_row(COLUMNS).encode()
    for record in records(source):
        yield csv_row([_cell(record[name]) for name in COLUMNS]).encode("utf-8", "replace")


def records(source: ExportSource) -> Iterator[dict[str, Json]]:
    """Yield the model calls of a session in timeline order, without those of its subagents."""
    unmatched = {call.message_id: call for call in source.session.calls}
    hashers = {
        source.clean(str(file.reading.path)): file.reading.original.sha256 for file in reversed(source.group.files)
    }
    digest_of = cache(lambda path: hashers[path]() if path in hashers else None)
    prompt: Message | None = None
    for message in source.messages():
        if message.origin in PROMPT_ORIGINS:
            prompt = message
        if call := unmatched.pop(message.id, None):
            yield _record(source, call, message, prompt, digest_of(call.file))
    for call in unmatched.values():  # recorded under the ID of a copied message
        yield _record(source, call, None, None, digest_of(call.file))


def dedup_key(call: ModelCall) -> str:
    """Return a key that identifies a call in every export: its message ID, or its time, model and counts."""
    if not _LINE_ID.fullmatch(call.message_id):
        return f"gemini:{call.session_id}:{call.message_id}"
    tokens = call.tokens
    counts = (tokens.input, tokens.output, tokens.cached, tokens.thoughts, tokens.tool, tokens.total)
    at = client_timestamp(call.at) if call.at else ""
    return ":".join(("gemini", call.session_id, at, call.model or "", *map(str, counts)))


def bash_commands(call: ToolCall) -> list[str]:
    """Return the commands that a shell tool ran; its arguments may be JSON text."""
    args: Any = call.args
    if isinstance(args, str):
        try:
            args = lenient.decode(args.encode("utf-8", "replace"))
        except ValueError:
            return []
    if call.label != "Bash" or not isinstance(args, dict):
        return []
    line = args.get("command") or args.get("cmd")
    return list(commands(line)) if isinstance(line, str) else []


def _record(
    source: ExportSource, call: ModelCall, message: Message | None, prompt: Message | None, sha256: str | None
) -> dict[str, Json]:
    session, tokens = source.session, call.tokens
    nanousd, price_id = call_cost(call, source.prices) or (None, None)
    at = call.at or session.started
    tool_calls = message.tool_calls if message else ()
    prompt_text = prompt.text if prompt else ""
    return {
        "tool": "gemini",
        "session_id": session.id,
        "parent_session_id": session.parent,
        "message_id": call.message_id,
        "dedup_key": dedup_key(call),
        "timestamp": client_timestamp(at) if at else None,
        "timestamp_from": "message" if call.at else "session" if at else None,
        "project": session.project.path or session.project.name,
        "model": call.model,
        "fate": call.fate,
        "input_tokens": uncached(tokens),
        "output_tokens": completion_tokens(tokens),
        "cached_input_tokens": tokens.cached,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": 0,
        "reasoning_tokens": tokens.thoughts,
        "tool_prompt_tokens": tokens.tool,
        "total_tokens": tokens.total,
        "total_is_consistent": tokens.is_consistent,
        "cost_nanousd": nanousd,
        "price_id": price_id,
        "tools": [tool_call.label for tool_call in tool_calls],
        "bash_commands": [command for tool_call in tool_calls for command in bash_commands(tool_call)],
        "is_canceled": any(tool_call.status == "cancelled" for tool_call in tool_calls),
        "user_message": prompt_text[:MAX_PROMPT],
        "prompt_chars": len(prompt_text),
        "response_chars": len(message.text) if message else 0,
        "elapsed_ms": _elapsed(call, prompt),
        "code_blocks": _code_blocks(message) if message else [],
        "source_file": call.file,
        "source_line": call.line,
        "source_sha256": sha256,
        "pollux": __version__,
    }


def _elapsed(call: ModelCall, prompt: Message | None) -> int | None:
    """Return the milliseconds since the prompt."""
    if prompt is None or prompt.at is None or call.at is None:
        return None
    return max(0, round((call.at - prompt.at).total_seconds() * 1000))


def _code_blocks(message: Message) -> list[Json]:
    text = "\n".join(part.text for part in message.parts if isinstance(part, Text))
    return [{"language": name.strip(), "loc": len(code.splitlines())} for name, code in _FENCE.findall(text)]


def _cell(value: Json) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case str():
            return escape_formula(value)
        case int() | float():
            return str(value)
        case _:
            return encode(value).decode("utf-8", "replace")
