"""A transcript as HTML: an article per message, a fold per dropped branch, and subagents below their calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime

from pollux.model import Fate, Kind, Usage
from pollux.render.html.blocks import PageState, PromptLink, block_html
from pollux.render.html.guide import GuideMark, call_mark, error_mark, prompt_mark
from pollux.render.html.icons import STAR
from pollux.render.html.markup import Html, closing, element, icon, joined, opening, text, time_element
from pollux.text.escape import make_visible
from pollux.text.numbers import count
from pollux.views.conversation import ConversationSource, PlacedBlock, placed_blocks
from pollux.views.excerpts import line
from pollux.views.session_text import BRANCHES, amount_text, describe_messages
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
            yield from writer.write_closed(item, block)
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
        self._usage = page.usage(page.session) if page.session else {}
        self._article = 0
        self._margin = Html()
        self._branch = Fate.ACTIVE
        self._held: list[Html] = []
        self._held_fate = Fate.ACTIVE
        self._held_since: datetime | None = None
        self._held_ids: dict[str, None] = {}
        self._is_target_held = False
        self._day: date | None = None

    def write_closed(self, item: PlacedBlock[ConversationSource], block: ShownBlock) -> Iterator[Html]:
        day, fate = self._day, block.fate
        if self._branch is not Fate.ACTIVE:  # it was too long to be held
            yield from self.write(item)
        else:
            if not self._held:
                yield from self.end_article()
                self._held_since = block.at
            self._held += self.write(item)
            self._held_fate = fate
            self._held_ids[block.message_id] = None
            self._is_target_held = self._is_target_held or item.number == self._page.target
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
            yield joined((closing("div"), closing("details")))
        else:
            yield from self.end_article()
            yield element("p", icon("branch"), " ", f"{label}, {self._page.hidden}", class_="left-out")

    def end(self) -> Iterator[Html]:
        if self._held:
            yield from self.end_closed_branch(f"{self._held_fate.label}, continued in the next part")
        yield from self.end_branch()

    def _release(self, label: str) -> Iterator[Html]:
        fate = self._held_fate
        yield opening("details", class_=f"branch {fate}", open=self._is_target_held)
        yield element("summary", icon("branch"), " ", label, self._branch_facts())
        yield opening("div")
        yield element("p", BRANCHES[fate], class_="fate")
        yield from self._held
        self._held, self._held_ids, self._is_target_held = [], {}, False

    def _branch_facts(self) -> Html:
        """Return when a branch began, and what it cost."""
        facts = [time_element(self._held_since)] if self._held_since else []
        usage = sum((self._usage.get(id_, Usage()) for id_ in self._held_ids), Usage())
        if usage.calls:
            facts.append(text(_cost(usage)))
        return joined((" ", element("span", Html(", ".join(facts))))) if facts else Html()

    def write(self, item: PlacedBlock[ConversationSource], *, marks_branches: bool = False) -> Iterator[Html]:
        block, number = item.block, item.number
        assert not isinstance(block, HiddenBlock)
        fate = block.fate if block else Fate.ACTIVE
        if marks_branches and fate is not self._branch:
            yield from self.end_branch()
            self._branch = fate
            if fate is not Fate.ACTIVE:
                yield opening("details", class_=f"branch {fate}", open=True)
                yield joined((element("summary", icon("branch"), " ", BRANCHES[fate]), opening("div")))
        if block is None or number != self._article:
            yield from self.end_article()
        if block is not None:
            if not self._article:
                yield from self._new_day(block)
                yield self._begin_article(block, item)
            yield block_html(block, self._page)
        for agent in item.agents:
            yield from _agent(agent, self._page, item.above)
        yield Html("\n")

    def _begin_article(self, block: ShownBlock, item: PlacedBlock[ConversationSource]) -> Html:
        self._article = self._page.number = item.number
        self._page.n_files = 0
        self._page.shown.append(item.number)
        usage = self._usage.get(block.message_id)
        self._margin = _margin(block, item.number, self._page, usage)
        self._page.marks += _marks(block, item, self._page, usage)
        return _article(block, self._page, item)

    def end_article(self) -> Iterator[Html]:
        if self._article:
            self._article = 0
            yield joined((closing("div"), self._margin, closing("article")))

    def end_branch(self) -> Iterator[Html]:
        yield from self.end_article()
        if self._branch is not Fate.ACTIVE:
            self._branch = Fate.ACTIVE
            yield joined((closing("div"), closing("details")))

    def _new_day(self, block: ShownBlock) -> Iterator[Html]:
        if block.at is None:
            return
        day = block.at.astimezone(UTC).date()
        if self._day is not None and day != self._day:
            yield element("p", time_element(block.at, "day"), class_="day")
        self._day = day


_KNOT = element("svg", element("path", d=STAR), class_="knot", viewBox="-7 -7 14 14", aria_hidden="true")


def _article(block: ShownBlock, page: PageState, item: PlacedBlock[ConversationSource]) -> Html:
    """Return the start of a message up to its text: its anchor, and who speaks where that changes."""
    anchor = page.anchor(item.number)
    if isinstance(block, PromptBlock):
        name = f"Prompt {item.prompt}" if item.is_prompt else LABELS[block.origin].capitalize()
        heading = element("h2", name, class_="unseen")
        return joined((_prompt(block, page, item, anchor), opening("div", class_="say"), _KNOT, heading))
    kind = "aside" if isinstance(block, NoticeBlock | SyntheticBlock) else "model"
    speaker = Html()
    if isinstance(block, AnswerBlock) and block.model and block.model != page.model:
        page.model = block.model
        speaker = element("p", make_visible(line(block.model)), class_="speaker")
    return joined((opening("article", id=anchor, class_=f"msg {kind}"), opening("div", class_="say"), speaker))


def _margin(block: ShownBlock, number: int, page: PageState, usage: Usage | None) -> Html:
    """Return what is beside a message: its time, which is a link to it, its tokens and its cost."""
    time = time_element(block.at, "second") if block.at else text("#")
    hint = element("span", f", link to message {number}", class_="unseen")
    link = element("a", time, hint, href=page.link(number), class_="at")
    if usage is None or not usage.calls:
        return element("div", link, class_="edge")
    tokens = usage.tokens
    n_out = tokens.output + tokens.thoughts
    tip = f"{tokens.input:,} in, {tokens.cached:,} of them cached\n{tokens.output:,} out, {tokens.thoughts:,} thoughts"
    amounts = element("span", f"{count(tokens.input)} in, {count(n_out)} out", class_="cost", data_tip=Html(tip))
    return element("div", link, amounts, element("span", _cost(usage), class_="cost"), class_="edge")


def _marks(
    block: ShownBlock, item: PlacedBlock[ConversationSource], page: PageState, usage: Usage | None
) -> Iterator[GuideMark]:
    """Yield what the guide shows of a message."""
    href, is_dropped = page.link(item.number), block.fate is not Fate.ACTIVE
    if isinstance(block, PromptBlock) and item.is_prompt:
        yield prompt_mark(item.number, make_visible(line(block.text.head, ENTRY)), href, is_dropped=is_dropped)
    elif isinstance(block, NoticeBlock) and block.kind is Kind.ERROR:
        yield error_mark(item.number, href)
    if usage is not None and usage.calls:
        yield call_mark(item.number, usage, href, is_dropped=is_dropped)


def _cost(usage: Usage) -> str:
    return amount_text(usage.cost_nanousd)


def _prompt(block: PromptBlock, page: PageState, item: PlacedBlock[ConversationSource], anchor: str) -> Html:
    """Return the start of a prompt, and add it to the navigation."""
    if item.is_prompt:
        fate = "" if block.fate is Fate.ACTIVE else block.fate.label
        words = make_visible(line(block.text.head, ENTRY)) or "(no text)"
        page.prompts.append(PromptLink(anchor, item.prompt, words, block.at, fate))
    kind = "msg prompt" if item.is_prompt else "msg prompt task"
    return opening("article", id=anchor, class_=kind, tabindex="-1", data_stop="start")


def _short(session_id: str) -> str:
    """Return the part of a session ID that names it, as in lists; the whole ID if it has no such part."""
    first, separator, _ = session_id.partition("-")
    return first if separator and ":" not in session_id else session_id


def _agent(agent: ConversationSource, page: PageState, above: frozenset[str]) -> Iterator[Html]:
    """Yield the transcript of a subagent in a fold."""
    session = agent.session
    name = element("span", make_visible(line(_short(session.id))), class_="what")
    usage = sum(page.usage(session).values(), Usage())
    facts = [describe_messages(session, agent.by_id), *([_cost(usage)] if usage.calls else [])]
    counts = element("span", ", ".join(facts), class_="outcome")
    yield opening("details", class_="agent")
    yield element("summary", icon(Icon.AGENT), element("b", "Subagent"), " ", name, " ", counts)
    yield opening("div", class_="nested")
    yield from transcript(placed_blocks(agent, above), page.within(session), agent.options)
    yield joined((closing("div"), closing("details")))
