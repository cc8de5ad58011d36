"""The texts of a message by kind, and what of them is indexed.

Tool arguments and output contain things that nobody searches for by words: encoded data, minified code, dumps, and very
long logs. `limited` leaves them out of the index and says so; a scan reads the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple, assert_never

from pollux.formats.short import LEFT_OUT
from pollux.formats.tools import TOOLS
from pollux.model import (
    AgentDisplay,
    Attachment,
    Code,
    CodeResult,
    DiffDisplay,
    Display,
    FileDisplay,
    FunctionCall,
    FunctionResponse,
    Json,
    Kind,
    MatchDisplay,
    Message,
    Origin,
    Part,
    ScreenDisplay,
    Text,
    TextDisplay,
    Thought,
    TodoDisplay,
    ToolCall,
    Unknown,
    UnknownDisplay,
)

LIMITS = "1"
"""Increase this whenever the same message would be indexed with another text."""


class PartKind(IntEnum):
    """The kinds of text in a message; `rowid & 7` in the index."""

    PROMPT = 0
    ANSWER = 1
    THOUGHTS = 2
    ARGS = 3
    OUTPUT = 4
    NOTICE = 5


PART_NAMES = ("prompt", "answer", "thoughts", "args", "output", "notice")
"""The name of each kind, as in `in:`."""


class PartText(NamedTuple):
    """The whole text of one kind in a message."""

    kind: PartKind
    text: str


DIGEST = 8
"""Bytes of a digest of the texts of a message."""
SEPARATOR = "\n\x1e\n"
"""Between the texts of two tool calls of a message, each of which has limits of its own."""
_PROMPTS = frozenset({Origin.HUMAN, Origin.LOADED, Origin.SHELL_MODE, Origin.AGENT_PROMPT})
_HEAD, _TAIL = 16 << 10, 4 << 10
"""Characters at the beginning and at the end of a long text that are indexed."""
_EXAMINED = 4
"""How many times as many characters are examined, since encoded data in them is left out."""
_LONG_LINE, _LINE_HEAD, _LINE_TAIL = 1000, 400, 100
_SHORTEST_RUN = 64
_RUN = re.compile(rf"[A-Za-z0-9+/_-]{{{_SHORTEST_RUN},}}")
_RUN_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_IS_RUN_LETTER = bytes(0x78 if code in _RUN_LETTERS else 0x20 for code in range(256))
"""Maps the letters of encoded data to `x`, so that a run of them is found at the speed of a substring search."""
_ANY_RUN = b"x" * _SHORTEST_RUN
_DIGIT, _UPPER, _LOWER = (re.compile(letters) for letters in ("[0-9]", "[A-Z]", "[a-z]"))
_DUMP_LINE = re.compile(r"\n[ \t]*[0-9a-fA-F]{6,16}:? +(?:[0-9a-fA-F]{2,8} +){4}[^\n]*")
"""A line of `xxd`, `hexdump` or `od`."""


def message_parts(message: Message) -> list[PartText]:
    """Return the texts of a message, at most one of each kind, in the order of the kinds."""
    texts: dict[PartKind, str] = {}
    outputs: list[str] = []
    if message.origin is Origin.TOOL_RESPONSE:
        outputs += _unassigned_responses(message.parts)
    elif message.parts or message.display:
        texts[_kind_of_text(message)] = "\n".join(_own_texts(message))
    if message.thoughts:
        texts[PartKind.THOUGHTS] = "\n".join(_thought_texts(message))
    if message.tool_calls:
        arguments = [_argument_text(call.name, call.args) for call in message.tool_calls]
        outputs += [_result(call) for call in message.tool_calls]
    else:
        arguments = [_argument_text(part.name, part.args) for part in message.parts if isinstance(part, FunctionCall)]
    texts[PartKind.ARGS] = SEPARATOR.join(filter(None, arguments))
    texts[PartKind.OUTPUT] = SEPARATOR.join(filter(None, outputs))
    return [PartText(kind, text) for kind, text in sorted(texts.items()) if text and not text.isspace()]


def digest_of(parts: Iterable[PartText]) -> bytes:
    """Return a digest of the texts of a message."""
    digest = blake2b(digest_size=DIGEST)
    for kind, text in parts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d %d\n" % (kind, len(data)))
        digest.update(data)
    return digest.digest()


def limited(part: PartText) -> tuple[str, bool]:
    """Return what of a part is indexed, and whether something was left out."""
    if part.kind not in (PartKind.ARGS, PartKind.OUTPUT) or len(part.text) < _SHORTEST_RUN:
        return part.text, len(part.text) >= _HEAD and LEFT_OUT in part.text  # `build_message` shortened it
    if SEPARATOR not in part.text:
        return _limited(part.text)
    sections = [_limited(section) for section in part.text.split(SEPARATOR)]
    return SEPARATOR.join(text for text, _ in sections), any(is_cut for _, is_cut in sections)


def _kind_of_text(message: Message) -> PartKind:
    if message.kind is Kind.USER:
        return PartKind.PROMPT if message.origin in _PROMPTS else PartKind.NOTICE
    if message.kind is Kind.GEMINI and message.origin is not Origin.SYNTHETIC:
        return PartKind.ANSWER
    return PartKind.NOTICE


def _own_texts(message: Message) -> Iterator[str]:
    """Yield what was typed or answered, then what was sent in addition to it."""
    typed = [part.text for part in message.display or () if isinstance(part, Text) and part.text]
    sent = [*_part_texts(message.parts)]
    if typed and "\n".join(typed) not in "\n".join(sent):
        yield from typed
    yield from sent


def _part_texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        match part:
            case Text():
                text = part.text
            case Code():
                text = part.code
            case CodeResult():
                text = part.output
            case Attachment():
                text = part.uri or ""
            case Unknown():
                text = json_text(part.value)
            case Thought() | FunctionCall() | FunctionResponse():
                text = ""  # in other parts of the message
            case _:
                assert_never(part)
        if text:
            yield text


def _unassigned_responses(parts: Iterable[Part]) -> list[str]:
    """Return the responses to calls of unknown ID; all others are also stored with the message that made the call."""
    responses = [part for part in parts if isinstance(part, FunctionResponse)]
    if any(response.id for response in responses):
        return []
    return [*_part_texts(parts), *(json_text(response.response) for response in responses)]


def _thought_texts(message: Message) -> Iterator[str]:
    for thought in message.thoughts:
        yield from filter(None, (thought.subject, thought.text))


def _argument_text(name: str, args: Json) -> str:
    """Return arguments without their names if the tool is the client's own: each of its calls has the same names."""
    return json_text(args, with_keys=name not in TOOLS)


