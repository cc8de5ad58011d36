from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import answers, asks, at, gemini, instant_of, user, values

from pollux.formats.parts import attachments, is_ignored, is_resumable, parts, thoughts, title_words, verbose_text
from pollux.model import Attachment, Code, CodeResult, FunctionCall, FunctionResponse, Part, Text, Thought, Unknown

KINDS = ("text", "thought", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode")
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        ("hello", (Text("hello"),)),
        ({"text": "hello"}, (Text("hello"),)),
        (["a", {"text": "b"}, ""], (Text("a"), Text("b"))),
        ({"text": ""}, (Text(""),)),
        ({"text": "why", "thought": True, "thoughtSignature": "s"}, (Thought("why"),)),
        ({"text": "", "thoughtSignature": "s"}, ()),
        (asks("c", "ls", path="."), (FunctionCall("c", "ls", {"path": "."}),)),
        ({"functionCall": {"name": "ls"}, "thoughtSignature": "s"}, (FunctionCall(None, "ls", {}),)),
        (answers("c", "ls", "a"), (FunctionResponse("c", "ls", {"output": "a"}),)),
        ({"functionResponse": {"id": 7, "name": 8}}, (FunctionResponse(None, "8", None),)),
        (PICTURE, (Attachment("image/png", 5, data="aGVsbG8="),)),
        ({"inlineData": {}}, (Attachment("application/octet-stream", 0, data=""),)),
        ({"fileData": {"mimeType": "text/plain", "fileUri": "gs://a"}}, (Attachment("text/plain", uri="gs://a"),)),
        ({"executableCode": {"language": "PYTHON", "code": "1"}}, (Code("python", "1"),)),
        ({"codeExecutionResult": {"outcome": "OK", "output": "1"}}, (CodeResult("OK", "1"),)),
        ({"videoMetadata": {"fps": 1}}, (Unknown({"videoMetadata": {"fps": 1}}),)),
        ({"text": "a", "callIndex": 1}, (Text("a"),)),
        ({"text": "a", "new": 1}, (Text("a"), Unknown({"new": 1}))),
        ({"functionCall": "odd"}, (Unknown({"functionCall": "odd"}),)),
        ({}, (Unknown({}),)),
        ({"text": 7}, (Unknown({"text": 7}),)),
        ({"thought": True}, (Unknown({"thought": True}),)),
        (7, (Unknown(7),)),
        ([None, 7, ["x"]], (Unknown(None), Unknown(7), Unknown(["x"]))),
    ],
)
def test_each_form_of_content_is_read(content: object, expected: tuple[Part, ...]) -> None:
    assert parts(content) == expected


@given(values)
def test_arbitrary_content_raises_nothing(content: Any) -> None:  # noqa: ANN401
    parts(content)
    thoughts(content)
    verbose_text(content)


@given(st.dictionaries(st.sampled_from([*KINDS, "new"]), values, max_size=4), values)
def test_bad_part_does_not_affect_the_others(part: dict[str, Any], other: Any) -> None:  # noqa: ANN401
    result = parts(["before", part, other, {"text": "after"}])
    assert result[0] == Text("before")
    assert result[-1] == Text("after")
    for key in ("functionCall", "new"):
        if key in part:
            assert any(isinstance(item, FunctionCall) or item == Unknown({key: part[key]}) for item in result)


@given(st.binary(max_size=40))
def test_size_of_media_is_that_of_the_decoded_bytes(data: bytes) -> None:
    encoded = base64.b64encode(data).decode()
    (attachment,) = parts({"inlineData": {"mimeType": "a/b", "data": encoded}})
    assert isinstance(attachment, Attachment)
    assert attachment.size == len(data)


def test_attachments_are_only_the_media() -> None:
    assert [attachment.media_type for attachment in attachments(["a", PICTURE, {"text": "b"}, PICTURE])] == [
        "image/png"
    ] * 2


def test_each_form_of_thoughts_is_read() -> None:
    wire = {"subject": "Plan", "description": "Look first.", "timestamp": at(1)}
    assert thoughts([wire]) == (Thought("Look first.", "Plan", instant_of(1)),)
    assert thoughts(wire) == thoughts([wire])
    assert thoughts(["as text", None, 7]) == (Thought("as text"), Thought(""), Thought("7"))
    assert thoughts(None) == thoughts([]) == thoughts("") == ()


def test_verbose_text_of_deeply_nested_lists_is_joined() -> None:
    content: list[Any] = ["b"]
    for _ in range(5000):
        content = [content]
    assert verbose_text(["a", content, "c"]) == "abc"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ""),
        ("a", "a"),
        (7, ""),
        ([{"text": "a"}, "b", PICTURE, asks(), answers()], "ab[Media][Function Call][Function Response]"),
        ({"fileData": {}}, "[File Data]"),
        ({"text": "x", "thought": False}, "[Thought]"),
        ({"executableCode": {}}, "[Executable Code]"),
        ({"codeExecutionResult": {}}, "[Code Execution Result]"),
        ({"videoMetadata": {}}, "[Video Metadata]"),
    ],
)
def test_verbose_text_names_parts_without_text(content: object, expected: str) -> None:
    assert verbose_text(content) == expected


@pytest.mark.parametrize("text", ["", " \n\u00a0\ufeff", "/help", " ?", "<session_context>x", "<hook_context>x"])
def test_commands_and_contexts_are_ignored(text: str) -> None:
    assert is_ignored(text)


@pytest.mark.parametrize("text", ["a", "\u0085", "a /b", "<state_snapshot>"])
def test_other_texts_are_not_ignored(text: str) -> None:
    assert not is_ignored(text)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (user(), True),
        (user(content="/help"), False),
        (user(content=[answers()]), True),
        (gemini(), True),
        (gemini(content=""), False),
        (gemini(content=" ", thoughts=[]), False),
        (gemini(content="", thoughts=[{}]), True),
        (gemini(content="", toolCalls=[{}]), True),
        ({"type": "info", "content": "x"}, False),
        ({}, False),
    ],
)
def test_messages_with_content_are_resumable(message: dict[str, Any], *, expected: bool) -> None:
    assert is_resumable(message) is expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("hello", "hello"),
        (["lost", {"text": "a"}, {"text": 7}, {"text": "b"}], "ab"),
        ([PICTURE], ""),
        ({"text": "a"}, None),
        ("/help", None),
        ("", None),
        (None, None),
    ],
)
def test_title_words_are_the_texts_of_a_typed_prompt(content: object, expected: str | None) -> None:
    assert title_words(user(content=content)) == expected


def test_lists_nested_deeper_than_the_recursion_limit_are_read() -> None:
    content: list[Any] = ["a", {"text": "b"}, [{"functionCall": {}}, None, 5, {}], "c"]
    assert verbose_text(content) == "ab[Function Call]c"
    for _ in range(50_000):
        content = [content]
    assert verbose_text(content) == "ab[Function Call]c"
