"""Saved histories are read: checkpoints, shared files, restore points and requests of failed calls."""

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

from pollux.formats import history
from pollux.formats.converted import Converted

DATA = Path(__file__).parents[1] / "data" / "history"
SAMPLES = sorted(path for path in DATA.glob("*.json") if not path.name.endswith(".expected.json"))
NAME = "session-2025-09-18T02-45-3b44bc68.json"
MODIFIED = datetime(2026, 11, 15, 19, 0, tzinfo=UTC)


def convert(document: object, *, name: str = NAME, modified: datetime = MODIFIED) -> Converted:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return history.convert(data, name=name, modified=modified)


def user(*parts: object) -> dict[str, object]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: object) -> dict[str, object]:
    return user(*parts) | {"role": "model"}


def call(name: str = "read_file", **fields: object) -> dict[str, object]:
    return {"functionCall": {"name": name, "args": {"path": "a"}, **fields}}


def response(response: object, name: str = "read_file", **fields: object) -> dict[str, object]:
    return {"functionResponse": {"name": name, "response": response, **fields}}


def records(converted: Converted) -> list[dict[str, Any]]:
    return [record for message in converted.messages for record in _list(message.get("toolCalls", []))]


def codes(converted: Converted) -> list[str]:
    return [problem.code for problem in converted.problems]


def _list(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401  as decoded
    assert isinstance(value, list)
    return value


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_sample_equals_its_expected_result(path: Path) -> None:
    data = path.read_bytes()
    assert history.sniff(data)
    actual = msgspec.json.format(
        msgspec.json.encode(history.convert(data, name=path.name, modified=MODIFIED), order="deterministic")
    )
    expected = path.with_suffix(".expected.json")
    if "POLLUX_REWRITE" in os.environ:
        expected.write_bytes(actual + b"\n")
    assert json.loads(actual) == json.loads(expected.read_bytes())


def test_histories_of_the_corpus_are_read_without_problems(corpus: Path) -> None:
    paths = [*corpus.glob("*/*/gemini/tmp/*/checkpoint-*.json"), *corpus.glob("*/*/gemini/tmp/*/checkpoints/*.json")]
    paths += corpus.glob("*/*/project-files/shared.json")
    assert len(paths) > 50
    for path in paths:
        data = path.read_bytes()
        assert history.sniff(data[: 64 << 10]), path
        converted = history.convert(data, name=path.name, modified=MODIFIED)
        assert converted.messages, path
        assert not converted.problems, path
        assert all("id" in record for record in records(converted) if record["status"] != "pending"), path


def test_session_files_are_not_histories(corpus: Path) -> None:
    for path in corpus.glob("*/*/gemini/tmp/*/chats/*.json*"):
        assert not history.sniff(path.read_bytes()[: 64 << 10]), path


@pytest.mark.parametrize(
    "head",
    [
        b'{"history": [',
        b'\xef\xbb\xbf \n{"history":[]}',
        '{"history": []}'.encode("utf-16"),
        b'{"authType": "x", "history": []}',
        b'{"history": [], "clientHistory": []}',
        b'{"error": {"message": "m", "context": 1}, "context": [',
        b'[{"role": "user", "parts": [{"text": "cut he',
        b'[null, {"parts": [], "role": "model"}]',
        rb'[{"role": "a \" b", "parts": []',
    ],
)
def test_histories_are_recognised(head: bytes) -> None:
    assert history.sniff(head)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"[]",
        b"{",
        b"Loaded cached credentials.",
        b'{"sessionId": "a", "messages": [{"history": []}], "history": []}',
        b'{"history": "none"}',
        b'{"context": []}',
        b'{"text": "cut \\"history\\": [',
        b'{"a": 1} {"history": []}',
        b'[{"sessionId": "a", "messageId": 0}]',
        b'[{"role": "user", "content": "of another vendor"}]',
    ],
)
def test_other_files_are_not_recognised(head: bytes) -> None:
    assert not history.sniff(head)


def test_roles_and_parts_are_read() -> None:
    converted = convert({"history": [user("hi"), model({"text": "t", "thought": True}, "hello")]})
    assert [message["type"] for message in converted.messages] == ["user", "gemini"]
    assert converted.messages[1]["content"] == [{"text": "t", "thought": True}, {"text": "hello"}]
    assert not converted.problems
    assert converted.synthesised == {"id", "timestamp", "session_id"}


