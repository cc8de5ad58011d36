from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.builders import (
    PREAMBLE,
    SESSION,
    answers,
    asks,
    call,
    checkpoint,
    codes,
    document,
    gemini,
    header,
    instant_of,
    line,
    log,
    preamble,
    put,
    read_bytes,
    texts,
    updates,
    user,
)

from pollux.formats.operations import Record
from pollux.formats.source import Span
from pollux.model import Fate, Kind, Origin, Text
from pollux.sessions.replay.reading import build_message, call_arguments, read, state
from pollux.sessions.replay.replay import TimelineEntry


def test_a_file(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, log(header(), user(), gemini()))
    assert (found.format, found.id, found.path.parent) == ("log", SESSION, tmp_path)
    assert texts(found) == ["hello", "hi"]
    assert not found.replay.problems


def test_a_missing_file_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (log(header()), SESSION),
        (log(updates(sessionId="s")), "s"),
        (log(b"x" + line(header("torn"))), "torn"),
        (log(user()), None),
        (log(header(sessionId="")), None),
        (log(updates(sessionId=7)), None),
        (document(user()), SESSION),
    ],
)
def test_the_id_that_a_file_gives_itself(tmp_path: Path, data: bytes, expected: str | None) -> None:
    assert read_bytes(tmp_path, data).id == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (log(user()), ["no-header"]),
        (log(updates(kind="main")), ["no-session"]),
        (b'{\n  "messages": []\n}', ["no-session-id"]),
        (log(user())[:-5], ["torn-line"]),
        (b"", ["empty-file"]),
        (b'[{"sessionId":"s","messageId":0}]', ["no-session"]),
    ],
)
def test_a_file_that_the_client_refuses_says_why(tmp_path: Path, data: bytes, expected: list[str]) -> None:
    found = read_bytes(tmp_path, data)
    assert codes(found) == expected
    assert {problem.file for problem in found.replay.problems} == {str(found.path)}
    assert not found.replay.is_readable


def test_message_is_built_from_its_recordings(tmp_path: Path) -> None:
    first = gemini("g1", "two", thoughts=[{"subject": "S", "description": "D"}])
    rewritten = first | {"content": [asks()], "toolCalls": [call()], "odd": 1}
    found = read_bytes(tmp_path, log(header(), preamble(), first, checkpoint(preamble(), rewritten)))
    message = build_message(found, found.replay.timeline[-1])
    assert (message.id, message.kind, message.origin, message.fate) == ("g1", Kind.GEMINI, Origin.MODEL, Fate.ACTIVE)
    assert (message.text, message.thoughts[0].subject, message.tool_calls[0].id) == ("two", "S", "c1")
    assert (message.file, message.line, message.at) == (str(found.path), 3, instant_of(2))
    assert message.extra == {}


def test_the_state_as_it_stands_in_the_file(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, log(header(), user(), gemini(), user("u1", "again")))
    assert [*state(found)] == [line(user("u1", "again")), line(gemini())]


def test_a_file_that_shrinks_meanwhile(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, log(header(), user(), gemini()))
    os.truncate(found.path, 10)
    assert [(message.id, message.text) for message in (build_message(found, one) for one in found.replay.timeline)] == [
        ("u1", ""),
        ("g1", ""),
    ]
    assert [build_message(found, one).kind for one in found.replay.timeline] == ["user", "gemini"]


def test_other_bytes_under_our_hands(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, log(header(), user()))
    put(found.path, b"[" + b"1," * 500 + b"1]")
    assert build_message(found, found.replay.timeline[0]).text == ""
    record = Record("u1", "user", None, None, None, (), False, Origin.HUMAN, "", Span(0, 1003), 1)  # noqa: FBT003
    assert build_message(found, TimelineEntry("u1", "user", None, 1, Origin.HUMAN, "", record)).parts == ()


def test_the_arguments_alone(tmp_path: Path) -> None:
    calls = [call("c1"), call("c2", args={"path": "/a"}), {"id": "c3", "name": "ls"}]
    found = read_bytes(tmp_path, log(header(), user(), gemini("g1", "", toolCalls=calls)))
    asked, called = found.replay.timeline
    assert call_arguments(found, asked) == []
    assert call_arguments(found, called) == [{"file_path": "a.txt"}, {"path": "/a"}, None]


def test_the_arguments_where_the_fast_decoder_refuses(tmp_path: Path) -> None:
    surrogate = gemini("g1", "", toolCalls=[call(args={"a": "\ud83d"}), 7])
    found = read_bytes(tmp_path, log(header(), surrogate))
    assert call_arguments(found, found.replay.timeline[0]) == [{"a": "\ud83d"}]
    broken = line(gemini("g1", "", toolCalls=[call(args={"a": "~"})])).replace(b"~", b"\xff")
    found = read_bytes(tmp_path, log(header(), broken))
    assert call_arguments(found, found.replay.timeline[0]) == [{"a": "\ufffd"}]


def test_calls_that_only_a_history_holds(tmp_path: Path) -> None:
    bare = {"id": "m1", "type": "gemini", "content": [{"text": "a"}, *(asks(one) for one in ("c1", "c2", "c3"))]}
    failed = {"functionResponse": {"id": "c2", "name": "read_file", "response": {"error": "no"}}}
    found = read_bytes(tmp_path, log(header(), checkpoint(preamble(), bare, user("m2", [answers("c1"), failed]))))
    calls = build_message(found, found.replay.timeline[1]).tool_calls
    assert [(one.id, one.status, one.output, one.error) for one in calls] == [
        ("c1", "success", "text of the file", None),
        ("c2", "error", None, "no"),
        ("c3", "pending", None, None),
    ]


def test_a_document_and_the_log_that_a_resume_makes_of_it(tmp_path: Path) -> None:
    turns = [
        user("u1", [{"text": "one"}]),
        gemini("g1", "two", toolCalls=[call()], thoughts=[{"description": "D"}]),
        gemini("g2", "three"),
    ]
    resumed = [
        preamble(),
        turns[0],
        turns[1] | {"content": [{"text": "D", "thought": True}, {"text": "two"}, asks()]},
        user("g1_response", [answers()]),
        turns[2] | {"content": [{"text": "three"}]},
    ]
    before = read_bytes(tmp_path, document(*turns), "a.json")
    for records in (turns, [*turns, updates(sessionId=SESSION), checkpoint(*resumed)]):
        after = read_bytes(tmp_path, log(header(), *records), "a.jsonl")
        said = [one for one in after.replay.timeline if one.id != PREAMBLE and one.origin != Origin.TOOL_RESPONSE]
        assert [build_message(after, one).text for one in said] == texts(before)
        assert [build_message(after, one).tool_calls for one in said] == [
            build_message(before, one).tool_calls for one in before.replay.timeline
        ]
        assert {one.fate for one in said} == {Fate.ACTIVE}


def test_reading_twice_gives_equal_values(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", log(header(), preamble(), user(), gemini("g1", [{"text": "hi"}, asks()])))
    one, two = read(path), read(path)
    assert [build_message(one, entry) for entry in one.replay.timeline] == [
        build_message(two, entry) for entry in two.replay.timeline
    ]
    assert one.replay.metadata == two.replay.metadata
    assert build_message(one, one.replay.timeline[-1]).parts[0] == Text("hi")
