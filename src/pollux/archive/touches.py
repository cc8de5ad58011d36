"""The fact rows of a tool call: the call itself, its shell commands, and the files that it read or changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from pollux.formats import lenient
from pollux.formats.recorded_calls import RecordedDiff, RecordedToolCall, record_of_calls, recorded_calls, recorded_diff
from pollux.formats.short import Short, has_mark, value_at
from pollux.formats.tool_calls import call_status, exit_code_digits, told_words
from pollux.formats.tools import ToolInfo, tool
from pollux.sessions.replay import TimelineEntry
from pollux.sessions.replay.reading import FileReading, asked_calls
from pollux.text.numbers import COUNTED, parse_integer
from pollux.text.shell import commands, program
from pollux.text.times import microseconds, parse_time

_OPS = {"file_read": "read", "file_write": "edit", "file_edit": "edit", "file_delete": "delete"}
_EXIT_CODE = b"Exit Code: "
_LONG_NUMBER = re.compile(rb"\d{20}")
_ADDED = ("model_added_lines", "user_added_lines")
_REMOVED = ("model_removed_lines", "user_removed_lines")


class ToolCallRows(NamedTuple):
    """The rows of one tool call."""

    call: tuple[Any, ...]
    commands: list[tuple[str, str]]
    touches: list[tuple[Any, ...]]
    left_out: list[str]
    """Descriptions of values that do not fit into a column."""


def message_rows(reading: FileReading, entry: TimelineEntry) -> list[ToolCallRows]:
    """Return the rows of the tool calls of one message."""
    if entry.calls_from is None:
        return list(call_rows(record_of_calls(asked_calls(reading, entry)))) if entry.tool_calls else []
    span = entry.calls_from.span
    data, short = value_at(reading.source, span)
    rows = list(call_rows(data, short))
    if short and has_mark(rows):  # an ID must never be abbreviated
        rows = list(call_rows(reading.source.slice(span)))
    if entry.calls == entry.calls_from.calls:
        return rows
    ids = {call.id for call in entry.calls}  # the record also has calls of other messages
    return [row for row in rows if row.call[0] in ids]


def call_rows(data: bytes, short: Short | None = None) -> Iterator[ToolCallRows]:
    """Yield the rows of the tool calls in a message record, or in the abbreviated text of a long one."""
    for call in recorded_calls(data):
        info = tool(call.name, call.display_name)
        args = _decoded(call.args)
        left_out: list[str] = []
        yield ToolCallRows(
            (
                call.id,
                call.name,
                info.canonical,
                info.category,
                info.kind,
                info.label,
                info.mcp_server,
                call.status or call_status(_outcome(call)),
                _exit_code(info, call, left_out),
                microseconds(parse_time(call.timestamp)),
                _plain(bytes(call.args).decode("utf-8", "replace"), short),
                _result_size(bytes(call.result), short),
                call.agent_id,
            ),
            [(command, program(command)) for line in _texts(args, info.commands) for command in commands(line)],
            list(_touches(info, call, args, left_out)),
            left_out,
        )


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


def _outcome(call: RecordedToolCall) -> dict[str, Any]:
    return {"id": call.id, "result": lenient.decode(bytes(call.result))}


def _result_size(data: bytes, short: Short | None) -> int:
    if data == b"null":
        return 0
    return short.n_bytes(data) if short else len(data)


def _exit_code(known: ToolInfo, call: RecordedToolCall, left_out: list[str]) -> int | None:
    if known.canonical != "shell_exec" or _EXIT_CODE not in bytes(call.result):
        return None
    digits = exit_code_digits(*told_words(_outcome(call)))
    if digits is None:
        return None
    code = parse_integer(digits)
    if code is None:
        left_out.append("the exit code of a command, which needs more than 64 bits")
    return code


def _touches(
    known: ToolInfo, call: RecordedToolCall, args: dict[str, Any], left_out: list[str]
) -> Iterator[tuple[Any, ...]]:
    op = _OPS.get(known.canonical)
    if op is None or known.name == "list_directory":
        return
    diff = recorded_diff(call) if op == "edit" else None
    if diff:
        op = "create" if diff.is_new_file or bytes(diff.original_content) in (b"null", b'""') else op
        path = diff.file_path or next(_texts(args, known.paths), "")
        yield (path, op, *_line_counts(diff, left_out), "display")
        return
    for path in dict.fromkeys(_texts(args, known.paths)):
        yield path, op, None, None, "args"


def _line_counts(diff: RecordedDiff, left_out: list[str]) -> tuple[int | None, int | None]:
    """Return the numbers of added and removed lines: as the client counted them, else as the diff shows them."""
    stat = lenient.decode(bytes(diff.diff_stat))
    if not isinstance(stat, dict):
        if has_mark(diff.file_diff):
            return None, None
        lines = [line for line in diff.file_diff.split("\n") if not line.startswith(("+++", "---"))]
        return sum(line.startswith("+") for line in lines), sum(line.startswith("-") for line in lines)
    added, removed = (sum(_counts(stat, keys)) for keys in (_ADDED, _REMOVED))
    # The decoder leaves out numbers of thousands of digits.
    if _LONG_NUMBER.search(bytes(diff.diff_stat)) or max(abs(added), abs(removed)) >= COUNTED:
        left_out.append("the number of lines that an edit changed, which is impossibly large")
        return None, None
    return added, removed


def _counts(stat: dict[str, Any], keys: tuple[str, ...]) -> Iterator[int]:
    return (stat[key] for key in keys if isinstance(stat.get(key), int))


def _texts(args: dict[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        value = args.get(name)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and text and not has_mark(text):
                yield text
