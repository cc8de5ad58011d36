from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import Wire, answers, asks, at, call, gemini, line, notice, preamble, tokens, user, values

from pollux.formats.lenient import mask
from pollux.formats.operations import PROMPT_LENGTH, CallHead, Record
from pollux.formats.records import elements, fields, metadata, record, wire
from pollux.formats.source import Span
from pollux.model import Origin, Tokens

KEYS = ("$rewindTo", "id", "$set", "sessionId", "projectHash", "type", "timestamp", "model", "tokens", "content")
MORE = ("displayContent", "toolCalls", "thoughts", "new")


def read_record(message: Wire | bytes) -> Record:
    data = message if isinstance(message, bytes) else line(message)
    return record(wire(data)[0], data, Span(5, 5 + len(data)), 7)


def test_record_has_the_fields_of_its_message() -> None:
    message = gemini("g1", "hi", tokens=tokens(10), toolCalls=[call(agentId="a", displayName="R")], thoughts=[{}])
    result = read_record(message)
    assert (result.id, result.kind, result.at, result.model) == ("g1", "gemini", at(2), "gemini-2.5-pro")
    assert result.tokens == Tokens(10, 1, 2, 3, 0, 15)
    assert result.calls == (CallHead("c1", "read_file", "success", display_name="R", agent_id="a"),)
    assert (result.has_thoughts, result.is_masked, result.is_bare) == (True, False, False)
    assert (result.span, result.line) == (Span(5, 5 + len(line(message))), 7)
    assert (result.origin, result.prompt) == (Origin.MODEL, "")


@pytest.mark.parametrize("thoughts", [{}, {"thoughts": []}, {"thoughts": None}])
def test_empty_thoughts_do_not_count(thoughts: Wire) -> None:
    assert not read_record(gemini(**thoughts)).has_thoughts


def test_masked_output_is_detected_only_in_calls() -> None:
    masked = answers(output="<tool_output_masked>…")
    assert read_record(gemini(toolCalls=[call(result=[masked])])).is_masked
    assert not read_record(user(content=[masked])).is_masked


@pytest.mark.parametrize(
    ("message", "is_bare"),
    [
        ({"id": "a", "type": "gemini", "content": [{"text": "a"}]}, True),
        ({"id": "a", "type": "gemini", "content": "a"}, False),
        (gemini(content=[{"text": "a"}]), False),
        (user(content=[{"text": "a"}]), False),
    ],
)
def test_answer_without_model_and_tokens_is_bare(message: Wire, *, is_bare: bool) -> None:
    assert read_record(message).is_bare is is_bare


@pytest.mark.parametrize(
    ("content", "origin", "prompt"),
    [
        ("hello", Origin.HUMAN, "hello"),
        ([{"text": "a "}, "b"], Origin.HUMAN, "a b"),
        ({"text": "a"}, Origin.HUMAN, "a"),
        ([{"text": None}, {"text": "a"}], Origin.HUMAN, "a"),
        ([{"text": 7}, None, 3, {"text": "a"}], Origin.HUMAN, "a"),
        ([answers("c1")], Origin.TOOL_RESPONSE, ""),
        ([{"functionResponse": {"id": 7}}, 7], Origin.TOOL_RESPONSE, ""),
        ([{"functionResponse": 7}, 7], Origin.TOOL_RESPONSE, ""),
        ([{"inlineData": {"data": ""}}], Origin.HUMAN, ""),
        ([{"fileData": {}}], Origin.HUMAN, ""),
        ("", Origin.SYNTHETIC, ""),
        (None, Origin.SYNTHETIC, ""),
        (7, Origin.SYNTHETIC, ""),
        ("x" * 2000, Origin.HUMAN, "x" * PROMPT_LENGTH),
    ],
)
def test_origin_and_prompt_of_a_user_message(content: object, origin: Origin, prompt: str) -> None:
    result = read_record(user(content=content))
    assert (result.origin, result.prompt) == (origin, prompt)


def test_responses_are_the_ids_in_a_user_message() -> None:
    assert read_record(user(content=[answers("c1"), answers("c2")])).responses == ("c1", "c2")
    assert read_record(gemini(content=[asks("c1")])).responses == ()
    assert read_record(user(content=[answers("c1"), {"functionResponse": {"id": 7}}])).responses == ("c1", "")


def test_lone_surrogates_and_invalid_text_are_replaced() -> None:
    assert read_record(mask(line(user(content=[{"text": "a\ud83d"}])))).prompt == "a\ufffd"
    broken = line(user(content=[{"text": "a~"}])).replace(b"~", b"\xff")
    assert read_record(broken).prompt == "a\ufffd"


def test_display_content_is_the_prompt() -> None:
    assert read_record(user(content=["Read a.txt"], displayContent=[{"text": " @a.txt "}])).prompt == "@a.txt"
    assert read_record(user(content="hello", displayContent="  ")).prompt == "hello"
    assert read_record(preamble(displayContent="x")).origin == Origin.SESSION_CONTEXT


