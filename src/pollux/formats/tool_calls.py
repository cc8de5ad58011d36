"""A recorded tool call → what was called, how it ended and what came of it: the one place that decides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pollux.formats.displays import display
from pollux.formats.parts import attachments, parts
from pollux.formats.tools import tool
from pollux.model import Attachment, FunctionResponse, Text, ToolCall
from pollux.text.integers import parse_integer
from pollux.text.times import instant

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
"""Only at the end, where the client writes it: what a command prints may look the same."""


def tool_calls(values: Any) -> tuple[ToolCall, ...]:  # noqa: ANN401  the decoding edge
    """Convert the records of tool calls."""
    return tuple(tool_call(value) for value in values if isinstance(value, dict)) if isinstance(values, list) else ()


def tool_call(value: dict[str, Any]) -> ToolCall:
    """Convert the record of one tool call."""
    name = _string(value.get("name"))
    display_name = _string(value.get("displayName")) or None
    known = tool(name, display_name)
    response, media = _response(value)
    output, error = _words(response, value.get("result"))
    digits = exit_code_digits(output, error) if known.canonical == "shell_exec" else None
    is_plain = isinstance(response, dict) and set(response) <= {"output", "error"} and _are_texts(response.values())
    return ToolCall(
        id=_string(value.get("id")) or None,
        name=name,
        canonical=known.canonical,
        category=known.category,
        kind=known.kind,
        label=known.label,
        status=call_status(value),
        args=value.get("args", {}),
        mcp_server=known.mcp_server,
        exit_code=parse_integer(digits) if digits else None,
        output=output,
        error=error,
        response=None if is_plain else response,
        attachments=media,
        display=display(value.get("resultDisplay")),
        display_name=display_name,
        description=_text(value.get("description")) or None,
        markdown=bool(value.get("renderOutputAsMarkdown")),
        at=instant(value.get("timestamp")),
        agent_id=_string(value.get("agentId")) or None,
        extra={key: one for key, one in value.items() if key not in KNOWN_FIELDS_OF_CALLS},
    )


def call_status(value: dict[str, Any]) -> str:
    """Return how a call ended: as recorded, else as its result says; without a result it is `pending`."""
    recorded = _string(value.get("status"))
    if recorded or value.get("result") is None:
        return recorded or "pending"
    response, _ = _response(value)
    if not isinstance(response, dict) or "error" not in response:
        return "success"
    return "cancelled" if _string(response["error"]).startswith(_CANCELLED) else "error"


def told_words(value: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return what the model was told of a call: the output, and the error."""
    return _words(_response(value)[0], value.get("result"))


def exit_code_digits(output: str | None, error: str | None) -> str | None:
    """Return the exit code that the client wrote after the output of a shell command, however long it is."""
    match = _EXIT_CODE.search(output or error or "")
    return match[1] if match else None


def _response(value: dict[str, Any]) -> tuple[Any, tuple[Attachment, ...]]:
    """Pick the response of this call: after a checkpoint the record holds those of its siblings too."""
    raw = value.get("result")
    values = raw if isinstance(raw, list) else [raw]
    responses = [part for part in parts(values) if isinstance(part, FunctionResponse)]
    own = [part for part in responses if part.id == value.get("id")] or responses
    media = attachments([one for one in values if isinstance(one, dict)])
    for one in values:
        inner = one.get("functionResponse") if isinstance(one, dict) else None
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
    """Return the text parts beside a response: old releases put the real output of some tools there."""
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
