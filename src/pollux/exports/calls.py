"""One record per model call, in the words of usage dashboards: what was asked, which tools it led to, what it cost.

Input is what is paid at the input price: the prompt without its cached part, and what tools added to it. Output holds
the thoughts, which are paid alike. A call that an import only repeats is not among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from pollux import __version__
from pollux.exports.source import Subject
from pollux.exports.tokens import completion, cost
from pollux.formats import lenient
from pollux.model import Json, Message, ModelCall, Origin, Text, ToolCall
from pollux.prices import uncached
from pollux.text.encode import csv_row, encode, escape_formula
from pollux.text.shell import commands
from pollux.text.times import stamp

SHOWN = 500
"""Characters of a prompt."""
COLUMNS = (
    *("tool", "session_id", "parent_session_id", "message_id", "dedup_key", "timestamp", "timestamp_from", "project"),
    *("model", "fate", "input_tokens", "output_tokens", "cached_input_tokens", "cache_read_input_tokens"),
    *("cache_creation_input_tokens", "reasoning_tokens", "tool_prompt_tokens", "total_tokens", "total_is_consistent"),
    *("cost_nanousd", "price_id", "tools", "bash_commands", "is_canceled", "user_message", "prompt_chars"),
    *("response_chars", "elapsed_ms", "code_blocks", "source_file", "source_line", "source_sha256", "pollux"),
)
_PLACED = re.compile(r"line-\d+")  # the id of a message that has none of its own
_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ASKED = (Origin.HUMAN, Origin.AGENT_PROMPT, Origin.LOADED)


def render_lines(subject: Subject) -> Iterator[bytes]:
    """Write one JSON object a line."""
    for record in records(subject):
        yield encode(record) + b"\n"


def render_csv(subject: Subject) -> Iterator[bytes]:
    """Write CSV with a line of names; lists are JSON."""
    yield csv_row(COLUMNS).encode()
    for record in records(subject):
        yield csv_row([_cell(record[name]) for name in COLUMNS]).encode("utf-8", "replace")


def records(subject: Subject) -> Iterator[dict[str, Json]]:
    """Yield the calls of a session in the order of its timeline, without those of its subagents."""
    waiting = {call.message_id: call for call in subject.session.calls}
    digests = {
        subject.clean(str(one.reading.path)): one.reading.original.sha256 for one in reversed(subject.group.files)
    }
    digest_of = cache(lambda file: digests[file]() if file in digests else None)
    prompt: Message | None = None
    for message in subject.messages():
        if message.origin in _ASKED:
            prompt = message
        if call := waiting.pop(message.id, None):
            yield _record(subject, call, message, prompt, digest_of(call.file))
    for call in waiting.values():  # recorded under the id of a copy
        yield _record(subject, call, None, None, digest_of(call.file))


def dedup_key(call: ModelCall) -> str:
    """Name a call so that it is never taken in twice; without an id, by all else that it has."""
    if not _PLACED.fullmatch(call.message_id):
        return f"gemini:{call.session_id}:{call.message_id}"
    one = call.tokens
    counts = (one.input, one.output, one.cached, one.thoughts, one.tool, one.total)
    at = stamp(call.at) if call.at else ""
    return ":".join(("gemini", call.session_id, at, call.model or "", *map(str, counts)))


def bash_commands(call: ToolCall) -> list[str]:
    """Split what a shell tool ran; its arguments may be JSON in a text."""
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
    subject: Subject, call: ModelCall, message: Message | None, prompt: Message | None, sha256: str | None
) -> dict[str, Json]:
    session, one = subject.session, call.tokens
    nanousd, price_id = cost(call, subject.prices) or (None, None)
    at = call.at or session.started
    calls = message.tool_calls if message else ()
    asked = prompt.text if prompt else ""
    return {
        "tool": "gemini",
        "session_id": session.id,
        "parent_session_id": session.parent,
        "message_id": call.message_id,
        "dedup_key": dedup_key(call),
        "timestamp": stamp(at) if at else None,
        "timestamp_from": "message" if call.at else "session" if at else None,
        "project": session.project.path or session.project.name,
        "model": call.model,
        "fate": call.fate,
        "input_tokens": uncached(one),
        "output_tokens": completion(one),
        "cached_input_tokens": one.cached,
        "cache_read_input_tokens": one.cached,
        "cache_creation_input_tokens": 0,
        "reasoning_tokens": one.thoughts,
        "tool_prompt_tokens": one.tool,
        "total_tokens": one.total,
        "total_is_consistent": one.is_consistent,
        "cost_nanousd": nanousd,
        "price_id": price_id,
        "tools": [each.label for each in calls],
        "bash_commands": [command for each in calls for command in bash_commands(each)],
        "is_canceled": any(each.status == "cancelled" for each in calls),
        "user_message": asked[:SHOWN],
        "prompt_chars": len(asked),
        "response_chars": len(message.text) if message else 0,
        "elapsed_ms": _elapsed(call, prompt),
        "code_blocks": _code_blocks(message) if message else [],
        "source_file": call.file,
        "source_line": call.line,
        "source_sha256": sha256,
        "pollux": __version__,
    }


def _elapsed(call: ModelCall, prompt: Message | None) -> int | None:
    """Count the milliseconds since the prompt."""
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
