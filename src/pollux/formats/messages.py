"""The client's message record → our message, whole: the one place where its words and ours meet."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pollux.formats.displays import display
from pollux.formats.origins import user_origin
from pollux.formats.parts import attachments, parts, thoughts
from pollux.formats.tools import tool
from pollux.model import (
    Fate,
    FunctionCall,
    FunctionResponse,
    Kind,
    Message,
    Origin,
    Part,
    Text,
    Thought,
    Tokens,
    ToolCall,
)
from pollux.text.integers import parse_integer
from pollux.text.times import instant

KNOWN_FIELDS = frozenset(
    {"id", "timestamp", "type", "content", "displayContent", "thoughts", "tokens", "model", "toolCalls"}
)
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
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d+)\s*$", re.MULTILINE)


def message(
    content: dict[str, Any],
    *,
    calls: dict[str, Any] | None = None,
    thinking: dict[str, Any] | None = None,
    origin: Origin = Origin.HUMAN,
    fate: Fate = Fate.ACTIVE,
    tokens: Tokens | None = None,
    model: str | None = None,
    file: str | None = None,
    line: int | None = None,
) -> Message:
    """Build a message from its recordings: the one with the words, and those with the calls and the thoughts."""
    found = parts(content.get("content"))
    return Message(
        id=str(content.get("id", "")),
        kind=_kind(content.get("type")),
        origin=origin,
        fate=fate,
        at=instant(content.get("timestamp")),
        parts=tuple(part for part in found if not isinstance(part, Thought)),
        thoughts=thoughts((thinking or content).get("thoughts"))
        or tuple(part for part in found if isinstance(part, Thought)),
        tool_calls=tool_calls((calls or content).get("toolCalls")) or _asked(found),
        display=_typed(parts(content.get("displayContent")), found) if origin in _TYPED else None,
        model=model,
        tokens=tokens,
        file=file,
        line=line,
        extra={key: value for key, value in content.items() if key not in KNOWN_FIELDS},
    )


def tool_calls(values: Any) -> tuple[ToolCall, ...]:  # noqa: ANN401  the decoding edge
    """Convert the records of tool calls."""
    return tuple(_call(value) for value in values if isinstance(value, dict)) if isinstance(values, list) else ()


_TYPED = frozenset({Origin.HUMAN, Origin.LOADED})


def _typed(shown: tuple[Part, ...], sent: tuple[Part, ...]) -> tuple[Part, ...] | None:
    """Return what was typed, if it is not just what was sent: files, hooks and the client itself add to a prompt."""
    text = "".join(part.text for part in shown or sent if isinstance(part, Text))
    typed = user_origin(text)[1]
    return (Text(typed),) if typed != text.strip() else shown or None


def _kind(value: object) -> Kind:
    try:
        return Kind(str(value))
    except ValueError:
        return Kind.UNKNOWN


def _asked(found: tuple[Any, ...]) -> tuple[ToolCall, ...]:
    """Make calls of the bare requests of a message whose results were never recorded."""
    return tuple(
        _call({"id": part.id, "name": part.name, "args": part.args}) for part in found if isinstance(part, FunctionCall)
    )


def _call(value: dict[str, Any]) -> ToolCall:
    name = _text(value.get("name"))
    display_name = _text(value.get("displayName")) or None
    known = tool(name, display_name)
    response, media = _result(value)
    output, error = _words(response, value.get("result"))
    status = _text(value.get("status")) or ("pending" if value.get("result") is None else "success")
    exit_code = _EXIT_CODE.search(output or error or "") if known.canonical == "shell_exec" else None
    is_plain = isinstance(response, dict) and set(response) <= {"output", "error"} and _are_texts(response.values())
    return ToolCall(
        id=_text(value.get("id")) or None,
        name=name,
        canonical=known.canonical,
        category=known.category,
        kind=known.kind,
        label=known.label,
        status=status,
        args=value.get("args", {}),
        mcp_server=known.mcp_server,
        exit_code=parse_integer(exit_code[1]) if exit_code else None,
        output=output,
        error=error,
        response=None if is_plain else response,
        attachments=media,
        display=display(value.get("resultDisplay")),
        display_name=display_name,
        description=_text(value.get("description")) or None,
        markdown=bool(value.get("renderOutputAsMarkdown")),
        at=instant(value.get("timestamp")),
        agent_id=_text(value.get("agentId")) or None,
        extra={key: one for key, one in value.items() if key not in KNOWN_FIELDS_OF_CALLS},
    )


def _result(value: dict[str, Any]) -> tuple[Any, Any]:
    """Pick the response of this call: after a checkpoint the record holds those of its siblings too."""
    raw = value.get("result")
    values = raw if isinstance(raw, list) else [raw]
    found = [part for part in parts(values) if isinstance(part, FunctionResponse)]
    mine = [part for part in found if part.id == value.get("id")] or found
    media = attachments([one for one in values if isinstance(one, dict)])
    for one in values:
        inner = one.get("functionResponse") if isinstance(one, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("parts"), list) and inner.get("id") == value.get("id"):
            media += attachments(inner["parts"])
    return (mine[0].response if mine else None), media


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(one, str) for one in values)


def _words(response: Any, raw: Any) -> tuple[str | None, str | None]:  # noqa: ANN401
    """Return what the model was told: the output, and the error."""
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


def _text(value: Any) -> str:  # noqa: ANN401
    return value if isinstance(value, str) else "" if value is None else str(value)
