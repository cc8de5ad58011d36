"""A session as blocks to read from top to bottom: order, folding, shortening and branches, decided for every renderer.

`blocks` goes through the timeline message by message and holds no more than one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from itertools import chain
from typing import TypeAlias, assert_never

import msgspec

from pollux.model import (
    Attachment,
    Code,
    CodeResult,
    Fate,
    FunctionCall,
    FunctionResponse,
    Kind,
    Message,
    Origin,
    Part,
    Text,
    Thought,
    Tokens,
    ToolCall,
    Unknown,
)
from pollux.views.bodies import Body, Input, Output
from pollux.views.excerpts import Excerpt, Limits, fold, line, pretty, shorten
from pollux.views.presentations import Icon
from pollux.views.tools import Summary, is_failed, tell


class Detail(StrEnum):
    """How much of a session is shown; each shows more than the one before."""

    PROMPTS = "prompts"
    """What the human typed."""
    DIALOGUE = "dialogue"
    """And the answers."""
    NORMAL = "normal"
    """And the tool calls in brief, notices, and a line for what the client added."""
    FULL = "full"
    """Everything, nothing shortened."""


class Branches(StrEnum):
    """Whether what was rewound, rolled back, compressed or replaced is shown."""

    ACTIVE = "active"
    """No: a line says where something was left out."""
    ALL = "all"


class Options(msgspec.Struct, frozen=True):
    """What is to be shown."""

    detail: Detail = Detail.NORMAL
    branches: Branches = Branches.ACTIVE
    thoughts: bool | None = None
    """The model's reasoning; if not said, only with full detail. With prompts alone there is none to show."""
    root: str | None = None
    """The project's folder: paths below it are named from there."""

    @property
    def shows_thoughts(self) -> bool:
        """Whether the model's reasoning is shown."""
        return self.detail is Detail.FULL if self.thoughts is None else self.thoughts

    @property
    def limits(self) -> Limits | None:
        """How much of a result is shown."""
        return None if self.detail is Detail.FULL else RESULT


RESULT = Limits(head=6, tail=4, chars=2_000)
PASTED = Limits(head=60, tail=20, chars=12_000)
"""For prompts in normal detail: more is hardly typed."""


class Prompt(msgspec.Struct, frozen=True, tag="prompt"):
    """What was asked: by a human, here or in a conversation that was loaded, or by the agent that started this one."""

    message_id: str
    at: datetime | None
    fate: Fate
    origin: Origin
    text: Excerpt
    attachments: tuple[Attachment, ...] = ()


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """What the model said, in Markdown."""

    message_id: str
    at: datetime | None
    fate: Fate
    model: str | None
    text: str


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """A piece of the model's reasoning, in Markdown."""

    message_id: str
    at: datetime | None
    fate: Fate
    model: str | None
    subject: str
    text: str


class Tool(msgspec.Struct, frozen=True, tag="tool"):
    """A tool call; how long it took is recorded nowhere."""

    message_id: str
    at: datetime | None
    fate: Fate
    call_id: str | None
    summary: Summary
    status: str
    exit_code: int | None = None
    is_failed: bool = False
    bodies: tuple[Body, ...] = ()
    notes: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    agent_id: str | None = None
    """The subagent session that this call started."""


class Notice(msgspec.Struct, frozen=True, tag="notice"):
    """What the client told the human."""

    message_id: str
    at: datetime | None
    fate: Fate
    kind: Kind
    text: Excerpt


class Synthetic(msgspec.Struct, frozen=True, tag="synthetic"):
    """What the client told the model in somebody's name; folded unless everything is shown."""

    message_id: str
    at: datetime | None
    fate: Fate
    origin: Origin
    label: str
    summary: str
    """Its gist in one line, where it has one."""
    text: Excerpt


class Attached(msgspec.Struct, frozen=True, tag="attached"):
    """A picture, sound or file of an answer or a notice."""

    message_id: str
    at: datetime | None
    fate: Fate
    attachment: Attachment


class Other(msgspec.Struct, frozen=True, tag="other"):
    """A part that Pollux has no word for."""

    message_id: str
    at: datetime | None
    fate: Fate
    text: Excerpt


class UsageBlock(msgspec.Struct, frozen=True, tag="usage"):
    """What a model call cost; only with full detail."""

    message_id: str
    at: datetime | None
    fate: Fate
    model: str | None
    tokens: Tokens


class LeftOut(msgspec.Struct, frozen=True, tag="left_out"):
    """Prompts, answers and notices of another branch that are not shown here."""

    fate: Fate
    count: int

    @property
    def words(self) -> str:
        """The line that stands in their place."""
        return f"{self.count:,} message{'' if self.count == 1 else 's'} {FATES[self.fate]}"


