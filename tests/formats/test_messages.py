from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import answers, at, call, gemini, instant_of, user, values

from pollux.formats.messages import message
from pollux.formats.tool_calls import tool_calls
from pollux.model import (
    Attachment,
    Fate,
    Kind,
    Origin,
    Text,
    TextDisplay,
    Thought,
    Tokens,
    ToolCall,
    Unknown,
)

MEDIA = {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}
PICTURE = Attachment("image/png", 5, data="aGVsbG8=")
KEYS = ("id", "timestamp", "type", "content", "displayContent", "thoughts", "tokens", "model", "toolCalls")
CALL_KEYS = (
    *("id", "name", "args", "result", "status", "timestamp", "resultDisplay", "displayName", "description"),
    *("renderOutputAsMarkdown", "agentId"),
)


def only_call(**fields: Any) -> ToolCall:  # noqa: ANN401
    (tool_call,) = tool_calls([call(**fields)])
    return tool_call


def response(value: object, id_: str = "c1", **more: object) -> dict[str, object]:
    return {"functionResponse": {"id": id_, "name": "read_file", "response": value, **more}}


def test_message_has_the_fields_of_its_record() -> None:
    result = message(
        user("u1", "hello", displayContent="hey", odd=1),
        origin=Origin.LOADED,
        fate=Fate.REWOUND,
        tokens=Tokens(1),
        model="m",
        file="f",
        line=3,
    )
    assert (result.id, result.kind, result.at) == ("u1", Kind.USER, instant_of(1))
    assert (result.origin, result.fate, result.tokens, result.model) == (Origin.LOADED, Fate.REWOUND, Tokens(1), "m")
    assert (result.file, result.line, result.extra) == ("f", 3, {"odd": 1})
    assert result.parts == (Text("hello"),)
    assert result.display == (Text("hey"),)
    assert result.text == "hey"
    assert not result.thoughts
    assert not result.tool_calls


@pytest.mark.parametrize("kind", ["user", "gemini", "info", "warning", "error"])
def test_known_kinds_are_kept(kind: str) -> None:
    assert message({"id": "a", "type": kind}).kind == kind


@pytest.mark.parametrize("kind", [None, "model", 7, []])
def test_other_kinds_are_unknown(kind: object) -> None:
    assert message({"id": "a", "type": kind, "content": "x"}).kind == Kind.UNKNOWN


def test_thoughts_are_separated_from_the_content() -> None:
    content = [{"text": "hm", "thought": True}, {"text": "yes"}]
    result = message(gemini("g1", content))
    assert result.thoughts == (Thought("hm"),)
    assert result.parts == (Text("yes"),)
    beside = message(gemini("g1", content), thinking={"thoughts": [{"subject": "S", "description": "D"}]})
    assert beside.thoughts == (Thought("D", "S"),)
    assert beside.parts == (Text("yes"),)


def test_calls_are_taken_from_a_later_recording() -> None:
    result = message(gemini("g1", "", toolCalls=[call("old")]), calls=gemini("g1", "", toolCalls=[call("new")]))
    assert [tool_call.id for tool_call in result.tool_calls] == ["new"]


def test_message_has_its_media_as_attachments() -> None:
    assert message(user(content=[{"text": "see"}, MEDIA])).attachments == (PICTURE,)


def test_tool_call_has_the_fields_of_its_record() -> None:
    tool_call = only_call(
        timestamp=at(5),
        displayName="ReadFile",
        description="a.txt",
        resultDisplay="shown",
        renderOutputAsMarkdown=True,
        agentId="agent",
        new=[1],
    )
    assert (tool_call.id, tool_call.name, tool_call.status) == ("c1", "read_file", "success")
    assert (tool_call.output, tool_call.error, tool_call.response) == ("text of the file", None, None)
    assert (tool_call.display, tool_call.display_name, tool_call.description) == (
        TextDisplay("shown"),
        "ReadFile",
        "a.txt",
    )
    assert (tool_call.at, tool_call.agent_id, tool_call.markdown, tool_call.extra) == (
        instant_of(5),
        "agent",
        True,
        {"new": [1]},
    )
    assert tool_call.args == {"file_path": "a.txt"}
    assert tool_call.canonical == "file_read"
    assert tool_call.exit_code is None


