"""Redact messages and sessions field by field.

Texts that belong together are searched together: the parts of a message, the pieces of a thought, the cells of a
screen, the lines of a search result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, assert_never

import msgspec

from pollux.model import (
    AgentDisplay,
    Attachment,
    Code,
    CodeResult,
    DiffDisplay,
    Display,
    FileDisplay,
    FileRef,
    FunctionCall,
    FunctionResponse,
    Json,
    MatchDisplay,
    Message,
    Part,
    ScreenDisplay,
    Session,
    Text,
    TextDisplay,
    Thought,
    TodoDisplay,
    ToolCall,
    Unknown,
    UnknownDisplay,
)
from pollux.redaction.encoded import redact_attachment
from pollux.redaction.joined_text import JoinedText, join_screen
from pollux.redaction.values import Cleaner, redact_value

T = TypeVar("T", bound=msgspec.Struct)

_encode = msgspec.json.Encoder(enc_hook=str).encode


def redact_message(message: Message, cleaner: Cleaner) -> Message:
    """Redact a message, except its id, times and counts."""
    return msgspec.structs.replace(
        message,
        parts=_parts(message.parts, cleaner),
        display=message.display and _parts(message.display, cleaner),
        thoughts=message.thoughts and _thoughts(message.thoughts, cleaner),
        tool_calls=tuple([_call(call, cleaner) for call in message.tool_calls]),
        file=message.file and cleaner.redact_text(message.file, "file"),
        extra=_mapping(message.extra, cleaner, "other fields"),
    )


def redact_session(session: Session, cleaner: Cleaner) -> Session:
    """Redact the fields of a session, except its ids."""
    where = "session"
    return msgspec.structs.replace(
        session,
        project=_fields(session.project, ("path", "slug"), cleaner, where),
        files=tuple([_file(file, cleaner, where) for file in session.files]),
        calls=tuple([_fields(call, ("file",), cleaner, where) for call in session.calls]),
        title=cleaner.redact_text(session.title, "title"),
        first_prompt=cleaner.redact_text(session.first_prompt, "prompt"),
        last_prompt=cleaner.redact_text(session.last_prompt, "prompt"),
        problems=tuple([_fields(problem, ("message", "file"), cleaner, "problem") for problem in session.problems]),
        extra=_mapping(session.extra, cleaner, where),
    )


def _file(file: FileRef, cleaner: Cleaner, where: str) -> FileRef:
    path = str(file.path)
    redacted = cleaner.redact_text(path, where)
    return file if redacted == path else msgspec.structs.replace(file, path=Path(redacted))


def all_texts(value: object) -> list[str]:
    """Return all texts of a message or a session, at any depth."""
    texts: list[str] = []
    queue: list[Any] = [value]
    for item in queue:  # grows while it is read
        kind = type(item)
        if kind is str:
            texts.append(item)
        elif kind is dict:
            queue += item.values()
        elif kind is list or kind is tuple:
            queue += item
        elif isinstance(item, msgspec.Struct):
            queue += msgspec.structs.astuple(item)
        elif isinstance(item, str | Path):
            texts.append(str(item))
    return texts


def encode(value: Message | Session) -> bytes | None:
    """Return a message or a session as JSON, much faster than `all_texts`, or None if JSON cannot hold it."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, RecursionError):
        return None


def _parts(parts: Sequence[Part], cleaner: Cleaner) -> tuple[Part, ...]:
    """Redact parts; each text continues the last one, and so does each thought."""
    if len(parts) == 1:
        return (_part(parts[0], cleaner),)
    texts = iter(_joined([part.text for part in parts if isinstance(part, Text)], cleaner, "text"))
    thoughts = iter(_thoughts([part for part in parts if isinstance(part, Thought)], cleaner))
    redacted: list[Part] = []
    for part in parts:
        if isinstance(part, Text):
            redacted.append(Text(next(texts)))
        elif isinstance(part, Thought):
            redacted.append(next(thoughts))
        else:
            redacted.append(_part(part, cleaner))
    return tuple(redacted)


def _part(part: Part, cleaner: Cleaner) -> Part:
    match part:
        case Text():
            return Text(cleaner.redact_text(part.text, "text"))
        case Thought():
            return _thoughts((part,), cleaner)[0]
        case FunctionCall():
            name = _tool_name(part.name, cleaner)
            return FunctionCall(part.id, name, redact_value(part.args, cleaner, f"{name}: arguments"))
        case FunctionResponse():
            name = _tool_name(part.name, cleaner)
            return FunctionResponse(part.id, name, redact_value(part.response, cleaner, f"{name}: response"))
        case Attachment():
            return redact_attachment(part, cleaner, "attachment")
        case Code():
            return Code(part.language, cleaner.redact_text(part.code, "code"))
        case CodeResult():
            return CodeResult(part.outcome, cleaner.redact_text(part.output, "code"))
        case Unknown():
            return Unknown(redact_value(part.value, cleaner, "unknown part"))
        case _:
            assert_never(part)