Block: TypeAlias = Prompt | Answer | Thinking | Tool | Notice | Synthetic | Attached | Other | UsageBlock | LeftOut

FATES: dict[Fate, str] = {
    Fate.ACTIVE: "active",
    Fate.REWOUND: "rewound",
    Fate.COMPRESSED: "compressed",
    Fate.ROLLED_BACK: "rolled back",
    Fate.REPLACED: "replaced",
}

LABELS: dict[Origin, str] = {
    Origin.HUMAN: "sent along with the prompt",
    Origin.SESSION_CONTEXT: "session context",
    Origin.HOOK_CONTEXT: "hook context",
    Origin.TOOL_RESPONSE: "tool response",
    Origin.SHELL_MODE: "shell mode",
    Origin.IDE_CONTEXT: "editor context",
    Origin.STATE_SNAPSHOT: "summary of the conversation so far",
    Origin.CONTINUE: "asked to go on",
    Origin.AGENT_PROMPT: "task for the agent",
    Origin.LOADED: "from a saved conversation",
    Origin.MODEL: "model",
    Origin.NOTICE: "notice",
    Origin.SYNTHETIC: "put in by the client",
}


def blocks(messages: Iterable[Message], options: Options | None = None) -> Iterator[Block]:
    """Give the blocks of a timeline, in order."""
    options = options or Options()
    left_out: LeftOut | None = None
    for message in messages:
        if options.branches is Branches.ACTIVE and message.fate is not Fate.ACTIVE:
            if not _is_counted(message):
                continue
            if left_out is not None and left_out.fate is not message.fate:
                yield left_out
                left_out = None
            left_out = LeftOut(message.fate, left_out.count + 1 if left_out else 1)
            continue
        for block in _message_blocks(message, options):
            if left_out is not None:
                yield left_out
                left_out = None
            yield block
    if left_out is not None:
        yield left_out


def _is_counted(message: Message) -> bool:
    """Tell whether a reader would miss a message: what the client adds by itself does not count."""
    return message.origin in {Origin.HUMAN, Origin.AGENT_PROMPT, Origin.LOADED, Origin.MODEL, Origin.NOTICE}


def _message_blocks(message: Message, options: Options) -> Iterator[Block]:
    if message.kind is Kind.UNKNOWN:
        if options.detail in {Detail.NORMAL, Detail.FULL}:
            yield from _notice(message, options)
        return
    match message.origin:
        case Origin.HUMAN:
            yield from _prompt(message, options)
        case Origin.AGENT_PROMPT | Origin.LOADED:
            if options.detail is not Detail.PROMPTS:
                yield from _prompt(message, options)
        case Origin.MODEL:
            if options.detail is not Detail.PROMPTS:
                yield from _answer(message, options)
        case Origin.NOTICE:
            if options.detail in {Detail.NORMAL, Detail.FULL}:
                yield from _notice(message, options)
        case Origin.TOOL_RESPONSE:
            return  # it stands with the call
        case (
            Origin.SESSION_CONTEXT
            | Origin.HOOK_CONTEXT
            | Origin.SHELL_MODE
            | Origin.IDE_CONTEXT
            | Origin.STATE_SNAPSHOT
            | Origin.CONTINUE
            | Origin.SYNTHETIC
        ):
            if options.detail in {Detail.NORMAL, Detail.FULL}:
                yield from _synthetic(message, options)
        case _:
            assert_never(message.origin)


def _prompt(message: Message, options: Options) -> Iterator[Block]:
    limits = PASTED if options.detail is Detail.NORMAL else None
    yield Prompt(
        message.id, message.at, message.fate, message.origin, shorten(message.text, limits), message.attachments
    )
    if options.detail in {Detail.NORMAL, Detail.FULL}:
        sent = _sent_along(message)
        if sent:
            yield _added(message, Origin.HUMAN, sent, options)
        yield from _odd_parts(message, options)


def _sent_along(message: Message) -> str:
    """Give what the client sent to the model besides the words that were typed."""
    if message.display is None:
        return ""
    sent, typed = "".join(part.text for part in message.parts if isinstance(part, Text)), message.text
    return sent.removeprefix(typed).strip("\n") if sent != typed else ""


