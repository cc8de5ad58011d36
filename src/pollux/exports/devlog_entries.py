"""The entries of a development log: dialogue, actions and failures.

`RULES` decides about each kind of message. A tool call has its name, its main arguments and any failure, but never its
result. Thoughts and tokens are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

import msgspec

from pollux.exports.source import RETRACTED
from pollux.formats.tools import is_known
from pollux.model import Attachment, Fate, Json, Kind, Message, Origin, TextDisplay, ToolCall
from pollux.views.bodies import Output, Questions
from pollux.views.excerpts import Excerpt, line, shorten
from pollux.views.tool_views import ToolView, describe_call
from pollux.views.tools import argument
from pollux.views.transcript import PASTED, RESULT, Branches, HiddenBlock, SyntheticBlock, TranscriptOptions, blocks

ARGUMENT, FAILURE = 120, 200
"""Characters of the arguments of a call, and of an error."""
KEYS = ("file_path", "command", "path", "pattern", "query")
"""The main arguments of a tool that Pollux does not know."""


class DevlogRule(StrEnum):
    """How a message is exported."""

    KEEP = "keep"
    """With its text."""
    NOTE = "note"
    """As a line that mentions it."""
    SKIP = "skip"


RULES: Mapping[Origin | Kind, DevlogRule] = {
    Origin.HUMAN: DevlogRule.KEEP,
    Origin.LOADED: DevlogRule.KEEP,
    Origin.AGENT_PROMPT: DevlogRule.KEEP,
    Origin.MODEL: DevlogRule.KEEP,
    Kind.ERROR: DevlogRule.NOTE,
    Origin.SHELL_MODE: DevlogRule.NOTE,
    Origin.STATE_SNAPSHOT: DevlogRule.NOTE,
    Kind.INFO: DevlogRule.SKIP,
    Kind.WARNING: DevlogRule.SKIP,
    Kind.UNKNOWN: DevlogRule.SKIP,
    Origin.SESSION_CONTEXT: DevlogRule.SKIP,
    Origin.HOOK_CONTEXT: DevlogRule.SKIP,
    Origin.IDE_CONTEXT: DevlogRule.SKIP,
    Origin.TOOL_RESPONSE: DevlogRule.SKIP,
    Origin.CONTINUE: DevlogRule.SKIP,
    Origin.SYNTHETIC: DevlogRule.SKIP,
}
"""By the kind of a notice, and by the origin of other messages."""


class DialogueEntry(msgspec.Struct, frozen=True):
    """Text of a human, an agent or the model."""

    at: datetime | None
    fate: Fate
    origin: Origin
    """`model`, or the origin of a prompt."""
    text: Excerpt
    attachments: tuple[Attachment, ...] = ()


class ToolEntry(msgspec.Struct, frozen=True):
    """A tool call."""

    at: datetime | None
    fate: Fate
    name: str
    """As recorded."""
    arguments: str
    """The main arguments."""
    failure: str = ""
    """What went wrong, in one line."""


class NoteEntry(msgspec.Struct, frozen=True):
    """Another event, in one line."""

    at: datetime | None
    fate: Fate
    text: str
    code: str = ""
    """A command or an error, to be shown literally."""


Entry: TypeAlias = DialogueEntry | ToolEntry | NoteEntry


def rule_of(message: Message) -> DevlogRule:
    """Return the rule for a message; one that was first recorded as a notice and later as a message keeps its text."""
    is_notice = message.origin is Origin.NOTICE or message.kind is Kind.UNKNOWN
    return RULES.get(message.kind if is_notice else message.origin, DevlogRule.KEEP)


def entries(
    messages: Iterable[Message], *, branches: Branches = Branches.ACTIVE, root: str | None = None
) -> Iterator[Entry]:
    """Yield the entries of a timeline, with a note in place of retracted messages unless all branches are shown."""
    gap: HiddenBlock | None = None
    for message in messages:
        if message.fate in RETRACTED and branches is Branches.ACTIVE:
            if rule_of(message) is not DevlogRule.SKIP:
                if gap and gap.fate is not message.fate:
                    yield _gap(gap)
                    gap = None
                gap = HiddenBlock(message.fate, gap.count + 1 if gap else 1)
            continue
        for entry in _message_entries(message, root):
            if gap:
                yield _gap(gap)
                gap = None
            yield entry
    if gap:
        yield _gap(gap)


def _gap(left_out: HiddenBlock) -> NoteEntry:
    return NoteEntry(None, Fate.ACTIVE, left_out.text)


def _message_entries(message: Message, root: str | None) -> Iterator[Entry]:
    match rule_of(message):
        case DevlogRule.KEEP if message.text.strip() or message.attachments:
            limits = None if message.origin is Origin.MODEL else PASTED
            text = shorten(message.text, limits)
            yield DialogueEntry(message.at, message.fate, message.origin, text, message.attachments)
        case DevlogRule.NOTE:
            yield _note(message)
        case _:
            pass
    for call in message.tool_calls:
        yield from _call_entries(message, call, root)


def _call_entries(message: Message, call: ToolCall, root: str | None) -> Iterator[Entry]:
    """Yield a tool call, and the answers of the human if it asked questions."""
    view = describe_call(call, limits=RESULT, root=root)
    at = call.at or message.at
    arguments = view.summary.text if is_known(call.name, call.display_name) else _key_arguments(call)
    yield ToolEntry(at, message.fate, call.name, line(arguments, ARGUMENT), _failure(call, view))
    for body in view.bodies:
        for question in body.questions if isinstance(body, Questions) else ():
            if question.answer:
                yield DialogueEntry(at, message.fate, Origin.HUMAN, shorten(question.answer, PASTED))


def _note(message: Message) -> NoteEntry:
    match message.origin:
        case Origin.SHELL_MODE:
            commands = [
                block.summary for block in blocks((message,), _ALL_BRANCHES) if isinstance(block, SyntheticBlock)
            ]
            return NoteEntry(message.at, message.fate, "the human ran", "; ".join(commands))
        case Origin.STATE_SNAPSHOT:
            return NoteEntry(message.at, message.fate, "the conversation so far was replaced by a summary")
        case _:
            return NoteEntry(message.at, message.fate, "error", line(message.text, FAILURE))


_ALL_BRANCHES = TranscriptOptions(branches=Branches.ALL)


def _key_arguments(call: ToolCall) -> str:
    args: Mapping[str, Json] = call.args if isinstance(call.args, Mapping) else {}
    return ", ".join(filter(None, (argument(args, key) for key in KEYS)))


def _failure(call: ToolCall, view: ToolView) -> str:
    """Return in one line what went wrong with a call."""
    match call.status:
        case "success":
            return f"ended with exit code {call.exit_code}" if call.exit_code else ""
        case "error":
            texts = [call.display.text] if isinstance(call.display, TextDisplay) else []
            texts += (body.text.head for body in view.bodies if isinstance(body, Output))
            for text in reversed(texts):
                first_line = text.strip().partition("\n")[0]
                if first_line:
                    return f"failed: {line(first_line, FAILURE)}"
            return "failed"
        case "pending":
            return "no result was recorded"
        case other:
            return other
