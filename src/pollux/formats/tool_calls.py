"""Convert the client's records of tool calls: what was called, how it ended, its result and its display.

Every other module gets the status and the exit code of a call from here.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Any

import msgspec

from pollux.formats.parts import attachments, parts
from pollux.formats.tools import tool
from pollux.model import (
    Activity,
    AgentDisplay,
    Attachment,
    Cell,
    DiffDisplay,
    Display,
    FileDisplay,
    FunctionResponse,
    GrepMatch,
    MatchDisplay,
    ScreenDisplay,
    Text,
    TextDisplay,
    Todo,
    TodoDisplay,
    ToolCall,
    UnknownDisplay,
)
from pollux.text.numbers import COUNTED, fits, parse_integer
from pollux.text.times import parse_time

KNOWN_FIELDS_OF_CALLS = frozenset(
    {
        "id",
        "name",
        "args",
        "result",
        "status",
        "timestamp",
        "resultDisplay",
        "displayName",
        "description",
        "renderOutputAsMarkdown",
        "agentId",
    }
)
_CANCELLED = "[Operation Cancelled]"
_EXIT_CODE = re.compile(
    r"^Exit Code: (-?\d+)\s*$"
    r"(?:\n(?:Signal|Background PIDs|(?:Process Group )?PGID): .*)*"
    r"\s*(?:\Z|</untrusted_context>|<hook_context>|</tool_output_masked>|Output too large\.)",
    re.MULTILINE,
)
"""Matches only at the end, where the client writes it: the output of a command may contain the same words."""


class _Arguments(msgspec.Struct):
    args: Any = None


class _Calls(msgspec.Struct, rename="camel"):
    tool_calls: list[_Arguments] = []


_decode_calls = msgspec.json.Decoder(_Calls).decode


def decode_arguments(record: bytes) -> list[Any]:
    """Return only the arguments of the tool calls in a message record. Raises `msgspec.DecodeError`."""
    return [call.args for call in _decode_calls(record).tool_calls]


def with_calls(record: dict[str, Any], calls: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a message record with these tool calls."""
    return record | {"toolCalls": calls}


def only_calls(record: dict[str, Any], ids: Container[str | None]) -> dict[str, Any]:
    """Return a message record with only those of its tool calls that have one of these IDs."""
    calls = record.get("toolCalls")
    if not isinstance(calls, list):
        return with_calls(record, [])
    return with_calls(record, [call for call in calls if isinstance(call, dict) and call.get("id") in ids])


def results_by_call(content: object) -> dict[str | None, list[Any]]:
    """Return the function responses in a message's content by call ID; media that follow a response belong to it."""
    by_call: dict[str | None, list[Any]] = {}
    results: list[Any] = []
    for value in content if isinstance(content, list) else [content]:
        response = value.get("functionResponse") if isinstance(value, dict) else None
        if isinstance(response, dict):
            results = by_call.setdefault(response.get("id"), [])
        results.append(value)
    return by_call


def tool_calls(values: Any) -> tuple[ToolCall, ...]:  # noqa: ANN401  the decoding edge
    """Convert the records of a message's tool calls."""
    return tuple(tool_call(value) for value in values if isinstance(value, dict)) if isinstance(values, list) else ()


def tool_call(value: dict[str, Any]) -> ToolCall:
    """Convert the record of one tool call."""
    name = _string(value.get("name"))
    display_name = _string(value.get("displayName")) or None
    info = tool(name, display_name)
    response, media = _response(value)
    output, error = _words(response, value.get("result"))
    digits = exit_code_digits(output, error) if info.canonical == "shell_exec" else None
    is_plain = isinstance(response, dict) and set(response) <= {"output", "error"} and _are_texts(response.values())
    return ToolCall(
        id=_string(value.get("id")) or None,
        name=name,
        canonical=info.canonical,
        category=info.category,
        kind=info.kind,
        label=info.label,
        status=call_status(value),
        args=value.get("args", {}),
        mcp_server=info.mcp_server,
        exit_code=parse_integer(digits) if digits else None,
        output=output,
        error=error,
        response=None if is_plain else response,
        attachments=media,
        display=display(value.get("resultDisplay")),
        display_name=display_name,
        description=_text(value.get("description")) or None,
        markdown=bool(value.get("renderOutputAsMarkdown")),
        at=parse_time(value.get("timestamp")),
        agent_id=_string(value.get("agentId")) or None,
        extra={key: field for key, field in value.items() if key not in KNOWN_FIELDS_OF_CALLS},
    )


def call_status(value: dict[str, Any]) -> str:
    """Return the recorded status of a call, else the one that its result shows; `pending` without a result."""
    recorded = _string(value.get("status"))
    if recorded or value.get("result") is None:
        return recorded or "pending"
    response, _ = _response(value)
    if not isinstance(response, dict) or "error" not in response:
        return "success"
    return "cancelled" if _string(response["error"]).startswith(_CANCELLED) else "error"


