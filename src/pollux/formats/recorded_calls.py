"""Decode the tool calls of a message record, keeping arguments, results and displays as raw JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pollux.formats import lenient


class RecordedToolCall(msgspec.Struct, rename="camel"):
    """One tool call as the client recorded it."""

    id: str | None = None
    name: str = ""
    status: str | None = None
    timestamp: str | None = None
    display_name: str | None = None
    agent_id: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"null")
    result_display: msgspec.Raw = msgspec.Raw(b"null")


class RecordedDiff(msgspec.Struct, rename="camel"):
    """The display of an edit."""

    file_diff: str
    file_path: str | None = None
    original_content: msgspec.Raw = msgspec.Raw()
    diff_stat: msgspec.Raw = msgspec.Raw(b"null")
    is_new_file: bool | None = None


class _Record(msgspec.Struct, rename="camel"):
    tool_calls: list[RecordedToolCall] = []


_decode_record = msgspec.json.Decoder(_Record).decode
_decode_diff = msgspec.json.Decoder(RecordedDiff).decode


def recorded_calls(data: bytes) -> list[RecordedToolCall]:
    """Return the tool calls of a message record, without values of the wrong type."""
    try:
        return _decode_record(data).tool_calls
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _decode_record(_repaired(data)).tool_calls


def record_of_calls(calls: Sequence[object]) -> bytes:
    """Return a message record that has only these tool calls."""
    return lenient.encode({"toolCalls": calls})


def recorded_diff(call: RecordedToolCall) -> RecordedDiff | None:
    """Return the diff that a call displayed, if there is one."""
    data = bytes(call.result_display)
    if data[:1] != b"{":
        return None
    try:
        return _decode_diff(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _repaired(data: bytes) -> bytes:
    """Return a record with the values of each call that have the right type; none if the file has changed meanwhile."""
    try:
        value = lenient.decode(data)
    except ValueError:
        value = None
    calls = value.get("toolCalls") if isinstance(value, dict) else None
    return record_of_calls(
        [_valid_fields(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    )


def _valid_fields(call: dict[str, Any]) -> dict[str, Any]:
    texts = ("id", "name", "status", "timestamp", "displayName", "agentId")
    fields = {key: call[key] for key in texts if isinstance(call.get(key), str)}
    return fields | {key: call[key] for key in ("args", "result", "resultDisplay") if key in call}