@pytest.mark.parametrize(
    ("result", "output", "error", "other"),
    [
        ([response({"output": "a"})], "a", None, None),
        ([response({"error": "e"})], None, "e", None),
        ([response({"output": "a", "error": "[Operation Cancelled] x"})], "a", "[Operation Cancelled] x", None),
        ([response({})], None, None, None),
        ([response({"rows": [1]})], None, None, {"rows": [1]}),
        ([response({"output": {"rows": 1}})], '{"rows": 1}', None, {"output": {"rows": 1}}),
        ([response({"content": "a"})], "a", None, {"content": "a"}),
        ([response({"content": {"output": "a"}})], "a", None, {"content": {"output": "a"}}),
        ([response("bare")], "bare", None, "bare"),
        ([response(None)], None, None, None),
        (response({"output": "a"}), "a", None, None),
        ("as text", "as text", None, None),
        ([{"text": "a"}, {"text": "b"}], "ab", None, None),
        ([response({"output": "Tool execution succeeded."}), {"text": "real"}], "real", None, None),
        (None, None, None, None),
        ([], None, None, None),
        (7, None, None, None),
        ([7, None, {"functionResponse": 7}], None, None, None),
    ],
)
def test_each_form_of_result_is_read(result: object, output: str | None, error: str | None, other: object) -> None:
    tool_call = only_call(result=result)
    assert (tool_call.output, tool_call.error, tool_call.response) == (output, error, other)


def test_result_is_the_response_with_the_id_of_the_call() -> None:
    tool_call = only_call(id_="c2", result=[answers("c1", output="one"), answers("c2", output="two")])
    assert tool_call.output == "two"
    assert only_call(id_="c9", result=[answers("c1", output="one"), answers("c2", output="two")]).output == "one"


def test_media_beside_and_inside_a_response_are_attachments() -> None:
    beside = only_call(result=[response({"output": "Binary content provided (1 item(s))."}), MEDIA])
    assert beside.attachments == (PICTURE,)
    inside = only_call(
        result=[response({"output": "x"}, parts=[MEDIA]), response({"output": "y"}, "c2", parts=[MEDIA])]
    )
    assert inside.attachments == (PICTURE,)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Output: a\nExit Code: 3", 3),
        ("Exit Code: -1\nSignal: 9", -1),
        ("Exit Code: (none)", None),
        ("Exit Code: 99999999999999999999", None),
        (f"Exit Code: -{'9' * 5000}", None),
        ("Output: a", None),
    ],
)
def test_exit_code_is_read_from_shell_output(text: str, code: int | None) -> None:
    result = [response({"output": text})]
    assert only_call(name="run_shell_command", result=result).exit_code == code
    assert only_call(name="read_file", result=result).exit_code is None


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"status": "cancelled"}, "cancelled"),
        ({"status": None}, "success"),
        ({"status": None, "result": None}, "pending"),
    ],
)
def test_missing_status_follows_from_the_result(more: dict[str, Any], status: str) -> None:
    assert only_call(**more).status == status


def test_mcp_server_is_read_from_the_display_name() -> None:
    assert only_call(name="mcp_tickets_lookup", displayName="lookup (tickets MCP Server)").mcp_server == "tickets"


@given(st.dictionaries(st.sampled_from([*KEYS, "new"]), values))
def test_message_with_arbitrary_values_is_read(wire: dict[str, Any]) -> None:
    result = message({"id": "a", **wire})
    assert result.id == str(wire.get("id", "a"))
    assert result.extra == {key: value for key, value in wire.items() if key == "new"}


@given(st.dictionaries(st.sampled_from([*CALL_KEYS, "new"]), values), values)
def test_call_with_arbitrary_values_is_read(wire: dict[str, Any], other: Any) -> None:  # noqa: ANN401
    result = tool_calls([call("before"), wire, other, call("after")])
    assert result[0].id == "before"
    assert result[-1].id == "after"
    assert result[1].args == wire.get("args", {})
    assert result[1].extra == {key: value for key, value in wire.items() if key == "new"}
    assert len(result) == 3 + isinstance(other, dict)


@given(values)
def test_result_with_arbitrary_values_is_read(result: Any) -> None:  # noqa: ANN401
    for wire in (
        result,
        [result],
        [response(result)],
        {"functionResponse": result},
        [response({"output": "a"}, parts=result)],
    ):
        assert only_call(result=wire).name == "read_file"


@given(values)
def test_content_with_arbitrary_values_is_read(content: Any) -> None:  # noqa: ANN401
    result = message(user(content=[content, {"new": content}]))
    assert Unknown({"new": content}) in result.parts
