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


def test_each_generation_is_either_read_or_converted() -> None:
    for generation in GENERATIONS:
        assert generation.name
        assert (generation.read is None) or (generation.convert is None)
        assert not generation.sniff(b"")


def test_empty_file_is_a_problem(tmp_path: Path) -> None:
    with Source(put(tmp_path / "a.json", b"")) as source:
        (problem,) = opened(source).operations
    assert isinstance(problem, Problem)
    assert (problem.code, problem.file, problem.line) == ("empty-file", str(tmp_path / "a.json"), 1)


def test_file_of_logged_prompts_is_not_a_session(tmp_path: Path) -> None:
    with Source(put(tmp_path / "logs.json", PROMPTS.encode())) as source:
        (problem,) = opened(source).operations
    assert isinstance(problem, Problem)
    assert (problem.code, problem.file) == ("no-session", str(tmp_path / "logs.json"))


def test_history_is_converted_to_a_log(tmp_path: Path) -> None:
    result = opened(Source(put(tmp_path / "checkpoint-a.json", HISTORY.encode())))
    head, *puts = result.operations
    assert isinstance(head, Header)
    assert head.fields["projectHash"] == ""
    texts = [result.source.slice(operation.record.span) for operation in puts if isinstance(operation, Put)]
    assert [b"hello" in texts[0], b"hi" in texts[1]] == [True, True]


def test_problems_of_a_converted_file_name_its_path(tmp_path: Path) -> None:
    path = put(tmp_path / "checkpoint-a.json", HISTORY[:-5].encode())
    problems = [operation for operation in opened(Source(path)).operations if isinstance(operation, Problem)]
    assert problems
    assert {problem.file for problem in problems} == {str(path)}