def _answer(message: Message, options: Options) -> Iterator[Block]:
    """Give thoughts, words, calls and usage of one model call, in this order."""
    if options.shows_thoughts:
        yield from _thoughts(message)
    shows_tools = options.detail in {Detail.NORMAL, Detail.FULL}
    words = ""
    for part in chain(message.parts, (None,)):
        if isinstance(part, Text):
            words += part.text
            continue
        if part is None or not isinstance(part, Thought | FunctionCall | FunctionResponse):
            if words.strip():
                yield Answer(message.id, message.at, message.fate, message.model, words.strip("\n"))
            words = ""
        if part is not None and shows_tools:
            yield from _part(message, part, options)
    if shows_tools:
        for call in message.tool_calls:
            yield _tool(message, call, options)
    if options.detail is Detail.FULL and message.tokens is not None:
        yield UsageBlock(message.id, message.at, message.fate, message.model, message.tokens)


def _thoughts(message: Message) -> Iterator[Block]:
    """Give the reasoning; a checkpoint repeats it among the parts."""
    for thought in message.thoughts or (part for part in message.parts if isinstance(part, Thought)):
        if thought.subject or thought.text.strip():
            at = thought.at or message.at
            yield Thinking(message.id, at, message.fate, message.model, thought.subject, thought.text.strip("\n"))


def _part(message: Message, part: Part, options: Options) -> Iterator[Block]:
    match part:
        case Text() | Thought() | FunctionCall() | FunctionResponse():
            return  # told elsewhere
        case Attachment():
            yield Attached(message.id, message.at, message.fate, part)
        case Code(language=language, code=code):
            summary = Summary(Icon.CODE, "Run", f"{language.lower()} on the API's side")
            yield _run(message, summary, Input(shorten(code, options.limits), language.lower()))
        case CodeResult(outcome=outcome, output=output):
            summary = Summary(Icon.CODE, "Printed", "", outcome.removeprefix("OUTCOME_").lower())
            is_error = outcome not in {"OUTCOME_OK", ""}
            yield _run(message, summary, Output(shorten(output, options.limits), is_error), is_failed=is_error)
        case Unknown(value=value):
            yield Other(message.id, message.at, message.fate, shorten(pretty(value), options.limits))
        case _:
            assert_never(part)


def _run(message: Message, summary: Summary, body: Body, *, is_failed: bool = False) -> Tool:
    status = "error" if is_failed else "success"
    return Tool(message.id, message.at, message.fate, None, summary, status, is_failed=is_failed, bodies=(body,))


def _odd_parts(message: Message, options: Options) -> Iterator[Block]:
    """Give what else a prompt holds; its attachments are told with it."""
    for part in message.parts:
        if not isinstance(part, Attachment):
            yield from _part(message, part, options)


def _tool(message: Message, call: ToolCall, options: Options) -> Tool:
    telling = tell(call, limits=options.limits, root=options.root)
    return Tool(
        message.id,
        call.at or message.at,
        message.fate,
        call.id,
        telling.summary,
        call.status,
        call.exit_code,
        is_failed(call),
        telling.bodies,
        telling.notes,
        call.attachments,
        call.agent_id,
    )


def _notice(message: Message, options: Options) -> Iterator[Block]:
    text = message.text
    if text.strip() or options.detail is Detail.FULL:
        yield Notice(message.id, message.at, message.fate, message.kind, shorten(text, options.limits))
    for part in message.parts:
        yield from _part(message, part, options)


def _synthetic(message: Message, options: Options) -> Iterator[Block]:
    yield _added(message, message.origin, message.text, options)
    for part in message.parts:
        yield from _part(message, part, options)


def _added(message: Message, origin: Origin, text: str, options: Options) -> Synthetic:
    summary = _gist(origin, text)
    if options.detail is Detail.FULL:
        shown = shorten(text, None)
    elif origin is Origin.SHELL_MODE:
        shown = shorten(_shell_result(text), options.limits)
    else:
        shown = Excerpt("") if summary and line(text) == summary else fold(text)
    return Synthetic(message.id, message.at, message.fate, origin, LABELS[origin], summary, shown)


_GIST = 100


def _gist(origin: Origin, text: str) -> str:
    """Give the one line of an added text that is worth reading, if there is one."""
    match origin:
        case Origin.SHELL_MODE:
            return line(_fenced(text)[0], _GIST)
        case Origin.CONTINUE | Origin.SYNTHETIC:
            return line(text, _GIST)
        case Origin.HOOK_CONTEXT:
            return line(text.partition("<hook_context>")[2].partition("</hook_context>")[0], _GIST)
        case _:
            return ""


def _shell_result(text: str) -> str:
    return _fenced(text)[1]


def _fenced(text: str) -> tuple[str, str]:
    """Take a command and its result out of the words in which shell mode tells the model of them."""
    _, _, rest = text.partition("```sh\n")
    command, _, rest = rest.partition("\n```\n")
    result = rest.partition("```\n")[2].strip().removesuffix("```")
    return command or text, result
