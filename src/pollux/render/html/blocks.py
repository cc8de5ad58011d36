"""The blocks of a transcript as HTML, and the state of the page that they are written to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import NamedTuple, assert_never

from pollux.model import Attachment, Kind, Session, Usage
from pollux.render.html.bodies import LINE, body_html, count_lines, count_text_lines, excerpt_html, more, size_of
from pollux.render.html.guide import GuideMark
from pollux.render.html.markdown import answer, link
from pollux.render.html.markup import Html, element, icon, joined, long_text, text
from pollux.text.escape import make_visible
from pollux.text.numbers import plural
from pollux.views import attachments
from pollux.views.bodies import Questions, Todos
from pollux.views.diffs import Diff
from pollux.views.excerpts import Excerpt, line
from pollux.views.session_text import describe_tokens
from pollux.views.transcript import (
    AnswerBlock,
    AttachmentBlock,
    NoticeBlock,
    PromptBlock,
    ShownBlock,
    SyntheticBlock,
    ThoughtBlock,
    ToolBlock,
    UnknownBlock,
    UsageBlock,
)

FOLD_LINES = 40
"""Lines above which prompts and tool calls are folded."""
_CHANGE = re.compile(r"(new, )?\+(\d+) -(\d+)")
_NOTICE = {Kind.INFO: "Note", Kind.WARNING: "Warning", Kind.ERROR: "Error"}


class PromptLink(NamedTuple):
    """A prompt in the navigation."""

    anchor: str
    number: int
    words: str
    at: datetime | None
    fate: str
    """Empty for an active prompt."""


LinkToMessage = Callable[[str, int], str]
"""Returns the address of a message: the session's ID and the message's number."""
LinkToFile = Callable[[str, int, int], str]
"""Returns the address of an attachment: the session's ID, the message's number and which of its files it is, from 0."""
UsageByMessage = Callable[[Session], Mapping[str, Usage]]
"""Returns the tokens and the cost of a session's messages, by their IDs."""


def no_usage(_session: Session) -> Mapping[str, Usage]:
    """Return nothing: the page has no costs in its margin."""
    return {}


@dataclass(slots=True)
class PageState:
    """What renderers of the same page share; each subagent has its own."""

    session: Session | None = None
    prompts: list[PromptLink] = field(default_factory=list)
    marks: list[GuideMark] = field(default_factory=list)
    """Prompts, model calls and errors so far, for a guide."""
    model: str | None = None
    """The model of the last answer: its name is shown when it changes."""
    prefix: str = "m"
    """Start of the anchors of messages."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    """Numbers for agents and files, shared with subagents."""
    usage: UsageByMessage = no_usage
    """What the margin shows beside an answer."""
    message_address: LinkToMessage | None = None
    """None for a page that contains all messages: links then go to their anchors."""
    file_address: LinkToFile | None = None
    """None for a page that contains its pictures and files."""
    target: int = 0
    """Number of the message that the reader asked for; a closed branch that contains it is open."""
    number: int = 0
    """Number of the message that is being written."""
    n_files: int = 0
    """Attachments of this message so far."""
    shown: list[int] = field(default_factory=list)
    """Numbers of the messages that have an article."""
    hidden: str = "not in this file"
    """Where dropped messages are that the page does not show."""

    def anchor(self, number: int) -> str:
        """Return the anchor of a message."""
        return f"{self.prefix}{number}"

    def link(self, number: int) -> str:
        """Return the address of a message."""
        if self.message_address is None or self.session is None:
            return f"#{self.anchor(number)}"
        return self.message_address(self.session.id, number)

    def within(self, session: Session) -> PageState:
        """Return the state for a subagent's transcript on the same page."""
        return PageState(
            session,
            prefix=f"a{next(self.numbers)}m",
            numbers=self.numbers,
            usage=self.usage,
            message_address=self.message_address,
            file_address=self.file_address,
            hidden=self.hidden,
        )

    def next_file(self) -> str | None:
        """Return the address of the next attachment of this message; None if the page is to contain it."""
        index, self.n_files = self.n_files, self.n_files + 1
        if self.file_address is None or self.session is None:
            return None
        return self.file_address(self.session.id, self.number, index)


def block_html(block: ShownBlock, page: PageState) -> Html:
    """Return a block as HTML."""
    match block:
        case PromptBlock():
            return _prompt(block, page)
        case AnswerBlock(text=text):
            return element("div", answer(text), class_="prose")
        case ThoughtBlock(subject=subject, text=text):
            words = make_visible(line(subject))
            title = joined((element("b", "Thought:" if words else "Thought"), " ", words))
            return _folded(title, element("div", answer(text), class_="prose"), "thinking")
        case ToolBlock():
            return _tool(block, page)
        case NoticeBlock(kind=kind, text=text):
            label = element("b", _NOTICE.get(kind, "Unknown message"))
            return element("div", label, " ", _plain(text), class_=f"notice {kind}")
        case SyntheticBlock():
            return _synthetic(block)
        case AttachmentBlock(attachment=attachment):
            return attachment_html(attachment, page)
        case UnknownBlock(text=text):
            return _folded("Content of a kind that Pollux does not know", excerpt_html(text, "json"), "other")
        case UsageBlock(model=model, tokens=tokens):
            return element("p", " · ".join(filter(None, (line(model or ""), describe_tokens(tokens)))), class_="usage")
        case _:
            assert_never(block)


