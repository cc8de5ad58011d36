"""The blocks of a session from top to bottom: order, folding, shortening and branches are decided here.

`blocks` reads the timeline message by message and holds one of them at a time.
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
from pollux.text.numbers import plural
from pollux.views.bodies import Body, Input, Output
from pollux.views.excerpts import Excerpt, Limits, fold, line, pretty, shorten
from pollux.views.tool_views import ToolSummary, describe_call, is_failed
from pollux.views.tools import Icon


class Detail(StrEnum):
    """How much of a session is shown; each value adds to the one before."""

    PROMPTS = "prompts"
    """Prompts only."""
    DIALOGUE = "dialogue"
    """Prompts and answers."""
    NORMAL = "normal"
    """Also tool calls in brief, notices, and a line for each text that the client added."""
    FULL = "full"
    """Everything, unshortened."""


class Branches(StrEnum):
    """Which messages are shown."""

    ACTIVE = "active"
    """Only active ones; a line says how many were dropped there."""
    ALL = "all"
    """Also dropped ones: rewound, rolled back, compressed, replaced."""


class TranscriptOptions(msgspec.Struct, frozen=True):
    """What a transcript shows."""

    detail: Detail = Detail.NORMAL
    branches: Branches = Branches.ACTIVE
    thoughts: bool | None = None
    """Whether the model's reasoning is shown; by default only in full detail. It never is in `PROMPTS`."""
    root: str | None = None
    """The project's folder; paths below it are shown relative to it."""
    folds: bool = False
    """Whether the renderer can unfold: hidden text then goes along in `folded`."""
    folds_dropped: bool = False
    """Whether dropped messages go along, too, before the `HiddenBlock` that counts them."""

    @property
    def shows_thoughts(self) -> bool:
        """Return whether the model's reasoning is shown."""
        return self.detail is Detail.FULL if self.thoughts is None else self.thoughts

    @property
    def limits(self) -> Limits | None:
        """Return how much of a result is shown, or None for all of it."""
        return None if self.detail is Detail.FULL else self._limits(RESULT)

    @property
    def prompt_limits(self) -> Limits | None:
        """Return how much of a prompt is shown, or None for all of it."""
        return self._limits(PASTED) if self.detail is Detail.NORMAL else None

    def _limits(self, limits: Limits) -> Limits:
        return msgspec.structs.replace(limits, folds=True) if self.folds else limits


RESULT = Limits(head=6, tail=4, chars=2_000)
PASTED = Limits(head=60, tail=20, chars=12_000)
"""For prompts in normal detail: a longer text was pasted."""


class _MessageBlock(msgspec.Struct, frozen=True):
    message_id: str
    at: datetime | None
    fate: Fate


class PromptBlock(_MessageBlock, frozen=True, tag="prompt"):
    """A prompt of the human, of a loaded conversation, or of the agent that started this session."""

    origin: Origin
    text: Excerpt
    attachments: tuple[Attachment, ...] = ()


class AnswerBlock(_MessageBlock, frozen=True, tag="answer"):
    """An answer of the model, in Markdown."""

    model: str | None
    text: str


class ThoughtBlock(_MessageBlock, frozen=True, tag="thinking"):
    """A piece of the model's reasoning, in Markdown."""

    model: str | None
    subject: str
    text: str


class ToolBlock(_MessageBlock, frozen=True, tag="tool"):
    """A tool call; the client does not record its duration."""

    call_id: str | None
    summary: ToolSummary
    status: str
    exit_code: int | None = None
    is_failed: bool = False
    bodies: tuple[Body, ...] = ()
    notes: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    agent_id: str | None = None
    """ID of the subagent session that this call started."""


class NoticeBlock(_MessageBlock, frozen=True, tag="notice"):
    """A message of the client to the human."""

    kind: Kind
    text: Excerpt


class SyntheticBlock(_MessageBlock, frozen=True, tag="synthetic"):
    """A text that the client sent to the model in the human's name; folded except in full detail."""

    origin: Origin
    label: str
    summary: str
    """Its content in one line, if one line can say it."""
    text: Excerpt


class AttachmentBlock(_MessageBlock, frozen=True, tag="attached"):
    """A picture, sound or file of an answer or a notice."""

    attachment: Attachment


class UnknownBlock(_MessageBlock, frozen=True, tag="other"):
    """A part of a kind that Pollux does not know."""

    text: Excerpt


