from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import source
from tests.formats.small import lower_limits

from pollux.archive.touches import ToolCallRows, call_rows
from pollux.formats.short import has_mark, value_at
from pollux.formats.source import Span

STATUS, EXIT_CODE, ARGS, RESULT_BYTES = 7, 8, 10, 11


def rows(*calls: dict[str, Any]) -> list[ToolCallRows]:
    return list(call_rows(json.dumps({"id": "g", "toolCalls": list(calls)}).encode()))


def result(text: str) -> list[Any]:
    return [{"functionResponse": {"id": "c", "name": "x", "response": {"output": text}}}]


def test_shell_call_has_its_commands_and_its_exit_code() -> None:
    args = {"command": "cd src && pytest -q | tail -1"}
    (row,) = rows({"id": "c", "name": "run_shell_command", "args": args, "result": result("x\nExit Code: 3\nPGID: 1")})
    assert row.commands == [("cd src", "cd"), ("pytest -q", "pytest"), ("tail -1", "tail")]
    assert row.call[EXIT_CODE] == 3
    assert json.loads(row.call[ARGS]) == args
    assert row.call[RESULT_BYTES] > 40


def test_exit_code_is_read_only_from_shell_output() -> None:
    (row,) = rows({"id": "c", "name": "run_shell_command", "args": {"command": "ls"}, "result": result("a\nb")})
    (other,) = rows({"id": "c", "name": "read_file", "args": {}, "result": result("\nExit Code: 3\n")})
    assert row.call[EXIT_CODE] is None
    assert other.call[EXIT_CODE] is None


@pytest.mark.parametrize(
    ("name", "args", "touches"),
    [
        ("read_file", {"absolute_path": "/a"}, [("/a", "read", None, None, "args")]),
        ("read_file", {"file_path": "b.py", "offset": 3}, [("b.py", "read", None, None, "args")]),
        ("replace", {"file_path": "/a", "old_string": "x"}, [("/a", "edit", None, None, "args")]),
        ("list_directory", {"dir_path": "/a"}, []),
        ("run_shell_command", {"command": "rm x"}, []),
        ("read_many_files", {"paths": ["a", "b", "a"]}, [(path, "read", None, None, "args") for path in "ab"]),
    ],
)
def test_touched_files_are_read_from_arguments(name: str, args: dict[str, Any], touches: list[Any]) -> None:
    (row,) = rows({"id": "c", "name": name, "args": args})
    assert row.touches == touches


@pytest.mark.parametrize(
    ("display", "touch"),
    [
        ({"originalContent": "x", "diffStat": {"model_added_lines": 2, "user_added_lines": 1}}, ("edit", 3, 0)),
        ({"originalContent": None}, ("create", 2, 1)),
        ({"originalContent": "x", "isNewFile": True}, ("create", 2, 1)),
        ({"originalContent": "x"}, ("edit", 2, 1)),
    ],
)
def test_touched_file_is_read_from_the_display(display: dict[str, Any], touch: tuple[Any, ...]) -> None:
    shown = {"fileDiff": "--- a\n+++ b\n@@\n-x\n+y\n+z\n", "filePath": "/p/a", **display}
    (row,) = rows({"id": "c", "name": "write_file", "args": {"file_path": "a"}, "resultDisplay": shown})
    assert row.touches == [("/p/a", *touch, "display")]


def test_arguments_may_be_json_text() -> None:
    (row,) = rows({"id": "c", "name": "run_shell_command", "args": json.dumps({"command": "ls; pwd"})})
    assert [command for command, _ in row.commands] == ["ls", "pwd"]
    (broken,) = rows({"id": "c", "name": "run_shell_command", "args": "not { json"})
    assert broken.commands == []


def test_call_without_a_status_is_pending() -> None:
    (row,) = rows({"id": "c", "name": "glob", "args": {}})
    assert row.call[STATUS] == "pending"


def test_bad_value_does_not_affect_the_others() -> None:
    good = {"id": "c", "name": "read_file", "args": {"file_path": "a"}, "status": "success"}
    (first, second) = rows({"id": 5, "name": ["x"], "status": {}, "args": {"file_path": "b"}}, good)
    assert second.touches == [("a", "read", None, None, "args")]
    assert first.call[1] == ""


def test_value_that_is_not_a_message_has_no_calls() -> None:
    assert list(call_rows(b"[1, 2")) == []
    assert list(call_rows(b"[1, 2]")) == []
    assert list(call_rows(b'{"toolCalls": 7}')) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["id", "name", "args", "result", "resultDisplay", "status"]), json_values))