def attachment_html(attachment: Attachment, page: PageState) -> Html:
    """Return a picture, or a link that saves any other file."""
    description = attachments.describe(attachment)
    place = page.next_file()
    if attachments.decode(attachment) is None:
        address = attachments.web_address(attachment.uri)
        return element("p", "▣ ", link(description, address) if address else description, class_="file")
    if attachments.is_picture(attachment):
        media_type = attachment.media_type.partition(";")[0].strip().lower()
        source = place or f"data:{media_type};base64,{attachment.data}"
        picture = element("img", src=source, alt=description, decoding="async", loading="lazy" if place else None)
        return element("figure", picture, element("figcaption", description))
    name = attachments.file_name(attachment, next(page.numbers))
    # Browsers save a file of this type; one of the recorded type they might open.
    target = place or f"data:application/octet-stream;base64,{attachment.data}"
    return element("p", "▣ ", element("a", name, href=target, download=name), f" {description}", class_="file")


def _prompt(block: PromptBlock, page: PageState) -> Html:
    text = block.text
    if text.head.strip() or block.attachments:
        words = element("div", _plain(text), class_="words")
    else:
        words = element("div", "(no text)", class_="words none")
    if count_text_lines(text) > FOLD_LINES:
        n_lines = text.head.count("\n") + text.tail.count("\n") + text.hidden_lines + 1
        size = plural(n_lines, "line") if n_lines > 1 else plural(len(text.head), "character")
        words = _folded(f"{line(text.head, LINE)} ({size})", words, "long")
    return joined((words, *(attachment_html(attachment, page) for attachment in block.attachments)))


def _plain(text: Excerpt) -> Html:
    """Return a text as it was typed."""
    if not text.hidden:
        return long_text(make_visible(text.head) or "(no text)")
    folded = element("div", long_text(make_visible(text.folded.strip("\n")))) if text.folded else None
    return joined((make_visible(text.head), more(text.hidden, folded), make_visible(text.tail)))


def _tool(block: ToolBlock, page: PageState) -> Html:
    summary = block.summary
    words = [icon(summary.icon), element("b", make_visible(line(summary.label))), " "]
    if summary.text:
        words += [element("span", make_visible(summary.text), class_="what"), " "]
    outcome = summary.outcome or size_of(block.bodies)
    if block.is_failed and summary.outcome in {"", "failed"}:
        outcome = ""
    if outcome:
        words += [element("span", _outcome(outcome), class_="outcome"), " "]
    if block.is_failed:
        words.append(element("span", "failed", class_="bad"))
    inside = [*map(body_html, block.bodies)]
    inside += [attachment_html(attachment, page) for attachment in block.attachments]
    inside += [element("p", f"({make_visible(note)})", class_="note") for note in block.notes]
    classes = "tool failed" if block.is_failed else "tool"
    if not inside:
        return element("div", *words, class_=f"{classes} bare")
    return _folded(joined(words), element("div", *inside, class_="seen"), classes, is_open=_is_open(block))


def _outcome(words: str) -> Html:
    """Return an outcome; the numbers of added and removed lines have their colours."""
    match = _CHANGE.fullmatch(words)
    if match is None:
        return text(make_visible(words))
    before, added, removed = match.groups()
    return joined((before or "", _change("plus", f"+{added}"), " ", _change("minus", f"−{removed}")))


def _change(class_: str, words: str) -> Html:
    return element("span", words, class_=None if words[1:] == "0" else class_)


def _is_open(block: ToolBlock) -> bool:
    """Return whether a call is unfolded at first: it is short, and it failed, changed a file or asked the human."""
    is_notable = block.is_failed or bool(block.attachments)
    is_notable = is_notable or any(isinstance(body, Diff | Todos | Questions) for body in block.bodies)
    return is_notable and sum(map(count_lines, block.bodies)) <= FOLD_LINES


def _synthetic(block: SyntheticBlock) -> Html:
    text = block.text
    label = block.label[:1].upper() + block.label[1:]
    if block.summary:
        label += f": {make_visible(block.summary)}"
    if text.hidden and not text.head:
        label += f" ({text.hidden})"
    if text.head or text.folded:
        return _folded(label, excerpt_html(text), "added")
    return element("p", label, class_="added")


def _folded(summary: str, inside: Html, classes: str, *, is_open: bool = False) -> Html:
    return element("details", element("summary", summary), inside, class_=classes, open=is_open)
