"""A transcript as HTML: an article for each message, branches apart, and agents where they were started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date

from pollux.model import Fate
from pollux.render.html.blocks import block_html
from pollux.render.html.icons import icon
from pollux.render.html.markup import Html, closing, element, joined, opening, text
from pollux.render.html.state import Entry, Sheet
from pollux.text.escape import clean
from pollux.views.conversation import Numbered, Talk, numbered
from pollux.views.excerpts import line
from pollux.views.presentations import Icon
from pollux.views.session_text import BRANCHES, clock, day, messages_of
from pollux.views.transcript import FATES, LABELS, Answer, Block, LeftOut, Notice, Prompt, Synthetic

ENTRY = 100
"""Characters of a prompt in the navigation."""


def transcript(items: Iterable[Numbered[Talk]], sheet: Sheet) -> Iterator[Html]:
    """Show what happened, piece by piece."""
    number, fate = 0, Fate.ACTIVE  # of the article and the branch that are open
    today: date | None = None
    for item in items:
        block = item.shown.block
        stands_alone = block is None or isinstance(block, LeftOut)
        if number and (stands_alone or item.shown.number != number):
            number = 0
            yield closing("article")
        branch = Fate.ACTIVE if block is None or isinstance(block, LeftOut) else block.fate
        if branch is not fate:
            yield _turned(fate, branch)
            fate = branch
        if block is not None and not isinstance(block, LeftOut) and not number:
            if block.at and today != (here := block.at.astimezone(UTC)).date():
                yield element("p", element("span", day(here)), class_="day") if today else Html()
                today = here.date()
            number = item.shown.number
            yield _article(block, sheet, item)
        if block is not None:
            yield block_html(block, sheet)
        for agent in item.shown.agents:
            yield from _agent(agent, sheet, item.shown.above)
        yield Html("\n")
    yield closing("article") if number else Html()
    yield _turned(fate, Fate.ACTIVE)


def _turned(before: Fate, after: Fate) -> Html:
    """Leave one branch, and go into another."""
    end = Html() if before is Fate.ACTIVE else closing("section")
    if after is Fate.ACTIVE:
        return end
    return joined((end, opening("section", class_=f"branch {after}"), element("p", BRANCHES[after], class_="fate")))


def _article(block: Block, sheet: Sheet, item: Numbered[Talk]) -> Html:
    """Begin a message, with a link to it and, where it is not clear, who speaks."""
    assert not isinstance(block, LeftOut)
    anchor = sheet.anchor(item.shown.number)
    said = element("time", clock(block.at), datetime=block.at.astimezone(UTC).isoformat()) if block.at else text("#")
    label = f"{clock(block.at) or '#'}, link to message {item.shown.number}"
    link = element("a", said, href=f"#{anchor}", class_="at", aria_label=label)
    if isinstance(block, Prompt):
        return joined((_prompt(block, sheet, item, anchor), link, element("h2", _name(block, item))))
    kind = "aside" if isinstance(block, Notice | Synthetic) else "model"
    speaker = Html()
    if isinstance(block, Answer) and block.model and block.model != sheet.model:
        sheet.model = block.model
        speaker = element("p", clean(line(block.model)), class_="speaker")
    return joined((opening("article", id=anchor, class_=kind), link, speaker))


def _prompt(block: Prompt, sheet: Sheet, item: Numbered[Talk], anchor: str) -> Html:
    """Begin a prompt, and remember it for the navigation."""
    if item.begins:
        fate = "" if block.fate is Fate.ACTIVE else FATES[block.fate]
        words = clean(line(block.text.head, ENTRY)) or "(no words)"
        sheet.prompts.append(Entry(anchor, item.prompt, words, clock(block.at), fate))
    return opening("article", id=anchor, class_="prompt" if item.begins else "prompt task", tabindex="-1")


def _name(block: Prompt, item: Numbered[Talk]) -> str:
    return f"Prompt {item.prompt}" if item.begins else LABELS[block.origin].capitalize()


def _agent(agent: Talk, sheet: Sheet, above: frozenset[str]) -> Iterator[Html]:
    """Show what a subagent did, folded."""
    session = agent.session
    name = element("span", clean(line(session.id)), class_="what")
    words = element("span", messages_of(session, agent.by_id), class_="outcome")
    yield opening("details", class_="agent")
    yield element("summary", icon(Icon.AGENT), element("b", "Subagent"), " ", name, " ", words)
    yield opening("div", class_="nested")
    yield from transcript(numbered(agent, above), sheet.within())
    yield joined((closing("div"), closing("details")))
