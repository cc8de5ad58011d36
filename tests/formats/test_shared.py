"""Conversations shared as Markdown equal the JSON that the client shared at the same moment."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import codes, put, values

from pollux.formats import history, shared
from pollux.formats.converted import Converted
from pollux.model import Json, Message
from pollux.sessions.reader import from_file
from pollux.sessions.replay.reading import read

DATA = Path(__file__).parents[1] / "data" / "shared"
NAME = "gemini-conversation-1794772150000.md"
MODIFIED = datetime(2026, 11, 15, 19, 0, tzinfo=UTC)


def convert(text: str | bytes, name: str = NAME) -> Converted:
    data = text if isinstance(text, bytes) else text.encode()
    return shared.convert(data, name=name, modified=MODIFIED)


def client_markdown(contents: list[dict[str, Any]]) -> str:
    """Return a history as Markdown, written as the client does."""
    icons = {"user": "🧑‍💻", "model": "✨"}
    sections = (
        f"## {entry['role'].upper()} {icons[entry['role']]}\n\n{''.join(map(_part_markdown, entry['parts']))}"
        for entry in contents
    )
    return "\n\n---\n\n".join(sections)


def _part_markdown(part: dict[str, Any]) -> str:
    for key, title in (("functionCall", "Command"), ("functionResponse", "Response")):
        if key in part:
            return f"**Tool {title}**:\n```json\n{json.dumps(part[key], ensure_ascii=False, indent=2)}\n```"
    text = part["text"]
    assert isinstance(text, str)
    return text


def summaries(messages: list[Message]) -> list[tuple[Any, ...]]:
    """Return the fields of messages that both Markdown and JSON contain."""
    return [
        (
            message.kind,
            message.origin,
            message.text,
            [(call.id, call.name, call.args, call.status, call.output, call.error) for call in message.tool_calls],
        )
        for message in messages
    ]


def messages_of(path: Path) -> list[Message]:
    return [*from_file(path)[1].messages()]


@pytest.mark.parametrize("release", ["0.8.2", "0.61.0"])
def test_shared_markdown_equals_shared_json(release: str) -> None:
    markdown, json_file = DATA / f"{release}.md", DATA / f"{release}.json"
    assert summaries(messages_of(markdown)) == summaries(messages_of(json_file))
    session, _ = from_file(markdown)
    assert (session.files[0].format, session.title, session.problems) == ("shared", "Question one.", ())
    assert (session.counts["user"], session.tool_calls, session.calls) == (2, 1, ())


def test_shared_markdown_of_the_corpus_equals_shared_json(corpus: Path) -> None:
    paths = [*corpus.glob("*/*/project-files/shared.md")]
    assert len(paths) >= 10
    for path in paths:
        assert shared.sniff(path.read_bytes()[: 64 << 10]), path
        assert summaries(messages_of(path)) == summaries(messages_of(path.with_suffix(".json"))), path


_words = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1).filter(
    lambda text: not any(mark in text for mark in ("---", "**Tool", "```", "##"))
)
_named = st.fixed_dictionaries({"name": st.text(st.characters(codec="utf-8")), "args": values})
_parts = st.one_of(
    _words.map(lambda text: {"text": text}),
    _named.map(lambda fields: {"functionCall": fields}),
    _named.map(lambda fields: {"functionResponse": fields}),
)


@given(
    st.lists(st.fixed_dictionaries({"role": st.sampled_from(("user", "model")), "parts": st.lists(_parts)}), min_size=1)
)
def test_shared_markdown_round_trips(contents: list[dict[str, Any]]) -> None:
    data = client_markdown(contents).encode()
    assert shared.sniff(data)
    joined = [{**entry, "parts": _join_texts(entry["parts"])} for entry in contents]
    expected = history.convert(json.dumps(joined).encode(), name=NAME, modified=MODIFIED)
    assert json.loads(json.dumps(convert(data).messages)) == json.loads(json.dumps(expected.messages))


def _join_texts(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for is_text, group in groupby(parts, lambda part: "text" in part):
        group_parts = [*group]
        joined += [{"text": "".join(part["text"] for part in group_parts)}] if is_text else group_parts
    return joined


def contents_of(converted: Converted) -> list[Json]:
    return [message["content"] for message in converted.messages]


def test_start_is_taken_from_the_file_name() -> None:
    assert convert("## USER 🧑‍💻\n\nhello").header["startTime"] == "2026-11-15T19:49:10.000Z"
    assert convert("## USER 🧑‍💻\n\nhello", "talk.md").header["startTime"] == "2026-11-15T19:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## USER 🧑‍💻\n\n\n\n---\n\n## MODEL ✨\n\nhi", [[], [{"text": "hi"}]]),
        ("## USER 🧑‍💻\n\nhello\n\n---\n\n## MODEL ✨\n", [[{"text": "hello"}], []]),
        ("## USER 🧑‍💻\r\n\r\nhello\r\n\r\n---\r\n\r\n## MODEL ✨\r\n\r\nhi", [[{"text": "hello"}], [{"text": "hi"}]]),
        ("## USER 🧑‍💻\n\na\n\n---\n\nb\n\n## Next", [[{"text": "a\n\n---\n\nb\n\n## Next"}]]),
        (
            '## USER 🧑‍💻\n\n**Tool Command**:\n```json\n{"no": "name"}\n```',
            [[{"text": '**Tool Command**:\n```json\n{"no": "name"}\n```'}]],
        ),
    ],
    ids=["empty", "empty at the end", "Windows", "rulers and headings of its own", "no call"],
)
def test_unusual_sections_are_read_without_problems(text: str, expected: list[list[Json]]) -> None:
    result = convert(text)
    assert (contents_of(result), result.problems) == (expected, ())


def test_other_encodings_are_read() -> None:
    assert contents_of(convert(b"\xef\xbb\xbf" + "## USER 🧑‍💻\n\nÄ".encode())) == [[{"text": "Ä"}]]
    data = "## USER 🧑‍💻\n\nÄ".encode("utf-16")
    assert shared.sniff(data)
    assert contents_of(convert(data)) == [[{"text": "Ä"}]]


def test_cut_call_is_kept_as_text_and_reported(tmp_path: Path) -> None:
    text = '## MODEL ✨\n\nI look.**Tool Command**:\n```json\n{\n  "name": "read'
    reading = read(put(tmp_path / NAME, text.encode()))
    assert codes(reading) == ["torn-json"]
    assert reading.replay.problems[0].line == 3
    assert [message.text for message in messages_of(tmp_path / NAME)] == [text.partition("\n\n")[2]]


def test_unterminated_calls_are_read_as_one_message() -> None:
    text = "## MODEL ✨\n\n" + "**Tool Command**:\n```json\n" * 50_000 + "\n```"
    assert len(convert(text).messages) == 1


@pytest.mark.parametrize(
    "text", ["# USER 🧑‍💻\n\nhello", "## USER\n\nhello", "## Summary ✨\n\nhello", "hello", "", "## USER 🧑‍💻"]
)
def test_other_files_are_not_recognised(text: str) -> None:
    assert not shared.sniff(text.encode())
