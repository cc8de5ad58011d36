"""The model's messages and sessions, redacted field by field.

Whatever belongs together is read together: the parts of a text, the pieces of a thought, the cells of a screen, the
lines that a search found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, assert_never

import msgspec

from pollux.model import (
    Activity,
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
from pollux.redaction import attachments, values
from pollux.redaction.joined_text import Pieces, screen
from pollux.redaction.values import Cleaner

T = TypeVar("T", bound=msgspec.Struct)

_encode = msgspec.json.Encoder(enc_hook=str).encode


def redacted(message: Message, cleaner: Cleaner) -> Message:
    """Redact a message; its id, times and counts stay."""
    return msgspec.structs.replace(
        message,
        parts=_parts(message.parts, cleaner),
        display=message.display and _parts(message.display, cleaner),
        thoughts=message.thoughts and _thoughts(message.thoughts, cleaner),
        tool_calls=tuple([_call(call, cleaner) for call in message.tool_calls]),
        file=message.file and cleaner.one(message.file, "file"),
        extra=_mapping(message.extra, cleaner, "other fields"),
    )


def redacted_session(session: Session, cleaner: Cleaner) -> Session:
    """Redact what a list says of a session; its ids stay."""
    where = "session"
    return msgspec.structs.replace(
        session,
        project=_fields(session.project, ("path", "slug"), cleaner, where),
        files=tuple([_file(file, cleaner, where) for file in session.files]),
        calls=tuple([_fields(call, ("file",), cleaner, where) for call in session.calls]),
        title=cleaner.one(session.title, "title"),
        first_prompt=cleaner.one(session.first_prompt, "prompt"),
        last_prompt=cleaner.one(session.last_prompt, "prompt"),
        problems=tuple([_fields(problem, ("message", "file"), cleaner, "problem") for problem in session.problems]),
        extra=_mapping(session.extra, cleaner, where),
    )


def _file(file: FileRef, cleaner: Cleaner, where: str) -> FileRef:
    path = str(file.path)
    done = cleaner.one(path, where)
    return file if done == path else msgspec.structs.replace(file, path=Path(done))


def texts(value: object) -> list[str]:
    """List all texts of a message or a session, wherever they stand and however deep."""
    found: list[str] = []
    waiting: list[Any] = [value]
    for one in waiting:  # which grows
        kind = type(one)
        if kind is str:
            found.append(one)
        elif kind is dict:
            waiting += one.values()
        elif kind is list or kind is tuple:
            waiting += one
        elif isinstance(one, msgspec.Struct):
            waiting += msgspec.structs.astuple(one)
        elif isinstance(one, str | Path):
            found.append(str(one))
    return found


def written(value: Message | Session) -> bytes | None:
    """Write a message or a session as JSON, which is much faster than to list its texts; nothing if it cannot be."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, RecursionError):
        return None


def _parts(parts: Sequence[Part], cleaner: Cleaner) -> tuple[Part, ...]:
    """Redact parts; texts go on in one another, and so do thoughts."""
    if len(parts) == 1:
        return (_part(parts[0], cleaner),)
    words = iter(_several([part.text for part in parts if isinstance(part, Text)], cleaner, "text"))
    thoughts = iter(_thoughts([part for part in parts if isinstance(part, Thought)], cleaner))
    return tuple(
        Text(next(words))
        if isinstance(part, Text)
        else next(thoughts)
        if isinstance(part, Thought)
        else _part(part, cleaner)
        for part in parts
    )


def _part(part: Part, cleaner: Cleaner) -> Part:
    match part:
        case Text():
            return Text(cleaner.one(part.text, "text"))
        case Thought():
            return _thoughts((part,), cleaner)[0]
        case FunctionCall():
            return FunctionCall(part.id, part.name, values.redacted(part.args, cleaner, f"{part.name}: arguments"))
        case FunctionResponse():
            response = values.redacted(part.response, cleaner, f"{part.name}: response")
            return FunctionResponse(part.id, part.name, response)
        case Attachment():
            return attachments.redacted(part, cleaner, "attachment")
        case Code():
            return Code(part.language, cleaner.one(part.code, "code"))
        case CodeResult():
            return CodeResult(part.outcome, cleaner.one(part.output, "code"))
        case Unknown():
            return Unknown(values.redacted(part.value, cleaner, "unknown part"))
        case _:
            assert_never(part)


