from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.builders import answers, call, checkpoint, gemini, header, line, log, rewind, source, tokens, user
from tests.formats.fuzz import fuzzed
from tests.formats.small import lower_limits

from pollux import formats
from pollux.formats import document as document_module
from pollux.formats.operations import Document, Header, Operation, Put, Record, Update
from pollux.formats.short import MASKED, ElidedText, has_mark, shorten, value_at
from pollux.formats.source import LongLine, Source, Span
from pollux.model import Attachment, Message, Problem
from pollux.sessions.replay import reading
from pollux.sessions.replay.replay import replay

WORDS = (
    "word ",
    "é",
    "\U0001f600",
    "\n",
    '"',
    "\\",
    "\ud83d",
    "\ude00",
    "\0",
    "\u2028",
    "<tool_output_masked>",
    "x" * 40,
)


@pytest.fixture
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    lower_limits(monkeypatch)


def full_and_short_operations(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Operation], list[Operation]]:
    full = list(formats.opened(source(data)).operations)
    with monkeypatch.context() as patch:
        lower_limits(patch)
        if data.startswith(b"{\n"):
            patch.setattr(document_module, "AT_ONCE", 500)
        return full, list(formats.opened(source(data)).operations)


def records(operations: list[Operation]) -> Iterator[Record]:
    for operation in operations:
        if isinstance(operation, Put):
            yield operation.record
        elif isinstance(operation, Header | Update | Document):
            yield from operation.records or ()


def uncut_fields(record: Record) -> tuple[Any, ...]:
    """Return all fields of a record but its prompt and checksum, which depend on the cut."""
    return tuple(
        value for name, value in zip(record.__struct_fields__, _values(record), strict=True) if name not in _CUT_FIELDS
    )


_CUT_FIELDS = ("prompt", "checksum")


def _values(record: Record) -> Iterator[Any]:
    return (getattr(record, name) for name in record.__struct_fields__)


def long_text(rng: random.Random) -> str:
    return "".join(rng.choice(WORDS) for _ in range(rng.randint(0, 120)))


def long_message(rng: random.Random, number: int) -> Any:  # noqa: ANN401
    text = long_text(rng)
    result = [answers("c1", output=long_text(rng) + rng.choice(("", "\nExit Code: 3", "\nExit Code: 4\nsee above")))]
    return rng.choice(
        (
            user(f"u{number}", text),
            user(f"u{number}", [{"text": text}, {"inlineData": {"mimeType": "image/png", "data": "QUJD" * 100}}]),
            user(f"u{number}", result),
            gemini(
                f"g{number}", text, tokens=tokens(number), toolCalls=[call(result=result)], thoughts=[{"subject": text}]
            ),
            {"id": f"b{number}", "type": "gemini", "content": [{"text": text}, {"text": "more"}]},
            rewind(f"u{number - 1}"),
        )
    )


