from __future__ import annotations

import json

import pytest
from tests.builders import (
    HASH,
    SESSION,
    asks,
    at,
    call,
    checkpoint,
    codes,
    gemini,
    header,
    line,
    log,
    rewind,
    source,
    updates,
    user,
)

from pollux.formats import log as module
from pollux.formats.log import read, sniff
from pollux.formats.operations import Header, Operation, Put, Rewind, Update
from pollux.formats.source import Span
from pollux.model import Problem

ONE, TWO = user("u1", "one"), gemini("g1", "two")


def operations(*records: object) -> list[Operation]:
    return [*read(source(log(*records)))]


def ids(operation: Operation) -> list[str] | None:
    assert isinstance(operation, Update | Header)
    return None if operation.records is None else [record.id for record in operation.records]


@pytest.mark.parametrize(
    "head",
    [
        line(header())[:40],
        b"\xef\xbb\xbf" + line(header()),
        line(ONE),
        line(rewind("a")),
        b'\n {"$set":{}}',
        b'{"kind":1}',
    ],
)
def test_logs_are_recognised(head: bytes) -> None:
    assert sniff(head)


@pytest.mark.parametrize("head", [b"", b"{", b'{\n  "sessionId": 1', b"[]", b'{"type":"init"}', b"text"])
def test_other_files_are_not_recognised(head: bytes) -> None:
    assert not sniff(head)


def test_each_kind_of_record_is_read() -> None:
    result = operations(header(), ONE, updates(lastUpdated="x"), checkpoint(ONE, TWO), rewind("g1"))
    head, put, update, check, back = result
    assert isinstance(head, Header)
    assert head.fields["sessionId"] == SESSION
    assert isinstance(put, Put)
    assert (put.record.id, put.record.line, put.salvaged) == ("u1", 2, False)
    assert isinstance(update, Update)
    assert (update.fields, update.records) == ({"lastUpdated": "x"}, None)
    assert ids(check) == ["u1", "g1"]
    assert back == Rewind(5, "g1")


def test_spans_contain_the_bytes_of_their_records() -> None:
    data = log(header(), ONE, checkpoint(ONE, TWO, ONE), header(messages=[TWO]))
    place = source(data)
    spans: list[Span] = []
    for operation in read(place):
        match operation:
            case Put(record):
                spans.append(record.span)
            case Update() | Header():
                spans += [record.span for record in operation.records or ()]
    assert [place.slice(span) for span in spans] == [line(record) for record in (ONE, ONE, TWO, ONE, TWO)]
    assert len(set(spans)) == 5


def test_kind_is_decided_by_the_first_matching_key() -> None:
    record = {"$rewindTo": "a", "id": "b", "$set": {"x": 1}, "sessionId": "s", "projectHash": "h"}
    assert isinstance(operations(record)[0], Rewind)
    del record["$rewindTo"]
    assert isinstance(operations(record)[0], Put)
    del record["id"]
    assert isinstance(operations(record)[0], Update)
    del record["$set"]
    assert isinstance(operations(record)[0], Header)
    del record["projectHash"]
    assert codes(operations(record)) == ["unknown-record"]


def test_keys_of_a_wrong_type_do_not_decide_the_kind() -> None:
    result = operations({"$rewindTo": 7, "id": 8, "$set": None, "sessionId": "s", "projectHash": "h"})
    assert codes(result) == ["bad-value"]
    assert isinstance(result[1], Header)


@pytest.mark.parametrize("value", ["x", 7, None, {}, {"length": 0}])
def test_update_whose_messages_are_not_a_list_has_none(value: object) -> None:
    (update,) = operations(updates(messages=value))
    assert ids(update) is None


def test_empty_checkpoint_has_an_empty_list() -> None:
    assert ids(operations(checkpoint())[0]) == []


def test_update_with_a_list_sets_nothing() -> None:
    (update,) = operations({"$set": [1]})
    assert isinstance(update, Update)
    assert (update.fields, update.records) == ({}, None)


def test_elements_without_an_id_are_reported() -> None:
    result = operations(checkpoint(ONE, {"type": "user"}, {"id": 7}, TWO))
    assert ids(result[0]) == ["u1", "g1"]
    assert codes(result) == ["no-message", "bad-value", "no-message"]
    assert {problem.line for problem in result if isinstance(problem, Problem)} == {1}


def test_compact_document_is_a_header_with_messages() -> None:
    (head,) = operations(header(messages=[ONE, TWO], summary="s"))
    assert ids(head) == ["u1", "g1"]
    assert isinstance(head, Header)
    assert head.fields["summary"] == "s"
    assert "messages" not in head.fields


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (b"7", "unknown-record"),
        (b"null", "unknown-record"),
        (b"[]", "unknown-record"),
        (b"{}", "unknown-record"),
        (b'{"$set":7}', "unknown-operator"),
        (b'{"$push":{}}', "unknown-operator"),
        (b"garbage", "torn-line"),
        (line(ONE)[:-1], "torn-line"),
    ],
)
def test_lines_that_are_not_records_are_reported(record: bytes, code: str) -> None:
    result = operations(header(), record, TWO)
    (problem,) = (operation for operation in result if isinstance(operation, Problem))
    assert (problem.code, problem.line) == (code, 2)
    assert problem.file == str(source(b"").path)
    assert isinstance(result[-1], Put)


