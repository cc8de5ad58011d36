"""Values written in the client's format are read again as the same values."""

from __future__ import annotations

from typing import get_args

import pytest
from tests.exports import everything
from tests.views.build import START

from pollux.exports.atif import client_values as values
from pollux.formats.parts import parts, thoughts
from pollux.formats.tool_calls import display
from pollux.model import (
    Attachment,
    Code,
    CodeResult,
    Display,
    FunctionCall,
    FunctionResponse,
    Part,
    Text,
    Thought,
    Unknown,
)

DISPLAYS = [
    call.display
    for message in (*everything.messages(), *everything.agent_messages())
    for call in message.tool_calls
    if call.display
]
PARTS: list[Part] = [
    Text("words"),
    Thought("a thought"),
    FunctionCall("c1", "glob", {"pattern": "*"}),
    FunctionCall(None, "glob", {}),
    FunctionResponse("c1", "glob", {"output": "a.txt"}),
    FunctionResponse(None, "glob", None),
    Attachment("image/png", uri="gs://bucket/picture"),
    Code("python", "print(1)"),
    CodeResult("OUTCOME_OK", "1"),
    Unknown({"x": 1}),
]


def test_each_display_has_a_sample() -> None:
    assert {type(display) for display in DISPLAYS} == {*get_args(Display)}


@pytest.mark.parametrize("shown", DISPLAYS)
def test_displays_round_trip(shown: Display) -> None:
    assert display(values.display_json(shown)) == shown


@pytest.mark.parametrize("part", PARTS)
def test_parts_round_trip(part: Part) -> None:
    assert parts([values.part_json(part)]) == (part,)


def test_bytes_of_an_attachment_are_not_written() -> None:
    assert parts([values.part_json(everything.picture())]) == (Attachment("image/png", 0, data=""),)


def test_thought_round_trips() -> None:
    thought = Thought("Look first.", "Plan", START)
    assert thoughts([values.thought_json(thought)]) == (thought,)
