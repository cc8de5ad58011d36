"""A session as Markdown: readable as it is, and on any page that renders it.

Prompts are headings, answers are what the model wrote, and everything else is a line with what there is to see of it.
What was rewound or compressed and what subagents did stands in quotations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date
from typing import NamedTuple

from pollux import __version__
from pollux.exports.header import facts
from pollux.exports.markdown.blocks import block_texts
from pollux.exports.markdown.escape import code, plain
from pollux.exports.markdown.sheet import Sheet, new_sheet
from pollux.exports.parts import Part, in_parts, links
from pollux.exports.source import Subject
from pollux.model import Fate
from pollux.views.conversation import Numbered, Shown, numbered
from pollux.views.session_text import BRANCHES, TITLE, clock, day, messages_of, title
from pollux.views.transcript import Answer, LeftOut, Thinking, Tool

SUFFIX = ".md"
_QUOTE = "> "


class _Chunk(NamedTuple):
    """A paragraph, and how many quotations it stands in."""

    text: str
    depth: int = 0


def render(subject: Subject) -> Iterator[bytes]:
    """Write one session."""
    sheet = new_sheet(subject)

    def page(part: Part) -> Iterator[bytes]:
        return _written(_page(part, replace(sheet, is_beside=part.number > 1)))

    return in_parts(subject, SUFFIX, page)


def _page(part: Part, sheet: Sheet) -> Iterator[_Chunk]:
    subject = sheet.subject
    yield _Chunk(f"# {plain(title(subject.session, TITLE))}")
    if part.number == 1:
        yield _Chunk("\n".join(_header(subject)))
    else:
        yield _Chunk(f"Part {part.number}")
    yield from _links(part, subject)
    yield from _transcript(part.blocks, sheet)
    yield from _links(part, subject, has_next=part.has_next())


def _header(subject: Subject) -> Iterator[str]:
    for name, words in facts(subject):
        yield f"- **{name}:** {code(words) if name == 'Session' else plain(words)}"
    for source in subject.sources():
        yield f"- **Source:** {code(str(source['path']))} ({source['role']}), sha256 `{source['sha256']}`"
    yield f"- **Written by:** Pollux {__version__}, {subject.wanted.detail} detail, times in UTC"


def _links(part: Part, subject: Subject, *, has_next: bool = False) -> Iterator[_Chunk]:
    if found := [f"[{words}]({place})" for words, place in links(part, subject, SUFFIX, has_next=has_next)]:
        yield _Chunk(" · ".join(found))


def _transcript(items: Iterable[Numbered[Subject]], sheet: Sheet, depth: int = 0) -> Iterator[_Chunk]:
    """Yield the paragraphs of a transcript, with a word where the day, the speaker or the branch changes."""
    before: Shown[Subject] | None = None
    today: date | None = None
    fate = Fate.ACTIVE
    for item in items:
        shown = item.shown
        block = shown.block
        inside = depth
        if block is not None:
            at = None if isinstance(block, LeftOut) else block.at
            if at and at.astimezone(UTC).date() != today:
                if today:
                    yield _Chunk(f"*{day(at.astimezone(UTC))}*", depth)
                today = at.astimezone(UTC).date()
            is_gone = block.fate is not Fate.ACTIVE and not isinstance(block, LeftOut)
            inside += is_gone
            if is_gone and block.fate is not fate:
                yield _Chunk(f"**{BRANCHES[block.fate]}**", inside)
            fate = block.fate if is_gone else Fate.ACTIVE
            if speaker := _speaker(before, shown):
                yield _Chunk(speaker, inside)
            yield from (_Chunk(text, inside) for text in block_texts(block, sheet, item.prompt))
        for agent in shown.agents:
            yield from _agent(agent, sheet, inside + 1, shown.above)
        before = shown


def _speaker(before: Shown[Subject] | None, shown: Shown[Subject]) -> str:
    """Say who speaks and when, where a message of the model begins; calls that follow calls need no word."""
    block = shown.block
    if not isinstance(block, Answer | Thinking | Tool) or (before and before.number == shown.number):
        return ""
    if isinstance(block, Tool) and before and isinstance(before.block, Tool):
        return ""
    model = block.model if isinstance(block, Answer | Thinking) else None
    words = " · ".join(filter(None, (clock(block.at), plain(model or ""))))
    return f"*{words}*" if words else ""


def _agent(agent: Subject, sheet: Sheet, depth: int, above: frozenset[str]) -> Iterator[_Chunk]:
    """Yield what a subagent did."""
    session = agent.session
    yield _Chunk(f"**Subagent** {code(session.id)} · {messages_of(session, agent.by_id)}", depth)
    yield from _transcript(numbered(agent, above), sheet, depth)


def _written(chunks: Iterable[_Chunk]) -> Iterator[bytes]:
    """Put paragraphs together; what stands in one quotation stays in one."""
    before: _Chunk | None = None
    for chunk in chunks:
        lines = chunk.text.split("\n")
        if chunk.depth:
            mark = _QUOTE * chunk.depth
            lines = [f"{mark}{line}" if line else mark.rstrip() for line in lines]
        if before:
            lines.insert(0, (_QUOTE * min(before.depth, chunk.depth)).rstrip())
        yield ("\n".join(lines) + "\n").encode("utf-8", "replace")
        before = chunk
