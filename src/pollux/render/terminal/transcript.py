"""A transcript on a terminal: blocks as Rich renderables, one by one, so that a long session appears at once.

Characters carry the meaning and colours only support it, so a transcript reads the same in a pipe. All session text
goes through `clean` on its way in and through `safe` on its way out, because Markdown can write any character too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date, tzinfo
from typing import assert_never

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.text import Text

from pollux.model import Attachment, Fate, Kind, Message, Origin, Session, Usage
from pollux.render.terminal.bodies import body_rows, excerpt_rows
from pollux.render.terminal.layout import Aside, Gutter, PageFormat, Safe, lay_out
from pollux.render.terminal.markdown import Markdown
from pollux.reports.periods import local
from pollux.text.numbers import plural, size
from pollux.views.bodies import Input
from pollux.views.session_text import cost_text, describe_messages, describe_tokens, period, shares, title
from pollux.views.transcript import (
    LABELS,
    AnswerBlock,
    AttachmentBlock,
    Block,
    HiddenBlock,
    NoticeBlock,
    PromptBlock,
    SyntheticBlock,
    ThoughtBlock,
    ToolBlock,
    UnknownBlock,
    UsageBlock,
)

PROSE = 100
"""Columns of prose at most: longer lines are hard to read."""
LONG_TEXT = 50_000
"""Characters above which text is broken at the edge instead of between words, which would take seconds."""

_STATUS = {
    "success": ("✓", "green"),
    "error": ("✗", "bright_red"),
    "cancelled": ("⊘", "bright_magenta"),
    "pending": ("○", "bright_magenta"),
}
_NOTICE = {
    Kind.WARNING: ("!", "bright_magenta"),
    Kind.ERROR: ("✗", "bright_red"),
    Kind.UNKNOWN: ("?", "bright_magenta"),
}


def render_header(
    session: Session,
    by_id: Mapping[str, Session],
    usage: Usage,
    own_usage: Usage,
    *,
    zone: tzinfo | None = None,
    encoding: str = "utf-8",
) -> RenderableType:
    """Return the header of a transcript; `usage` includes the subagents of the session."""
    page = PageFormat(zone, encoding)
    amounts = shares(_amount(usage), _amount(own_usage)) if usage.calls else ()
    lines = [
        Text(page.line(title(session)), "bold"),
        Text(_joined(page.line(session.project.name), page.line(session.project.path or "")), "bright_blue"),
        Text(_joined(period(session, zone), page.line(", ".join(session.models)))),
        Text(describe_messages(session, by_id)),
        *map(Text, amounts),
        Text(_joined(page.line(session.id), "" if session.kind == "main" else page.line(session.kind)), "dim"),
    ]
    if session.problems:
        lines.append(Text(f"! {plural(len(session.problems), 'problem')} while reading its files", "bright_magenta"))
    return Safe(Group(*(line for line in lines if line.plain), Rule(style="dim")), encoding)


def _amount(usage: Usage) -> str:
    return f"{cost_text(usage)} for {describe_tokens(usage.tokens)}"


def render_transcript(
    blocks: Iterable[Block], *, zone: tzinfo | None = None, encoding: str = "utf-8"
) -> Iterator[RenderableType]:
    """Yield renderables to print one after the other; times are local unless a zone is given."""
    page = PageFormat(zone, encoding)
    before: Block | None = None
    day: date | None = None
    for block in blocks:
        if before is not None and not (isinstance(before, ToolBlock) and isinstance(block, ToolBlock | UsageBlock)):
            yield Text()
        today = page.day(block)
        if day and today and today != day:
            yield Safe(Group(Text(f"─── {today:%A}, {today.day} {today:%B %Y} ───", "dim"), Text()), encoding)
        day = today or day
        is_flagged = block.fate is not Fate.ACTIVE and not isinstance(block, HiddenBlock)
        if is_flagged and (before is None or before.fate is not block.fate):
            yield Safe(Text(f"⋯ {block.fate.label}", "bright_magenta"), encoding)
        for part in _block(block, page):
            yield Safe(Gutter(part, "┊ ", style="bright_magenta") if is_flagged else part, encoding)
        before = block


def place_text(place: int, n_messages: int) -> str:
    """Return the words that name the place of a message in its session; the first place is 0."""
    return f"message {place + 1:,} of {n_messages:,}"


def render_place(
    message: Message, place: str, *, zone: tzinfo | None = None, encoding: str = "utf-8"
) -> RenderableType:
    """Return the line above the message that the user named: its place, time, fate and ID."""
    page = PageFormat(zone, encoding)
    at = f"{local(message.at, zone):%Y-%m-%d %H:%M}" if message.at else ""
    fate = "" if message.fate is Fate.ACTIVE else message.fate.label
    line = Text.assemble(("▶ ", "bold bright_magenta"), (_joined(place, at, fate), "bold"))
    return Safe(Group(Text(), line.append(f" · {page.line(message.id)}", "dim")), encoding)


def _block(block: Block, page: PageFormat) -> Iterator[RenderableType]:
    match block:
        case PromptBlock():
            yield from _prompt(block, page)
        case AnswerBlock(text=text):
            yield from _marked(_answer(page.text(text), page), Text("✦ ", "bright_magenta"), most=PROSE)
        case ThoughtBlock(subject=subject, text=text):
            words = page.text("\n".join(filter(None, (subject, text))))
            yield from _marked(_prose(words, "italic"), Text("✻ ", "dim"), most=PROSE)
        case ToolBlock():
            yield from _tool(block, page)
        case NoticeBlock(kind=kind, text=text):
            mark, style = _NOTICE.get(kind, ("•", "bright_blue"))
            rows = [*excerpt_rows(text, page, "bright_red" if kind is Kind.ERROR else "")]
            yield from _marked(lay_out(rows or [("", "(no words)", "dim")]), Text(f"{mark} ", style))
        case SyntheticBlock():
            yield from _synthetic(block, page)
        case AttachmentBlock(attachment=attachment):
            yield Gutter(_attachment(attachment, page), "  ")
        case UnknownBlock(text=text):
            yield Text("? a part of an unknown kind", "bright_magenta")
            yield from lay_out(excerpt_rows(text, page, "dim"), Text("  │ ", "dim"))
        case UsageBlock(model=model, tokens=tokens):
            yield Gutter(Text(_joined(page.line(model or ""), describe_tokens(tokens)), "dim"), "  ")
        case HiddenBlock(text=text):
            yield Text(f"⋯ {text}", "bright_magenta")
        case _:
            assert_never(block)


def _prompt(block: PromptBlock, page: PageFormat) -> Iterator[RenderableType]:
    def parts() -> Iterator[RenderableType]:
        if block.origin is not Origin.HUMAN:
            yield Text(LABELS[block.origin], "dim")
        if block.text.hidden:
            yield from lay_out(excerpt_rows(block.text, page))
        elif block.text.head.strip():
            yield from _prose(page.text(block.text.head))
        elif not block.attachments:
            yield Text("(no words)", "dim")
        yield from (_attachment(attachment, page) for attachment in block.attachments)

    colour = "bold bright_blue" if block.origin is Origin.HUMAN else "bold bright_magenta"
    for number, part in enumerate(parts()):
        body = part if number else Aside(part, page.clock(block.at))
        yield Gutter(body, "▌ ", style=colour, most=PROSE)


def _tool(block: ToolBlock, page: PageFormat) -> Iterator[RenderableType]:
    mark, colour = _STATUS["error"] if block.is_failed else _STATUS.get(block.status, ("?", "bright_magenta"))
    summary = block.summary
    line = Text.assemble((page.line(summary.label), "bold"), f" {page.line(summary.text)}".rstrip())
    if summary.outcome:
        line.append(f"  · {page.line(summary.outcome)}", "bright_red" if block.is_failed else "dim")
    yield Gutter(line, Text(f"  {mark} ", colour), "    ")
    for body in block.bodies:
        yield from lay_out(body_rows(body, page), Text("    > " if isinstance(body, Input) else "    │ ", "dim"))
    yield from (Gutter(_attachment(attachment, page), "    ") for attachment in block.attachments)
    yield from (Gutter(Text(f"({page.line(note)})", "dim"), "    ") for note in block.notes)


def _synthetic(block: SyntheticBlock, page: PageFormat) -> Iterator[RenderableType]:
    words = f"⋯ {block.label}"
    if block.summary:
        words += f": {page.line(block.summary)}"
    if block.text.hidden and not block.text.head:
        words += f" ({block.text.hidden})"
    yield Text(words, "dim")
    if block.text.head:
        yield from lay_out(excerpt_rows(block.text, page, "dim"), Text("  │ ", "dim"))


def _attachment(attachment: Attachment, page: PageFormat) -> Text:
    size_or_place = attachment.uri if attachment.size is None else size(attachment.size)
    words = ", ".join(filter(None, (attachment.media_type, size_or_place)))
    return Text.assemble(("▣ ", "bright_blue"), (page.line(words), "dim"))


def _joined(*words: str) -> str:
    return " · ".join(word for word in words if word)


def _prose(text: str, style: str = "") -> Iterator[RenderableType]:
    if len(text) <= LONG_TEXT:
        yield Text(text, style)
    else:
        yield from lay_out(("", line, style) for line in text.split("\n"))


def _answer(text: str, page: PageFormat) -> Iterator[RenderableType]:
    laid_out = Markdown(text, page) if len(text) <= LONG_TEXT else None
    if laid_out is not None and not laid_out.is_lossy:
        yield laid_out
    else:
        yield from _prose(text)


def _marked(parts: Iterable[RenderableType], mark: Text, most: int | None = None) -> Iterator[RenderableType]:
    """Yield parts with a mark before the first line and an indent before all others."""
    blank = " " * cell_len(mark.plain)
    for number, part in enumerate(parts):
        yield Gutter(part, blank if number else mark, blank, most=most)
