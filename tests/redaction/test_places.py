"""A secret is replaced in every field of a message, and nothing else changes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.redaction.samples import ROWS, Sample, samples

from pollux.model import (
    Activity,
    AgentDisplay,
    Attachment,
    Cell,
    Code,
    CodeResult,
    DiffDisplay,
    Fate,
    FileDisplay,
    FunctionCall,
    FunctionResponse,
    GrepMatch,
    Kind,
    MatchDisplay,
    Message,
    Origin,
    Part,
    ScreenDisplay,
    Text,
    TextDisplay,
    Thought,
    Todo,
    TodoDisplay,
    ToolCall,
    Unknown,
    UnknownDisplay,
)
from pollux.redaction import RULES, redactor
from pollux.redaction.messages import all_texts as texts

WORDS = {rule.id: rule.label for rule in RULES}


def message(*parts: Part, **fields: Any) -> Message:  # noqa: ANN401  fields of a message
    return Message("m1", Kind.GEMINI, Origin.MODEL, Fate.ACTIVE, None, parts=parts, **fields)


def call(**fields: Any) -> Message:  # noqa: ANN401  fields of a tool call
    args = fields.pop("args", {})
    return message(tool_calls=(ToolCall("c1", "tool", "tool", "Other", "other", "tool", "success", args, **fields),))


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# Each makes a message of a text that may hold a secret; the same is expected of the text without it.
PLACES: dict[str, Callable[[str], Message]] = {
    "text": lambda text: message(Text(text)),
    "second text": lambda text: message(Text("Hello. "), Text(text)),
    "typed": lambda text: message(Text("longer"), display=(Text(text),)),
    "thought": lambda text: message(thoughts=(Thought(text, "Thinking"),)),
    "subject": lambda text: message(thoughts=(Thought("thinking", text),)),
    "thought part": lambda text: message(Thought(text)),
    "code": lambda text: message(Code("python", text)),
    "result of code": lambda text: message(CodeResult("OK", text)),
    "function call": lambda text: message(FunctionCall("c1", "tool", {"list": [{"deep": text}]})),
    "function response": lambda text: message(FunctionResponse("c1", "tool", {"output": text})),
    "unknown part": lambda text: message(Unknown({"what": [text, 1, None, True]})),
    "other fields": lambda text: message(extra={"x": {"y": text}}),
    "argument": lambda text: call(args={"content": text, "n": 3}),
    "nested argument": lambda text: call(args={"steps": [{"env": {"note": text}}, 7]}),
    "arguments as text": lambda text: call(args=text),
    "key": lambda text: call(args={text: "value"}),
    "output": lambda text: call(output=text),
    "error": lambda text: call(error=text),
    "response": lambda text: call(response=[{"text": text}]),
    "description": lambda text: call(description=text, display_name=text, extra={"more": text}),
    "display": lambda text: call(display=TextDisplay(text)),
    "diff": lambda text: call(
        display=DiffDisplay(f"@@ -1 +1 @@\n {text}", "a.txt", "a.txt", f"x\n{text}", f"{text}\ny")
    ),
    "todo": lambda text: call(display=TodoDisplay((Todo(text, "pending"),))),
    "agent": lambda text: call(display=AgentDisplay("a", result=text, activity=(Activity("thought", text),))),
    "matches": lambda text: call(display=MatchDisplay("1 match", (GrepMatch("a.txt", 1, text),))),
    "files": lambda text: call(display=FileDisplay("1 file", ("a.txt", text))),
    "unknown display": lambda text: call(display=UnknownDisplay({"a": text})),
    "cell": lambda text: call(display=ScreenDisplay(((Cell(text, "red", bold=True),), (Cell("$ "),)))),
}
"""Messages with a text in each field."""


def all_samples() -> Iterator[Any]:
    for id_ in ROWS:
        yield pytest.param([*samples(id_)], id=id_)


each = pytest.mark.parametrize("several", [*all_samples()])


def without(sample: Sample) -> str:
    return sample.text.replace(sample.secret, f"[redacted:{WORDS[sample.rule]}#1]")


@each
def test_secret_in_every_field(several: list[Sample]) -> None:
    for sample in several:
        for place, made in PLACES.items():
            done = redactor().message(made(f"see {sample.text} there"))
            assert done == made(f"see {without(sample)} there"), place


@each
def test_secret_in_a_text_that_is_json(several: list[Sample]) -> None:
    for sample in several:
        for indent in (None, 2):
            text = json.dumps({"note": [f"see {sample.text} there"], "n": 1}, indent=indent)
            done = redactor().text(text)
            assert json.loads(done) == {"note": [f"see {without(sample)} there"], "n": 1}


@each
def test_secret_in_base64(several: list[Sample]) -> None:
    for sample in several:
        text = f"see {sample.text} there"
        assert redactor().text(f"echo {encoded(text)} | base64 -d") == "echo [redacted:encoded#1] | base64 -d"
        assert redactor().json({"data": [encoded(text)]}) == {"data": ["[redacted:encoded#1]"]}


@each
def test_secret_in_base64_of_many_lines(several: list[Sample]) -> None:
    for sample in several:
        lines = base64.encodebytes(f"{'words ' * 30}{sample.text}{' words' * 30}".encode()).decode()
        for word in ("ready", "a longer line"):
            assert redactor().text(f"{lines}{word}") == f"[redacted:encoded#1]\n{word}"


@each
def test_secret_split_over_parts(several: list[Sample]) -> None:
    for sample in several:
        text = f"see {sample.text} there"
        for share in (1, 2, 3):
            cut = text.index(sample.secret) + max(len(sample.secret) * share // 4, 1)
            done = redactor().message(message(Text(text[:cut]), Text(text[cut:])))
            assert done.text == f"see {without(sample)} there"
            first, _second = done.parts
            assert isinstance(first, Text)
            assert first.text.endswith("]")
            thoughts = redactor().message(message(thoughts=(Thought(text[:cut]), Thought(text[cut:])))).thoughts
            assert "".join(thought.text for thought in thoughts) == f"see {without(sample)} there"
            wire: Any = redactor().json({"content": [{"text": text[:cut]}, {"text": text[cut:]}]})
            assert "".join(part["text"] for part in wire["content"]) == f"see {without(sample)} there"


@each
def test_secret_in_three_parts_leaves_an_empty_one(several: list[Sample]) -> None:
    for sample in several:
        text, secret = f"see {sample.text} there", sample.secret
        if len(secret) < 3:
            continue
        start = text.index(secret)
        cuts = (text[: start + 1], text[start + 1 : start + len(secret) - 1], text[start + len(secret) - 1 :])
        done = redactor().message(message(*map(Text, cuts)))
        assert done.text == f"see {without(sample)} there"
        assert done.parts[1] == Text("")


@each
def test_secret_on_a_screen(several: list[Sample]) -> None:
    for sample in several:
        lines = f"$ cat it\nsee {sample.text} there".split("\n")
        rows = tuple(tuple(Cell(line[at : at + 7], "red") for at in range(0, len(line), 7)) for line in lines)
        done = redactor().message(call(display=ScreenDisplay(rows))).tool_calls[0].display
        assert isinstance(done, ScreenDisplay)
        shown = "\n".join("".join(cell.text for cell in row) for row in done.lines)
        assert [len(row) for row in done.lines] == [len(row) for row in rows]
        assert all(cell.fg == "red" for row in done.lines for cell in row)
        if "\n" in sample.secret:  # its lines stay, empty
            assert shown.replace("\n", "") == f"$ cat it see {without(sample)} there".replace(" see", "see").replace(
                "\n", ""
            )
        else:
            assert shown == f"$ cat it\nsee {without(sample)} there"


@each
def test_secret_wrapped_on_a_screen(several: list[Sample]) -> None:
    for sample in several:
        if "\n" in sample.text or "  " in sample.text:
            continue
        line = f"see {sample.text} there"
        rows = tuple((Cell(line[at : at + 64]),) for at in range(0, len(line), 64))
        full = all(not row[0].text.endswith(" ") for row in rows[:-1])
        done = redactor().message(call(display=ScreenDisplay(rows))).tool_calls[0].display
        assert isinstance(done, ScreenDisplay)
        if full:
            assert "".join(cell.text for row in done.lines for cell in row) == f"see {without(sample)} there"


@each
def test_secret_full_of_colours(several: list[Sample]) -> None:
    for sample in several:
        secret = sample.secret
        for on, off in (("\x1b[1;32m", "\x1b[0m"), ("\x1b]8;;http://x\x07", "\x1b[K"), ("\\u001b[31m", "\\u001b[0m")):
            half = len(secret) // 2
            coloured = f"{secret[:half]}{on}{secret[half:]}"
            text = f"see {sample.text.replace(secret, coloured)}{off} there"
            assert redactor().text(text) == f"see {without(sample)}{off} there"


@each
def test_secret_in_a_diff(several: list[Sample]) -> None:
    for sample in several:
        for sign in "+- ":
            diff = "\n".join(f"{sign}{line}" for line in f"see {sample.text} there".split("\n"))
            done = redactor().text(f"@@ -1,2 +1,2 @@\n{diff}\n")
            assert done.startswith(f"@@ -1,2 +1,2 @@\n{sign}see ")
            assert done.endswith(" there\n")
            assert not any(len(line) > 6 and line in done for line in sample.secret.split("\n"))
            assert f"[redacted:{WORDS[sample.rule]}#1]" in done


@each
def test_secret_with_line_numbers(several: list[Sample]) -> None:
    for sample in several:
        text = f"see {sample.text} there"
        matches = tuple(GrepMatch("key.pem", number, line) for number, line in enumerate(text.split("\n")))
        done = redactor().message(call(display=MatchDisplay("some", matches)))
        shown = "".join(texts(done))
        assert not any(len(line) > 6 and line in shown for line in sample.secret.split("\n"))


@each
def test_secret_in_a_url(several: list[Sample]) -> None:
    for sample in several:
        if "\n" in sample.text:
            continue
        quoted = "".join(char if char.isalnum() else f"%{ord(char):02X}" for char in sample.text)
        done = redactor().text(f"https://example.com/?q={quoted}&x=1")
        assert "[redacted:" in done
        assert "".join(f"%{ord(char):02X}" if not char.isalnum() else char for char in sample.secret) not in done


@each
def test_secret_in_an_attached_text(several: list[Sample]) -> None:
    for sample in several:
        for media_type in ("text/plain", "application/json", "image/svg+xml"):
            data = encoded(f"see {sample.text} there")
            done = redactor().message(message(Attachment(media_type, 9, None, data))).attachments[0]
            assert base64.b64decode(done.data or "").decode() == f"see {without(sample)} there"
            assert done.size == len(f"see {without(sample)} there")
