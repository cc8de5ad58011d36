"""Logged prompts are read: several sessions in one file, and the complete entries of a broken file."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.formats import prompts
from pollux.formats.prompts import LoggedPrompt, Prompts

DATA = Path(__file__).parents[1] / "data" / "prompts"
SAMPLES = sorted(path for path in DATA.glob("*.json*") if not path.name.endswith(".expected.json"))
AT = datetime(2026, 11, 15, 19, 19, 16, 445000, tzinfo=UTC)


def entry(**fields: object) -> dict[str, object]:
    default = {
        "sessionId": "a",
        "messageId": 0,
        "type": "user",
        "message": "hi",
        "timestamp": "2026-11-15T19:19:16.445Z",
    }
    return {**default, **fields}


def read(document: object) -> Prompts:
    return prompts.read(document if isinstance(document, bytes) else json.dumps(document, indent=2).encode())


def codes(result: Prompts) -> list[str]:
    return [problem.code for problem in result.problems]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_sample_equals_its_expected_result(path: Path) -> None:
    data = path.read_bytes()
    assert prompts.sniff(data)
    read = prompts.read(data)
    actual = msgspec.json.format(msgspec.json.encode(read, order="deterministic"))
    expected = path.with_name(f"{path.name}.expected.json")
    if "POLLUX_REWRITE" in os.environ:
        expected.write_bytes(actual + b"\n")
    assert json.loads(actual) == json.loads(expected.read_bytes())


def test_all_prompts_of_the_corpus_are_read(corpus: Path) -> None:
    paths = [*corpus.glob("*/*/gemini/tmp/*/logs.json")]
    assert len(paths) > 100
    for path in paths:
        data = path.read_bytes()
        assert prompts.sniff(data), path
        result = prompts.read(data)
        assert len(result.prompts) == len(json.loads(data)), path
        assert not result.problems, path


@pytest.mark.parametrize(
    "head",
    [
        b'[{"a": {"b": 1}, "sessionId": "a", "messageId": 0',
        b"[]",
        b"\xef\xbb\xbf [\n",
        b'[{"sessionId": "a", "messageId": 0',
        b'[\n  {"messageId": 0, "sessionId": "a"}]',
    ],
)
def test_logged_prompts_are_recognised(head: bytes) -> None:
    assert prompts.sniff(head)


@pytest.mark.parametrize(
    "head", [b"", b"{}", b'{"sessionId": "a", "messageId": 0}', b"[1]", b'[{"role": "user", "parts": []}]', b"[["]
)
def test_other_files_are_not_recognised(head: bytes) -> None:
    assert not prompts.sniff(head)


def test_entry_is_read_as_a_prompt() -> None:
    assert read([entry()]) == Prompts((LoggedPrompt("a", 0, AT, "hi"),))


@pytest.mark.parametrize(
    ("fields", "expected", "problem"),
    [
        ({"sessionId": None}, LoggedPrompt("unknown", 0, AT, "hi"), "entry 0: no session ID"),
        ({"sessionId": ""}, LoggedPrompt("unknown", 0, AT, "hi"), "entry 0: no session ID"),
        ({"messageId": "x"}, LoggedPrompt("a", None, AT, "hi"), None),
        ({"messageId": True}, LoggedPrompt("a", None, AT, "hi"), None),
        ({"timestamp": "yesterday"}, LoggedPrompt("a", 0, None, "hi"), "entry 0: no time"),
        ({"timestamp": 5}, LoggedPrompt("a", 0, None, "hi"), "entry 0: no time"),
        ({"timestamp": "0001-01-01T00:00:00+14:00"}, LoggedPrompt("a", 0, None, "hi"), "entry 0: no time"),
        ({"timestamp": "2026-11-15T19:19:16.445"}, LoggedPrompt("a", 0, AT, "hi"), None),
        ({"timestamp": "2026-11-15T20:19:16.445+01:00"}, LoggedPrompt("a", 0, AT, "hi"), None),
        ({"type": "info"}, LoggedPrompt("a", 0, AT, "hi", "info"), None),
        ({"type": None}, LoggedPrompt("a", 0, AT, "hi", "unknown"), None),
        ({"more": [1]}, LoggedPrompt("a", 0, AT, "hi", extra={"more": [1]}), None),
        ({"message": 1}, None, "entry 0: no message"),
    ],
)
def test_odd_entries_are_read_and_reported(
    fields: dict[str, object], expected: LoggedPrompt | None, problem: str | None
) -> None:
    result = read([entry(**fields), entry(messageId=1)])
    assert result.prompts == (*filter(None, [expected]), LoggedPrompt("a", 1, AT, "hi"))
    assert [each.message for each in result.problems] == [*filter(None, [problem])]


@pytest.mark.parametrize("bad", [None, 1, "text", []])
def test_entries_that_are_not_objects_are_reported(bad: object) -> None:
    result = read([bad, entry()])
    assert len(result.prompts) == 1
    assert codes(result) == ["bad-entry"]


@pytest.mark.parametrize("document", [{}, 1, None])
def test_document_that_is_not_a_list_is_reported(document: object) -> None:
    assert codes(read(document)) == ["no-prompts"]


def test_times_of_other_zones_are_converted_to_utc() -> None:
    at = AT.astimezone(timezone(timedelta(hours=-5)))
    assert read([entry(timestamp=at.isoformat())]).prompts[0].at == AT


def test_entries_after_a_broken_one_are_read() -> None:
    good, late = json.dumps(entry()), json.dumps(entry(message='{"sessionId": "b"}', messageId=7))
    result = read(f'[\n{good},\n{good[:40]}\n]ge": "x"}},\n{late}\n]'.encode())
    assert [prompt.message_id for prompt in result.prompts] == [0, 7]
    assert codes(result) == ["torn-json"]
    assert result.problems[0].line == 3


def test_search_in_a_broken_file_stops() -> None:
    result = read(b'[{"sessionId":\n' * 2000 + json.dumps(entry()).encode())
    assert not result.prompts
    assert codes(result) == ["torn-json"]


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read(data: bytes) -> None:
    prompts.sniff(data)
    msgspec.json.encode(prompts.read(data))


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4), st.data())
def test_file_cut_at_any_byte_keeps_complete_entries(texts: list[str], data: st.DataObject) -> None:
    entries = [json.dumps(entry(message=text), ensure_ascii=False, indent=2).encode() for text in texts]
    document = b"[" + b",".join(entries) + b"]"
    cut = data.draw(st.integers(0, len(document) - 1))
    result = prompts.read(document[:cut])
    kept = sum(1 + len(b",".join(entries[: n + 1])) <= cut for n in range(len(entries)))
    assert [prompt.text for prompt in result.prompts] == texts[:kept]
    assert result.problems