@pytest.mark.parametrize("part", range(5))
def test_shortened_lines_give_the_same_operations(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(part, 200, 5):
        _compare_lines(random.Random(seed), monkeypatch)  # noqa: S311  no secret


def _compare_lines(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [long_message(rng, number) for number in range(1, 9)]
    lists = [message for message in messages if "id" in message]
    lines = [header(), *messages, checkpoint(*lists), header(messages=lists)]
    encode = json.JSONEncoder(ensure_ascii=rng.random() < 0.5, separators=rng.choice([(",", ":"), (", ", ": ")])).encode
    data = "\n".join(map(encode, lines)).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        place = rng.randrange(len(data))
        data = data[:place] + bytes([rng.randint(0, 255)]) + data[place + 1 :]
    full, short = full_and_short_operations(data, monkeypatch)
    assert not has_mark(short)
    assert [type(operation) for operation in short] == [type(operation) for operation in full]
    assert [uncut_fields(record) for record in records(short)] == [uncut_fields(record) for record in records(full)]
    assert [operation.code for operation in short if isinstance(operation, Problem)] == [
        operation.code for operation in full if isinstance(operation, Problem)
    ]


def test_shortened_documents_give_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(60):
        _compare_documents(random.Random(seed), monkeypatch)  # noqa: S311


def _compare_documents(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [message for number in range(1, 9) if "id" in (message := long_message(rng, number))]
    text = json.dumps(header(messages=messages, summary=long_text(rng)), indent=rng.choice((1, 2, 4)))
    full, short = full_and_short_operations(text.encode(), monkeypatch)
    assert isinstance(full[0], Document)
    assert isinstance(short[0], Document)
    assert short[0].fields == full[0].fields
    assert short[0].spans == full[0].spans
    assert [uncut_fields(record) for record in short[0].records] == [uncut_fields(record) for record in full[0].records]


@pytest.mark.parametrize("part", range(4))
def test_damaged_lines_give_the_same_operations_when_shortened(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(part, 2000, 4):
        full, short = full_and_short_operations(fuzzed(seed), monkeypatch)
        assert [_code_and_line(operation) for operation in short] == [
            _code_and_line(operation) for operation in full
        ], seed


def _code_and_line(operation: Operation) -> object:
    return (operation.code, operation.line) if isinstance(operation, Problem) else operation


@pytest.mark.usefixtures("low_limits")
def test_lines_are_long_only_beyond_the_limit() -> None:
    data = b"a" * 500 + b"\n" + b"b" * 501 + b"\r" + b"c" * 501 + b"\rd\n" + b"e" * 900
    lines = [*source(data).lines()]
    assert [(line_.number, len(line_.data), line_.data[:1]) for line_ in lines] == [
        (1, 500, b"a"),
        (2, 501, b"b"),
        (2, 501, b"c"),
        (2, 1, b"d"),
        (3, 900, b"e"),
    ]
    assert [line_.number for line_ in lines if isinstance(line_, LongLine)] == [2, 2, 3]


@pytest.mark.usefixtures("low_limits")
def test_shortened_text_is_within_its_limit() -> None:
    data = line(gemini("g1", "x" * 5000, thoughts=[{"subject": "y" * 300}, {"subject": "z" * 150}]))
    short = shorten(source(data), Span(0, len(data)))
    assert short is not None
    assert len(short.text) < 600
    assert [cut.n_chars for cut in short.cuts] == [4940, 240, 90]
    assert json.loads(short.text)["id"] == "g1"


@pytest.mark.usefixtures("low_limits")
def test_value_of_many_short_parts_is_not_shortened() -> None:
    data = line(gemini("g1", [{"text": "x"}] * 500))
    place = source(data)
    assert shorten(place, Span(0, len(data))) is None
    assert value_at(place, Span(0, len(data))) == (data, None)


@pytest.mark.usefixtures("low_limits")
def test_ids_are_never_cut() -> None:
    data = log(header(), gemini("g" * 700, "x"), checkpoint(user("u" * 700, "y")), rewind("z" * 700))
    operations = [*formats.opened(source(data)).operations]
    assert [record.id for record in records(operations)] == ["g" * 700, "u" * 700]
    assert not has_mark(operations)


@pytest.mark.usefixtures("low_limits")
def test_metadata_are_never_cut() -> None:
    data = log(header(summary="s" * 3000, messages=[user("u1", "x" * 900)]))
    (head,) = formats.opened(source(data)).operations
    assert isinstance(head, Header)
    assert head.fields["summary"] == "s" * 3000
    assert [record.n_chars for record in head.records] == [900]


@pytest.mark.usefixtures("low_limits")
def test_prompts_with_different_middles_have_different_checksums() -> None:
    texts = ["a" * 900 + middle + "b" * 900 for middle in ("x", "y", "x")]
    data = log(*(user(str(number), text) for number, text in enumerate(texts)))
    messages = [*records([*formats.opened(source(data)).operations])]
    first, second, third = (record.checksum for record in messages)
    assert first == third != second
    assert {record.prompt[:40] for record in messages} == {"a" * 40}


@pytest.mark.usefixtures("low_limits")
def test_mark_of_masked_output_is_found_wherever_the_text_is_cut() -> None:
    for n_before in range(20, 120):
        output = "x" * n_before + MASKED.decode() + "y" * (900 - n_before)
        data = line(gemini(toolCalls=[call(result=[answers(output=output)])]))
        text, elided = value_at(source(data), Span(0, len(data)))
        assert elided is not None
        assert MASKED in text or elided.has_cut_out(MASKED, text)
        assert elided.n_bytes(text) == len(data)
        assert not elided.has_cut_out(MASKED, text.replace(b"<cut", b""))


def full_and_short_messages(tmp_path: Path, *messages: object) -> list[tuple[Message, Message]]:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(header(), *messages))
    read = reading.read(path)
    return [
        (reading.build_message(read, entry), reading.build_message(read, entry, shortened=True))
        for entry in read.replay.timeline
    ]


@pytest.mark.usefixtures("low_limits")
def test_shortened_message_names_the_number_of_omitted_characters(tmp_path: Path) -> None:
    ((full, cut),) = full_and_short_messages(tmp_path, gemini("g1", "é" * 5000))
    assert full.text == "é" * 5000
    beginning, _, remainder = cut.text.partition("\n[Pollux left out ")
    number, words, end = remainder.partition(" characters here; `pollux export ID --format json` writes all of them]\n")
    assert words
    assert set(beginning) == set(end) == {"é"}
    assert len(beginning) + int(number.replace(",", "")) + len(end) == 5000


@pytest.mark.usefixtures("low_limits")
def test_shortened_attachment_has_its_full_size_and_no_data(tmp_path: Path) -> None:
    data = "QUJD" * 1000 + "QQ=="
    content = [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": data}}]
    ((full, cut),) = full_and_short_messages(tmp_path, user("u1", content))
    assert full.parts[1] == Attachment("image/png", 3001, data=data)
    assert cut.parts[1] == Attachment("image/png", 3001)


@pytest.mark.usefixtures("low_limits")
def test_copies_of_long_answers_are_recognised(tmp_path: Path) -> None:
    answer = [{"text": "a" * 2000 + "b" * 2000}]
    other = [{"text": "a" * 2000 + "c" + "b" * 1999}]
    first = gemini("g1", answer, tokens=tokens())
    bare = [{"id": id_, "type": "gemini", "content": content} for id_, content in (("g2", answer), ("g3", other))]
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(header(), user("u1", "x"), first, checkpoint(user("u2", "x"), *bare)))
    read = reading.read(path)
    assert [entry.id for entry in read.replay.timeline] == ["u1", "g1", "g3"]


@pytest.mark.usefixtures("low_limits")
def test_first_words_of_a_shortened_prompt_are_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(header(), user("u1", "w" * 3000)))
    read = reading.read(path)
    assert len(read.replay.first_words or "") < 1000
    assert reading.first_words(read) == "w" * 3000


def test_large_document_is_read_with_another_indentation(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [user("u1", "one"), gemini("g1", "two", tokens=tokens())]
    data = json.dumps(header(messages=messages), indent=1).encode()
    monkeypatch.setattr(document_module, "AT_ONCE", 10)
    (document,) = document_module.read(source(data))
    assert isinstance(document, Document)
    assert [(record.id, record.line) for record in document.records] == [("u1", 8), ("g1", 14)]
    assert [json.loads(data[start:end]) for start, end in document.spans] == messages
    assert not document.salvaged


def test_elided_text_has_its_end_and_its_length() -> None:
    elided = ElidedText("==", 4)
    assert (elided, elided.length) == ("==", 4)


@pytest.mark.usefixtures("low_limits")
def test_reading_does_not_depend_on_the_kind_of_source(tmp_path: Path) -> None:
    data = log(header(), user("u1", "x" * 3000), gemini("g1", "y" * 3000, tokens=tokens()))
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    held = Source(path, read=lambda start, end: data[start:end], size=len(data))
    results = [
        replay(formats.opened(origin).operations, *reading.record_lookups(origin))
        for origin in (Source(path), held, source(data))
    ]
    assert [[entry.id for entry in result.timeline] for result in results] == [["u1", "g1"]] * 3
