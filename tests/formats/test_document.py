from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.builders import HASH, SESSION, call, codes, document, gemini, header, line, put, source, tokens, user

from pollux.formats import document as module
from pollux.formats.document import looks_indented, parse_document, read, sniff
from pollux.formats.operations import Document, Operation
from pollux.formats.source import Source
from pollux.model import Problem

ONE, TWO = user("u1", "one"), gemini("g1", "two", tokens=tokens(), toolCalls=[call()])
WHOLE = document(ONE, TWO, summary="s")


def operations(data: bytes) -> list[Operation]:
    return [*read(source(data))]


def one(data: bytes) -> Document:
    (found,) = (one for one in operations(data) if isinstance(one, Document))
    return found


def ids(data: bytes) -> list[str]:
    return [record.id for record in one(data).records]


def broken(data: bytes, code: str) -> Problem:
    """Return the problem of a file that the client cannot read."""
    found = operations(data)
    assert all(document.salvaged for document in found if isinstance(document, Document))
    (problem,) = (one for one in found if isinstance(one, Problem) and one.code == code)
    assert problem.line is not None
    return problem


@pytest.mark.parametrize("head", [WHOLE[:30], b"\xef\xbb\xbf" + WHOLE, b'\n{\r\n\t"messages" : [', b'{\n"kind":'])
def test_sniff(head: bytes) -> None:
    assert sniff(head)


@pytest.mark.parametrize("head", [b"", b"{", b"{\n", b'{"sessionId":1}', b'{\n  "history": []', b"[\n  {"])
def test_sniff_something_else(head: bytes) -> None:
    assert not sniff(head)


@pytest.mark.parametrize("head", [WHOLE[1:], b'x\n  "a": 1', b'\r\n      "a": 1', b"\n    {\n"])
def test_looks_indented(head: bytes) -> None:
    assert looks_indented(head)


@pytest.mark.parametrize("head", [b"", b"{", line(header()), b'\n  "a', b"\n{\n"])
def test_does_not_look_indented(head: bytes) -> None:
    assert not looks_indented(head)


def test_a_document() -> None:
    found, problems = parse_document(WHOLE)
    assert not problems
    assert found.fields == {key: value for key, value in header(summary="s").items() if key != "kind"}
    assert [record.id for record in found.records] == ["u1", "g1"]
    assert not found.salvaged
    assert [WHOLE.splitlines()[record.line - 1].strip() for record in found.records] == [b"{", b"{"]
    for record, span, message in zip(found.records, found.spans, (ONE, TWO), strict=True):
        assert record.span == span
        assert json.loads(WHOLE[span.start : span.end]) == message


@pytest.mark.parametrize("fields", [{}, {"messages": None}, {"messages": []}])
def test_a_document_without_messages(fields: dict[str, object]) -> None:
    found, problems = parse_document(json.dumps({"sessionId": "s", **fields}, indent=2).encode())
    assert (found.records, found.spans, found.salvaged, problems) == ((), (), False, [])
    assert found.has_list is (fields.get("messages") == [])
    assert found.fields == {"sessionId": "s"} | ({} if found.has_list else fields)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"sessionId": "s", "messages": "x"}, "no-message"),
        ({"sessionId": "s", "messages": [None]}, "no-message"),
        ({"messages": []}, "no-session-id"),
    ],
)
def test_a_document_that_the_client_refuses(fields: dict[str, object], code: str) -> None:
    found, problems = parse_document(json.dumps(fields, indent=2).encode())
    assert found.salvaged
    assert (problems[0].code, problems[0].line) == (code, 1)


def test_broken_text_in_a_key() -> None:
    found, problems = parse_document(document(ONE, odd=1).replace(b"odd", b"o\xffd"))
    assert not problems
    assert found.fields["o\ufffdd"] == 1


def test_the_same_message_twice_stands_in_two_places() -> None:
    found, _ = parse_document(document(ONE, ONE))
    assert len({record.span for record in found.records}) == 2


def test_an_element_is_not_looked_for_in_the_one_before() -> None:
    data = document(user("u1", "7"), 7, 7)
    spans = parse_document(data)[0].spans
    assert [data[span.start : span.end] for span in spans[1:]] == [b"7", b"7"]
    assert spans[0].end < spans[1].start < spans[2].start


def test_the_word_messages_elsewhere() -> None:
    found, _ = parse_document(document(ONE, TWO, summary='"messages": ['))
    data = json.dumps({"summary": 'about "messages"', "messages": [ONE], "sessionId": "s"}, indent=2).encode()
    assert [record.id for record in found.records] == ["u1", "g1"]
    (record,) = parse_document(data)[0].records
    assert json.loads(data[record.span.start : record.span.end]) == ONE


def test_elements_that_are_no_messages() -> None:
    found = operations(document(ONE, 7, {"type": "user", "content": "no id"}, {"id": 8}, {}, TWO))
    assert isinstance(found[0], Document)
    assert [record.id for record in found[0].records] == ["u1", "line-14", "g1"]
    assert len(found[0].spans) == 6
    assert codes(found) == ["no-message", "no-message", "bad-value", "no-message", "no-message"]
    assert not found[0].salvaged