def test_ids_and_times_are_derived_from_the_name() -> None:
    converted = convert([user("a"), model("b")])
    assert converted.header == {
        "sessionId": "session-2025-09-18T02-45-3b44bc68",
        "startTime": "2025-09-18T02:45:00.000Z",
        "lastUpdated": "2025-09-18T02:45:01.000Z",
    }
    assert [(message["id"], message["timestamp"]) for message in converted.messages] == [
        ("session-2025-09-18T02-45-3b44bc68#0", "2025-09-18T02:45:00.000Z"),
        ("session-2025-09-18T02-45-3b44bc68#1", "2025-09-18T02:45:01.000Z"),
    ]


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("session-2025-09-18T02-45-3b44bc68.json", "2025-09-18T02:45:00.000Z"),
        ("session-2025-09-18T02-45-07-3b44bc68aa.json", "2025-09-18T02:45:07.000Z"),
        ("2026-11-15T19-31-52_017Z-made.txt-write_file.json", "2026-11-15T19:31:52.017Z"),
        ("gemini-client-error-Turn.run-sendMessageStream-2026-04-09T20-13-31-185Z.json", "2026-04-09T20:13:31.185Z"),
        ("gemini-conversation-1794772150000.json", "2026-11-15T19:49:10.000Z"),
        ("bug-report-history-1704067200000.json", "2024-01-01T00:00:00.000Z"),
        ("session-2025-09-18T02-45.json", "2025-09-18T02:45:00.000Z"),
        ("session-2025-09-18T02-45-3b44.json", "2025-09-18T02:45:00.000Z"),
        ("session-2025-09-18T02-45-3B44BC68.json", "2025-09-18T02:45:00.000Z"),
        ("session-2025-02-31T02-45-3b44bc68.json", None),
        ("session--.json", None),
        ("checkpoint-second.json", None),
        ("", None),
    ],
)
def test_start_is_the_time_in_the_name(name: str, start: str | None) -> None:
    assert convert([user("a")], name=name).header["startTime"] == (start or "2026-11-15T19:00:00.000Z")


def test_times_do_not_exceed_the_last_date() -> None:
    converted = convert([user("a"), user("b")], name="", modified=datetime.max.replace(tzinfo=UTC))
    assert converted.messages[1]["timestamp"] == "9999-12-31T23:59:59.999Z"
    assert converted.header["sessionId"] == "unknown"


def test_tag_of_a_checkpoint_is_decoded_from_its_name() -> None:
    converted = convert({"history": [], "authType": "vertex-ai"}, name="checkpoint-my%20tag%2Fwith%3A%20odd.json")
    assert converted.header["tag"] == "my tag/with: odd"
    assert converted.header["authType"] == "vertex-ai"
    assert converted.header["sessionId"] == "checkpoint-my%20tag%2Fwith%3A%20odd"
    assert "tag" not in convert([], name="checkpoint.json").header


def test_valid_session_id_in_the_file_is_used() -> None:
    converted = convert({"sessionId": "own", "history": []})
    assert converted.header["sessionId"] == "own"
    assert converted.synthesised == {"id", "timestamp"}
    converted = convert({"sessionId": 1, "id": "a", "$rewindTo": "b", "messages": [], "history": []})
    assert converted.header["sessionId"] == "session-2025-09-18T02-45-3b44bc68"
    assert converted.header["other"] == {"sessionId": 1, "id": "a", "$rewindTo": "b", "messages": []}


def test_restore_point_stores_the_screen_in_its_header() -> None:
    screen = [{"type": "user", "text": "hi", "id": 1}]
    converted = convert({"history": screen, "clientHistory": [user("hi")], "commitHash": "c", "messageId": "m"})
    assert [message["content"] for message in converted.messages] == [[{"text": "hi"}]]
    assert converted.header["history"] == screen
    assert converted.header["commitHash"] == "c"
    assert converted.header["messageId"] == "m"


