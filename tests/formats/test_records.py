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


def recorded(message: Wire | bytes) -> Record:
    data = message if isinstance(message, bytes) else line(message)
    return record(wire(data)[0], data, Span(5, 5 + len(data)), 7)


def test_a_message() -> None:
    message = gemini("g1", "hi", tokens=tokens(10), toolCalls=[call(agentId="a", displayName="R")], thoughts=[{}])
    found = recorded(message)
    assert (found.id, found.kind, found.at, found.model) == ("g1", "gemini", at(2), "gemini-2.5-pro")
    assert found.tokens == Tokens(10, 1, 2, 3, 0, 15)
    assert found.calls == (CallHead("c1", "read_file", "success", display_name="R", agent_id="a"),)
    assert (found.has_thoughts, found.is_masked, found.is_bare) == (True, False, False)
    assert (found.span, found.line) == (Span(5, 5 + len(line(message))), 7)
    assert (found.origin, found.prompt) == (Origin.MODEL, "")


@pytest.mark.parametrize("thoughts", [{}, {"thoughts": []}, {"thoughts": None}])
def test_no_thoughts(thoughts: Wire) -> None:
    assert not recorded(gemini(**thoughts)).has_thoughts


def test_masked_output_is_seen() -> None:
    masked = answers(output="<tool_output_masked>…")
    assert recorded(gemini(toolCalls=[call(result=[masked])])).is_masked
    assert not recorded(user(content=[masked])).is_masked


@pytest.mark.parametrize(
    ("message", "is_bare"),
    [
        ({"id": "a", "type": "gemini", "content": [{"text": "a"}]}, True),
        ({"id": "a", "type": "gemini", "content": "a"}, False),
        (gemini(content=[{"text": "a"}]), False),
        (user(content=[{"text": "a"}]), False),
    ],
)
def test_what_only_a_checkpoint_writes_is_bare(message: Wire, *, is_bare: bool) -> None:
    assert recorded(message).is_bare is is_bare


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
def test_what_a_user_message_says(content: object, origin: Origin, prompt: str) -> None:
    found = recorded(user(content=content))
    assert (found.origin, found.prompt) == (origin, prompt)


def test_the_ids_of_responses() -> None:
    assert recorded(user(content=[answers("c1"), answers("c2")])).responses == ("c1", "c2")
    assert recorded(gemini(content=[asks("c1")])).responses == ()
    assert recorded(user(content=[answers("c1"), {"functionResponse": {"id": 7}}])).responses == ("c1", "")


def test_lone_surrogates_and_broken_text() -> None:
    assert recorded(mask(line(user(content=[{"text": "a\ud83d"}])))).prompt == "a\ufffd"
    broken = line(user(content=[{"text": "a~"}])).replace(b"~", b"\xff")
    assert recorded(broken).prompt == "a\ufffd"


def test_what_was_typed_is_the_prompt() -> None:
    assert recorded(user(content=["Read a.txt"], displayContent=[{"text": " @a.txt "}])).prompt == "@a.txt"
    assert recorded(user(content="hello", displayContent="  ")).prompt == "hello"
    assert recorded(preamble(displayContent="x")).origin == Origin.SESSION_CONTEXT


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
def test_what_other_messages_are(message: Wire, origin: Origin) -> None:
    assert recorded(message).origin == origin


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
def test_one_bad_value_spoils_only_itself(wrong: Wire, bad: str) -> None:
    message = gemini("g1", "hi", tokens=tokens(10), toolCalls=[call()]) | wrong
    decoded, told = wire(line(message))
    assert bad in str(told)
    found = record(decoded, line(message), Span(0, 1), 1)
    assert found.id == message["id"]
    if "tokens" not in wrong:
        assert found.tokens == Tokens(10, 1, 2, 3, 0, 15)
    if wrong.get("toolCalls") != 7:
        assert [one.name for one in found.calls] == ["read_file"]


def test_good_counts_beside_bad_ones() -> None:
    assert recorded(gemini(tokens={"input": "x", "output": 7, "total": None})).tokens == Tokens(output=7, total=7)


def test_missing_total_is_the_sum_of_the_recorded_counts() -> None:
    counts = {"input": 120, "output": 30, "cached": 100, "thoughts": 5}
    assert recorded(gemini(tokens=counts)).tokens == Tokens(120, 100, 30, 5, 0, 155)
    assert recorded(gemini(tokens=counts | {"total": 0})).tokens == Tokens(120, 100, 30, 5, 0, 0)


def test_a_bad_value_in_a_call() -> None:
    found = recorded(gemini(toolCalls=[call(status=7, agentId="a"), {"name": 7, "id": "c2"}]))
    assert found.calls == (CallHead("c1", "read_file", "success", agent_id="a"), CallHead("c2", status="pending"))


def test_an_id_that_is_no_string_is_none() -> None:
    decoded, bad = wire(b'{"id":7,"$rewindTo":null,"sessionId":"s"}')
    assert decoded.id is decoded.rewind_to is msgspec.UNSET
    assert bad == "$rewindTo, id"
    assert decoded.session_id == "s"


@pytest.mark.parametrize("data", [b"7", b"null", b"[]", b'"text"'])
def test_what_is_no_object_is_empty(data: bytes) -> None:
    decoded, bad = wire(data)
    assert bad is None
    assert decoded.id is msgspec.UNSET


@pytest.mark.parametrize("data", [b"", b"{", b'{"id":"\xff"}', b'{"id":"\\ud800"}', b'{"id":1,"a":' + b"[" * 5000])
def test_what_the_decoder_does_not_take_raises(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        wire(data)


@given(st.dictionaries(st.sampled_from([*KEYS, *MORE]), values))
def test_any_value_anywhere(message: Wire) -> None:
    data = line(message)
    decoded, bad = wire(data)
    found = record(decoded, data, Span(0, len(data)), 1)
    if isinstance(message.get("id"), str):
        assert found.id == message["id"]
    kept = isinstance(message.get("tokens"), dict) or message.get("tokens") is None
    assert kept or "tokens" in str(bad)


@given(st.dictionaries(st.text(), values), st.lists(values))
def test_fields_and_elements(obj: dict[str, Any], array: list[Any]) -> None:
    assert fields(line(obj)).keys() == obj.keys()
    assert metadata(fields(line(obj))) == {key: value for key, value in obj.items() if key != "messages"}
    text = b'{"x":"[","messages":' + line(array) + b"}"
    found = list(elements(line(array), text))
    assert [text[start:end] for (start, end), _ in found] == [element for _, element in found]
    assert [json.loads(element) for _, element in found] == array


@pytest.mark.parametrize("data", [b"[]", b"7", b"", b" x", b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}"])
def test_fields_of_no_object_raise(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        fields(data)


def test_an_array_that_is_not_in_its_text_is_an_error() -> None:
    with pytest.raises(ValueError, match="not in its text"):
        list(elements(b"[1,2]", b'{"messages": [1, 2]}'))