def test_bad_value_is_reported_and_the_rest_is_read() -> None:
    problem, put = operations(ONE | {"timestamp": 7})
    assert isinstance(problem, Problem)
    assert (problem.code, problem.message) == ("bad-value", "values of an unexpected type are ignored: timestamp")
    assert isinstance(put, Put)
    assert put.record.prompt == "one"


def test_blank_lines_are_skipped() -> None:
    assert operations(b"", b"  \t", b"\r") == []


def test_record_after_half_a_record_is_recovered() -> None:
    put, problem = operations(line(ONE)[:30] + line(TWO))
    assert isinstance(put, Put)
    assert (put.record.id, put.salvaged) == ("g1", True)
    assert isinstance(problem, Problem)
    assert "1 record(s) recovered" in problem.message
    data = log(line(ONE)[:30] + line(TWO))
    assert source(data).slice(put.record.span) == line(TWO)


def test_several_records_on_one_line_are_salvaged() -> None:
    result = operations(line(header()) + line(updates(summary="s")) + line(rewind("u1")) + line(checkpoint(TWO)))
    assert [type(operation) for operation in result] == [Header, Header, Update, Rewind, Update, Problem]
    assert all(operation.salvaged for operation in result if not isinstance(operation, Problem | Put))
    assert ids(result[4]) == ["g1"]


def test_messages_of_a_torn_checkpoint_are_recovered() -> None:
    result = operations(line(checkpoint(ONE, TWO))[:-3])
    assert [operation.record.id for operation in result if isinstance(operation, Put)] == ["u1", "g1"]


def test_parts_of_a_torn_message_are_not_messages() -> None:
    """Calls, responses, activities of a subagent and arguments have IDs too, and may be complete in a torn message."""
    seen = {"id": "a1", "type": "tool_call", "content": "ls", "status": "completed"}
    agent = {"isSubagentProgress": True, "agentName": "a", "recentActivity": [seen]}
    calls = [
        call("c1", args={"item": {"id": "7", "type": "user", "name": "Mara"}}, timestamp=at(3)),
        call("c2", resultDisplay=agent, timestamp=at(3)),
        call("c3"),
    ]
    data = line(gemini("g1", [asks("c1"), {"text": "one"}], toolCalls=calls))
    for end in range(data.index(b'"toolCalls"'), len(data)):
        (problem,) = operations(data[:end])
        assert isinstance(problem, Problem)
        assert "nothing could be recovered" in problem.message
    result = operations(data[:-9] + line(ONE))
    assert [operation.record.id for operation in result if isinstance(operation, Put)] == ["u1"]


def test_record_nested_too_deeply_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_data: bytes) -> None:
        raise ValueError("nested too deeply")

    monkeypatch.setattr(module, "wire", refuse)
    (problem,) = operations(ONE)
    assert isinstance(problem, Problem)
    assert problem.message == "not JSON (nested too deeply); nothing could be recovered from it"


def test_leading_fields_of_a_torn_header_are_recovered() -> None:
    result = operations(line(header())[:-30])
    assert isinstance(result[0], Header)
    assert (result[0].fields["projectHash"], result[0].salvaged) == (HASH, True)
    assert codes(result) == ["torn-line"]


def test_header_after_a_byte_order_mark_is_recovered() -> None:
    result = operations(b"\xef\xbb\xbf" + line(header()))
    assert codes(result) == ["byte-order-mark", "torn-line"]
    assert isinstance(result[1], Header)


def test_invalid_text_is_read_without_a_problem() -> None:
    broken = [line(record).replace(b"one", b"o\xffe") for record in (ONE, checkpoint(ONE), header(summary="one"))]
    result = operations(*broken, line(user("u2", "\ud83d")))
    assert [type(record) for record in result] == [Put, Update, Header, Put]
    assert not codes(result)
    assert result[2] == Header(3, header(summary="o\ufffde"))
    (head,) = operations(line(header(one=1)).replace(b"one", b"o\xffe"))
    assert isinstance(head, Header)
    assert head.fields["o\ufffde"] == 1
    (update,) = operations(line(updates(summary="\ud83d")))
    assert isinstance(update, Update)
    assert update.fields == {"summary": "\ud83d"}


@pytest.mark.parametrize("spaces", ["", " "])
def test_spans_are_right_beside_a_value_of_a_wrong_type(spaces: str) -> None:
    message = f'{{"id":{spaces}"u1",{spaces}"type":"user","timestamp":"{at(1)}","content":"one"}}'
    data = line(header()) + f'\n{{"$set":{spaces}{{"messages":{spaces}[{message}]}},{spaces}"model":5}}\n'.encode()
    place = source(data)
    _, problem, update = read(place)
    assert isinstance(problem, Problem)
    assert (problem.code, "model" in problem.message) == ("bad-value", True)
    assert isinstance(update, Update)
    assert update.records is not None
    assert [place.slice(record.span) for record in update.records] == [message.encode()]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029"])
@pytest.mark.parametrize("size", [0, 9 << 20])
def test_line_that_newer_node_releases_split_is_read_and_reported(separator: str, size: int) -> None:
    record = user("u2", "x" * size + f"a{separator}b")
    result = operations(header(), user("u1", "é"), json.dumps(record, ensure_ascii=False).encode())
    assert codes(result) == ["split-by-newer-node"]
    assert [operation.record.id for operation in result if isinstance(operation, Put)] == ["u1", "u2"]