def told_words(value: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the output and the error that were sent to the model."""
    return _words(_response(value)[0], value.get("result"))


def exit_code_digits(output: str | None, error: str | None) -> str | None:
    """Return the digits of the exit code that the client wrote after the output of a shell command."""
    match = _EXIT_CODE.search(output or error or "")
    return match[1] if match else None


def _response(value: dict[str, Any]) -> tuple[Any, tuple[Attachment, ...]]:
    """Return the response to this call and its media; after a checkpoint the record also contains other responses."""
    raw = value.get("result")
    values = raw if isinstance(raw, list) else [raw]
    responses = [part for part in parts(values) if isinstance(part, FunctionResponse)]
    own = [part for part in responses if part.id == value.get("id")] or responses
    objects = [part for part in values if isinstance(part, dict)]
    media = attachments(objects)
    for part in objects:
        inner = part.get("functionResponse")
        if isinstance(inner, dict) and isinstance(inner.get("parts"), list) and inner.get("id") == value.get("id"):
            media += attachments(inner["parts"])
    return (own[0].response if own else None), media


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _words(response: Any, raw: Any) -> tuple[str | None, str | None]:  # noqa: ANN401
    if isinstance(response, dict):
        inner = response.get("content")
        if "output" not in response and "error" not in response and isinstance(inner, dict):
            response = inner  # seed 000's shape
        output, error = response.get("output"), response.get("error")
        if output is None and error is None and isinstance(inner, str):
            output = inner
        extra = _sibling_text(raw) if isinstance(output, str) else None
        return _text_or_json(extra or output), _text_or_json(error)
    if isinstance(raw, str):
        return raw, None
    return _sibling_text(raw) or _text_or_json(response), None


def _sibling_text(raw: Any) -> str | None:  # noqa: ANN401
    """Return the text parts next to a response: old releases put the real output of some tools there."""
    values = raw if isinstance(raw, list) else [raw]
    return "".join(part.text for part in parts(values) if isinstance(part, Text)) or None


def _text_or_json(value: Any) -> str | None:  # noqa: ANN401
    if value is None or isinstance(value, str):
        return value
    import json  # noqa: PLC0415  rare

    return json.dumps(value, ensure_ascii=False)


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def display(value: Any) -> Display | None:  # noqa: ANN401  the decoding edge
    """Convert what the client showed for a call; an unknown form becomes an `UnknownDisplay`."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return TextDisplay(value)
    if isinstance(value, list):
        return _screen(value) or UnknownDisplay(value)
    if not isinstance(value, dict):
        return UnknownDisplay(value)
    for key, convert in _FORMS:
        if key in value:
            return convert(value) or UnknownDisplay(value)
    return UnknownDisplay(value)


def _diff(value: dict[str, Any]) -> Display | None:
    diff = value.get("fileDiff")
    if not isinstance(diff, str):
        return None
    stat = value.get("diffStat")
    stat = stat if isinstance(stat, dict) else {}
    return DiffDisplay(
        diff,
        file_name=_text(value.get("fileName")),
        file_path=_text(value.get("filePath")) or None,
        before=value.get("originalContent") if isinstance(value.get("originalContent"), str) else None,
        after=value.get("newContent") if isinstance(value.get("newContent"), str) else None,
        lines_added=_sum(stat, "model_added_lines", "user_added_lines"),
        lines_removed=_sum(stat, "model_removed_lines", "user_removed_lines"),
        is_new=value.get("isNewFile") if isinstance(value.get("isNewFile"), bool) else None,
    )


def _screen(value: list[Any]) -> Display | None:
    if not all(isinstance(line, list) and all(isinstance(cell, dict) for cell in line) for line in value):
        return None
    return ScreenDisplay(tuple(tuple(_cell(cell) for cell in line) for line in value))


def _cell(cell: dict[str, Any]) -> Cell:
    styles = {key: bool(cell.get(key)) for key in ("bold", "italic", "underline", "dim", "inverse")}
    return Cell(_text(cell.get("text")), _text(cell.get("fg")), _text(cell.get("bg")), **styles)


def _todos(value: dict[str, Any]) -> Display | None:
    todos = value["todos"]
    if not isinstance(todos, list) or not all(isinstance(todo, dict) for todo in todos):
        return None
    return TodoDisplay(tuple(Todo(_text(todo.get("description")), _text(todo.get("status"))) for todo in todos))


def _agent(value: dict[str, Any]) -> Display | None:
    recent = value.get("recentActivity")
    return AgentDisplay(
        _text(value.get("agentName")),
        _text(value.get("state")) or None,
        _text(value.get("result")) or None,
        _text(value.get("terminateReason")) or None,
        tuple(
            Activity(
                _text(activity.get("type")),
                _text(activity.get("displayName") or activity.get("content")),
                _text(activity.get("status")),
                _text(activity.get("description")),
            )
            for activity in (recent if isinstance(recent, list) else ())
            if isinstance(activity, dict)
        ),
    )


def _matches(value: dict[str, Any]) -> Display | None:
    matches = value["matches"]
    if not isinstance(matches, list) or not all(isinstance(match, dict) for match in matches):
        return None
    return MatchDisplay(_text(value.get("summary")), tuple(_match(match) for match in matches))


def _match(match: dict[str, Any]) -> GrepMatch:
    number = match.get("lineNumber")
    return GrepMatch(
        _text(match.get("filePath") or match.get("absolutePath")),
        number if isinstance(number, int) and fits(number) else None,
        _text(match.get("line")),
        bool(match.get("isContext")),
    )


def _files(value: dict[str, Any]) -> Display | None:
    files = value["files"]
    if not isinstance(files, list):
        return None
    return FileDisplay(_text(value.get("summary")), tuple(_text(file) for file in files))


_FORMS = (
    ("fileDiff", _diff),
    ("todos", _todos),
    ("isSubagentProgress", _agent),
    ("matches", _matches),
    ("files", _files),
)


def _sum(stat: dict[str, Any], *keys: str) -> int | None:
    counts = [stat[key] for key in keys if isinstance(stat.get(key), int)]
    return sum(counts) if counts and abs(sum(counts)) < COUNTED else None
