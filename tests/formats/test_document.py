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


def only_document(data: bytes) -> Document:
    (document,) = (operation for operation in operations(data) if isinstance(operation, Document))
    return document


def ids(data: bytes) -> list[str]:
    return [record.id for record in only_document(data).records]


def only_problem(data: bytes, code: str) -> Problem:
    """Return the only problem with this code, after a check that each document counts as salvaged."""
    all_operations = operations(data)
    assert all(document.salvaged for document in all_operations if isinstance(document, Document))
    (problem,) = (
        operation for operation in all_operations if isinstance(operation, Problem) and operation.code == code
    )
    assert problem.line is not None
    return problem


@pytest.mark.parametrize("head", [WHOLE[:30], b"\xef\xbb\xbf" + WHOLE, b'\n{\r\n\t"messages" : [', b'{\n"kind":'])
def test_documents_are_recognised(head: bytes) -> None:
    assert sniff(head)


@pytest.mark.parametrize("head", [b"", b"{", b"{\n", b'{"sessionId":1}', b'{\n  "history": []', b"[\n  {"])
def test_other_files_are_not_recognised(head: bytes) -> None:
    assert not sniff(head)


@pytest.mark.parametrize("head", [WHOLE[1:], b'x\n  "a": 1', b'\r\n      "a": 1', b"\n    {\n"])
def test_indented_layout_is_recognised(head: bytes) -> None:
    assert looks_indented(head)


@pytest.mark.parametrize("head", [b"", b"{", line(header()), b'\n  "a', b"\n{\n"])
def test_other_layouts_are_not_indented(head: bytes) -> None:
    assert not looks_indented(head)


def test_document_has_fields_records_and_spans() -> None:
    parsed, problems = parse_document(WHOLE)
    assert not problems
    assert parsed.fields == {key: value for key, value in header(summary="s").items() if key != "kind"}
    assert [record.id for record in parsed.records] == ["u1", "g1"]
    assert not parsed.salvaged
    assert [WHOLE.splitlines()[record.line - 1].strip() for record in parsed.records] == [b"{", b"{"]
    for record, span, message in zip(parsed.records, parsed.spans, (ONE, TWO), strict=True):
        assert record.span == span
        assert json.loads(WHOLE[span.start : span.end]) == message


@pytest.mark.parametrize("fields", [{}, {"messages": None}, {"messages": []}])
def test_document_without_messages_is_read(fields: dict[str, object]) -> None:
    parsed, problems = parse_document(json.dumps({"sessionId": "s", **fields}, indent=2).encode())
    assert (parsed.records, parsed.spans, parsed.salvaged, problems) == ((), (), False, [])
    assert parsed.has_list is (fields.get("messages") == [])
    assert parsed.fields == {"sessionId": "s"} | ({} if parsed.has_list else fields)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"sessionId": "s", "messages": "x"}, "no-message"),
        ({"sessionId": "s", "messages": [None]}, "no-message"),
        ({"messages": []}, "no-session-id"),
    ],
)
def test_document_that_the_client_rejects_is_salvaged(fields: dict[str, object], code: str) -> None:
    parsed, problems = parse_document(json.dumps(fields, indent=2).encode())
    assert parsed.salvaged
    assert (problems[0].code, problems[0].line) == (code, 1)


def test_invalid_text_in_a_key_is_replaced() -> None:
    parsed, problems = parse_document(document(ONE, odd=1).replace(b"odd", b"o\xffd"))
    assert not problems
    assert parsed.fields["o\ufffdd"] == 1


def test_equal_messages_have_different_spans() -> None:
    parsed, _ = parse_document(document(ONE, ONE))
    assert len({record.span for record in parsed.records}) == 2


def test_span_of_an_element_is_after_the_previous_one() -> None:
    data = document(user("u1", "7"), 7, 7)
    spans = parse_document(data)[0].spans
    assert [data[span.start : span.end] for span in spans[1:]] == [b"7", b"7"]
    assert spans[0].end < spans[1].start < spans[2].start


def test_word_messages_in_a_text_is_not_the_list() -> None:
    parsed, _ = parse_document(document(ONE, TWO, summary='"messages": ['))
    data = json.dumps({"summary": 'about "messages"', "messages": [ONE], "sessionId": "s"}, indent=2).encode()
    assert [record.id for record in parsed.records] == ["u1", "g1"]
    (record,) = parse_document(data)[0].records
    assert json.loads(data[record.span.start : record.span.end]) == ONE


def test_elements_that_are_not_messages_are_reported() -> None:
    result = operations(document(ONE, 7, {"type": "user", "content": "no id"}, {"id": 8}, {}, TWO))
    assert isinstance(result[0], Document)
    assert [record.id for record in result[0].records] == ["u1", "line-14", "g1"]
    assert len(result[0].spans) == 6
    assert codes(result) == ["no-message", "no-message", "bad-value", "no-message", "no-message"]
    assert not result[0].salvaged


