"""The model's messages and sessions, redacted field by field.

Whatever belongs together is read together: the parts of a text, the pieces of a thought, the cells of a screen, the
lines that a search found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar, assert_never

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
    FunctionCall,
    FunctionResponse,
    Json,
    MatchDisplay,
    Message,
    Part,
    Problem,
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
from pollux.redaction.pieces import Pieces, screen
from pollux.redaction.values import Cleaner

T = TypeVar("T", bound=msgspec.Struct)


def redacted(message: Message, cleaner: Cleaner) -> Message:
    """Redact a message; its id, times and counts stay."""
    return msgspec.structs.replace(
        message,
        parts=_parts(message.parts, cleaner),
        display=None if message.display is None else _parts(message.display, cleaner),
        thoughts=_thoughts(message.thoughts, cleaner),
        tool_calls=tuple(_call(call, cleaner) for call in message.tool_calls),
        file=_maybe(message.file, cleaner, "file"),
        extra=_mapping(message.extra, cleaner, "other fields"),
    )


def redacted_session(session: Session, cleaner: Cleaner) -> Session:
    """Redact what a list says of a session; its ids stay."""
    where = "session"
    project = msgspec.structs.replace(
        session.project,
        path=_maybe(session.project.path, cleaner, where),
        slug=_maybe(session.project.slug, cleaner, where),
    )
    files = tuple(
        msgspec.structs.replace(file, path=Path(cleaner.one(str(file.path), where))) for file in session.files
    )
    calls = tuple(msgspec.structs.replace(call, file=_maybe(call.file, cleaner, where)) for call in session.calls)
    return msgspec.structs.replace(
        session,
        project=project,
        title=cleaner.one(session.title, "title"),
        first_prompt=cleaner.one(session.first_prompt, "prompt"),
        last_prompt=cleaner.one(session.last_prompt, "prompt"),
        files=files,
        calls=calls,
        problems=tuple(_problem(problem, cleaner) for problem in session.problems),
        extra=_mapping(session.extra, cleaner, where),
    )


def texts(value: object) -> Iterator[str]:
    """Yield all texts of a message or a session, wherever they stand and however deep."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case Path() as path:
                yield str(path)
            case msgspec.Struct() as struct:
                waiting += [getattr(struct, name) for name in struct.__struct_fields__]
            case dict(pairs):
                waiting += pairs.values()
            case list() | tuple() as several:
                waiting += several
            case _:
                pass


def _parts(parts: Sequence[Part], cleaner: Cleaner) -> tuple[Part, ...]:
    """Redact parts; texts go on in one another, and so do thoughts."""
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
        case Text() | Thought():
            return part
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
    return msgspec.structs.replace(
        call,
        args=values.redacted(call.args, cleaner, f"{call.name}: arguments"),
        output=_maybe(call.output, cleaner, f"{call.name}: output"),
        error=_maybe(call.error, cleaner, f"{call.name}: error"),
        response=values.redacted(call.response, cleaner, f"{call.name}: response"),
        attachments=tuple(attachments.redacted(one, cleaner, f"{call.name}: attachment") for one in call.attachments),
        display=_display(call.display, cleaner, f"{call.name}: display") if call.display else None,
        display_name=_maybe(call.display_name, cleaner, f"{call.name}: name"),
        description=_maybe(call.description, cleaner, f"{call.name}: description"),
        mcp_server=_maybe(call.mcp_server, cleaner, f"{call.name}: server"),
        extra=_mapping(call.extra, cleaner, f"{call.name}: other fields"),
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


def _problem(problem: Problem, cleaner: Cleaner) -> Problem:
    return _fields(problem, ("message", "file"), cleaner, "problem")


def _fields(value: T, names: Sequence[str], cleaner: Cleaner, where: str) -> T:
    """Redact some fields of a value."""
    return msgspec.structs.replace(value, **{name: _maybe(getattr(value, name), cleaner, where) for name in names})


def _mapping(value: Mapping[str, Json], cleaner: Cleaner, where: str) -> Mapping[str, Json]:
    done = values.redacted(value, cleaner, where)
    assert isinstance(done, Mapping)
    return done


def _several(texts: Sequence[str], cleaner: Cleaner, where: str, gap: str = "") -> Sequence[str]:
    if len(texts) == 1:
        return (cleaner.one(texts[0], where),)
    return cleaner.pieces(Pieces(texts, gap), where) if texts else texts


def _maybe(text: str | None, cleaner: Cleaner, where: str) -> str | None:
    return text if text is None else cleaner.one(text, where)
