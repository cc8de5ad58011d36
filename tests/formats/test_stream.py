"""Captured output is read: events and answers, among other lines of a shell."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollux.formats import history, prompts, stream
from pollux.formats.converted import Converted

DATA = Path(__file__).parents[1] / "data" / "stream"
SAMPLES = sorted(path for path in DATA.iterdir() if not path.name.endswith(".expected.json"))
MODIFIED = datetime(2026, 11, 15, 20, 0, tzinfo=UTC)


def event(kind: str, second: int = 0, **fields: object) -> dict[str, object]:
    return {"type": kind, "timestamp": f"2026-11-15T19:00:{second:02}.000Z", **fields}


def init(second: int = 0, session_id: str = "s", **fields: object) -> dict[str, object]:
    return event("init", second, session_id=session_id, **fields)


def message_event(text: str, second: int = 0, role: str = "assistant", **fields: object) -> dict[str, object]:
    return event("message", second, role=role, content=text, **fields)


def call_event(call: str = "c", second: int = 0, **fields: object) -> dict[str, object]:
    return event("tool_use", second, tool_name="ls", tool_id=call, **fields)


def result_event(**fields: object) -> dict[str, object]:
    return event("result", 59, status="success", **fields)


def text(*lines: object) -> bytes:
    return "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines).encode()


def convert(*lines: object) -> Converted:
    data = lines[0] if len(lines) == 1 and isinstance(lines[0], bytes) else text(*lines)
    return stream.convert(data, name="run.jsonl", modified=MODIFIED)


def turns(converted: Converted) -> list[tuple[Any, str, int]]:
    """Return kind, text and number of calls of each message."""
    result: list[tuple[Any, str, int]] = []
    for message in msgspec.convert(converted.messages, list[dict[str, Any]]):
        content = "".join(part["text"] for part in message["content"])
        result.append((message["type"], content, len(message.get("toolCalls", ()))))
    return result


def codes(converted: Converted) -> list[tuple[str, int | None]]:
    return [(problem.code, problem.line) for problem in converted.problems]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_sample_equals_its_expected_result(path: Path) -> None:
    data = path.read_bytes()
    assert stream.sniff(data)
    assert not history.sniff(data)
    assert not prompts.sniff(data)
    actual = msgspec.json.format(
        msgspec.json.encode(stream.convert(data, name=path.name, modified=MODIFIED), order="deterministic")
    )
    expected = path.with_name(f"{path.name}.expected.json")
    if "POLLUX_REWRITE" in os.environ:
        expected.write_bytes(actual + b"\n")
    assert json.loads(actual) == json.loads(expected.read_bytes())


def test_session_files_are_not_recognised_as_captures(corpus: Path) -> None:
    for path in corpus.glob("*/*/gemini/tmp/*/**/*"):
        if path.is_file():
            assert not stream.sniff(path.read_bytes()[: 64 << 10]), path


@pytest.mark.parametrize(
    "head",
    [
        text(init()),
        text("Loaded cached credentials.", {"level": "info"}, init()),
        text("YOLO mode is enabled." + json.dumps(init(), separators=(",", ":"))),
        b"\xef\xbb\xbf" + text(result_event()),
        text(init()).decode().encode("utf-16"),
        b'{"response": "cut he',
        b'{\n  "session_id": "s",\n  "error": {',
        b'noise\n{"session_id": "s", "stats": {}}',
    ],
)
def test_captures_are_recognised(head: bytes) -> None:
    assert stream.sniff(head)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b'{"error": {"code": 429}}',
        b'{"error": {}, "context": []}',
        text({"sessionId": "s", "projectHash": "h"}, {"id": "a", "type": "error", "content": ""}),
        text({"timestamp": "t", "id": "a", "type": "error", "content": "header-less"}),
        text({"type": "system", "subtype": "init", "session_id": "s"}),
        text({"type": "result", "subtype": "success"}),
        text({"type": ["message"]}),
        b'{"type":"init"',
        b'{\n  "args": [\n    {\n      "response": "indented"',
    ],
)
def test_other_files_are_not_recognised(head: bytes) -> None:
    assert not stream.sniff(head)


def test_deltas_are_joined() -> None:
    converted = convert(
        init(model="m"),
        message_event("hi", role="user"),
        message_event("1", 2, delta=True),
        message_event("3", 3, delta=True),
        result_event(),
    )
    assert turns(converted) == [("user", "hi", 0), ("gemini", "13", 0)]
    assert converted.messages[1]["timestamp"] == "2026-11-15T19:00:02.000Z"
    assert converted.messages[1]["model"] == "m"
    assert converted.messages[1]["id"] == "run#1"
    assert converted.header == {
        "sessionId": "s",
        "model": "m",
        "startTime": "2026-11-15T19:00:00.000Z",
        "lastUpdated": "2026-11-15T19:00:59.000Z",
        "status": "success",
    }
    assert converted.synthesised == {"id"}
    assert not converted.problems


def test_messages_without_delta_are_not_joined() -> None:
    assert turns(convert(message_event("a"), message_event("b"), message_event("c", delta=True), result_event()))[
        :2
    ] == [
        ("gemini", "a", 0),
        ("gemini", "bc", 0),
    ]


@pytest.mark.parametrize(
    "between",
    [message_event("u", role="user"), call_event(), event("error", severity="warning", message="w"), event("strange")],
)
def test_other_events_end_an_answer(between: object) -> None:
    converted = convert(init(), message_event("a", delta=True), between, message_event("b", delta=True), result_event())
    assert [words for kind, words, _ in turns(converted) if kind == "gemini"] == ["a", "b"]


def test_calls_of_a_turn_are_in_one_message() -> None:
    results = [event("tool_result", 5, tool_id=call, status="success") for call in "ab"]
    converted = convert(
        init(),
        message_event("I look.", delta=True),
        call_event("a", 1),
        call_event("b", 2),
        *results,
        call_event("c", 6),
        result_event(),
    )
    assert turns(converted) == [("gemini", "I look.", 2), ("gemini", "", 1)]
    calls = msgspec.convert(converted.messages[0]["toolCalls"], list[dict[str, Any]])
    assert calls[0] == {
        "id": "a",
        "name": "ls",
        "args": {},
        "status": "success",
        "timestamp": "2026-11-15T19:00:05.000Z",
    }
    assert msgspec.convert(converted.messages[1]["toolCalls"], list[dict[str, Any]])[0]["status"] == "pending"


def test_tool_results_are_joined_to_their_calls() -> None:
    failed = event("tool_result", tool_id="b", status="error", error={"type": "t", "message": "no"})
    shown = event("tool_result", tool_id="a", status="success", output="shown")
    converted = convert(
        init(), call_event("a", parameters={"path": "."}), call_event("b"), shown, failed, result_event()
    )
    first, second = msgspec.convert(converted.messages[0]["toolCalls"], list[dict[str, Any]])
    assert (first["args"], first["resultDisplay"], "result" in first) == ({"path": "."}, "shown", False)
    assert second["result"] == [{"functionResponse": {"id": "b", "name": "ls", "response": {"error": "no"}}}]
    assert (second["status"], second["error"]) == ("error", {"type": "t", "message": "no"})


def test_errors_and_stats_are_read() -> None:
    converted = convert(
        init(),
        event("error", severity="error", message="Maximum session turns exceeded"),
        event("result", status="error", error={"type": "t", "message": "Quota"}, stats={"total_tokens": 0}),
    )
    assert turns(converted) == [("error", "Maximum session turns exceeded", 0), ("error", "Quota", 0)]
    assert converted.header["stats"] == {"total_tokens": 0}
    assert converted.header["error"] == {"type": "t", "message": "Quota"}


@pytest.mark.parametrize(
    "strange",
    [
        event("thought", text="hm"),
        event("tool_result", tool_id="never asked"),
        event("message", role="system", content="a"),
        event("init"),
        {"level": "info"},
        {"type": 1},
    ],
)
def test_unknown_events_are_kept_and_reported(strange: dict[str, object]) -> None:
    converted = convert(init(), strange, result_event())
    assert converted.messages[0]["event"] == strange
    assert codes(converted) == [("unknown-event", 2)]


def test_unknown_keys_are_kept() -> None:
    converted = convert(
        init(cwd="/w"), message_event("a", role="user", mood="good"), call_event(why="w"), result_event()
    )
    assert converted.header["cwd"] == "/w"
    assert converted.messages[0]["event"] == {"mood": "good"}
    assert msgspec.convert(converted.messages[1]["toolCalls"], list[dict[str, Any]])[0]["why"] == "w"


def test_keys_with_a_meaning_in_logs_are_stored_separately() -> None:
    first = init() | {"$set": 1, "sessionId": "t"}
    converted = convert(first, message_event("a", id="x"), call_event(id="y"), result_event(messages=[], id=1))
    assert converted.header["sessionId"] == "s"
    assert converted.header["other"] == {"$set": 1, "sessionId": "t", "messages": [], "id": 1}
    assert converted.messages[0]["id"] == "run#0"
    assert converted.messages[0]["event"] == {"id": "x"}


def test_lines_that_are_not_events_are_reported() -> None:
    glued = "credentials." + json.dumps(message_event("a"), separators=(",", ":"))
    converted = convert("Loaded", init(), "Error", "   at x" + "y" * 100, "", glued, result_event())
    assert turns(converted) == [("gemini", "a", 0)]
    assert codes(converted) == [("no-event", 1), ("no-event", 3), ("no-event", 6)]
    assert converted.problems[1].message == "not an event: 'Error' and 1 more line(s)"
    assert converted.problems[2].message == "not an event: 'credentials.'"
    assert "…" in convert("y" * 100, result_event()).problems[0].message


def test_torn_line_is_reported() -> None:
    data = text(init(), message_event("a", delta=True), message_event("bcd", delta=True))
    converted = convert(data[:-10])
    assert turns(converted) == [("gemini", "a", 0)]
    assert codes(converted) == [("torn-line", 3)]
    assert codes(convert(data)) == [("torn-stream", 3)]


def test_second_session_in_one_file_is_reported() -> None:
    converted = convert(
        init(),
        result_event(stats={"n": 1}),
        init(session_id="s"),
        result_event(stats={"n": 2}),
        init(session_id="t"),
        result_event(),
    )
    assert converted.header["sessionId"] == "s"
    assert msgspec.convert(converted.header["results"], list[dict[str, Any]])[0]["stats"] == {"n": 1}
    assert converted.header["stats"] == {"n": 2}
    assert codes(converted) == [("second-session", 5)]


def test_missing_id_and_times_are_derived() -> None:
    converted = convert({"type": "message", "role": "user", "content": "a", "timestamp": "…"}, result_event())
    assert converted.header["sessionId"] == "run"
    assert converted.messages[0]["timestamp"] == "2026-11-15T20:00:00.000Z"
    assert converted.synthesised == {"id", "timestamp", "session_id"}


def test_json_answer_is_read() -> None:
    stats = {"models": {"m": {"tokens": {"total": 3}}}}
    converted = convert(json.dumps({"session_id": "s", "response": "Paris", "stats": stats}, indent=2))
    assert converted.messages == (
        {
            "id": "run#0",
            "timestamp": "2026-11-15T20:00:00.000Z",
            "type": "gemini",
            "content": [{"text": "Paris"}],
            "model": "m",
        },
    )
    assert converted.header["sessionId"] == "s"
    assert converted.header["stats"] == stats
    assert converted.synthesised == {"id", "timestamp"}
    assert not converted.problems


@pytest.mark.parametrize("stats", [None, {}, {"models": {}}, {"models": {"a": 1, "b": 2}}])
def test_answer_without_a_single_model_has_none(stats: object) -> None:
    converted = convert({"response": "Paris", "stats": stats})
    assert "model" not in converted.messages[0]
    assert converted.header["sessionId"] == "run"
    assert converted.synthesised == {"id", "timestamp", "session_id"}


def test_error_and_warnings_of_an_answer_are_messages() -> None:
    output = {"session_id": "s", "response": "", "warnings": ["old", 1], "error": {"type": "t", "message": "no"}}
    assert turns(convert(output)) == [("warning", "old", 0), ("warning", "1", 0), ("error", "no", 0)]
    assert turns(convert({"response": 1, "warnings": 2, "error": 3})) == []


def test_answer_between_other_lines_is_read() -> None:
    converted = convert("Loaded", '{"error": {"code": 429}}', '{"response": "a"}', "bye", "bye")
    assert turns(converted) == [("gemini", "a", 0)]
    assert codes(converted) == [("no-event", 1), ("no-event", 4)]


def test_error_without_an_answer_is_read() -> None:
    assert turns(convert('{"error": {"message": "no"}}', '{"error": {"message": "again"}}')) == [("error", "no", 0)]


def test_cut_answer_is_read_and_reported() -> None:
    converted = convert(b'{\n  "response": "a",\n  "stats": {\n    "mod')
    assert turns(converted) == [("gemini", "a", 0)]
    assert codes(converted) == [("torn-json", 4)]


@pytest.mark.parametrize("data", [b"", b"words", b"[]", b"{}"])
def test_file_without_output_is_reported(data: bytes) -> None:
    converted = convert(data)
    assert converted.problems[0].code == "no-output"
    assert not converted.messages


def test_search_in_a_broken_file_stops() -> None:
    assert not convert(b'{"error": 1}\n' * 2000 + b'{"response": "a"}').messages


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_converted(data: bytes) -> None:
    stream.sniff(data)
    msgspec.json.encode(convert(data))


VALUES: st.SearchStrategy[object] = st.sampled_from(
    ["user", "assistant", "a", "error", "success", "c", 1, None, {"message": "m"}, []]
)
EVENTS = st.builds(
    lambda kind, fields: {"type": kind, **fields},
    st.sampled_from([*stream._EVENTS, "strange"]),
    st.dictionaries(
        st.sampled_from(["timestamp", "session_id", "role", "content", "tool_name", "tool_id", "status", "severity"])
        | st.sampled_from(["message", "output", "error", "delta", "id", "stats"]),
        VALUES,
    ),
)


@given(st.lists(EVENTS, max_size=6), st.data())
def test_any_events_cut_at_any_byte_are_converted(events: list[object], data: st.DataObject) -> None:
    output = text(init(), *events)
    cut = data.draw(st.integers(0, len(output)))
    converted = convert(output[:cut])
    assert len({message["id"] for message in converted.messages}) == len(converted.messages)
    msgspec.json.encode(converted)