def test_bad_value_is_reported_with_its_line() -> None:
    result = operations(document(ONE | {"timestamp": 7}))
    (problem,) = (operation for operation in result if isinstance(operation, Problem))
    assert (problem.code, problem.line, problem.file) == ("bad-value", 7, str(source(b"").path))
    assert ids(document(ONE | {"timestamp": 7})) == ["u1"]


@pytest.mark.parametrize("old", [b'"one"', b'"/home', b'"s"'])
def test_invalid_text_is_read_without_a_problem(old: bytes) -> None:
    for new in (b'"\xff"', b'"\\ud83d"'):
        data = WHOLE.replace(old, new)
        assert ids(data) == ["u1", "g1"]
        assert not codes(operations(data))


def test_other_indentation_is_read_without_a_problem() -> None:
    data = json.dumps({"sessionId": "s", "messages": [ONE, TWO]}, indent=4).encode().replace(b"one", b"\xff")
    assert ids(data) == ["u1", "g1"]
    assert not only_document(data).salvaged


def test_leading_white_space_is_skipped() -> None:
    assert ids(b"\n\n " + WHOLE) == ["u1", "g1"]


@pytest.mark.parametrize("data", [b"[]", b"7", b'"x"', b" [1]"])
def test_document_that_is_not_an_object_raises(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_document(data)


def test_document_with_a_byte_order_mark_is_salvaged() -> None:
    result = operations(b"\xef\xbb\xbf" + WHOLE)
    assert codes(result) == ["byte-order-mark"]
    assert isinstance(result[0], Document)
    assert result[0].salvaged
    assert result[0].fields["summary"] == "s"
    assert [record.id for record in result[0].records] == ["u1", "g1"]


def test_messages_before_a_cut_are_recovered() -> None:
    cut = WHOLE[: WHOLE.index(b'"toolCalls"')]
    problem = only_problem(cut, "torn-message")
    assert problem.line == 13
    assert "1 message(s) recovered" in only_problem(cut, "torn-document").message
    assert ids(cut) == ["u1"]
    assert only_document(cut).fields["projectHash"] == HASH


def test_metadata_before_a_cut_are_recovered() -> None:
    assert "truncated" in only_problem(WHOLE[:60], "torn-document").message
    assert only_document(WHOLE[:100]).fields == {"sessionId": SESSION}


def test_document_without_content_is_reported() -> None:
    result = operations(b"\xff\n\n")
    assert codes(result) == ["torn-document"]
    assert not [operation for operation in result if isinstance(operation, Document)]
    assert "contains no session" in only_problem(b"\n\n", "torn-document").message


def test_message_without_its_end_does_not_hide_the_next() -> None:
    data = WHOLE.replace(b"    },\n    {", b"    {")
    assert ids(data) == ["g1"]
    assert only_problem(data, "torn-message").line == 7


def test_broken_message_does_not_affect_the_others() -> None:
    data = document(ONE, TWO, user("u2", "three")).replace(b'"type": "gemini"', b'"type" "gemini"')
    assert ids(data) == ["u1", "u2"]  # the complete call inside has an ID too, but is not a message
    assert "0 recovered from it" in only_problem(data, "torn-message").message


def test_messages_of_a_broken_list_are_recovered() -> None:
    for old, new in ((b'"messages": [', b'"mess\0ges": ['), (b"[\n    {", b"[\0    {"), (b"\n  ],", b"\n  \0,")):
        data = WHOLE.replace(old, new, 1)
        assert ids(data) == ["u1", "g1"]
        only_problem(data, "torn-document")


def test_metadata_after_a_broken_list_are_recovered() -> None:
    data = WHOLE.replace(b'"one"', b'"one" x')
    assert only_document(data).fields["summary"] == "s"
    assert only_document(data).salvaged
    assert codes(operations(data)) == ["torn-message"]


def test_spans_are_right_with_other_line_ends() -> None:
    for end in (b"\r\n", b"\r"):
        data = WHOLE[:-2].replace(b"\n", end)
        (read_document,) = (operation for operation in operations(data) if isinstance(operation, Document))
        for record, message in zip(read_document.records, (ONE, TWO), strict=True):
            assert json.loads(data[record.span.start : record.span.end]) == message


def test_spans_of_salvaged_messages_are_right() -> None:
    data = WHOLE.replace(b"    },\n", b"    }x,\n", 1).replace(b"\n", b"\r\n")
    (read_document,) = (operation for operation in operations(data) if isinstance(operation, Document))
    assert [json.loads(data[record.span.start : record.span.end])["id"] for record in read_document.records] == [
        "u1",
        "g1",
    ]


def test_messages_nested_too_deeply_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_data: bytes) -> None:
        raise ValueError("nested too deeply")

    monkeypatch.setattr(module, "wire", refuse)
    assert codes(operations(WHOLE)) == ["torn-message", "torn-message"]
    assert only_document(WHOLE).fields["summary"] == "s"


def test_document_read_by_layout_equals_one_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.json", WHOLE)
    with Source(path) as at_once:
        (at_once_document,) = read(at_once)
    monkeypatch.setattr(module, "AT_ONCE", 10)
    with Source(path) as by_layout:
        (by_layout_document,) = read(by_layout)
    assert by_layout_document == at_once_document