class UsageBlock(_MessageBlock, frozen=True, tag="usage"):
    """The tokens of a model call; only in full detail."""

    model: str | None
    tokens: Tokens


class HiddenBlock(msgspec.Struct, frozen=True, tag="left_out"):
    """The number of dropped prompts, answers and notices at this place."""

    fate: Fate
    count: int

    @property
    def text(self) -> str:
        """Return a line such as `2 messages rewound`."""
        noun = plural(self.count, "message") if self.count else "added text"
        return f"{noun} {self.fate.label}"


ShownBlock: TypeAlias = (
    PromptBlock
    | AnswerBlock
    | ThoughtBlock
    | ToolBlock
    | NoticeBlock
    | SyntheticBlock
    | AttachmentBlock
    | UnknownBlock
    | UsageBlock
)
Block: TypeAlias = ShownBlock | HiddenBlock

LABELS: dict[Origin, str] = {
    Origin.HUMAN: "sent along with the prompt",
    Origin.SESSION_CONTEXT: "session context",
    Origin.HOOK_CONTEXT: "hook context",
    Origin.TOOL_RESPONSE: "tool response",
    Origin.SHELL_MODE: "shell mode",
    Origin.IDE_CONTEXT: "editor context",
    Origin.STATE_SNAPSHOT: "summary of the conversation so far",
    Origin.CONTINUE: "request to continue",
    Origin.AGENT_PROMPT: "task for the agent",
    Origin.LOADED: "from a saved conversation",
    Origin.MODEL: "model",
    Origin.NOTICE: "notice",
    Origin.SYNTHETIC: "added by the client",
}


def blocks(messages: Iterable[Message], options: TranscriptOptions | None = None) -> Iterator[Block]:
    """Yield the blocks of a timeline in order."""
    options = options or TranscriptOptions()
    dropped: HiddenBlock | None = None
    for message in messages:
        if options.branches is Branches.ACTIVE and message.fate is not Fate.ACTIVE:
            is_counted = message.origin in _COUNTED
            folded = tuple(_message_blocks(message, options)) if options.folds_dropped else ()
            if not (is_counted or folded):
                continue
            if dropped is not None and dropped.fate is not message.fate:
                yield dropped
                dropped = None
            dropped = HiddenBlock(message.fate, (dropped.count if dropped else 0) + is_counted)
            yield from folded
            continue
        for block in _message_blocks(message, options):
            if dropped is not None:
                yield dropped
                dropped = None
            yield block
    if dropped is not None:
        yield dropped


_COUNTED = frozenset({Origin.HUMAN, Origin.AGENT_PROMPT, Origin.LOADED, Origin.MODEL, Origin.NOTICE})
"""Origins that a reader counts as messages; texts that the client adds are not among them."""


def _message_blocks(message: Message, options: TranscriptOptions) -> Iterator[Block]:
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
            return  # shown with the call
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


def _prompt(message: Message, options: TranscriptOptions) -> Iterator[Block]:
    text = shorten(message.text, options.prompt_limits)
    yield PromptBlock(message.id, message.at, message.fate, message.origin, text, message.attachments)
    if options.detail in {Detail.NORMAL, Detail.FULL}:
        sent = _sent_along(message)
        if sent:
            yield _added(message, Origin.HUMAN, sent, options)
        for part in message.parts:
            if not isinstance(part, Attachment):
                yield from _part(message, part, options)


def _sent_along(message: Message) -> str:
    """Return what the client sent to the model in addition to the typed text."""
    if message.display is None:
        return ""
    sent = "".join(part.text for part in message.parts if isinstance(part, Text))
    typed = message.text
    return sent.removeprefix(typed).strip("\n") if sent != typed else ""


def _answer(message: Message, options: TranscriptOptions) -> Iterator[Block]:
    """Yield thoughts, text, tool calls and usage of one model call, in this order."""
    if options.shows_thoughts:
        yield from _thoughts(message)
    shows_tools = options.detail in {Detail.NORMAL, Detail.FULL}
    text = ""
    for part in chain(message.parts, (None,)):
        if isinstance(part, Text):
            text += part.text
            continue
        if part is None or not isinstance(part, Thought | FunctionCall | FunctionResponse):
            if text.strip():
                yield AnswerBlock(message.id, message.at, message.fate, message.model, text.strip("\n"))
            text = ""
        if part is not None and shows_tools:
            yield from _part(message, part, options)
    if shows_tools:
        for call in message.tool_calls:
            yield _tool(message, call, options)
    if options.detail is Detail.FULL and message.tokens is not None:
        yield UsageBlock(message.id, message.at, message.fate, message.model, message.tokens)