@pytest.mark.parametrize("request_", ["again", {"text": "again"}, [{"text": "again"}]])
def test_failed_request_is_the_last_prompt(request_: object) -> None:
    converted = convert({"error": {"message": "no"}, "context": [user("hi"), request_, None]})
    assert converted.messages[1]["type"] == "user"
    assert converted.messages[1]["content"] in ([{"text": "again"}], ["again"])
    assert converted.header["error"] == {"message": "no"}
    assert [problem.message for problem in converted.problems] == ["context[2]: not an object"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"output": "text"}, "success"),
        ({"content": "text"}, "success"),
        ({"content": {"lines": 3}}, "success"),
        ({"error": None}, "success"),
        ({}, "success"),
        ("bare", "success"),
        (None, "success"),
        ({"error": "no such file"}, "error"),
        ({"error": {"code": 1}}, "error"),
        ({"content": {"error": "command not found"}}, "error"),
        ({"content": {"error": {"code": 1}}}, "error"),
        ({"error": "[Operation Cancelled] Reason: the user said no"}, "cancelled"),
    ],
)
def test_call_and_response_are_joined(answer: object, status: str) -> None:
    converted = convert([user("do"), model("I read.", call()), user(response(answer)), model("Done.")])
    assert records(converted) == [
        {
            "name": "read_file",
            "args": {"path": "a"},
            "status": status,
            "timestamp": "2025-09-18T02:45:02.000Z",
            "result": [response(answer)],
        }
    ]
    assert converted.messages[1]["content"] == [{"text": "I read."}, call()]
    assert converted.messages[2]["content"] == [response(answer)]


def test_responses_without_ids_are_matched_by_name_and_order() -> None:
    answers = [response({"output": "1"}), response({"output": "2"}, "Strange_Name"), response({"output": "3"})]
    converted = convert([model(call(), call("Strange_Name")), model(call()), user(*answers)])
    assert [record["name"] for record in records(converted)] == ["read_file", "Strange_Name", "read_file"]
    assert [record["result"] for record in records(converted)] == [[answer] for answer in answers]
    assert [record["timestamp"][-5:] for record in records(converted)] == [".000Z", ".001Z", ".002Z"]


def test_responses_with_ids_are_matched_by_id() -> None:
    second, first = response({"output": "2"}, id="b"), response({"output": "1"}, id="a")
    converted = convert([model(call(id="a"), call(id="read_file__b")), user(second), user(first)])
    assert [record["result"] for record in records(converted)] == [[first], [second]]
    assert [record["id"] for record in records(converted)] == ["a", "read_file__b"]


def test_call_without_id_takes_that_of_its_response() -> None:
    converted = convert([model(call()), user(response({}, id="read_file-1794772146802-10ff"))])
    assert records(converted)[0]["id"] == "read_file-1794772146802-10ff"


def test_late_response_is_matched_only_by_id() -> None:
    entries = [model(call(id="a"), call()), user("wait"), model(call()), user(response({"output": "now"}))]
    converted = convert([*entries, user(response({"output": "late"}, id="a")), user(response({}, id="x"))])
    assert [record.get("result") for record in records(converted)] == [
        [response({"output": "late"}, id="a")],
        None,
        [response({"output": "now"})],
    ]
    assert records(converted)[1]["status"] == "pending"


def test_responses_with_other_ids_do_not_match() -> None:
    converted = convert([model(call(id="a")), user(response({}, id="b"))])
    assert records(converted)[0]["status"] == "pending"


def test_media_belong_to_the_response_before_them() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": ""}}
    file = {"fileData": {"fileUri": "gs://a"}}
    first, second = response({"output": "1"}), response({"output": "2"})
    converted = convert([model(call(), call()), user(picture, first, picture, file, "and", picture, second)])
    assert [record["result"] for record in records(converted)] == [[first, picture, file], [second]]


def test_call_without_a_name_is_not_recorded() -> None:
    converted = convert(
        [model({"functionCall": {"name": "glob"}}, {"functionCall": {"args": {}}}, {"functionCall": 1})]
    )
    assert [(record["name"], record["args"]) for record in records(converted)] == [("glob", {})]
    assert converted.messages[0]["content"][1:] == [{"functionCall": {"args": {}}}, {"functionCall": 1}]  # type: ignore[index]


@pytest.mark.parametrize(
    ("entry", "kind", "content", "code"),
    [
        (None, "unknown", [None], "bad-entry"),
        (7, "unknown", [7], "bad-entry"),
        ("text", "unknown", ["text"], "bad-entry"),
        ({"parts": [{"text": "a"}]}, "unknown", [{"text": "a"}], "no-role"),
        ({"role": 1, "parts": []}, "unknown", [], "no-role"),
        ({"role": "", "parts": []}, "unknown", [], "no-role"),
        ({"role": "system", "parts": []}, "system", [], "unknown-role"),
        ({"role": "user"}, "user", [], "no-parts"),
        ({"role": "user", "parts": 3}, "user", [3], "no-parts"),
    ],
)
def test_malformed_entries_are_kept_and_reported(entry: object, kind: str, content: object, code: str) -> None:
    converted = convert({"history": [entry, user("good")]})
    assert converted.messages[0]["type"] == kind
    assert converted.messages[0]["content"] == content
    assert converted.messages[1]["content"] == [{"text": "good"}]
    assert codes(converted) == [code]
    assert "history[0]" in converted.problems[0].message