def _result(call: ToolCall) -> str:
    """Return what the model received, then the lines of the client's display that are not among it."""
    response = json_text(call.response) if call.output is None and call.error is None else _other_fields(call.response)
    text = "\n".join(filter(None, (call.output, call.error, response)))
    shown = _shown(call.display) if call.display else ""
    if not shown or shown in text:
        return text
    if not text:
        return shown
    lines = set(map(str.strip, text.split("\n")))
    added = [line for line in shown.split("\n") if line.strip() not in lines]
    return "\n".join([text, *added])


def _other_fields(response: Json) -> str:
    """Return what a response contains besides the output and the error, which may be in a field `content`."""
    if not isinstance(response, Mapping):
        return ""
    others = {}
    for key, value in response.items():
        is_content = key == "content" and isinstance(value, str | Mapping)
        if key not in ("output", "error") and not is_content:
            others[key] = value
    return json_text(others)


def _shown(display: Display) -> str:
    match display:
        case TextDisplay():
            return display.text
        case DiffDisplay():
            name = display.file_path or display.file_name
            return display.diff if name in display.diff else f"{name}\n{display.diff}"
        case ScreenDisplay():
            return "\n".join("".join(cell.text for cell in line) for line in display.lines)
        case TodoDisplay():
            return "\n".join(todo.description for todo in display.todos)
        case AgentDisplay():
            steps = [text for step in display.activity for text in (step.content, step.description)]
            return "\n".join(filter(None, (display.name, display.result, display.reason, *steps)))
        case MatchDisplay():
            matches = [text for match in display.matches for text in (match.path, match.text)]
            return "\n".join((display.summary, *matches))
        case FileDisplay():
            return "\n".join((display.summary, *display.files))
        case UnknownDisplay():
            return json_text(display.value)
        case _:
            assert_never(display)


def json_text(value: Json, *, with_keys: bool = True) -> str:
    """Return a JSON value as lines of `key: value`, or of the values alone."""
    lines: list[str] = []
    waiting: list[tuple[str, Json]] = [("", value)]
    while waiting:  # values may be nested deeper than functions may call each other
        key, item = waiting.pop()
        key = key if with_keys else ""
        if isinstance(item, str):
            lines.append(f"{key}: {item}" if key else item)
        elif isinstance(item, Mapping):
            if key:
                lines.append(f"{key}:")
            waiting += reversed([(str(name), inner) for name, inner in item.items()])
        elif isinstance(item, list | tuple):
            if key:
                lines.append(f"{key}:")
            waiting += reversed([("", inner) for inner in item])
        elif item is not None:
            text = str(item).lower() if isinstance(item, bool) else _digits(item)
            lines.append(f"{key}: {text}" if key else text)
    return "\n".join(lines)


def _digits(number: object) -> str:
    try:
        return str(number)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        return ""


def _limited(text: str) -> tuple[str, bool]:
    before = text
    if len(text) > (_HEAD + _TAIL) * _EXAMINED:
        text = _ends(text, _HEAD * _EXAMINED, _TAIL * _EXAMINED)
    if _ANY_RUN in text.encode("utf-8", "surrogatepass").translate(_IS_RUN_LETTER):
        text = _RUN.sub(_without_encoded, text)
    if len(text) > _LONG_LINE and max(map(len, text.split("\n"))) > _LONG_LINE:
        text = "\n".join(_short_line(line) for line in text.split("\n"))
    if "\n" in text:
        text = _DUMP_LINE.sub("", f"\n{text}")[1:]
    if len(text) > _HEAD + _TAIL:
        text = _ends(text, _HEAD, _TAIL)
    return text, text != before


def _ends(text: str, head: int, tail: int) -> str:
    return f"{text[:head]}\n{text[-tail:]}"


def _short_line(line: str) -> str:
    return f"{line[:_LINE_HEAD]} {line[-_LINE_TAIL:]}" if len(line) > _LONG_LINE else line


def _without_encoded(run: re.Match[str]) -> str:
    """Return a space for a run that looks like encoded data; long paths and identifiers stay."""
    text = run[0]
    is_encoded = _DIGIT.search(text) and _UPPER.search(text) and _LOWER.search(text)
    return " " if is_encoded else text
