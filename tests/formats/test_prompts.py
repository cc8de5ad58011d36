"""Logged prompts: several sessions in one file, and what is left of a broken one."""

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
    known = {"sessionId": "a", "messageId": 0, "type": "user", "message": "hi", "timestamp": "2026-11-15T19:19:16.445Z"}
    return {**known, **fields}


def read(document: object) -> Prompts:
    return prompts.read(document if isinstance(document, bytes) else json.dumps(document, indent=2).encode())


def codes(found: Prompts) -> list[str]:
    return [problem.code for problem in found.problems]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_sample(path: Path) -> None:
    data = path.read_bytes()
    assert prompts.sniff(data)
    read = prompts.read(data)
    found = msgspec.json.format(msgspec.json.encode(read, order="deterministic"))
    expected = path.with_name(f"{path.name}.expected.json")
    if "POLLUX_REWRITE" in os.environ:
        expected.write_bytes(found + b"\n")
    assert json.loads(found) == json.loads(expected.read_bytes())


def test_corpus(corpus: Path) -> None:
    paths = [*corpus.glob("*/*/gemini/tmp/*/logs.json")]
    assert len(paths) > 100
    for path in paths:
        data = path.read_bytes()
        assert prompts.sniff(data), path
        found = prompts.read(data)
        assert len(found.prompts) == len(json.loads(data)), path
        assert not found.problems, path


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
def test_sniff(head: bytes) -> None:
    assert prompts.sniff(head)


@pytest.mark.parametrize(
    "head", [b"", b"{}", b'{"sessionId": "a", "messageId": 0}', b"[1]", b'[{"role": "user", "parts": []}]', b"[["]
)
def test_sniff_refuses(head: bytes) -> None:
    assert not prompts.sniff(head)


def test_prompt() -> None:
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
def test_odd_entries(fields: dict[str, object], expected: LoggedPrompt | None, problem: str | None) -> None:
    found = read([entry(**fields), entry(messageId=1)])
    assert found.prompts == (*filter(None, [expected]), LoggedPrompt("a", 1, AT, "hi"))
    assert [one.message for one in found.problems] == [*filter(None, [problem])]


@pytest.mark.parametrize("bad", [None, 1, "text", []])
def test_entries_that_are_no_objects(bad: object) -> None:
    found = read([bad, entry()])
    assert len(found.prompts) == 1
    assert codes(found) == ["bad-entry"]


@pytest.mark.parametrize("document", [{}, 1, None])
def test_no_list(document: object) -> None:
    assert codes(read(document)) == ["no-prompts"]


def test_times_of_other_zones_become_utc() -> None:
    at = AT.astimezone(timezone(timedelta(hours=-5)))
    assert read([entry(timestamp=at.isoformat())]).prompts[0].at == AT


def test_entries_behind_the_break() -> None:
    good, late = json.dumps(entry()), json.dumps(entry(message='{"sessionId": "b"}', messageId=7))
    found = read(f'[\n{good},\n{good[:40]}\n]ge": "x"}},\n{late}\n]'.encode())
    assert [prompt.message_id for prompt in found.prompts] == [0, 7]
    assert codes(found) == ["torn-json"]
    assert found.problems[0].line == 3


def test_hopeless_file() -> None:
    found = read(b'[{"sessionId":\n' * 2000 + json.dumps(entry()).encode())
    assert not found.prompts
    assert codes(found) == ["torn-json"]


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes(data: bytes) -> None:
    prompts.sniff(data)
    msgspec.json.encode(prompts.read(data))


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4), st.data())
def test_cut_at_any_byte(texts: list[str], data: st.DataObject) -> None:
    entries = [json.dumps(entry(message=text), ensure_ascii=False, indent=2).encode() for text in texts]
    whole = b"[" + b",".join(entries) + b"]"
    cut = data.draw(st.integers(0, len(whole) - 1))
    found = prompts.read(whole[:cut])
    kept = sum(1 + len(b",".join(entries[: n + 1])) <= cut for n in range(len(entries)))
    assert [prompt.text for prompt in found.prompts] == texts[:kept]
    assert found.problems
