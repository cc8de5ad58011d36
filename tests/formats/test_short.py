from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.builders import answers, call, checkpoint, gemini, header, line, log, rewind, source, tokens, user
from tests.formats.fuzz import fuzzed
from tests.formats.small import make_small

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
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def whole_and_short(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Operation], list[Operation]]:
    found = list(formats.opened(source(data)).operations)
    with monkeypatch.context() as patch:
        make_small(patch)
        if data.startswith(b"{\n"):
            patch.setattr(document_module, "AT_ONCE", 500)
        return found, list(formats.opened(source(data)).operations)


def records(operations: list[Operation]) -> Iterator[Record]:
    for one in operations:
        if isinstance(one, Put):
            yield one.record
        elif isinstance(one, Header | Update | Document):
            yield from one.records or ()


def exact(record: Record) -> tuple[Any, ...]:
    """Return all of a record but its prompt, which is told with an ellipsis."""
    return tuple(
        value for name, value in zip(record.__struct_fields__, _values(record), strict=True) if name not in _TOLD
    )


_TOLD = ("prompt", "checksum")


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
def test_long_lines_say_exactly_what_whole_ones_say(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(part, 200, 5):
        _compare_lines(random.Random(seed), monkeypatch)  # noqa: S311  no secret


def _compare_lines(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [long_message(rng, number) for number in range(1, 9)]
    lists = [one for one in messages if "id" in one]
    lines = [header(), *messages, checkpoint(*lists), header(messages=lists)]
    encode = json.JSONEncoder(ensure_ascii=rng.random() < 0.5, separators=rng.choice([(",", ":"), (", ", ": ")])).encode
    data = "\n".join(map(encode, lines)).encode("utf-8", "surrogatepass")
    if rng.random() < 0.3:
        place = rng.randrange(len(data))
        data = data[:place] + bytes([rng.randint(0, 255)]) + data[place + 1 :]
    whole, short = whole_and_short(data, monkeypatch)
    assert not has_mark(short)
    assert [type(one) for one in short] == [type(one) for one in whole]
    assert [exact(one) for one in records(short)] == [exact(one) for one in records(whole)]
    assert [one.code for one in short if isinstance(one, Problem)] == [
        one.code for one in whole if isinstance(one, Problem)
    ]


def test_long_documents_say_exactly_what_whole_ones_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(60):
        _compare_documents(random.Random(seed), monkeypatch)  # noqa: S311


def _compare_documents(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [one for number in range(1, 9) if "id" in (one := long_message(rng, number))]
    text = json.dumps(header(messages=messages, summary=long_text(rng)), indent=rng.choice((1, 2, 4)))
    whole, short = whole_and_short(text.encode(), monkeypatch)
    assert isinstance(whole[0], Document)
    assert isinstance(short[0], Document)
    assert short[0].fields == whole[0].fields
    assert short[0].spans == whole[0].spans
    assert [exact(one) for one in short[0].records] == [exact(one) for one in whole[0].records]


@pytest.mark.parametrize("part", range(4))
def test_damaged_long_lines_are_read_as_short_ones(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(part, 2000, 4):
        whole, short = whole_and_short(fuzzed(seed), monkeypatch)
        assert [_without_words(one) for one in short] == [_without_words(one) for one in whole], seed


def _without_words(operation: Operation) -> object:
    return (operation.code, operation.line) if isinstance(operation, Problem) else operation


@pytest.mark.usefixtures("small")
def test_lines_are_long_only_beyond_the_limit() -> None:
    data = b"a" * 500 + b"\n" + b"b" * 501 + b"\r" + b"c" * 501 + b"\rd\n" + b"e" * 900
    found = [*source(data).lines()]
    assert [(one.number, len(one.data), one.data[:1]) for one in found] == [
        (1, 500, b"a"),
        (2, 501, b"b"),
        (2, 501, b"c"),
        (2, 1, b"d"),
        (3, 900, b"e"),
    ]
    assert [one.number for one in found if isinstance(one, LongLine)] == [2, 2, 3]


@pytest.mark.usefixtures("small")
def test_a_short_text_is_not_longer_than_its_limit() -> None:
    data = line(gemini("g1", "x" * 5000, thoughts=[{"subject": "y" * 300}, {"subject": "z" * 150}]))
    found = shorten(source(data), Span(0, len(data)))
    assert found is not None
    assert len(found.text) < 600
    assert [cut.n_chars for cut in found.cuts] == [4940, 240, 90]
    assert json.loads(found.text)["id"] == "g1"


@pytest.mark.usefixtures("small")
def test_a_value_of_many_parts_is_read_whole() -> None:
    data = line(gemini("g1", [{"text": "x"}] * 500))
    place = source(data)
    assert shorten(place, Span(0, len(data))) is None
    assert value_at(place, Span(0, len(data))) == (data, None)


@pytest.mark.usefixtures("small")
def test_ids_are_never_cut() -> None:
    data = log(header(), gemini("g" * 700, "x"), checkpoint(user("u" * 700, "y")), rewind("z" * 700))
    found = [*formats.opened(source(data)).operations]
    assert [record.id for record in records(found)] == ["g" * 700, "u" * 700]
    assert not has_mark(found)


@pytest.mark.usefixtures("small")
def test_metadata_are_never_cut() -> None:
    data = log(header(summary="s" * 3000, messages=[user("u1", "x" * 900)]))
    (found,) = formats.opened(source(data)).operations
    assert isinstance(found, Header)
    assert found.fields["summary"] == "s" * 3000
    assert [record.n_chars for record in found.records] == [900]


@pytest.mark.usefixtures("small")
def test_prompts_that_differ_in_their_middle_have_other_checksums() -> None:
    texts = ["a" * 900 + one + "b" * 900 for one in ("x", "y", "x")]
    data = log(*(user(str(number), text) for number, text in enumerate(texts)))
    found = [*records([*formats.opened(source(data)).operations])]
    first, second, third = (one.checksum for one in found)
    assert first == third != second
    assert {one.prompt[:40] for one in found} == {"a" * 40}


@pytest.mark.usefixtures("small")
def test_what_decides_is_found_wherever_it_was_cut() -> None:
    for n_before in range(20, 120):
        output = "x" * n_before + MASKED.decode() + "y" * (900 - n_before)
        data = line(gemini(toolCalls=[call(result=[answers(output=output)])]))
        text, found = value_at(source(data), Span(0, len(data)))
        assert found is not None
        assert MASKED in text or found.has_cut_out(MASKED, text)
        assert found.n_bytes(text) == len(data)
        assert not found.has_cut_out(MASKED, text.replace(b"<cut", b""))


def shown(tmp_path: Path, *messages: object) -> list[tuple[Message, Message]]:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(header(), *messages))
    found = reading.read(path)
    return [
        (reading.build_message(found, entry), reading.build_message(found, entry, shortened=True))
        for entry in found.replay.timeline
    ]


@pytest.mark.usefixtures("small")
def test_a_shown_message_says_how_much_was_left_out(tmp_path: Path) -> None:
    ((whole, cut),) = shown(tmp_path, gemini("g1", "é" * 5000))
    assert whole.text == "é" * 5000
    beginning, _, rest = cut.text.partition("\n[Pollux left out ")
    number, words, end = rest.partition(" characters here; `pollux export ID --format json` writes all of them]\n")
    assert words
    assert set(beginning) == set(end) == {"é"}
    assert len(beginning) + int(number.replace(",", "")) + len(end) == 5000


@pytest.mark.usefixtures("small")
def test_a_shown_attachment_has_its_size_and_no_half_of_its_bytes(tmp_path: Path) -> None:
    data = "QUJD" * 1000 + "QQ=="
    content = [{"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": data}}]
    ((whole, cut),) = shown(tmp_path, user("u1", content))
    assert whole.parts[1] == Attachment("image/png", 3001, data=data)
    assert cut.parts[1] == Attachment("image/png", 3001)


@pytest.mark.usefixtures("small")
def test_copies_of_long_answers_are_known_again(tmp_path: Path) -> None:
    answer = [{"text": "a" * 2000 + "b" * 2000}]
    other = [{"text": "a" * 2000 + "c" + "b" * 1999}]
    first = gemini("g1", answer, tokens=tokens())
    bare = [{"id": one, "type": "gemini", "content": content} for one, content in (("g2", answer), ("g3", other))]
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(header(), user("u1", "x"), first, checkpoint(user("u2", "x"), *bare)))
    found = reading.read(path)
    assert [entry.id for entry in found.replay.timeline] == ["u1", "g1", "g3"]


@pytest.mark.usefixtures("small")
def test_first_words_are_whole_for_the_client(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(log(header(), user("u1", "w" * 3000)))
    found = reading.read(path)
    assert len(found.replay.first_words or "") < 1000
    assert reading.first_words(found) == "w" * 3000


def test_a_huge_document_is_read_whatever_its_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [user("u1", "one"), gemini("g1", "two", tokens=tokens())]
    data = json.dumps(header(messages=messages), indent=1).encode()
    monkeypatch.setattr(document_module, "AT_ONCE", 10)
    (found,) = document_module.read(source(data))
    assert isinstance(found, Document)
    assert [(one.id, one.line) for one in found.records] == [("u1", 8), ("g1", 14)]
    assert [json.loads(data[start:end]) for start, end in found.spans] == messages
    assert not found.salvaged


def test_left_out_keeps_the_end_and_the_length() -> None:
    made = ElidedText("==", 4)
    assert (made, made.length) == ("==", 4)


@pytest.mark.usefixtures("small")
def test_reading_is_the_same_from_other_places(tmp_path: Path) -> None:
    data = log(header(), user("u1", "x" * 3000), gemini("g1", "y" * 3000, tokens=tokens()))
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    held = Source(path, read=lambda start, end: data[start:end], size=len(data))
    results = [
        replay(formats.opened(one).operations, *reading.record_lookups(one))
        for one in (Source(path), held, source(data))
    ]
    assert [[entry.id for entry in one.timeline] for one in results] == [["u1", "g1"]] * 3
