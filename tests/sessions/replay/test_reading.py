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


def test_reading_of_a_log_has_format_id_and_messages(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, log(header(), user(), gemini()))
    assert (reading.format, reading.id, reading.path.parent) == ("log", SESSION, tmp_path)
    assert texts(reading) == ["hello", "hi"]
    assert not reading.replay.problems


def test_missing_file_raises(tmp_path: Path) -> None:
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
def test_id_is_taken_from_the_last_complete_header(tmp_path: Path, data: bytes, expected: str | None) -> None:
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
def test_each_unreadable_file_reports_one_problem(tmp_path: Path, data: bytes, expected: list[str]) -> None:
    reading = read_bytes(tmp_path, data)
    assert codes(reading) == expected
    assert {problem.file for problem in reading.replay.problems} == {str(reading.path)}
    assert not reading.replay.is_readable


def test_message_is_built_from_its_recordings(tmp_path: Path) -> None:
    first = gemini("g1", "two", thoughts=[{"subject": "S", "description": "D"}])
    rewritten = first | {"content": [asks()], "toolCalls": [call()], "odd": 1}
    reading = read_bytes(tmp_path, log(header(), preamble(), first, checkpoint(preamble(), rewritten)))
    message = build_message(reading, reading.replay.timeline[-1])
    assert (message.id, message.kind, message.origin, message.fate) == ("g1", Kind.GEMINI, Origin.MODEL, Fate.ACTIVE)
    assert (message.text, message.thoughts[0].subject, message.tool_calls[0].id) == ("two", "S", "c1")
    assert (message.file, message.line, message.at) == (str(reading.path), 3, instant_of(2))
    assert message.extra == {}


def test_state_yields_the_last_line_of_each_message(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, log(header(), user(), gemini(), user("u1", "again")))
    assert [*state(reading)] == [line(user("u1", "again")), line(gemini())]


def test_messages_of_a_truncated_file_are_empty(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, log(header(), user(), gemini()))
    os.truncate(reading.path, 10)
    assert [
        (message.id, message.text) for message in (build_message(reading, entry) for entry in reading.replay.timeline)
    ] == [
        ("u1", ""),
        ("g1", ""),
    ]
    assert [build_message(reading, entry).kind for entry in reading.replay.timeline] == ["user", "gemini"]


def test_messages_of_a_replaced_file_are_empty(tmp_path: Path) -> None:
    reading = read_bytes(tmp_path, log(header(), user()))
    put(reading.path, b"[" + b"1," * 500 + b"1]")
    assert build_message(reading, reading.replay.timeline[0]).text == ""
    record = Record("u1", "user", None, None, None, (), False, Origin.HUMAN, "", Span(0, 1003), 1)  # noqa: FBT003
    assert build_message(reading, TimelineEntry("u1", "user", None, 1, Origin.HUMAN, "", record)).parts == ()


def test_call_arguments_are_read_without_building_messages(tmp_path: Path) -> None:
    calls = [call("c1"), call("c2", args={"path": "/a"}), {"id": "c3", "name": "ls"}]
    reading = read_bytes(tmp_path, log(header(), user(), gemini("g1", "", toolCalls=calls)))
    asked, called = reading.replay.timeline
    assert call_arguments(reading, asked) == []
    assert call_arguments(reading, called) == [{"file_path": "a.txt"}, {"path": "/a"}, None]


def test_call_arguments_with_invalid_text_are_read_by_the_slow_decoder(tmp_path: Path) -> None:
    surrogate = gemini("g1", "", toolCalls=[call(args={"a": "\ud83d"}), 7])
    reading = read_bytes(tmp_path, log(header(), surrogate))
    assert call_arguments(reading, reading.replay.timeline[0]) == [{"a": "\ud83d"}]
    broken = line(gemini("g1", "", toolCalls=[call(args={"a": "~"})])).replace(b"~", b"\xff")
    reading = read_bytes(tmp_path, log(header(), broken))
    assert call_arguments(reading, reading.replay.timeline[0]) == [{"a": "\ufffd"}]


def test_calls_are_built_from_a_history_without_records(tmp_path: Path) -> None:
    bare = {"id": "m1", "type": "gemini", "content": [{"text": "a"}, *(asks(id_) for id_ in ("c1", "c2", "c3"))]}
    failed = {"functionResponse": {"id": "c2", "name": "read_file", "response": {"error": "no"}}}
    reading = read_bytes(tmp_path, log(header(), checkpoint(preamble(), bare, user("m2", [answers("c1"), failed]))))
    calls = build_message(reading, reading.replay.timeline[1]).tool_calls
    assert [(id_.id, id_.status, id_.output, id_.error) for id_ in calls] == [
        ("c1", "success", "text of the file", None),
        ("c2", "error", None, "no"),
        ("c3", "pending", None, None),
    ]


def test_document_and_its_resumed_log_have_the_same_messages(tmp_path: Path) -> None:
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
        entries = [
            entry for entry in after.replay.timeline if entry.id != PREAMBLE and entry.origin != Origin.TOOL_RESPONSE
        ]
        assert [build_message(after, entry).text for entry in entries] == texts(before)
        assert [build_message(after, entry).tool_calls for entry in entries] == [
            build_message(before, entry).tool_calls for entry in before.replay.timeline
        ]
        assert {entry.fate for entry in entries} == {Fate.ACTIVE}


def test_reading_twice_gives_equal_values(tmp_path: Path) -> None:
    path = put(tmp_path / "a.jsonl", log(header(), preamble(), user(), gemini("g1", [{"text": "hi"}, asks()])))
    first, second = read(path), read(path)
    assert [build_message(first, entry) for entry in first.replay.timeline] == [
        build_message(second, entry) for entry in second.replay.timeline
    ]
    assert first.replay.metadata == second.replay.metadata
    assert build_message(first, first.replay.timeline[-1]).parts[0] == Text("hi")