def test_a_bad_value() -> None:
    found = operations(document(ONE | {"timestamp": 7}))
    (problem,) = (one for one in found if isinstance(one, Problem))
    assert (problem.code, problem.line, problem.file) == ("bad-value", 7, str(source(b"").path))
    assert ids(document(ONE | {"timestamp": 7})) == ["u1"]


@pytest.mark.parametrize("old", [b'"one"', b'"/home', b'"s"'])
def test_broken_text_is_read_where_the_client_reads_it(old: bytes) -> None:
    for new in (b'"\xff"', b'"\\ud83d"'):
        data = WHOLE.replace(old, new)
        assert ids(data) == ["u1", "g1"]
        assert not codes(operations(data))


def test_another_layout_is_no_fault() -> None:
    data = json.dumps({"sessionId": "s", "messages": [ONE, TWO]}, indent=4).encode().replace(b"one", b"\xff")
    assert ids(data) == ["u1", "g1"]
    assert not one(data).salvaged


def test_white_space_before_it() -> None:
    assert ids(b"\n\n " + WHOLE) == ["u1", "g1"]


@pytest.mark.parametrize("data", [b"[]", b"7", b'"x"', b" [1]"])
def test_what_is_no_object_raises(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_document(data)


def test_a_byte_order_mark() -> None:
    found = operations(b"\xef\xbb\xbf" + WHOLE)
    assert codes(found) == ["byte-order-mark"]
    assert isinstance(found[0], Document)
    assert found[0].salvaged
    assert found[0].fields["summary"] == "s"
    assert [record.id for record in found[0].records] == ["u1", "g1"]


def test_cut_short() -> None:
    cut = WHOLE[: WHOLE.index(b'"toolCalls"')]
    problem = broken(cut, "torn-message")
    assert problem.line == 13
    assert "1 message(s) recovered" in broken(cut, "torn-document").message
    assert ids(cut) == ["u1"]
    assert one(cut).fields["projectHash"] == HASH


def test_cut_in_the_metadata() -> None:
    assert "truncated" in broken(WHOLE[:60], "torn-document").message
    assert one(WHOLE[:100]).fields == {"sessionId": SESSION}


def test_nothing_in_it() -> None:
    found = operations(b"\xff\n\n")
    assert codes(found) == ["torn-document"]
    assert not [one for one in found if isinstance(one, Document)]
    assert "contains no session" in broken(b"\n\n", "torn-document").message


def test_a_message_without_its_end_does_not_take_the_next() -> None:
    data = WHOLE.replace(b"    },\n    {", b"    {")
    assert ids(data) == ["g1"]
    assert broken(data, "torn-message").line == 7


def test_a_broken_message_spoils_only_itself() -> None:
    data = document(ONE, TWO, user("u2", "three")).replace(b'"type": "gemini"', b'"type" "gemini"')
    assert ids(data) == ["u1", "u2"]  # the whole call in it has an id, too, and is no message
    assert "0 recovered from it" in broken(data, "torn-message").message


def test_a_broken_list() -> None:
    for old, new in ((b'"messages": [', b'"mess\0ges": ['), (b"[\n    {", b"[\0    {"), (b"\n  ],", b"\n  \0,")):
        data = WHOLE.replace(old, new, 1)
        assert ids(data) == ["u1", "g1"]
        broken(data, "torn-document")


def test_metadata_on_both_sides_of_the_list() -> None:
    data = WHOLE.replace(b'"one"', b'"one" x')
    assert one(data).fields["summary"] == "s"
    assert one(data).salvaged
    assert codes(operations(data)) == ["torn-message"]


def test_foreign_line_ends() -> None:
    for end in (b"\r\n", b"\r"):
        data = WHOLE[:-2].replace(b"\n", end)
        (found,) = (one for one in operations(data) if isinstance(one, Document))
        for record, message in zip(found.records, (ONE, TWO), strict=True):
            assert json.loads(data[record.span.start : record.span.end]) == message


def test_spans_of_what_was_saved() -> None:
    data = WHOLE.replace(b"    },\n", b"    }x,\n", 1).replace(b"\n", b"\r\n")
    (found,) = (one for one in operations(data) if isinstance(one, Document))
    assert [json.loads(data[record.span.start : record.span.end])["id"] for record in found.records] == ["u1", "g1"]


def test_what_cannot_be_saved_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_data: bytes) -> None:
        raise ValueError("nested too deeply")

    monkeypatch.setattr(module, "wire", refuse)
    assert codes(operations(WHOLE)) == ["torn-message", "torn-message"]
    assert one(WHOLE).fields["summary"] == "s"


def test_a_huge_document_is_read_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.json", WHOLE)
    with Source(path) as at_once:
        (whole,) = read(at_once)
    monkeypatch.setattr(module, "AT_ONCE", 10)
    with Source(path) as by_layout:
        (found,) = read(by_layout)
    assert found == whole
