"""Tool calls → rows: what was run, which shell commands, which files were read or changed, and how we know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pollux.formats import lenient
from pollux.formats.short import Short, has_mark, value_at
from pollux.formats.tool_calls import call_status, exit_code_digits, told_words
from pollux.formats.tools import Tool, tool
from pollux.sessions.replay.entries import Entry
from pollux.sessions.replay.reading import Reading, asked_calls
from pollux.text.integers import COUNTED, parse_integer
from pollux.text.shell import commands, program
from pollux.text.times import instant, microseconds

_OPS = {"file_read": "read", "file_write": "edit", "file_edit": "edit", "file_delete": "delete"}
_EXIT_CODE = b"Exit Code: "
_LONG_NUMBER = re.compile(rb"\d{20}")
_ADDED = ("model_added_lines", "user_added_lines")
_REMOVED = ("model_removed_lines", "user_removed_lines")


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


class _Diff(msgspec.Struct, rename="camel"):
    file_diff: str
    file_path: str | None = None
    original_content: msgspec.Raw = msgspec.Raw()
    diff_stat: msgspec.Raw = msgspec.Raw(b"null")
    is_new_file: bool | None = None


class Found(NamedTuple):
    """The rows that one tool call makes."""

    call: tuple[Any, ...]
    commands: list[tuple[str, str]]
    touches: list[tuple[Any, ...]]
    left_out: list[str]
    """Values that no column holds, each in a few words."""


_decode_calls = msgspec.json.Decoder(_Calls).decode
_decode_diff = msgspec.json.Decoder(_Diff).decode


def message_rows(reading: Reading, entry: Entry) -> list[Found]:
    """Return the rows of the tool calls that one message made."""
    if entry.calls_from is None:
        return list(call_rows(lenient.encode({"toolCalls": asked_calls(reading, entry)}))) if entry.tool_calls else []
    span = entry.calls_from.span
    data, short = value_at(reading.source, span)
    rows = list(call_rows(data, short))
    if short and has_mark(rows):  # an id is never cut
        rows = list(call_rows(reading.source.slice(span)))
    if entry.calls == entry.calls_from.calls:
        return rows
    ids = {call.id for call in entry.calls}  # other messages made the rest of the calls that are recorded there
    return [row for row in rows if row.call[0] in ids]


def call_rows(data: bytes, short: Short | None = None) -> Iterator[Found]:
    """Yield the rows of the tool calls of one message record, or of the short text of a long one."""
    for call in _calls(data):
        known = tool(call.name, call.display_name)
        args = _decoded(call.args)
        left_out: list[str] = []
        yield Found(
            (
                call.id,
                call.name,
                known.canonical,
                known.category,
                known.kind,
                known.label,
                known.mcp_server,
                call.status or call_status(_outcome(call)),
                _exit_code(known, call, left_out),
                microseconds(instant(call.timestamp)),
                _plain(bytes(call.args).decode("utf-8", "replace"), short),
                _result_size(bytes(call.result), short),
                call.agent_id,
            ),
            [(one, program(one)) for line in _texts(args, known.commands) for one in commands(line)],
            list(_touches(known, call, args, left_out)),
            left_out,
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
            value = lenient.decode(lenient.mask(value.encode("utf-8", "replace")))
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _plain(text: str, short: Short | None) -> str:
    return short.plain(text) if short else text


def _outcome(call: _Call) -> dict[str, Any]:
    return {"id": call.id, "result": lenient.decode(bytes(call.result))}


def _result_size(data: bytes, short: Short | None) -> int:
    if data == b"null":
        return 0
    return short.n_bytes(data) if short else len(data)


def _exit_code(known: Tool, call: _Call, left_out: list[str]) -> int | None:
    if known.canonical != "shell_exec" or _EXIT_CODE not in bytes(call.result):
        return None
    digits = exit_code_digits(*told_words(_outcome(call)))
    if digits is None:
        return None
    code = parse_integer(digits)
    if code is None:
        left_out.append("the exit code of a command, which needs more than 64 bits")
    return code


def _touches(known: Tool, call: _Call, args: dict[str, Any], left_out: list[str]) -> Iterator[tuple[Any, ...]]:
    op = _OPS.get(known.canonical)
    if op is None or known.name == "list_directory":
        return
    diff = _diff(call) if op == "edit" else None
    if diff:
        op = "create" if diff.is_new_file or bytes(diff.original_content) in (b"null", b'""') else op
        path = diff.file_path or next(_texts(args, known.paths), "")
        yield (path, op, *_lines(diff, left_out), "display")
        return
    for path in dict.fromkeys(_texts(args, known.paths)):
        yield path, op, None, None, "args"


def _diff(call: _Call) -> _Diff | None:
    data = bytes(call.result_display)
    if data[:1] != b"{":
        return None
    try:
        return _decode_diff(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _lines(diff: _Diff, left_out: list[str]) -> tuple[int | None, int | None]:
    """Return how many lines were added and removed: as the client counted them, else as the diff shows them."""
    stat = lenient.decode(bytes(diff.diff_stat))
    if not isinstance(stat, dict):
        if has_mark(diff.file_diff):
            return None, None
        lines = [line for line in diff.file_diff.split("\n") if not line.startswith(("+++", "---"))]
        return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)
    added, removed = (sum(_counts(stat, keys)) for keys in (_ADDED, _REMOVED))
    # The decoder leaves out numbers of thousands of digits.
    if _LONG_NUMBER.search(bytes(diff.diff_stat)) or max(abs(added), abs(removed)) >= COUNTED:
        left_out.append("the number of lines that an edit changed, which no file has")
        return None, None
    return added, removed


def _counts(stat: dict[str, Any], keys: tuple[str, ...]) -> Iterator[int]:
    return (stat[key] for key in keys if isinstance(stat.get(key), int))


def _texts(args: dict[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        value = args.get(name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str) and one and not has_mark(one):
                yield one
