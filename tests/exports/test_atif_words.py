"""Our values in the client's own words: read again, they are the same values."""

from __future__ import annotations

from typing import get_args

import pytest
from tests.exports import everything
from tests.views.build import START

from pollux.exports.atif import words
from pollux.formats.displays import display
from pollux.formats.parts import parts, thoughts
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


def test_all_displays_are_looked_at() -> None:
    assert {type(one) for one in DISPLAYS} == {*get_args(Display)}


@pytest.mark.parametrize("shown", DISPLAYS)
def test_display_comes_back(shown: Display) -> None:
    assert display(words.display(shown)) == shown


@pytest.mark.parametrize("part", PARTS)
def test_part_comes_back(part: Part) -> None:
    assert parts([words.part(part)]) == (part,)


def test_bytes_of_an_attachment_do_not() -> None:
    assert parts([words.part(everything.picture())]) == (Attachment("image/png", 0, data=""),)


def test_thought_comes_back() -> None:
    told = Thought("Look first.", "Plan", START)
    assert thoughts([words.thought(told)]) == (told,)
