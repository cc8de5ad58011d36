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
def test_sniff(head: bytes) -> None:
    assert sniff(head)


@pytest.mark.parametrize("head", [b"", b"{", b'{\n  "sessionId": 1', b"[]", b'{"type":"init"}', b"text"])
def test_sniff_something_else(head: bytes) -> None:
    assert not sniff(head)


def test_every_record() -> None:
    found = operations(header(), ONE, updates(lastUpdated="x"), checkpoint(ONE, TWO), rewind("g1"))
    head, put, update, check, back = found
    assert isinstance(head, Header)
    assert head.fields["sessionId"] == SESSION
    assert isinstance(put, Put)
    assert (put.record.id, put.record.line, put.salvaged) == ("u1", 2, False)
    assert isinstance(update, Update)
    assert (update.fields, update.records) == ({"lastUpdated": "x"}, None)
    assert ids(check) == ["u1", "g1"]
    assert back == Rewind(5, "g1")


def test_spans_lead_to_the_bytes() -> None:
    data = log(header(), ONE, checkpoint(ONE, TWO, ONE), header(messages=[TWO]))
    place = source(data)
    spans: list[Span] = []
    for operation in read(place):
        match operation:
            case Put(record):
                spans.append(record.span)
            case Update() | Header():
                spans += [record.span for record in operation.records or ()]
    assert [place.slice(span) for span in spans] == [line(one) for one in (ONE, ONE, TWO, ONE, TWO)]
    assert len(set(spans)) == 5


def test_the_first_test_that_fits_decides() -> None:
    everything = {"$rewindTo": "a", "id": "b", "$set": {"x": 1}, "sessionId": "s", "projectHash": "h"}
    assert isinstance(operations(everything)[0], Rewind)
    del everything["$rewindTo"]
    assert isinstance(operations(everything)[0], Put)
    del everything["id"]
    assert isinstance(operations(everything)[0], Update)
    del everything["$set"]
    assert isinstance(operations(everything)[0], Header)
    del everything["projectHash"]
    assert codes(operations(everything)) == ["unknown-record"]


def test_wrong_types_let_the_next_test_decide() -> None:
    found = operations({"$rewindTo": 7, "id": 8, "$set": None, "sessionId": "s", "projectHash": "h"})
    assert codes(found) == ["bad-value"]
    assert isinstance(found[1], Header)


@pytest.mark.parametrize("value", ["x", 7, None, {}, {"length": 0}])
def test_messages_that_are_no_list_are_none(value: object) -> None:
    (found,) = operations(updates(messages=value))
    assert ids(found) is None


def test_an_empty_list_is_a_list() -> None:
    assert ids(operations(checkpoint())[0]) == []


def test_set_of_a_list_sets_nothing() -> None:
    (found,) = operations({"$set": [1]})
    assert isinstance(found, Update)
    assert (found.fields, found.records) == ({}, None)


def test_elements_without_an_id_are_reported() -> None:
    found = operations(checkpoint(ONE, {"type": "user"}, {"id": 7}, TWO))
    assert ids(found[0]) == ["u1", "g1"]
    assert codes(found) == ["no-message", "bad-value", "no-message"]
    assert {problem.line for problem in found if isinstance(problem, Problem)} == {1}


def test_a_compact_document_on_one_line() -> None:
    (found,) = operations(header(messages=[ONE, TWO], summary="s"))
    assert ids(found) == ["u1", "g1"]
    assert isinstance(found, Header)
    assert found.fields["summary"] == "s"
    assert "messages" not in found.fields


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
def test_what_is_no_record_is_reported(record: bytes, code: str) -> None:
    found = operations(header(), record, TWO)
    (problem,) = (one for one in found if isinstance(one, Problem))
    assert (problem.code, problem.line) == (code, 2)
    assert problem.file == str(source(b"").path)
    assert isinstance(found[-1], Put)


