"""The blocks of a transcript as HTML, one by one."""

from __future__ import annotations

from typing import assert_never

from pollux.model import Kind
from pollux.render.html.bodies import body, excerpt, hidden, lines_of
from pollux.render.html.icons import icon
from pollux.render.html.markdown import answer, copyable
from pollux.render.html.markup import Html, element, joined, long_text
from pollux.render.html.state import Sheet
from pollux.text.escape import clean
from pollux.views.bodies import Body, Questions, Todos
from pollux.views.diffs import Diff
from pollux.views.excerpts import Excerpt, counted, line
from pollux.views.session_text import tokens_of
from pollux.views.transcript import (
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

LONG = 40
"""Lines above which something is folded until somebody opens it."""
_LINE = 100
_NOTICE = {Kind.INFO: "Note", Kind.WARNING: "Warning", Kind.ERROR: "Error"}


def block_html(block: Block, sheet: Sheet) -> Html:
    """Show a block."""
    match block:
        case Prompt(text=text, attachments=attachments):
            return joined((_words(text, has_more=bool(attachments)), *map(sheet.attachment, attachments)))
        case Answer(text=text):
            return element("div", answer(text), class_="prose")
        case Thinking():
            return _thinking(block)
        case Tool():
            return _tool(block, sheet)
        case Notice(kind=kind, text=text):
            label = element("b", _NOTICE.get(kind, "Unknown message"))
            return element("div", label, " ", _plain(text), class_=f"notice {kind}")
        case Synthetic():
            return _synthetic(block)
        case Attached(attachment=attachment):
            return sheet.attachment(attachment)
        case Other(text=text):
            return _folded("A part that Pollux does not know", copyable(excerpt(text, "json")), "other")
        case UsageBlock(model=model, tokens=tokens):
            return element("p", " · ".join(filter(None, (line(model or ""), tokens_of(tokens)))), class_="usage")
        case LeftOut(words=words):
            return element("p", f"⋯ {words}", class_="left-out")
        case _:
            assert_never(block)


def _words(text: Excerpt, *, has_more: bool = False) -> Html:
    """Show what somebody typed, as it was typed."""
    if not (text.head.strip() or has_more):
        return element("div", "(no words)", class_="words none")
    shown = element("div", _plain(text), class_="words")
    if not _is_long(text):
        return shown
    n_lines = text.head.count("\n") + text.tail.count("\n") + text.hidden_lines + 1
    size = counted(n_lines, "line") if n_lines > 1 else counted(len(text.head), "character")
    return _folded(f"{line(text.head, _LINE)} ({size})", shown, "long")


def _plain(text: Excerpt) -> Html:
    if not text.hidden:
        return long_text(clean(text.head) or "(no words)")
    return joined((clean(text.head), "\n", hidden(text.hidden), "\n", clean(text.tail)))


def _is_long(text: Excerpt) -> bool:
    return text.head.count("\n") + text.tail.count("\n") + (len(text.head) + len(text.tail)) // _LINE > LONG


def _thinking(block: Thinking) -> Html:
    title = joined((element("b", "Thought"), " ", clean(line(block.subject))))
    return _folded(title, element("div", answer(block.text), class_="prose"), "thinking")


def _tool(block: Tool, sheet: Sheet) -> Html:
    summary = block.summary
    words = [icon(summary.icon), element("b", clean(line(summary.label))), " "]
    words += [element("span", clean(summary.text), class_="what"), " "] if summary.text else []
    if summary.outcome and summary.outcome != "failed":
        words += [element("span", clean(summary.outcome), class_="outcome"), " "]
    words += [element("span", "failed", class_="bad")] if block.is_failed else []
    seen = [*map(body, block.bodies), *map(sheet.attachment, block.attachments)]
    seen += [element("p", f"({clean(note)})", class_="note") for note in block.notes]
    classes = "tool failed" if block.is_failed else "tool"
    if not seen:
        return element("div", *words, class_=f"{classes} bare")
    inside = element("div", *seen, class_="seen")
    is_open = _is_open(block)
    return element("details", element("summary", *words), inside, class_=classes, open=is_open)


def _is_open(block: Tool) -> bool:
    """Tell whether a call is worth seeing at once: it changed, asked or failed at something, in few lines."""
    speaks = block.is_failed or bool(block.attachments) or any(map(_speaks, block.bodies))
    return speaks and sum(map(lines_of, block.bodies)) <= LONG


def _speaks(one: Body) -> bool:
    return isinstance(one, Diff | Todos | Questions)


def _synthetic(block: Synthetic) -> Html:
    words = block.label
    if block.summary:
        words += f": {clean(block.summary)}"
    if block.text.hidden and not block.text.head:
        words += f" ({block.text.hidden})"
    if not block.text.head:
        return element("p", words, class_="added")
    return _folded(words, copyable(excerpt(block.text)), "added")


def _folded(summary: str, inside: Html, classes: str, *, is_open: bool = False) -> Html:
    return element("details", element("summary", summary), inside, class_=classes, open=is_open)
