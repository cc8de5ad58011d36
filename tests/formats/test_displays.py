from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import values

from pollux.formats.tool_calls import display
from pollux.model import (
    Activity,
    AgentDisplay,
    Cell,
    DiffDisplay,
    Display,
    FileDisplay,
    GrepMatch,
    MatchDisplay,
    ScreenDisplay,
    TextDisplay,
    Todo,
    TodoDisplay,
    UnknownDisplay,
)

DIFF = {
    "fileDiff": "@@",
    "fileName": "a.py",
    "filePath": "/a.py",
    "originalContent": None,
    "newContent": "x",
    "diffStat": {"model_added_lines": 2, "user_added_lines": 1, "model_removed_lines": 3, "model_added_chars": 9},
    "isNewFile": True,
}
AGENT = {
    "isSubagentProgress": True,
    "agentName": "generalist",
    "recentActivity": [
        {"id": "1", "type": "thought", "content": "Hm.", "status": "completed"},
        {"type": "tool_call", "content": "ls", "displayName": "ReadFolder", "description": ".", "status": "running"},
        "odd",
    ],
    "state": "running",
    "result": "",
    "terminateReason": "GOAL",
}
FORMS = ("fileDiff", "todos", "isSubagentProgress", "matches", "files")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", None),
        ("**bold**", TextDisplay("**bold**")),
        (DIFF, DiffDisplay("@@", "a.py", "/a.py", None, "x", 3, 3, is_new=True)),
        ({"fileDiff": "@@", "originalContent": "o", "newContent": 7}, DiffDisplay("@@", before="o")),
        ({"fileDiff": "@@", "diffStat": 7, "isNewFile": 1}, DiffDisplay("@@")),
        (
            [[{"text": "a", "bold": True, "fg": "#fff"}, {}], []],
            ScreenDisplay(((Cell("a", "#fff", bold=True), Cell("")), ())),
        ),
        ({"todos": [{"description": "a", "status": "pending"}]}, TodoDisplay((Todo("a", "pending"),))),
        ({"todos": [{}]}, TodoDisplay((Todo("", ""),))),
        (
            AGENT,
            AgentDisplay(
                "generalist",
                "running",
                None,
                "GOAL",
                (Activity("thought", "Hm.", "completed"), Activity("tool_call", "ReadFolder", "running", ".")),
            ),
        ),
        ({"isSubagentProgress": True, "recentActivity": 7}, AgentDisplay("")),
        (
            {
                "summary": "2 matches",
                "matches": [
                    {"filePath": "a", "absolutePath": "/a", "lineNumber": 3, "line": "x"},
                    {"absolutePath": "/b", "lineNumber": "4", "line": "y", "isContext": True},
                ],
            },
            MatchDisplay("2 matches", (GrepMatch("a", 3, "x"), GrepMatch("/b", None, "y", is_context=True))),
        ),
        ({"summary": "2 files", "files": ["a", 7], "payload": 1}, FileDisplay("2 files", ("a", "7"))),
    ],
)
def test_each_form_of_display_is_decoded(value: object, expected: Display | None) -> None:
    assert display(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        7,
        True,
        {},
        {"new": 1},
        {"fileDiff": 7},
        {"todos": 7},
        {"todos": [7]},
        {"matches": {}},
        {"files": "a"},
        [7],
        [[7]],
    ],
)
def test_unknown_display_is_kept(value: object) -> None:
    assert display(value) == UnknownDisplay(value)  # type: ignore[arg-type]


@given(st.dictionaries(st.sampled_from([*FORMS, "summary", "diffStat", "recentActivity", "new"]), values) | values)
def test_any_value_is_decoded_or_kept(value: Any) -> None:  # noqa: ANN401
    result = display(value)
    assert (result is None) is (value is None or value == "")
    if isinstance(result, UnknownDisplay):
        assert result.value == value
