"""Trajectories of Pollux and of other programs are read as sessions, faults included."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import builders

from pollux.formats import GENERATIONS, atif, opened
from pollux.formats.source import Source
from pollux.model import Attachment, Kind, Session, Text, Tokens
from pollux.sessions.grouping import OpenSession
from pollux.sessions.reader import from_file

OTHER = Path(__file__).parents[1] / "data" / "atif" / "other-agent.json"
NOW = datetime(2026, 11, 15, tzinfo=UTC)


def read(folder: Path, value: object) -> tuple[Session, OpenSession]:
    return from_file(builders.put(folder / "t.json", json.dumps(value).encode()))


def converted(value: object) -> Any:  # noqa: ANN401
    return atif.convert(json.dumps(value).encode(), name="t.json", modified=NOW)


def trajectory(*steps: object) -> dict[str, Any]:
    return {"schema_version": "ATIF-v1.7", "trajectory_id": "t", "agent": {}, "steps": [*steps]}


def test_trajectory_of_another_agent_is_read_as_a_session() -> None:
    session, group = from_file(OTHER)
    assert (session.id, session.generation, session.problems) == ("run-7", "atif", ())
    notice, asked, answer, screen, last = group.messages()
    assert [message.kind for message in (notice, asked, answer, screen, last)] == [
        *(Kind.INFO, Kind.USER, Kind.GEMINI, Kind.INFO, Kind.GEMINI)
    ]
    assert asked.parts == (
        Text("What does this show?"),
        Attachment("image/png", uri="images/1.png"),
    )
    assert (answer.text, answer.model, answer.thoughts[0].text) == ("I look.", "some-model", "A picture.")
    (call,) = answer.tool_calls
    assert (call.id, call.args, call.output, call.label) == ("call_1", {"command": "ls"}, "a.txt", "Bash")
    assert answer.tokens == Tokens(input=120, cached=20, output=30, total=150)
    assert screen.text == "The screen was cleared."
    assert (last.model, last.at) == ("other-model", None)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (OTHER.read_bytes(), True),
        (b'{"agent":{},"schema_version": "ATIF-v9.9"', True),
        (b'\xef\xbb\xbf{"schema_version":"ATIF-v1.7"}', True),
        (b'{"schema_version":"1.0"}', False),
        (b'{"sessionId":"x","args":{"schema_version":"ATIF-v1.7"}}', False),
        (b'["schema_version", "ATIF-v1.7"]', False),
        (b"", False),
    ],
)
def test_trajectory_is_recognised_by_its_schema_version(data: bytes, expected: bool) -> None:  # noqa: FBT001
    assert atif.sniff(data) is expected


def test_atif_is_a_generation() -> None:
    assert opened(Source(OTHER)).format == "atif"
    assert "atif" in [generation.name for generation in GENERATIONS]


def test_trajectory_without_steps_and_id_is_reported() -> None:
    result = converted({"schema_version": "ATIF-v1.7", "agent": {}})
    assert result.header["sessionId"] == "t"
    assert [problem.code for problem in result.problems] == ["no-steps"]
    assert result.synthesised >= {"session_id"}


def test_bad_step_is_read_and_reported(tmp_path: Path) -> None:
    session, group = read(
        tmp_path, trajectory({"source": "user", "message": "hi"}, 7, {"source": "agent", "message": 3})
    )
    assert [message.kind for message in group.messages()] == [Kind.USER, Kind.UNKNOWN, Kind.UNKNOWN]
    assert [problem.code for problem in session.problems] == ["bad-step", "bad-step"]


def test_steps_before_the_tear_are_read(tmp_path: Path) -> None:
    data = OTHER.read_bytes()
    session, group = from_file(builders.put(tmp_path / "t.json", data[: data.index(b'"step_id": 4')]))
    assert [message.text for message in group.messages()][1:3] == ["What does this show?", "I look."]
    assert "torn-json" in [problem.code for problem in session.problems]


def test_inner_trajectories_are_reported() -> None:
    result = converted(trajectory() | {"subagent_trajectories": [trajectory()]})
    assert [problem.code for problem in result.problems] == ["inner-trajectory"]


@pytest.mark.parametrize(
    "extra", [7, {"gemini": 3}, {"pollux": {"messages": 7, "calls": [1]}}, {"pollux": {"messages": [3]}}]
)
def test_foreign_extra_fields_are_ignored(tmp_path: Path, extra: object) -> None:
    document = trajectory({"source": "user", "message": "hi", "extra": {"mine": 1}}) | {"extra": extra}
    assert [message.text for message in read(tmp_path, document)[1].messages()] == ["hi"]


@given(st.dictionaries(st.sampled_from([*atif._Step.__struct_fields__]), builders.values), builders.values)
def test_step_with_arbitrary_values_is_read(step: dict[str, Any], extra: object) -> None:
    ours = {"gemini": step, "pollux": {"messages": [{"source": "user", **step}], "calls": [step], "fate": "rewound"}}
    document = trajectory({"source": "agent", **step}, step, extra, {"source": "user", "extra": ours}) | {"extra": ours}
    result = opened(Source(Path("t.json"), data=json.dumps(document).encode()))
    assert result.format == "atif"
    assert len([*result.operations]) >= 3


@given(st.integers(0, OTHER.stat().st_size))
def test_file_cut_at_any_byte_raises_nothing(end: int) -> None:
    data = OTHER.read_bytes()[:end]
    if atif.sniff(data):
        atif.convert(data, name="t.json", modified=NOW)


def test_incomplete_metrics_give_no_tokens(tmp_path: Path) -> None:
    step = {"source": "agent", "message": "x", "metrics": {"prompt_tokens": 7}}
    (message,) = read(tmp_path, trajectory(step))[1].messages()
    assert message.tokens is None


def test_result_may_be_a_picture(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"media_type": "image/png", "path": "1.png"}}
    result = {"source_call_id": "c1", "content": [picture, {"type": "text", "text": "a picture"}]}
    call = {"tool_call_id": "c1", "function_name": "look", "arguments": {}}
    step = {"source": "agent", "message": "", "tool_calls": [call], "observation": {"results": [result]}}
    (message,) = read(tmp_path, trajectory(step))[1].messages()
    (tool_call,) = message.tool_calls
    assert (tool_call.output, tool_call.attachments) == ("a picture", (Attachment("image/png", uri="1.png"),))