def _thoughts(message: Message) -> Iterator[Block]:
    """Yield the reasoning; a saved conversation has it among the parts."""
    for thought in message.thoughts or (part for part in message.parts if isinstance(part, Thought)):
        if thought.subject or thought.text.strip():
            at = thought.at or message.at
            yield ThoughtBlock(message.id, at, message.fate, message.model, thought.subject, thought.text.strip("\n"))


def _part(message: Message, part: Part, options: TranscriptOptions) -> Iterator[Block]:
    match part:
        case Text() | Thought() | FunctionCall() | FunctionResponse():
            return  # shown elsewhere
        case Attachment():
            yield AttachmentBlock(message.id, message.at, message.fate, part)
        case Code(language=language, code=code):
            summary = ToolSummary(Icon.CODE, "Run", f"{language.lower()} in the API's sandbox")
            yield _run(message, summary, Input(shorten(code, options.limits), language.lower()))
        case CodeResult(outcome=outcome, output=output):
            summary = ToolSummary(Icon.CODE, "Printed", "", outcome.removeprefix("OUTCOME_").lower())
            is_error = outcome not in {"OUTCOME_OK", ""}
            yield _run(message, summary, Output(shorten(output, options.limits), is_error), is_failed=is_error)
        case Unknown(value=value):
            yield UnknownBlock(message.id, message.at, message.fate, shorten(pretty(value), options.limits))
        case _:
            assert_never(part)


def _run(message: Message, summary: ToolSummary, body: Body, *, is_failed: bool = False) -> ToolBlock:
    status = "error" if is_failed else "success"
    return ToolBlock(message.id, message.at, message.fate, None, summary, status, is_failed=is_failed, bodies=(body,))


def _tool(message: Message, call: ToolCall, options: TranscriptOptions) -> ToolBlock:
    view = describe_call(call, limits=options.limits, root=options.root)
    return ToolBlock(
        message.id,
        call.at or message.at,
        message.fate,
        call_id=call.id,
        summary=view.summary,
        status=call.status,
        exit_code=call.exit_code,
        is_failed=is_failed(call),
        bodies=view.bodies,
        notes=view.notes,
        attachments=call.attachments,
        agent_id=call.agent_id,
    )


def _notice(message: Message, options: TranscriptOptions) -> Iterator[Block]:
    text = message.text
    if text.strip() or options.detail is Detail.FULL:
        yield NoticeBlock(message.id, message.at, message.fate, message.kind, shorten(text, options.limits))
    for part in message.parts:
        yield from _part(message, part, options)


def _synthetic(message: Message, options: TranscriptOptions) -> Iterator[Block]:
    yield _added(message, message.origin, message.text, options)
    for part in message.parts:
        yield from _part(message, part, options)


def _added(message: Message, origin: Origin, text: str, options: TranscriptOptions) -> SyntheticBlock:
    summary = _one_line(origin, text)
    if options.detail is Detail.FULL:
        shown = shorten(text, None)
    elif origin is Origin.SHELL_MODE:
        shown = shorten(_shell_mode(text)[1], options.limits)
    else:
        shown = Excerpt("") if summary and line(text) == summary else fold(text, keep=options.folds)
    return SyntheticBlock(message.id, message.at, message.fate, origin, LABELS[origin], summary, shown)


_ONE_LINE = 100


def _one_line(origin: Origin, text: str) -> str:
    """Return the one line of an added text that is worth reading, if there is one."""
    match origin:
        case Origin.SHELL_MODE:
            return line(_shell_mode(text)[0], _ONE_LINE)
        case Origin.CONTINUE | Origin.SYNTHETIC:
            return line(text, _ONE_LINE)
        case Origin.HOOK_CONTEXT:
            return line(text.partition("<hook_context>")[2].partition("</hook_context>")[0], _ONE_LINE)
        case _:
            return ""


def _shell_mode(text: str) -> tuple[str, str]:
    """Parse the command and its result out of the text that shell mode sends to the model."""
    after_fence = text.partition("```sh\n")[2]
    command, _, after_command = after_fence.partition("\n```\n")
    result = after_command.partition("```\n")[2].strip().removesuffix("```")
    return command or text, result
