"""A session for those who tell how something was built: who said what, what was done, what went wrong.

`RULES` says what becomes of each kind of message; of tool calls the name, the arguments that matter and any trouble are
told, and never the result. Thoughts and tokens are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

import msgspec

from pollux.formats.tools import is_known
from pollux.model import Attachment, Fate, Json, Kind, Message, Origin, TextDisplay, ToolCall
from pollux.views.arguments import argument
from pollux.views.bodies import Output, Questions
from pollux.views.excerpts import Excerpt, line, shorten
from pollux.views.tools import Telling, tell
from pollux.views.transcript import PASTED, RESULT, Branches, LeftOut, Options, Synthetic, blocks

ARGUMENT, TROUBLE = 120, 200
"""Characters of what a call was about, and of what went wrong."""
KEYS = ("file_path", "command", "path", "pattern", "query")
"""The arguments that matter of a tool that Pollux does not know."""


class Rule(StrEnum):
    """What becomes of a message."""

    KEEP = "keep"
    """Its words are told."""
    NOTE = "note"
    """A line says that it was there."""
    SKIP = "skip"


RULES: Mapping[Origin | Kind, Rule] = {
    Origin.HUMAN: Rule.KEEP,
    Origin.LOADED: Rule.KEEP,
    Origin.AGENT_PROMPT: Rule.KEEP,
    Origin.MODEL: Rule.KEEP,
    Kind.ERROR: Rule.NOTE,
    Origin.SHELL_MODE: Rule.NOTE,
    Origin.STATE_SNAPSHOT: Rule.NOTE,
    Kind.INFO: Rule.SKIP,
    Kind.WARNING: Rule.SKIP,
    Kind.UNKNOWN: Rule.SKIP,
    Origin.SESSION_CONTEXT: Rule.SKIP,
    Origin.HOOK_CONTEXT: Rule.SKIP,
    Origin.IDE_CONTEXT: Rule.SKIP,
    Origin.TOOL_RESPONSE: Rule.SKIP,
    Origin.CONTINUE: Rule.SKIP,
    Origin.SYNTHETIC: Rule.SKIP,
}
"""By the kind of a notice, and by the origin of all else."""
TAKEN_BACK = frozenset({Fate.REWOUND, Fate.ROLLED_BACK, Fate.REPLACED})
"""What is not told unless asked for; what was compressed has been said nevertheless."""


class Said(msgspec.Struct, frozen=True, tag="said"):
    """What somebody said."""

    at: datetime | None
    fate: Fate
    origin: Origin
    """`model`, or who asked it."""
    text: Excerpt
    attachments: tuple[Attachment, ...] = ()


class Did(msgspec.Struct, frozen=True, tag="did"):
    """What the model had a tool do."""

    at: datetime | None
    fate: Fate
    name: str
    """As recorded."""
    about: str
    """The arguments that matter."""
    trouble: str = ""
    """What went wrong, in one line."""


class Noted(msgspec.Struct, frozen=True, tag="noted"):
    """What else belongs to the story, in one line."""

    at: datetime | None
    fate: Fate
    words: str
    code: str = ""
    """What it is about, to be shown as it is."""


Entry: TypeAlias = Said | Did | Noted


def rule_of(message: Message) -> Rule:
    """Return what becomes of a message; one that was first recorded as a notice, and then as said, is kept."""
    is_told_by_kind = message.origin is Origin.NOTICE or message.kind is Kind.UNKNOWN
    return RULES.get(message.kind if is_told_by_kind else message.origin, Rule.KEEP)


def entries(
    messages: Iterable[Message], *, branches: Branches = Branches.ACTIVE, root: str | None = None
) -> Iterator[Entry]:
    """Yield what is told of a timeline, in order; a line stands where something was taken back."""
    gap: LeftOut | None = None
    for message in messages:
        if message.fate in TAKEN_BACK and branches is Branches.ACTIVE:
            if rule_of(message) is not Rule.SKIP:
                if gap and gap.fate is not message.fate:
                    yield _gap(gap)
                    gap = None
                gap = LeftOut(message.fate, gap.count + 1 if gap else 1)
            continue
        for entry in _told(message, root):
            if gap:
                yield _gap(gap)
                gap = None
            yield entry
    if gap:
        yield _gap(gap)


def _gap(left_out: LeftOut) -> Noted:
    return Noted(None, Fate.ACTIVE, left_out.words)


def _told(message: Message, root: str | None) -> Iterator[Entry]:
    match rule_of(message):
        case Rule.KEEP if message.text.strip() or message.attachments:
            limits = None if message.origin is Origin.MODEL else PASTED
            text = shorten(message.text, limits)
            yield Said(message.at, message.fate, message.origin, text, message.attachments)
        case Rule.NOTE:
            yield _noted(message)
        case _:
            pass
    for call in message.tool_calls:
        yield from _call(message, call, root)


def _call(message: Message, call: ToolCall, root: str | None) -> Iterator[Entry]:
    """Tell what was done, and what the human answered if that was a question."""
    telling = tell(call, limits=RESULT, root=root)
    at = call.at or message.at
    about = telling.summary.text if is_known(call.name, call.display_name) else _key_arguments(call)
    yield Did(at, message.fate, call.name, line(about, ARGUMENT), _trouble(call, telling))
    for body in telling.bodies:
        for question in body.questions if isinstance(body, Questions) else ():
            if question.answer:
                yield Said(at, message.fate, Origin.HUMAN, shorten(question.answer, PASTED))


def _noted(message: Message) -> Noted:
    match message.origin:
        case Origin.SHELL_MODE:
            commands = [block.summary for block in blocks((message,), _ANYWHERE) if isinstance(block, Synthetic)]
            return Noted(message.at, message.fate, "the human ran", "; ".join(commands))
        case Origin.STATE_SNAPSHOT:
            return Noted(message.at, message.fate, "the conversation so far was replaced by a summary")
        case _:
            return Noted(message.at, message.fate, "error", line(message.text, TROUBLE))


_ANYWHERE = Options(branches=Branches.ALL)


def _key_arguments(call: ToolCall) -> str:
    args: Mapping[str, Json] = call.args if isinstance(call.args, Mapping) else {}
    return ", ".join(filter(None, (argument(args, key) for key in KEYS)))


def _trouble(call: ToolCall, telling: Telling) -> str:
    """Tell in one line what went wrong with a call; nothing if nothing did."""
    match call.status:
        case "success":
            return f"ended with exit code {call.exit_code}" if call.exit_code else ""
        case "error":
            shown = [call.display.text] if isinstance(call.display, TextDisplay) else []
            shown += (body.text.head for body in telling.bodies if isinstance(body, Output))
            reason = next(
                (line(text.strip().partition("\n")[0], TROUBLE) for text in reversed(shown) if text.strip()), ""
            )
            return f"failed: {reason}" if reason else "failed"
        case "pending":
            return "no result was recorded"
        case other:
            return other