def test_any_values_are_read(call: dict[str, Any]) -> None:
    assert len(rows(call)) == 1


@pytest.mark.parametrize("digits", ["99999999999999999999", "-" + "9" * 30, "9" * 5000])
def test_exit_code_over_64_bits_is_left_out_and_reported(digits: str) -> None:
    text = f"notes\nExit Code: {digits}\n"
    (row,) = rows({"id": "c", "name": "run_shell_command", "args": {"command": "x"}, "result": result(text)})
    assert row.call[EXIT_CODE] is None
    assert row.left_out == ["the exit code of a command, which needs more than 64 bits"]


@pytest.mark.parametrize("count", ["2147483648", "9223372036854775808", "-" + "9" * 25, "9" * 5000])
def test_line_counts_over_64_bits_are_left_out_and_reported(count: str) -> None:
    stat = f'"diffStat":{{"model_added_lines":{count},"model_removed_lines":1}}'
    display = f'{{"fileDiff":"@@ -1 +1 @@\\n-a\\n+b","fileName":"x",{stat}}}'
    call = f'{{"id":"c","name":"replace","args":{{"file_path":"/x"}},"resultDisplay":{display}}}'
    (row,) = call_rows(f'{{"toolCalls":[{call}]}}'.encode())
    assert row.touches == [("/x", "edit", None, None, "display")]
    assert len(row.left_out) == 1


def test_line_counts_are_added_up() -> None:
    stat = {"model_added_lines": 5, "model_removed_lines": 1, "user_added_lines": 2, "user_removed_lines": "odd"}
    display = {"fileDiff": "@@ -1 +1 @@\n-a\n+b", "fileName": "x", "diffStat": stat}
    (row,) = rows({"id": "c", "name": "replace", "args": {"file_path": "/x"}, "resultDisplay": display})
    assert row.touches == [("/x", "edit", 7, 1, "display")]
    assert not row.left_out


def test_lone_surrogates_in_textual_arguments_are_replaced() -> None:
    args = '{"command": "echo \\ud800"}'
    (row,) = rows({"id": "c", "name": "run_shell_command", "args": args})
    assert row.commands == [("echo \ufffd", "echo")]


def full_and_short_rows(call: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[ToolCallRows, ToolCallRows]:
    data = json.dumps({"id": "g", "toolCalls": [call]}).encode()
    (full_row,) = call_rows(data)
    lower_limits(monkeypatch)
    text, short = value_at(source(data), Span(0, len(data)))
    assert short is not None
    (short_row,) = call_rows(text, short)
    assert not has_mark(short_row)
    return full_row, short_row


def test_long_output_has_its_size_and_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    output = "é" * 2000 + "\nExit Code: 3"
    call = {"id": "c", "name": "run_shell_command", "args": {"command": "ls"}, "result": result(output)}
    full, short = full_and_short_rows(call, monkeypatch)
    assert short == full
    assert short.call[EXIT_CODE] == 3


def test_exit_code_in_the_middle_of_a_long_output_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    output = "x" * 1000 + "\nExit Code: 1\n" + "x" * 1000 + "\nExit Code: 3"
    call = {"id": "c", "name": "run_shell_command", "args": {"command": "ls"}, "result": result(output)}
    full, short = full_and_short_rows(call, monkeypatch)
    assert full.call[EXIT_CODE] == short.call[EXIT_CODE] == 3


def test_lines_of_a_long_diff_are_counted_only_by_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    display = {"fileDiff": "@@ -1 +1 @@\n" + "+x\n" * 1000, "filePath": "/a", "isNewFile": True}
    call = {"id": "c", "name": "write_file", "args": {"file_path": "/a", "content": "x\n" * 1000}}
    full, short = full_and_short_rows(call | {"resultDisplay": display}, monkeypatch)
    assert full.touches == [("/a", "create", 1000, 0, "display")]
    assert short.touches == [("/a", "create", None, None, "display")]
    display["diffStat"] = {"model_added_lines": 1000}
    monkeypatch.undo()
    full, short = full_and_short_rows(call | {"resultDisplay": display}, monkeypatch)
    assert short.touches == full.touches == [("/a", "create", 1000, 0, "display")]


def test_long_arguments_are_described_by_their_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    call = {"id": "c", "name": "write_file", "args": {"file_path": "/a", "content": "x" * 2000}}
    full, short = full_and_short_rows(call, monkeypatch)
    assert short.touches == full.touches
    assert json.loads(short.call[ARGS])["content"].strip("x") == "…"
