"""What a transcript says of a session before it begins, and an index of many: the same facts in every form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache

from pollux import prices
from pollux.exports.source import Subject
from pollux.model import Fate, ModelCall, Session, Tokens
from pollux.text.money import Currency
from pollux.views.contracts import calls_of
from pollux.views.excerpts import counted, line
from pollux.views.session_text import messages_of, period, tokens_of

TITLE = 120
"""Characters of a title."""

BRANCHES: dict[Fate, str] = {
    Fate.ACTIVE: "",
    Fate.REWOUND: "Rewound: taken back by the human",
    Fate.COMPRESSED: "Compressed: the model was given a summary in its place",
    Fate.ROLLED_BACK: "Rolled back: the request failed or was cancelled",
    Fate.REPLACED: "Replaced: another conversation was loaded",
}
"""What stands above messages that are no longer part of the conversation."""

_prices = cache(prices.load)


@dataclass(frozen=True, slots=True)
class Spent:
    """What model calls used; those without a price are counted beside the cost."""

    calls: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    nanousd: int = 0
    unpriced: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.nanousd + other.nanousd,
            self.unpriced + other.unpriced,
        )

    @property
    def cost(self) -> str:
        """The cost in words; a plus where something without a price is not in it."""
        if self.unpriced and self.unpriced == self.calls:
            return "no price"
        return Currency().show(self.nanousd) + ("+" if self.unpriced else "")


def spent(calls: Iterable[ModelCall]) -> Spent:
    """Add up what model calls used."""
    total = Spent()
    for call in calls:
        price = prices.find(_prices(), call.model, call.at)
        nanousd = prices.cost(price, call.tokens) if price else 0
        total += Spent(1, call.tokens, nanousd, 0 if price else 1)
    return total


def title_of(session: Session) -> str:
    """Name a session in one line."""
    return line(session.title or session.first_prompt or session.id, TITLE)


def facts(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a session, each with its name; its subagents are counted in."""
    session = subject.session
    if session.kind != "main":
        yield "Kind", session.kind
    yield "Project", " · ".join(filter(None, (session.project.name, session.project.path)))
    if when := period(session, UTC, "UTC"):
        yield "When", when
    if session.models:
        yield "Models", ", ".join(session.models)
    yield "Messages", messages_of(session)
    used = spent(calls_of(session, subject.by_id))
    if used.calls:
        yield "Usage", f"{counted(used.calls, 'model call')}, {tokens_of(used.tokens)}"
        unpriced = f" ({counted(used.unpriced, 'call')} without a price)" if used.unpriced else ""
        yield "Cost", f"{used.cost}{unpriced}"
    yield "Session", session.id
    if session.problems:
        yield "Problems", f"{counted(len(session.problems), 'problem')} while reading its files"


def clock(at: datetime | None) -> str:
    """Say a time of day, in UTC."""
    return f"{at.astimezone(UTC):%H:%M}" if at else ""
