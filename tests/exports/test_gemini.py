from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import (
    Wire,
    at,
    checkpoint,
    document,
    gemini,
    header,
    line,
    log,
    notice,
    preamble,
    put,
    read_bytes,
    rewind,
    tokens,
    updates,
    user,
    values,
)

from pollux.exports.gemini import render_state
from pollux.sessions.replay.reading import read


def exported(folder: Path, data: bytes) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(b"".join(render_state(read_bytes(folder, data))))
    return result


def test_state_of_a_log_is_written_with_counts(tmp_path: Path) -> None:
    prompt, answer = user(), gemini(tokens=tokens())
    result = exported(
        tmp_path, log(header(), prompt, answer, user("u2", "gone"), rewind("u2"), updates(lastUpdated=at(9)))
    )
    assert result == header(lastUpdated=at(9)) | {
        "messages": [prompt, answer],
        "messageCount": 2,
        "userMessageCount": 1,
        "firstUserMessage": "hello",
        "hasResumableContent": True,
    }
    assert [*result][:5] == ["sessionId", "projectHash", "startTime", "lastUpdated", "kind"]


def test_state_is_formatted_as_the_client_does(tmp_path: Path) -> None:
    text = b"".join(render_state(read_bytes(tmp_path, log(header(), user(content=[{"text": "ä"}]))))).decode()
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"


def test_document_keeps_all_its_keys(tmp_path: Path) -> None:
    result = exported(tmp_path, document(user(), 7, odd={"a": [1]}, userMessageCount=99, hasResumableContent=False))
    assert result["odd"] == {"a": [1]}
    assert result["messages"] == [user(), 7]
    assert (result["userMessageCount"], result["hasResumableContent"]) == (1, True)
    assert "messageCount" not in result


def test_unknown_metadata_of_a_log_is_left_out(tmp_path: Path) -> None:
    assert "odd" not in exported(tmp_path, log(header(odd=1), user()))


def test_empty_session_is_written(tmp_path: Path) -> None:
    result = exported(tmp_path, log(header()))
    assert result == header() | {"messages": [], "messageCount": 0, "userMessageCount": 0, "hasResumableContent": False}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ((user(),), True),
        ((preamble(),), False),
        ((user(content="/help"), notice()), False),
        ((gemini(content=""),), False),
        ((gemini(),), True),
        ((user(), rewind("u1")), False),
    ],
)
def test_session_is_resumable_only_with_content(tmp_path: Path, records: tuple[Wire, ...], *, expected: bool) -> None:
    assert exported(tmp_path, log(header(), *records))["hasResumableContent"] is expected


def test_scratchpad_is_marked_stale_after_later_messages(tmp_path: Path) -> None:
    pad = {"version": 1}
    fresh = exported(tmp_path, log(header(), user(), updates(memoryScratchpad=pad)))
    assert (fresh["memoryScratchpad"], fresh["memoryScratchpadIsStale"]) == (pad, False)
    assert exported(tmp_path, log(header(), updates(memoryScratchpad=pad), user()))["memoryScratchpadIsStale"] is True
    assert "memoryScratchpadIsStale" not in exported(tmp_path, log(header(), user()))


def test_missing_times_are_those_of_the_first_message(tmp_path: Path) -> None:
    bare = {"sessionId": "s", "projectHash": "h"}
    result = exported(tmp_path, log(bare, user(second=5)))
    assert result["startTime"] == result["lastUpdated"] == at(5)
    path = put(tmp_path / "a.jsonl", log(bare))
    os.utime(path, (0, 1_794_771_000))
    assert json.loads(b"".join(render_state(read(path))))["startTime"] == "2026-11-15T19:30:00.000Z"


def test_file_without_a_header_gives_its_known_fields(tmp_path: Path) -> None:
    result = exported(tmp_path, log(b"x" + line(header()), user()))
    assert result["sessionId"] == header()["sessionId"]
    assert result["messages"] == [user()]


def test_invalid_text_is_written_as_the_client_does(tmp_path: Path) -> None:
    data = log(header(summary="\ud83d"), line(user(content="a~")).replace(b"~", b"\xff"), gemini(content="\ud83d"))
    text = b"".join(render_state(read_bytes(tmp_path, data))).decode()
    assert '"a\ufffd"' in text
    assert text.count("\\ud83d") >= 1


def test_infinite_numbers_are_written_as_null(tmp_path: Path) -> None:
    odd = document(user(), odd=77).replace(b"77", b"1e999")
    assert exported(tmp_path, odd)["odd"] is None


def test_checkpoint_replaces_earlier_messages(tmp_path: Path) -> None:
    result = exported(tmp_path, log(header(), user(), checkpoint(preamble(), gemini())))
    assert [message["id"] for message in result["messages"]] == [preamble()["id"], "g1"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.dictionaries(st.sampled_from(["type", "content", "toolCalls", "thoughts", "odd"]), values), max_size=3)
)
def test_messages_are_written_unchanged(tmp_path: Path, bodies: list[dict[str, Any]]) -> None:
    messages = [{"id": f"m{index}", **body} for index, body in enumerate(bodies)]
    assert exported(tmp_path, log(header(), *messages))["messages"] == messages
    assert exported(tmp_path, document(*messages))["messages"] == messages


def test_written_state_is_read_as_the_same_messages(tmp_path: Path) -> None:
    data = log(header(summary="s"), preamble(), user(), gemini(tokens=tokens()))
    first = b"".join(render_state(read_bytes(tmp_path, data)))
    again = read_bytes(tmp_path, first)
    assert again.format == "document"
    assert [entry.id for entry in again.replay.timeline] == [preamble()["id"], "u1", "g1"]
    assert json.loads(b"".join(render_state(again)))["messages"] == json.loads(first)["messages"]
