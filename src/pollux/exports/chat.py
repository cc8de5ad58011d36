"""Export conversations to train on, one row per session, in the format of chat APIs or of ShareGPT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pollux import __version__
from pollux.errors import InvalidFilterError
from pollux.exports.chat_turns import ChatTurn, turns
from pollux.exports.fields import TOKEN_RULE
from pollux.exports.source import ExportSource
from pollux.model import Json
from pollux.prices import usage_of
from pollux.text.encode import encode, text
from pollux.text.times import client_timestamp
from pollux.views.contracts import tokens_row

OBJECTS = "argument-objects"
INCLUDABLE = (OBJECTS,)
DESCRIPTION = "Inferred from the calls of this session."
_ROLES = {"system": "system", "user": "human"}
"""Roles of a chat API, and those of ShareGPT."""
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


@dataclass(slots=True)
class InferredTool:
    """What the calls of a tool reveal about its schema: session files do not contain the real one."""

    n_calls: int = 0
    types: dict[str, set[str]] = field(default_factory=dict)
    """Types by argument."""
    counts: dict[str, int] = field(default_factory=dict)
    """Calls by argument."""

    def add(self, args: Json) -> None:
        """Add the arguments of a call."""
        self.n_calls += 1
        for name, value in args.items() if isinstance(args, dict) else ():
            self.types.setdefault(name, set()).add(_type_name(value))
            self.counts[name] = self.counts.get(name, 0) + 1

    def schema(self, name: str) -> dict[str, Json]:
        """Return the tool definition; an argument is required if every call has it."""
        properties: dict[str, Json] = {}
        for argument, types in self.types.items():
            properties[argument] = {"type": next(iter(types)) if len(types) == 1 else sorted(types)}
        parameters: dict[str, Json] = {
            "type": "object",
            "properties": properties,
            "required": [argument for argument, count in self.counts.items() if count == self.n_calls],
        }
        return {"type": "function", "function": {"name": name, "description": DESCRIPTION, "parameters": parameters}}


@dataclass(slots=True)
class _ChatRow:
    """The turns and tools of a row so far."""

    n_turns: int = 0
    tools: dict[str, InferredTool] = field(default_factory=dict)

    def turns(self, source: ExportSource, *, as_objects: bool) -> Iterator[ChatTurn]:
        """Yield the turns, and collect the tools that they call."""
        for turn in turns(source, as_objects=as_objects):
            self.n_turns += 1
            for call in turn.calls:
                self.tools.setdefault(call.name, InferredTool()).add(call.args)
            yield turn

    def schemas(self) -> list[dict[str, Json]]:
        """Return the definitions of the tools that were called."""
        return [self.tools[name].schema(name) for name in sorted(self.tools)]


def render(source: ExportSource) -> Iterator[bytes]:
    """Yield one session as messages of a chat API. Raises `InvalidFilterError` for an unknown `--include`."""
    if unknown := sorted(source.export_options.include - {*INCLUDABLE}):
        raise InvalidFilterError("--include", unknown[0], " or ".join(INCLUDABLE))
    row = _ChatRow()
    separator = b'{"messages":['
    for turn in row.turns(source, as_objects=OBJECTS in source.export_options.include):
        yield separator + b",".join(encode(message, source.losses) for message in turn.messages)
        separator = b","
    if row.n_turns:
        yield from _tail(source, row, row.schemas())


def render_sharegpt(source: ExportSource) -> Iterator[bytes]:
    """Yield one session in the ShareGPT format, in which the tools are a text."""
    row = _ChatRow()
    separator = b'{"conversations":['
    for turn in row.turns(source, as_objects=True):
        yield separator + b",".join(encode(message, source.losses) for message in _sharegpt_messages(turn, source))
        separator = b","
    if row.n_turns:
        tools = text([schema["function"] for schema in row.schemas()], source.losses) if row.tools else ""
        yield from _tail(source, row, tools)


def _tail(source: ExportSource, row: _ChatRow, tools: Json) -> Iterator[bytes]:
    yield b'],"tools":' + encode(tools, source.losses)
    yield b',"metadata":' + encode(_metadata(source, row.n_turns), source.losses) + b"}\n"


def _metadata(source: ExportSource, n_turns: int) -> dict[str, Json]:
    session = source.session
    return {
        "source": "gemini-cli",
        "session_id": session.id,
        "kind": session.kind,
        "started": client_timestamp(session.started) if session.started else None,
        "models": session.models,
        "turns": n_turns,
        "tool_schemas": "inferred",
        "tokens": tokens_row(usage_of(session.calls, source.prices).tokens) if session.calls else None,
        "token_rule": TOKEN_RULE,
        "source_sha256": [file["sha256"] for file in source.sources()],
        "pollux": __version__,
    }


def _type_name(value: Json) -> str:
    return next((name for type_, name in _TYPES if isinstance(value, type_)), "null")


def _sharegpt_messages(turn: ChatTurn, source: ExportSource) -> Iterator[dict[str, Json]]:
    """Yield the messages of a turn; the results of consecutive calls become one."""
    results: list[Json] = []
    for message in turn.messages:
        if message["role"] == "tool":
            results.append(message["content"])
            continue
        if results:
            yield _observation(results, source)
            results = []
        if message["role"] == "assistant":
            yield _sharegpt_answer(message, source)
        else:
            yield {"from": _ROLES[str(message["role"])], "value": message["content"]}
    if results:
        yield _observation(results, source)


def _sharegpt_answer(message: dict[str, Json], source: ExportSource) -> dict[str, Json]:
    """Return the text or the calls of an answer: the format has no place for both, nor for thoughts."""
    if "reasoning_content" in message:
        source.losses["thoughts"] += 1
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return {"from": "gpt", "value": message["content"]}
    if message["content"]:
        source.losses["text before a call"] += 1
    functions = [call["function"] for call in calls if isinstance(call, dict)]
    value = text(functions[0] if len(functions) == 1 else functions, source.losses)
    return {"from": "function_call", "value": value}


def _observation(results: list[Json], source: ExportSource) -> dict[str, Json]:
    return {"from": "observation", "value": results[0] if len(results) == 1 else text(results, source.losses)}