def test_single_parts_and_unknown_keys_are_kept() -> None:
    converted = convert([{"role": "user", "parts": "text", "id": 1}, {"role": "user", "parts": {"text": "a"}}])
    assert [message["content"] for message in converted.messages] == [["text"], [{"text": "a"}]]
    assert converted.messages[0]["entry"] == {"id": 1}
    assert not converted.problems


@pytest.mark.parametrize("document", [{"authType": "x"}, {"history": 1}, {}, 1, "text", None, True])
def test_document_without_history_is_reported(document: object) -> None:
    converted = convert(document)
    assert codes(converted) == ["no-history"]
    assert not converted.messages
    assert document != {"authType": "x"} or converted.header["authType"] == "x"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", 1),
        (b"not json", 1),
        (b'{"history": [\n', 2),
        (b'{"history": [\n{"role": "user", "parts": []}\n{}]}', 3),
        (b'{"history": [],\n 1: 2}', 2),
        (b'{"history" 1}', 1),
        (b'{"history": []}\n\n{"history": []}', 3),
        (b'{"authType": 12', 1),
        (b"[" * 100_000, 1),
    ],
)
def test_broken_json(data: bytes, line: int) -> None:
    converted = convert(data)
    assert codes(converted) == ["torn-json"]
    assert converted.problems[0].line == line


def test_complete_entries_of_a_cut_file_are_kept() -> None:
    data = json.dumps({"authType": "x", "history": [user("a"), model("b"), user("c")]}, indent=2).encode()
    converted = convert(data[: data.index(b'"c"')])
    assert [message["type"] for message in converted.messages] == ["user", "gemini"]
    assert converted.header["authType"] == "x"
    assert codes(converted) == ["torn-json"]
    assert converted.problems[0].line == data[: data.index(b'"c"')].count(b"\n") + 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (rb'[{"role":"user","parts":[{"text":"cut \ud83d"}]}]', "cut \ufffd"),
        (rb'[{"role":"user","parts":[{"text":"\ud83d\ude00"}]}]', "😀"),
        (b'[{"role":"user","parts":[{"text":"\xff"}]}]', "?"),
        (b'\xef\xbb\xbf[{"role":"user","parts":[{"text":"mark"}]}]', "mark"),
        ('[{"role":"user","parts":[{"text":"ü"}]}]'.encode("utf-16"), "ü"),
        (b'[{"role":"user","parts":[{"text":"n","n":[' + b"9" * 5000 + b",NaN,1e400,1.5,1]}]}]", "n"),
    ],
)
def test_odd_text(data: bytes, text: str) -> None:
    converted = convert(data)
    assert not converted.problems
    assert converted.messages[0]["content"][0]["text"] == text  # type: ignore[call-overload, index]
    assert json.loads(json.dumps(converted.messages, allow_nan=False)) == list(converted.messages)


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_converted(data: bytes) -> None:
    history.sniff(data)
    msgspec.json.encode(convert(data))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | st.text(max_size=3) | st.sampled_from(["user", "model", "é"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "parts", "text", "functionCall", "functionResponse", "name", "id", "response"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4), st.sampled_from(["history", "clientHistory", "context", None]))
def test_any_entries_are_converted(entries: list[object], holder: str | None) -> None:
    converted = convert({holder: entries} if holder else entries)
    assert len(converted.messages) == len(entries)
    assert len({message["id"] for message in converted.messages}) == len(entries)
    msgspec.json.encode(converted)


@given(st.lists(st.dictionaries(st.sampled_from(["role", "parts"]), JSON), max_size=4), st.data())
def test_file_cut_at_any_byte_keeps_complete_entries(entries: list[object], data: st.DataObject) -> None:
    texts = [json.dumps(entry, ensure_ascii=False, indent=1).encode() for entry in entries]
    document = b'{"history": [' + b", ".join(texts) + b"]}"
    cut = data.draw(st.integers(0, len(document) - 1))
    ends = [len(b'{"history": [' + b", ".join(texts[: n + 1])) for n in range(len(texts))]
    converted = convert(document[:cut])
    assert converted.problems
    kept = sum(end <= cut for end in ends)
    assert converted.messages == convert({"history": entries[:kept]}).messages