def _thoughts(thoughts: Sequence[Thought], cleaner: Cleaner) -> tuple[Thought, ...]:
    redacted: list[Thought] = []
    texts = _joined([thought.text for thought in thoughts], cleaner, "thought")
    for thought, text in zip(thoughts, texts, strict=True):
        subject = cleaner.redact_text(thought.subject, "thought")
        redacted.append(msgspec.structs.replace(thought, text=text, subject=subject))
    return tuple(redacted)


def _call(call: ToolCall, cleaner: Cleaner) -> ToolCall:
    """Redact a tool call, except its id, its status and the words of our own table."""
    name, redact = _tool_name(call.name, cleaner), cleaner.redact_text
    if name != call.name:
        canonical, label = _tool_name(call.canonical, cleaner), _tool_name(call.label, cleaner)
        call = msgspec.structs.replace(call, name=name, canonical=canonical, label=label)
    return msgspec.structs.replace(
        call,
        args=redact_value(call.args, cleaner, f"{name}: arguments"),
        output=call.output and redact(call.output, f"{name}: output"),
        error=call.error and redact(call.error, f"{name}: error"),
        response=redact_value(call.response, cleaner, f"{name}: response"),
        attachments=tuple([redact_attachment(each, cleaner, f"{name}: attachment") for each in call.attachments]),
        display=call.display and _display(call.display, cleaner, f"{name}: display"),
        display_name=call.display_name and redact(call.display_name, f"{name}: name"),
        description=call.description and redact(call.description, f"{name}: description"),
        mcp_server=call.mcp_server and redact(call.mcp_server, f"{name}: server"),
        extra=_mapping(call.extra, cleaner, f"{name}: other fields"),
    )


def _tool_name(name: str, cleaner: Cleaner) -> str:
    """Redact the name of a tool, a server or an agent, to which only custom rules apply."""
    return cleaner.redact_text(name, "name of a tool") if cleaner.has_custom_rules else name


def _display(display: Display, cleaner: Cleaner, where: str) -> Display:
    match display:
        case TextDisplay():
            return TextDisplay(cleaner.redact_text(display.text, where))
        case DiffDisplay():
            return _fields(display, ("diff", "file_name", "file_path", "before", "after"), cleaner, where)
        case ScreenDisplay():
            return _screen(display, cleaner, where)
        case TodoDisplay():
            return TodoDisplay(tuple(_fields(todo, ("description",), cleaner, where) for todo in display.todos))
        case AgentDisplay():
            fields = ("content", "description")
            activity = tuple(_fields(step, fields, cleaner, where) for step in display.activity)
            name = _tool_name(display.name, cleaner)
            display = _fields(display, ("result", "reason"), cleaner, where)
            return msgspec.structs.replace(display, name=name, activity=activity)
        case MatchDisplay():
            return _search_result(display, cleaner, where)
        case FileDisplay():
            files = _joined(display.files, cleaner, where, "\n")
            return FileDisplay(cleaner.redact_text(display.summary, where), tuple(files))
        case UnknownDisplay():
            return UnknownDisplay(redact_value(display.value, cleaner, where))
        case _:
            assert_never(display)


def _search_result(display: MatchDisplay, cleaner: Cleaner, where: str) -> MatchDisplay:
    lines = _joined([match.text for match in display.matches], cleaner, where, "\n")
    matches = []
    for match, text in zip(display.matches, lines, strict=True):
        matches.append(msgspec.structs.replace(_fields(match, ("path",), cleaner, where), text=text))
    return MatchDisplay(cleaner.redact_text(display.summary, where), tuple(matches))


def _screen(display: ScreenDisplay, cleaner: Cleaner, where: str) -> ScreenDisplay:
    if not any(display.lines):
        return display
    texts = [[cell.text for cell in line] for line in display.lines]
    redacted = iter(cleaner.redact_joined(join_screen(texts), where))
    lines = []
    for line in display.lines:
        cells = []
        for cell in line:
            text = next(redacted)
            cells.append(cell if cell.text == text else msgspec.structs.replace(cell, text=text))
        lines.append(tuple(cells))
    return ScreenDisplay(tuple(lines))


def _fields(value: T, names: Sequence[str], cleaner: Cleaner, where: str) -> T:
    texts = {name: getattr(value, name) for name in names if getattr(value, name)}
    redacted = {name: cleaner.redact_text(text, where) for name, text in texts.items()}
    return value if redacted == texts else msgspec.structs.replace(value, **redacted)


def _mapping(value: Mapping[str, Json], cleaner: Cleaner, where: str) -> Mapping[str, Json]:
    if not value:
        return value
    redacted = redact_value(value, cleaner, where)
    assert isinstance(redacted, dict)
    return redacted


def _joined(texts: Sequence[str], cleaner: Cleaner, where: str, gap: str = "") -> Sequence[str]:
    if len(texts) == 1:
        return (cleaner.redact_text(texts[0], where),)
    return cleaner.redact_joined(JoinedText(texts, gap), where) if texts else texts