def test_bad_value_is_reported_and_the_rest_is_read() -> None:
    problem, put = operations(ONE | {"timestamp": 7})
    assert isinstance(problem, Problem)
    assert (problem.code, problem.message) == ("bad-value", "values of an unexpected type are ignored: timestamp")
    assert isinstance(put, Put)
    assert put.record.prompt == "one"


def test_blank_lines_are_nothing() -> None:
    assert operations(b"", b"  \t", b"\r") == []


def test_half_a_record_with_another_glued_to_it() -> None:
    put, problem = operations(line(ONE)[:30] + line(TWO))
    assert isinstance(put, Put)
    assert (put.record.id, put.salvaged) == ("g1", True)
    assert isinstance(problem, Problem)
    assert "1 record(s) recovered" in problem.message
    data = log(line(ONE)[:30] + line(TWO))
    assert source(data).slice(put.record.span) == line(TWO)


def test_two_records_on_one_line() -> None:
    found = operations(line(header()) + line(updates(summary="s")) + line(rewind("u1")) + line(checkpoint(TWO)))
    assert [type(one) for one in found] == [Header, Header, Update, Rewind, Update, Problem]
    assert all(one.salvaged for one in found if not isinstance(one, Problem | Put))
    assert ids(found[4]) == ["g1"]


def test_the_messages_of_a_torn_checkpoint() -> None:
    found = operations(line(checkpoint(ONE, TWO))[:-3])
    assert [one.record.id for one in found if isinstance(one, Put)] == ["u1", "g1"]


def test_pieces_of_a_torn_message_are_no_messages() -> None:
    """Calls, responses, what a subagent did and any argument may have an id, and may be whole where all is not."""
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
    found = operations(data[:-9] + line(ONE))
    assert [one.record.id for one in found if isinstance(one, Put)] == ["u1"]


def test_what_cannot_be_saved_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_data: bytes) -> None:
        raise ValueError("nested too deeply")

    monkeypatch.setattr(module, "wire", refuse)
    (problem,) = operations(ONE)
    assert isinstance(problem, Problem)
    assert problem.message == "not JSON (nested too deeply); nothing could be recovered from it"


def test_a_torn_header_says_what_it_can() -> None:
    found = operations(line(header())[:-30])
    assert isinstance(found[0], Header)
    assert (found[0].fields["projectHash"], found[0].salvaged) == (HASH, True)
    assert codes(found) == ["torn-line"]


def test_a_byte_order_mark() -> None:
    found = operations(b"\xef\xbb\xbf" + line(header()))
    assert codes(found) == ["byte-order-mark", "torn-line"]
    assert isinstance(found[1], Header)


def test_broken_text_is_read_where_the_client_reads_it() -> None:
    broken = [line(one).replace(b"one", b"o\xffe") for one in (ONE, checkpoint(ONE), header(summary="one"))]
    found = operations(*broken, line(user("u2", "\ud83d")))
    assert [type(one) for one in found] == [Put, Update, Header, Put]
    assert not codes(found)
    assert found[2] == Header(3, header(summary="o\ufffde"))
    (head,) = operations(line(header(one=1)).replace(b"one", b"o\xffe"))
    assert isinstance(head, Header)
    assert head.fields["o\ufffde"] == 1
    (update,) = operations(line(updates(summary="\ud83d")))
    assert isinstance(update, Update)
    assert update.fields == {"summary": "\ud83d"}


@pytest.mark.parametrize("spaces", ["", " "])
def test_messages_beside_a_value_of_a_wrong_type_lead_to_the_bytes(spaces: str) -> None:
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
def test_line_that_newer_releases_of_node_cut_is_read_and_reported(separator: str, size: int) -> None:
    record = user("u2", "x" * size + f"a{separator}b")
    found = operations(header(), user("u1", "é"), json.dumps(record, ensure_ascii=False).encode())
    assert codes(found) == ["split-by-newer-node"]
    assert [one.record.id for one in found if isinstance(one, Put)] == ["u1", "u2"]
