"""A transcript as HTML: an article per message, a fold per dropped branch, and subagents below their calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date

from pollux.model import Fate
from pollux.render.html.blocks import PageState, PromptLink, block_html
from pollux.render.html.markup import Html, closing, element, icon, joined, opening, text, time_element
from pollux.text.escape import make_visible
from pollux.views.conversation import ConversationSource, PlacedBlock, placed_blocks
from pollux.views.excerpts import line
from pollux.views.session_text import BRANCHES, describe_messages
from pollux.views.tools import Icon
from pollux.views.transcript import (
    LABELS,
    AnswerBlock,
    Branches,
    HiddenBlock,
    NoticeBlock,
    PromptBlock,
    ShownBlock,
    SyntheticBlock,
    TranscriptOptions,
)

ENTRY = 100
"""Characters of a prompt in the navigation."""
HELD = 5_000
"""Pieces of a closed branch that are held in memory."""


def transcript(
    items: Iterable[PlacedBlock[ConversationSource]], page: PageState, options: TranscriptOptions
) -> Iterator[Html]:
    """Yield a transcript piece by piece."""
    writer = _Writer(page)
    are_branches_closed = options.branches is Branches.ACTIVE
    for item in items:
        block = item.block
        if isinstance(block, HiddenBlock):
            yield from writer.end_closed_branch(block.text)
        elif are_branches_closed and block is not None and block.fate is not Fate.ACTIVE:
            yield from writer.write_closed(item, block.fate)
        else:
            yield from writer.write(item, marks_branches=not are_branches_closed)
    yield from writer.end()


class _Writer:
    """Writes items, and keeps track of the open article and branch and of the day.

    A branch that is closed at first is held back until its `HiddenBlock` says how many messages it has, which its
    label shows. One of more than `HELD` pieces is written at once, under a label without a number.
    """

    def __init__(self, page: PageState) -> None:
        self._page = page
        self._article = 0
        self._branch = Fate.ACTIVE
        self._held: list[Html] = []
        self._held_fate = Fate.ACTIVE
        self._day: date | None = None

    def write_closed(self, item: PlacedBlock[ConversationSource], fate: Fate) -> Iterator[Html]:
        day = self._day
        if self._branch is not Fate.ACTIVE:  # it was too long to be held
            yield from self.write(item)
        else:
            if not self._held:
                yield from self.end_article()
            self._held += self.write(item)
            self._held_fate = fate
            if len(self._held) > HELD:
                self._branch = fate
                yield from self._release(f"messages {fate.label}")
        self._day = day  # a divider in a closed branch is not visible, so the next active message needs its own

    def end_closed_branch(self, label: str) -> Iterator[Html]:
        if self._branch is not Fate.ACTIVE:
            yield from self.end_branch()
        elif self._held:
            self._held += self.end_article()
            yield from self._release(label)
            yield closing("details")
        else:
            yield from self.end_article()
            yield element("p", icon("branch"), " ", f"{label}, not in this file", class_="left-out")

    def end(self) -> Iterator[Html]:
        if self._held:
            yield from self.end_closed_branch(f"{self._held_fate.label}, continued in the next part")
        yield from self.end_branch()

    def _release(self, label: str) -> Iterator[Html]:
        fate = self._held_fate
        yield opening("details", class_=f"branch {fate}")
        yield element("summary", icon("branch"), " ", label)
        yield element("p", BRANCHES[fate], class_="fate")
        yield from self._held
        self._held = []

    def write(self, item: PlacedBlock[ConversationSource], *, marks_branches: bool = False) -> Iterator[Html]:
        block, number = item.block, item.number
        assert not isinstance(block, HiddenBlock)
        fate = block.fate if block else Fate.ACTIVE
        if marks_branches and fate is not self._branch:
            yield from self.end_branch()
            self._branch = fate
            if fate is not Fate.ACTIVE:
                yield opening("details", class_=f"branch {fate}", open=True)
                yield element("summary", BRANCHES[fate])
        if block is None or number != self._article:
            yield from self.end_article()
        if block is not None:
            if not self._article:
                yield from self._new_day(block)
                yield _article(block, self._page, item)
                self._article = number
            yield block_html(block, self._page)
        for agent in item.agents:
            yield from _agent(agent, self._page, item.above)
        yield Html("\n")

    def end_article(self) -> Iterator[Html]:
        if self._article:
            self._article = 0
            yield closing("article")

    def end_branch(self) -> Iterator[Html]:
        yield from self.end_article()
        if self._branch is not Fate.ACTIVE:
            self._branch = Fate.ACTIVE
            yield closing("details")

    def _new_day(self, block: ShownBlock) -> Iterator[Html]:
        if block.at is None:
            return
        day = block.at.astimezone(UTC).date()
        if self._day is not None and day != self._day:
            yield element("p", time_element(block.at, "day"), class_="day")
        self._day = day


def _article(block: ShownBlock, page: PageState, item: PlacedBlock[ConversationSource]) -> Html:
    """Return the start of a message: a link to it, and who speaks where that changes."""
    number = item.number
    anchor = page.anchor(number)
    time = time_element(block.at) if block.at else text("#")
    hint = element("span", f", link to message {number}", class_="unseen")
    link = element("a", time, hint, href=f"#{anchor}", class_="at")
    if isinstance(block, PromptBlock):
        name = f"Prompt {item.prompt}" if item.is_prompt else LABELS[block.origin].capitalize()
        return joined((_prompt(block, page, item, anchor), link, element("h2", name)))
    kind = "aside" if isinstance(block, NoticeBlock | SyntheticBlock) else "model"
    speaker = Html()
    if isinstance(block, AnswerBlock) and block.model and block.model != page.model:
        page.model = block.model
        speaker = element("p", make_visible(line(block.model)), class_="speaker")
    return joined((opening("article", id=anchor, class_=kind), link, speaker))


def _prompt(block: PromptBlock, page: PageState, item: PlacedBlock[ConversationSource], anchor: str) -> Html:
    """Return the start of a prompt, and add it to the navigation."""
    if item.is_prompt:
        fate = "" if block.fate is Fate.ACTIVE else block.fate.label
        words = make_visible(line(block.text.head, ENTRY)) or "(no text)"
        page.prompts.append(PromptLink(anchor, item.prompt, words, block.at, fate))
    return opening("article", id=anchor, class_="prompt" if item.is_prompt else "prompt task", tabindex="-1")


def _agent(agent: ConversationSource, page: PageState, above: frozenset[str]) -> Iterator[Html]:
    """Yield the transcript of a subagent in a fold."""
    session = agent.session
    name = element("span", make_visible(line(session.id)), class_="what")
    counts = element("span", describe_messages(session, agent.by_id), class_="outcome")
    yield opening("details", class_="agent")
    yield element("summary", icon(Icon.AGENT), element("b", "Subagent"), " ", name, " ", counts)
    yield opening("div", class_="nested")
    yield from transcript(placed_blocks(agent, above), page.within(), agent.options)
    yield joined((closing("div"), closing("details")))
