"""The blocks of a transcript in Markdown, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from pollux.exports.markdown.bodies import LONG, body_text, excerpt_text, folded
from pollux.exports.markdown.escape import code, fence, inert, plain, quoted
from pollux.exports.markdown.sheet import Sheet
from pollux.model import Kind, Origin
from pollux.views.excerpts import Excerpt, line
from pollux.views.session_text import clock, tokens_of
from pollux.views.transcript import (
    LABELS,
    Answer,
    Attached,
    Block,
    LeftOut,
    Notice,
    Other,
    Prompt,
    Synthetic,
    Thinking,
    Tool,
    UsageBlock,
)

HEADING = 100
"""Characters of a prompt that are its heading."""
_NOTICE = {Kind.INFO: "Note", Kind.WARNING: "Warning", Kind.ERROR: "Error"}


def block_texts(block: Block, sheet: Sheet, number: int) -> Iterator[str]:
    """Yield the paragraphs of a block; `number` is that of a prompt that somebody typed."""
    match block:
        case Prompt():
            yield from _prompt(block, sheet, number)
        case Answer(text=text):
            yield inert(text)
        case Thinking(subject=subject, text=text):
            title = f"**Thought:** {plain(subject)}".rstrip()
            yield quoted("\n\n".join(filter(None, (title, inert(text)))))
        case Tool():
            yield from _tool(block, sheet)
        case Notice(kind=kind, text=text):
            yield from _labelled(f"**{_NOTICE.get(kind, 'Unknown message')}:**", text)
        case Synthetic():
            yield from _synthetic(block)
        case Attached(attachment=attachment):
            yield sheet.attachment(attachment)
        case Other(text=text):
            yield "**A part that Pollux does not know:**"
            yield fence(excerpt_text(text), "json")
        case UsageBlock(model=model, tokens=tokens):
            yield f"*{' · '.join(filter(None, (plain(model or ''), tokens_of(tokens))))}*"
        case LeftOut(words=words):
            yield f"*… {words}*"
        case _:
            assert_never(block)


def _prompt(block: Prompt, sheet: Sheet, number: int) -> Iterator[str]:
    words = block.text.head.strip()
    if block.origin is Origin.AGENT_PROMPT:
        heading = f"**{LABELS[block.origin].capitalize()}**"
        is_told = False
    else:
        first, _, rest = words.partition("\n")
        shown = line(first, HEADING) + (" …" if rest and len(first) < HEADING else "")
        heading = f"## {number}. {plain(shown) or '(no words)'}"
        is_told = shown == words and not block.text.hidden
    yield heading
    label = "" if block.origin is Origin.HUMAN else LABELS[block.origin]
    if about := " · ".join(filter(None, (clock(block.at), label if number else ""))):
        yield f"*{about}*"
    if words and not is_told:
        yield quoted(_excerpt(block.text))
    yield from map(sheet.attachment, block.attachments)


def _excerpt(text: Excerpt) -> str:
    """Write what somebody typed; what is left out of it, in words."""
    hidden = f"*… {text.hidden}*" if text.hidden else ""
    parts = (inert(text.head, keeps_lines=True), hidden, inert(text.tail, keeps_lines=True) if text.tail else "")
    return "\n\n".join(filter(None, parts))


def _tool(block: Tool, sheet: Sheet) -> Iterator[str]:
    summary = block.summary
    label = "Shell" if summary.label == "$" else summary.label
    words = [f"**{plain(label)}**" + (f" {code(summary.text)}" if summary.text else "")]
    words += [plain(summary.outcome)] if summary.outcome else []
    words += ["**failed**"] if block.is_failed and summary.outcome != "failed" else []
    yield " · ".join(words)
    yield from map(body_text, block.bodies)
    yield from map(sheet.attachment, block.attachments)
    yield from (f"*({plain(note)})*" for note in block.notes)


def _synthetic(block: Synthetic) -> Iterator[str]:
    words = block.label
    if block.summary:
        words += f": {plain(block.summary)}"
    if block.text.hidden and not block.text.head:
        words += f" ({block.text.hidden})"
    yield f"*{words}*"
    if block.text.head:
        made = fence(excerpt_text(block.text))
        yield folded(made, block.label) if made.count("\n") - 1 > LONG else made


def _labelled(label: str, text: Excerpt) -> Iterator[str]:
    if text.hidden or "\n" in text.head:
        yield label
        yield fence(excerpt_text(text))
    else:
        yield f"{label} {plain(text.head) or '(no words)'}"
