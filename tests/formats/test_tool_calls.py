from __future__ import annotations

import json
from typing import Any

import pytest
from tests.builders import gemini

from pollux.archive.touches import call_rows
from pollux.formats.records import record, wire
from pollux.formats.source import Span
from pollux.formats.tool_calls import tool_call
from pollux.model import ToolCall

STATUS, EXIT_CODE = 7, 8


def result(**response: Any) -> list[Any]:  # noqa: ANN401  as decoded
    return [{"functionResponse": {"id": "c", "name": "run_shell_command", "response": response}}]


def shell(**more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"id": "c", "name": "run_shell_command", "args": {"command": "ls"}} | more


def decoded(value: dict[str, Any]) -> ToolCall:
    """Return a call as `show` reads it, after a check that the facts and the list of calls agree with it."""
    call = tool_call(value)
    data = json.dumps(gemini(toolCalls=[value])).encode()
    (row,) = call_rows(data)
    assert (row.call[STATUS], row.call[EXIT_CODE]) == (call.status, call.exit_code)
    (head,) = record(wire(data)[0], data, Span(0, len(data)), 1).calls
    assert (head.status, head.id or None, head.name) == (call.status, call.id, call.name)
    return call


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "pending"),
        ({"result": None}, "pending"),
        ({"result": result(output="x")}, "success"),
        ({"result": "x"}, "success"),
        ({"result": []}, "success"),
        ({"result": result(error="no such file")}, "error"),
        ({"result": result(error="[Operation Cancelled] Reason: User denied execution.", output="x")}, "cancelled"),
        ({"result": result(output="x"), "status": "error"}, "error"),
        ({"result": result(error="x"), "status": "success"}, "success"),
        ({"status": "executing"}, "executing"),
        ({"result": result(output="x"), "status": 7}, "success"),
        ({"result": result(error="x"), "status": ""}, "error"),
    ],
)
def test_status_is_the_recorded_one_or_follows_from_the_result(fields: dict[str, Any], status: str) -> None:
    assert decoded(shell(**fields)).status == status


def test_status_without_a_record_is_that_of_the_own_response() -> None:
    sibling = {"functionResponse": {"id": "other", "name": "glob", "response": {"error": "x"}}}
    assert decoded(shell(result=[sibling, *result(output="x")])).status == "success"


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("Output: x\nExit Code: 3", 3),
        ("Output: x\nError: (none)\nExit Code: 0\nSignal: 0\nBackground PIDs: (none)\nProcess Group PGID: 7", 0),
        ("<untrusted_context>\nOutput: x\nExit Code: 2\nProcess Group PGID: 7\n</untrusted_context>", 2),
        ("Output: x\nExit Code: 2\n\n<hook_context>Tool was watched.</hook_context>", 2),
        ("Output: x\nExit Code: 5\nmore\nError: (none)\nExit Code: 0\nSignal: 0", 0),
        ("Output: x\nExit Code: 5\nthat is what it printed\nProcess Group PGID: 7", None),
        ("Output: Exit Code: 5", None),
        ("Output: x\nExit Code: (none)\nSignal: 9", None),
        ("Output: x\nExit Code: 5 or so", None),
    ],
)
def test_exit_code_is_that_in_the_output_of_the_client(output: str, code: int | None) -> None:
    assert decoded(shell(result=result(output=output))).exit_code == code


def test_exit_code_may_be_in_the_error() -> None:
    assert decoded(shell(result=result(error="Output: x\nExit Code: 4"))).exit_code == 4


def test_exit_code_is_that_of_the_own_response() -> None:
    sibling = {"functionResponse": {"id": "other", "name": "run_shell_command", "response": {"output": "Exit Code: 5"}}}
    assert decoded(shell(result=[sibling, *result(output="Exit Code: 1")])).exit_code == 1


def test_names_that_are_not_texts_are_ignored() -> None:
    call = decoded({"id": 5, "name": ["x"], "status": {}})
    assert (call.id, call.name, call.status) == (None, "", "pending")
