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


def one_call(**more: Any) -> ToolCall:  # noqa: ANN401
    (found,) = tool_calls([call(**more)])
    return found


def response(value: object, id_: str = "c1", **more: object) -> dict[str, object]:
    return {"functionResponse": {"id": id_, "name": "read_file", "response": value, **more}}


def test_a_message() -> None:
    found = message(
        user("u1", "hello", displayContent="hey", odd=1),
        origin=Origin.LOADED,
        fate=Fate.REWOUND,
        tokens=Tokens(1),
        model="m",
        file="f",
        line=3,
    )
    assert (found.id, found.kind, found.at) == ("u1", Kind.USER, instant_of(1))
    assert (found.origin, found.fate, found.tokens, found.model) == (Origin.LOADED, Fate.REWOUND, Tokens(1), "m")
    assert (found.file, found.line, found.extra) == ("f", 3, {"odd": 1})
    assert found.parts == (Text("hello"),)
    assert found.display == (Text("hey"),)
    assert found.text == "hey"
    assert not found.thoughts
    assert not found.tool_calls


@pytest.mark.parametrize("kind", ["user", "gemini", "info", "warning", "error"])
def test_the_kinds(kind: str) -> None:
    assert message({"id": "a", "type": kind}).kind == kind


@pytest.mark.parametrize("kind", [None, "model", 7, []])
def test_an_unknown_kind(kind: object) -> None:
    assert message({"id": "a", "type": kind, "content": "x"}).kind == Kind.UNKNOWN


def test_thoughts_in_the_content_stand_beside_it() -> None:
    content = [{"text": "hm", "thought": True}, {"text": "yes"}]
    found = message(gemini("g1", content))
    assert found.thoughts == (Thought("hm"),)
    assert found.parts == (Text("yes"),)
    beside = message(gemini("g1", content), thinking={"thoughts": [{"subject": "S", "description": "D"}]})
    assert beside.thoughts == (Thought("D", "S"),)
    assert beside.parts == (Text("yes"),)


def test_calls_come_from_their_own_recording() -> None:
    found = message(gemini("g1", "", toolCalls=[call("old")]), calls=gemini("g1", "", toolCalls=[call("new")]))
    assert [one.id for one in found.tool_calls] == ["new"]


def test_the_media_of_a_message() -> None:
    assert message(user(content=[{"text": "see"}, MEDIA])).attachments == (PICTURE,)


def test_a_tool_call() -> None:
    found = one_call(
        timestamp=at(5),
        displayName="ReadFile",
        description="a.txt",
        resultDisplay="shown",
        renderOutputAsMarkdown=True,
        agentId="agent",
        new=[1],
    )
    assert (found.id, found.name, found.status) == ("c1", "read_file", "success")
    assert (found.output, found.error, found.response) == ("text of the file", None, None)
    assert (found.display, found.display_name, found.description) == (TextDisplay("shown"), "ReadFile", "a.txt")
    assert (found.at, found.agent_id, found.markdown, found.extra) == (instant_of(5), "agent", True, {"new": [1]})
    assert found.args == {"file_path": "a.txt"}
    assert found.canonical == "file_read"
    assert found.exit_code is None


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
def test_every_form_of_result(result: object, output: str | None, error: str | None, other: object) -> None:
    found = one_call(result=result)
    assert (found.output, found.error, found.response) == (output, error, other)


def test_of_several_responses_its_own() -> None:
    found = one_call(id_="c2", result=[answers("c1", output="one"), answers("c2", output="two")])
    assert found.output == "two"
    assert one_call(id_="c9", result=[answers("c1", output="one"), answers("c2", output="two")]).output == "one"


def test_media_beside_and_inside_a_response() -> None:
    beside = one_call(result=[response({"output": "Binary content provided (1 item(s))."}), MEDIA])
    assert beside.attachments == (PICTURE,)
    inside = one_call(result=[response({"output": "x"}, parts=[MEDIA]), response({"output": "y"}, "c2", parts=[MEDIA])])
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
def test_the_exit_code_of_a_shell(text: str, code: int | None) -> None:
    result = [response({"output": text})]
    assert one_call(name="run_shell_command", result=result).exit_code == code
    assert one_call(name="read_file", result=result).exit_code is None


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"status": "cancelled"}, "cancelled"),
        ({"status": None}, "success"),
        ({"status": None, "result": None}, "pending"),
    ],
)
def test_the_status(more: dict[str, Any], status: str) -> None:
    assert one_call(**more).status == status


def test_an_mcp_server_is_named() -> None:
    assert one_call(name="mcp_tickets_lookup", displayName="lookup (tickets MCP Server)").mcp_server == "tickets"


@given(st.dictionaries(st.sampled_from([*KEYS, "new"]), values))
def test_any_value_anywhere_in_a_message(wire: dict[str, Any]) -> None:
    found = message({"id": "a", **wire})
    assert found.id == str(wire.get("id", "a"))
    assert found.extra == {key: value for key, value in wire.items() if key == "new"}


@given(st.dictionaries(st.sampled_from([*CALL_KEYS, "new"]), values), values)
def test_any_value_anywhere_in_a_call(wire: dict[str, Any], other: Any) -> None:  # noqa: ANN401
    found = tool_calls([call("before"), wire, other, call("after")])
    assert found[0].id == "before"
    assert found[-1].id == "after"
    assert found[1].args == wire.get("args", {})
    assert found[1].extra == {key: value for key, value in wire.items() if key == "new"}
    assert len(found) == 3 + isinstance(other, dict)


@given(values)
def test_any_value_as_a_result(result: Any) -> None:  # noqa: ANN401
    for wire in (
        result,
        [result],
        [response(result)],
        {"functionResponse": result},
        [response({"output": "a"}, parts=result)],
    ):
        assert one_call(result=wire).name == "read_file"


@given(values)
def test_any_value_as_content_is_read(content: Any) -> None:  # noqa: ANN401
    found = message(user(content=[content, {"new": content}]))
    assert Unknown({"new": content}) in found.parts
