from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.builders import SESSION, at, document, header, line, log, put, user

from pollux.formats import GENERATIONS, opened
from pollux.formats.operations import Header, Put
from pollux.formats.source import Source
from pollux.model import Problem

HISTORY = json.dumps([{"role": "user", "parts": [{"text": "hello"}]}, {"role": "model", "parts": [{"text": "hi"}]}])
STREAM = log(
    {"type": "init", "timestamp": at(0), "session_id": SESSION, "model": "m"},
    {"type": "message", "timestamp": at(1), "role": "user", "content": "hello"},
)
PROMPTS = json.dumps([{"sessionId": SESSION, "messageId": 0, "type": "user", "message": "hello", "timestamp": at(0)}])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (document(user()), "document"),
        (b"\0" + document(user())[1:], "document"),
        (b'{\n  "odd": 1,\n  "messages": []\n}', "document"),
        (log(header(), user()), "log"),
        (line(user()), "log"),
        (b"garbage", "log"),
        (b'{"messages":[],"sessionId":"s"}', "document"),
        (b'{"messages":[]}', "log"),
        (b'{"messages":[', "log"),
        (b'{"messages":[\n],"sessionId":"s"}', "document"),
        (HISTORY.encode(), "history"),
        (STREAM, "stream"),
        (PROMPTS.encode(), "prompts"),
        (b"", "unreadable"),
        (b" \n\r\n", "unreadable"),
    ],
)
def test_generation_is_determined_by_content(tmp_path: Path, data: bytes, expected: str) -> None:
    for name in ("a.json", "a.jsonl"):
        with Source(put(tmp_path / name, data)) as source:
            assert opened(source).format == expected


def test_every_generation_can_be_read() -> None:
    for one in GENERATIONS:
        assert one.name
        assert (one.read is None) or (one.convert is None)
        assert not one.sniff(b"")


def test_an_empty_file_is_reported(tmp_path: Path) -> None:
    with Source(put(tmp_path / "a.json", b"")) as source:
        (problem,) = opened(source).operations
    assert isinstance(problem, Problem)
    assert (problem.code, problem.file, problem.line) == ("empty-file", str(tmp_path / "a.json"), 1)


def test_logged_prompts_are_no_session(tmp_path: Path) -> None:
    with Source(put(tmp_path / "logs.json", PROMPTS.encode())) as source:
        (problem,) = opened(source).operations
    assert isinstance(problem, Problem)
    assert (problem.code, problem.file) == ("no-session", str(tmp_path / "logs.json"))


def test_another_shape_is_written_anew_as_a_log(tmp_path: Path) -> None:
    found = opened(Source(put(tmp_path / "checkpoint-a.json", HISTORY.encode())))
    head, *puts = found.operations
    assert isinstance(head, Header)
    assert head.fields["projectHash"] == ""
    texts = [found.source.slice(one.record.span) for one in puts if isinstance(one, Put)]
    assert [b"hello" in texts[0], b"hi" in texts[1]] == [True, True]


def test_the_problems_of_another_shape_name_the_file(tmp_path: Path) -> None:
    path = put(tmp_path / "checkpoint-a.json", HISTORY[:-5].encode())
    problems = [one for one in opened(Source(path)).operations if isinstance(one, Problem)]
    assert problems
    assert {problem.file for problem in problems} == {str(path)}