@pytest.mark.parametrize(
    ("message", "origin"),
    [
        (notice(), Origin.NOTICE),
        (gemini(content="Got it. Thanks for the additional context!", model=None), Origin.SYNTHETIC),
        (gemini(content=[{"text": "Got it. Thanks for the context!"}], model=None), Origin.SYNTHETIC),
        (gemini(content="Got it. Thanks for the context!"), Origin.MODEL),
        (gemini(content=""), Origin.MODEL),
        ({"id": "a"}, Origin.MODEL),
    ],
)
def test_origin_of_other_messages(message: Wire, origin: Origin) -> None:
    assert read_record(message).origin == origin


@pytest.mark.parametrize(
    ("wrong", "bad"),
    [
        ({"timestamp": 7}, "timestamp"),
        ({"model": []}, "model"),
        ({"type": {}}, "type"),
        ({"tokens": 7}, "tokens"),
        (
            {"tokens": {"input": "many", "output": True, "cached": 1.5, "thoughts": 3, "new": "x"}},
            "tokens.input, tokens.output",
        ),
        ({"toolCalls": 7}, "toolCalls"),
        ({"toolCalls": [7, call()]}, "toolCalls"),
        ({"id": "a", "sessionId": 7}, "sessionId"),
    ],
)
def test_bad_value_does_not_affect_other_fields(wrong: Wire, bad: str) -> None:
    message = gemini("g1", "hi", tokens=tokens(10), toolCalls=[call()]) | wrong
    decoded, reported = wire(line(message))
    assert bad in str(reported)
    result = record(decoded, line(message), Span(0, 1), 1)
    assert result.id == message["id"]
    if "tokens" not in wrong:
        assert result.tokens == Tokens(10, 1, 2, 3, 0, 15)
    if wrong.get("toolCalls") != 7:
        assert [head.name for head in result.calls] == ["read_file"]


def test_good_counts_beside_bad_ones_are_kept() -> None:
    assert read_record(gemini(tokens={"input": "x", "output": 7, "total": None})).tokens == Tokens(output=7, total=7)


def test_missing_total_is_the_sum_of_the_recorded_counts() -> None:
    counts = {"input": 120, "output": 30, "cached": 100, "thoughts": 5}
    assert read_record(gemini(tokens=counts)).tokens == Tokens(120, 100, 30, 5, 0, 155)
    assert read_record(gemini(tokens=counts | {"total": 0})).tokens == Tokens(120, 100, 30, 5, 0, 0)


def test_bad_value_in_a_call_does_not_affect_the_call() -> None:
    result = read_record(gemini(toolCalls=[call(status=7, agentId="a"), {"name": 7, "id": "c2"}]))
    assert result.calls == (CallHead("c1", "read_file", "success", agent_id="a"), CallHead("c2", status="pending"))


def test_id_that_is_not_a_string_is_unset() -> None:
    decoded, bad = wire(b'{"id":7,"$rewindTo":null,"sessionId":"s"}')
    assert decoded.id is decoded.rewind_to is msgspec.UNSET
    assert bad == "$rewindTo, id"
    assert decoded.session_id == "s"


@pytest.mark.parametrize("data", [b"7", b"null", b"[]", b'"text"'])
def test_value_that_is_not_an_object_is_empty(data: bytes) -> None:
    decoded, bad = wire(data)
    assert bad is None
    assert decoded.id is msgspec.UNSET


@pytest.mark.parametrize("data", [b"", b"{", b'{"id":"\xff"}', b'{"id":"\\ud800"}', b'{"id":1,"a":' + b"[" * 5000])
def test_invalid_json_raises(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        wire(data)


@given(st.dictionaries(st.sampled_from([*KEYS, *MORE]), values))
def test_message_with_arbitrary_values_is_read(message: Wire) -> None:
    data = line(message)
    decoded, bad = wire(data)
    result = record(decoded, data, Span(0, len(data)), 1)
    if isinstance(message.get("id"), str):
        assert result.id == message["id"]
    kept = isinstance(message.get("tokens"), dict) or message.get("tokens") is None
    assert kept or "tokens" in str(bad)


@given(st.dictionaries(st.text(), values), st.lists(values))
def test_fields_and_elements_equal_the_encoded_values(obj: dict[str, Any], array: list[Any]) -> None:
    assert fields(line(obj)).keys() == obj.keys()
    assert metadata(fields(line(obj))) == {key: value for key, value in obj.items() if key != "messages"}
    text = b'{"x":"[","messages":' + line(array) + b"}"
    pairs = list(elements(line(array), text))
    assert [text[start:end] for (start, end), _ in pairs] == [element for _, element in pairs]
    assert [json.loads(element) for _, element in pairs] == array


@pytest.mark.parametrize("data", [b"[]", b"7", b"", b" x", b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"])
def test_fields_of_other_values_raise(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        fields(data)


def test_elements_of_an_array_outside_the_text_raise() -> None:
    with pytest.raises(ValueError, match="not in its text"):
        list(elements(b"[1,2]", b'{"messages": [1, 2]}'))
