"""A session in a few words: what is in it, what it used, when it was. The same on a terminal and in an export."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

from pollux.model import Fate, Session, Tokens, Usage
from pollux.prices import Prices, usage_of
from pollux.reports.periods import local
from pollux.reports.sessions import SessionRow
from pollux.sessions.family import with_subagents
from pollux.text.numbers import Currency, count, lasted
from pollux.views.contracts import calls_of
from pollux.views.excerpts import counted, line
from pollux.views.transcript import FATES

TITLE = 120
"""Characters of a title in a document."""
NO_TITLE = "(no prompt)"
BRANCHES: dict[Fate, str] = {
    Fate.ACTIVE: "",
    Fate.REWOUND: "Rewound: taken back by the human",
    Fate.COMPRESSED: "Compressed: the model was given a summary in its place",
    Fate.ROLLED_BACK: "Rolled back: the request failed or was cancelled",
    Fate.REPLACED: "Replaced: another conversation was loaded",
}
"""What stands above messages that are no longer part of the conversation."""


def title(session: Session | SessionRow, limit: int | None = None) -> str:
    """Return the name of a session for people, in one line; `NO_TITLE` if nobody has typed anything yet."""
    return line(session.title or session.first_prompt or NO_TITLE, limit)


def messages_of(session: Session, by_id: Mapping[str, Session]) -> str:
    """Count what is in a session, in words."""
    words = [counted(session.counts.get(kind, 0), noun) for kind, noun in (("user", "prompt"), ("gemini", "answer"))]
    words += _tool_calls_of(session, by_id)
    words += [counted(session.counts["error"], "error")] if session.counts.get("error") else []
    words += [counted(len(session.children), "subagent")] if session.children else []
    gone = [f"{session.fates[fate]:,} {FATES[fate]}" for fate in Fate if fate in session.fates and fate != Fate.ACTIVE]
    return ", ".join(words) + (f" ({', '.join(gone)})" if gone else "")


def _tool_calls_of(session: Session, by_id: Mapping[str, Session]) -> list[str]:
    n_calls = session.tool_calls
    n_of_all = sum(member.tool_calls for member in with_subagents(session, by_id))
    if not n_of_all:
        return []
    return [counted(n_calls, "tool call") + (f" ({n_of_all:,} with subagents)" if n_of_all != n_calls else "")]


def tokens_of(tokens: Tokens) -> str:
    """Say what a model call used."""
    words = [f"{count(tokens.input)} tokens in"]
    words[0] += f" ({count(tokens.cached)} cached)" if tokens.cached else ""
    words.append(f"{count(tokens.output)} out")
    words += [f"{count(tokens.thoughts)} thoughts"] if tokens.thoughts else []
    words += [f"{count(tokens.tool)} for tools"] if tokens.tool else []
    return ", ".join(words)


def usage_of_session(session: Session, by_id: Mapping[str, Session], prices: Prices) -> tuple[Usage, Usage]:
    """Return what a session used with its subagents, and without them."""
    return usage_of(calls_of(session, by_id), prices), usage_of(session.calls, prices)


def shares(total: str, own: str) -> tuple[str, ...]:
    """Return an amount of a session with its subagents and, if that is another, without them."""
    return (total,) if own == total else (f"{total} with subagents", f"{own} without")


def cost_text(usage: Usage) -> str:
    """Return the cost in dollars, with a plus sign if calls without a price are not in it."""
    nanousd = usage.cost_nanousd
    return Currency().show(nanousd) + ("+" if usage.cost.unpriced_calls and nanousd is not None else "")


def period(session: Session, zone: tzinfo | None, name: str = "") -> str:
    """Say when a session was, in some zone; its name is said where a reader could not know it."""
    if session.started is None:
        return ""
    start = local(session.started, zone)
    words = f"{day(start)}, {start:%H:%M}"
    if session.ended is None or session.ended <= session.started:
        return f"{words} {name}".rstrip()
    end = local(session.ended, zone)
    until = f"{end:%H:%M}" if end.date() == start.date() else f"{day(end)}, {end:%H:%M}"
    return " ".join(filter(None, (words, "to", until, name, f"({lasted(end - start)})")))


def day(at: datetime) -> str:
    """Name a day."""
    return f"{at:%a} {at.day} {at:%b %Y}"


def clock(at: datetime | None) -> str:
    """Return a time of day in UTC; empty without a time."""
    return f"{at.astimezone(UTC):%H:%M}" if at else ""