def _thoughts(thoughts: Sequence[Thought], cleaner: Cleaner) -> tuple[Thought, ...]:
    """Redact thoughts, whose texts go on in one another."""
    words = _several([thought.text for thought in thoughts], cleaner, "thought")
    return tuple(
        msgspec.structs.replace(thought, text=text, subject=cleaner.one(thought.subject, "thought"))
        for thought, text in zip(thoughts, words, strict=True)
    )


def _call(call: ToolCall, cleaner: Cleaner) -> ToolCall:
    """Redact a tool call; its id, status and the words of our own table stay."""
    name, one = call.name, cleaner.one
    return msgspec.structs.replace(
        call,
        args=values.redacted(call.args, cleaner, f"{name}: arguments"),
        output=call.output and one(call.output, f"{name}: output"),
        error=call.error and one(call.error, f"{name}: error"),
        response=values.redacted(call.response, cleaner, f"{name}: response"),
        attachments=tuple([attachments.redacted(each, cleaner, f"{name}: attachment") for each in call.attachments]),
        display=call.display and _display(call.display, cleaner, f"{name}: display"),
        display_name=call.display_name and one(call.display_name, f"{name}: name"),
        description=call.description and one(call.description, f"{name}: description"),
        mcp_server=call.mcp_server and one(call.mcp_server, f"{name}: server"),
        extra=_mapping(call.extra, cleaner, f"{name}: other fields"),
    )


def _display(display: Display, cleaner: Cleaner, where: str) -> Display:
    match display:
        case TextDisplay():
            return TextDisplay(cleaner.one(display.text, where))
        case DiffDisplay():
            return _fields(display, ("diff", "file_name", "file_path", "before", "after"), cleaner, where)
        case ScreenDisplay():
            return _screen(display, cleaner, where)
        case TodoDisplay():
            return TodoDisplay(tuple(_fields(todo, ("description",), cleaner, where) for todo in display.todos))
        case AgentDisplay():
            activity = tuple(_activity(one, cleaner, where) for one in display.activity)
            return msgspec.structs.replace(_fields(display, ("result", "reason"), cleaner, where), activity=activity)
        case MatchDisplay():
            lines = _several([one.text for one in display.matches], cleaner, where, "\n")
            found = tuple(
                msgspec.structs.replace(_fields(one, ("path",), cleaner, where), text=text)
                for one, text in zip(display.matches, lines, strict=True)
            )
            return MatchDisplay(cleaner.one(display.summary, where), found)
        case FileDisplay():
            names = _several(display.files, cleaner, where, "\n")
            return FileDisplay(cleaner.one(display.summary, where), tuple(names))
        case UnknownDisplay():
            return UnknownDisplay(values.redacted(display.value, cleaner, where))
        case _:
            assert_never(display)


def _screen(display: ScreenDisplay, cleaner: Cleaner, where: str) -> ScreenDisplay:
    cells = [cell for line in display.lines for cell in line]
    if not cells:
        return display
    done = cleaner.pieces(screen([[cell.text for cell in line] for line in display.lines]), where)
    changed = iter(
        cell if cell.text == text else msgspec.structs.replace(cell, text=text)
        for cell, text in zip(cells, done, strict=True)
    )
    return ScreenDisplay(tuple(tuple(islice(changed, len(line))) for line in display.lines))


def _activity(activity: Activity, cleaner: Cleaner, where: str) -> Activity:
    return _fields(activity, ("content", "description"), cleaner, where)


def _fields(value: T, names: Sequence[str], cleaner: Cleaner, where: str) -> T:
    """Redact some fields of a value."""
    texts = {name: text for name in names if (text := getattr(value, name))}
    done = {name: cleaner.one(text, where) for name, text in texts.items()}
    return value if done == texts else msgspec.structs.replace(value, **done)


def _mapping(value: Mapping[str, Json], cleaner: Cleaner, where: str) -> Mapping[str, Json]:
    if not value:
        return value
    done = values.redacted(value, cleaner, where)
    assert isinstance(done, dict)
    return done


def _several(texts: Sequence[str], cleaner: Cleaner, where: str, gap: str = "") -> Sequence[str]:
    if len(texts) == 1:
        return (cleaner.one(texts[0], where),)
    return cleaner.pieces(Pieces(texts, gap), where) if texts else texts
