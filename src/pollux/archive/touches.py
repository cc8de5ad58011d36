"""Tool calls → rows: what was run, which shell commands, which files were read or changed, and how we know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pollux.formats import lenient
from pollux.formats.short import EXIT_CODE, Short, has_mark
from pollux.shell import commands, program
from pollux.times import instant
from pollux.tools import Tool, tool

_OPS = {"file_read": "read", "file_write": "edit", "file_edit": "edit", "file_delete": "delete"}
_EXIT_CODE = re.compile(rb"(?:^|\\n)Exit Code: (-?\d+)")


class _Call(msgspec.Struct, rename="camel"):
    id: str | None = None
    name: str = ""
    status: str | None = None
    timestamp: str | None = None
    display_name: str | None = None
    agent_id: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"null")
    result_display: msgspec.Raw = msgspec.Raw(b"null")


class _Calls(msgspec.Struct, rename="camel"):
    tool_calls: list[_Call] = []


class _Stat(msgspec.Struct):
    model_added_lines: int = 0
    model_removed_lines: int = 0
    user_added_lines: int = 0
    user_removed_lines: int = 0


class _Diff(msgspec.Struct, rename="camel"):
    file_diff: str
    file_path: str | None = None
    original_content: msgspec.Raw = msgspec.Raw()
    diff_stat: _Stat | None = None
    is_new_file: bool | None = None


class Found(NamedTuple):
    """What one tool call comes to."""

    call: tuple[Any, ...]
    commands: list[tuple[str, str]]
    touches: list[tuple[Any, ...]]


_decode_calls = msgspec.json.Decoder(_Calls).decode
_decode_diff = msgspec.json.Decoder(_Diff).decode


def call_rows(data: bytes, short: Short | None = None) -> Iterator[Found]:
    """Yield the rows of the tool calls of one message record, or of the short text of a long one."""
    for call in _calls(data):
        known = tool(call.name, call.display_name)
        args = _decoded(call.args)
        at = instant(call.timestamp)
        yield Found(
            (
                call.id,
                call.name,
                known.canonical,
                known.category,
                known.kind,
                known.label,
                known.mcp_server,
                call.status or "pending",
                _exit_code(known, call, short),
                round(at.timestamp() * 1_000_000) if at else None,
                _plain(bytes(call.args).decode("utf-8", "replace"), short),
                short.n_bytes(bytes(call.result)) if short else len(bytes(call.result)),
                call.agent_id,
            ),
            [(one, program(one)) for line in _texts(args, known.commands) for one in commands(line)],
            list(_touches(known, call, args)),
        )


def _calls(data: bytes) -> list[_Call]:
    try:
        return _decode_calls(data).tool_calls
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode_calls(_repaired(data)).tool_calls


def _repaired(data: bytes) -> bytes:
    """Keep of each call what has the right type; nothing, if the file changed under our hands."""
    try:
        value = lenient.decode(data)
    except ValueError:
        value = None
    calls = value.get("toolCalls") if isinstance(value, dict) else None
    good = [_good(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return lenient.encode({"toolCalls": good})


def _good(call: dict[str, Any]) -> dict[str, Any]:
    texts = ("id", "name", "status", "timestamp", "displayName", "agentId")
    kept = {key: call[key] for key in texts if isinstance(call.get(key), str)}
    return kept | {key: call[key] for key in ("args", "result", "resultDisplay") if key in call}


def _decoded(raw: msgspec.Raw) -> dict[str, Any]:
    value = lenient.decode(bytes(raw))
    if isinstance(value, str):  # arguments as JSON text
        try:
            value = lenient.decode(value.encode("utf-8", "replace"))
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _plain(text: str, short: Short | None) -> str:
    return short.plain(text) if short else text


def _exit_code(known: Tool, call: _Call, short: Short | None) -> int | None:
    if known.canonical != "shell_exec":
        return None
    data = bytes(call.result)
    if short and short.has_cut_out(EXIT_CODE, data):
        return None
    place = data.find(b"Exit Code: ")
    found = _EXIT_CODE.search(data, max(place - 2, 0)) if place >= 0 else None
    return int(found[1]) if found else None


def _touches(known: Tool, call: _Call, args: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    op = _OPS.get(known.canonical)
    if op is None or known.name == "list_directory":
        return
    diff = _diff(call) if op == "edit" else None
    if diff:
        op = "create" if diff.is_new_file or bytes(diff.original_content) in (b"null", b'""') else op
        path = diff.file_path or next(_texts(args, known.paths), "")
        yield (path, op, *_lines(diff), "display")
        return
    for path in dict.fromkeys(_texts(args, known.paths)):
        yield path, op, None, None, "args"


def _diff(call: _Call) -> _Diff | None:
    data = bytes(call.result_display)
    if data[:1] != b"{":
        return None
    try:
        return _decode_diff(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _lines(diff: _Diff) -> tuple[int, int] | tuple[None, None]:
    if stat := diff.diff_stat:
        return stat.model_added_lines + stat.user_added_lines, stat.model_removed_lines + stat.user_removed_lines
    if has_mark(diff.file_diff):
        return None, None
    lines = [line for line in diff.file_diff.split("\n") if not line.startswith(("+++", "---"))]
    return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)


def _texts(args: dict[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        value = args.get(name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and one and not has_mark(one):
                yield one
