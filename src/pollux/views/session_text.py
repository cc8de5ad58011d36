"""Short texts about a session, the same on a terminal and in an export: title, counts, usage, times."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo

from pollux.model import Fate, Session, Tokens, Usage
from pollux.prices import Prices, usage_of
from pollux.reports.periods import local
from pollux.reports.sessions import SessionRow
from pollux.sessions.family import with_subagents
from pollux.text.numbers import Currency, count, dollars, duration, plural
from pollux.views.contracts import calls_of
from pollux.views.excerpts import line

TITLE = 120
"""Characters of a title in a document."""
NO_TITLE = "(no prompt)"
_ROUNDED_TO_ZERO = 50_000
"""Billionths of a dollar that four decimals show as zero."""
BRANCHES: dict[Fate, str] = {
    Fate.ACTIVE: "",
    Fate.REWOUND: "Rewound: the user went back to an earlier prompt",
    Fate.COMPRESSED: "Compressed: a summary replaced these messages",
    Fate.ROLLED_BACK: "Rolled back: the request failed or was cancelled",
    Fate.REPLACED: "Replaced: another conversation was loaded",
}
"""Heading of dropped messages."""


def title(session: Session | SessionRow, limit: int | None = None) -> str:
    """Return the title or the first prompt of a session on one line, else `NO_TITLE`."""
    return line(session.title or session.first_prompt or NO_TITLE, limit)


def describe_messages(session: Session, by_id: Mapping[str, Session]) -> str:
    """Return the number of prompts, answers, tool calls, errors, subagents and dropped messages."""
    fates = [fate for fate in Fate if fate in session.fates and fate is not Fate.ACTIVE]
    dropped = ", ".join(f"{session.fates[fate]:,} {fate.label}" for fate in fates)
    return count_messages(session, by_id) + (f" ({dropped})" if dropped else "")


def count_messages(session: Session, by_id: Mapping[str, Session]) -> str:
    """Return the number of prompts, answers, tool calls, errors and subagents; a subagent may have no prompt."""
    counts = session.counts
    n_prompts = counts.get("user", 0)
    parts = [plural(n_prompts, "prompt")] if n_prompts or session.kind == "main" else []
    parts.append(plural(counts.get("gemini", 0), "answer"))
    n_calls = session.tool_calls
    n_family_calls = sum(member.tool_calls for member in with_subagents(session, by_id))
    if n_family_calls:
        with_agents = f" ({n_family_calls:,} with subagents)" if n_family_calls != n_calls else ""
        parts.append(plural(n_calls, "tool call") + with_agents)
    if counts.get("error"):
        parts.append(plural(counts["error"], "error"))
    if session.children:
        parts.append(plural(len(session.children), "subagent"))
    return ", ".join(parts)


def describe_tokens(tokens: Tokens) -> str:
    """Return the tokens of one or more model calls in words."""
    cached = f" ({count(tokens.cached)} cached)" if tokens.cached else ""
    parts = [f"{count(tokens.input)} tokens in{cached}", f"{count(tokens.output)} out"]
    if tokens.thoughts:
        parts.append(f"{count(tokens.thoughts)} thoughts")
    if tokens.tool:
        parts.append(f"{count(tokens.tool)} for tools")
    return ", ".join(parts)


def usage_of_session(session: Session, by_id: Mapping[str, Session], prices: Prices) -> tuple[Usage, Usage]:
    """Return the usage of a session with its subagents, and without them."""
    return usage_of(calls_of(session, by_id), prices), usage_of(session.calls, prices)


def usage_by_message(session: Session, prices: Prices) -> dict[str, Usage]:
    """Return tokens and cost of the model calls of a session, by the ID of the message that each produced."""
    usages: dict[str, Usage] = {}
    for call in session.calls:
        usages[call.message_id] = usages.get(call.message_id, Usage()) + usage_of([call], prices)
    return usages


def shares(total: str, own: str) -> tuple[str, ...]:
    """Return an amount with subagents and, if it differs, the amount without them."""
    return (total,) if own == total else (f"{total} with subagents", f"{own} without")


def cost_text(usage: Usage) -> str:
    """Return the cost in dollars, with a plus sign if some calls have no price."""
    nanousd = usage.cost_nanousd
    return Currency().show(nanousd) + ("+" if usage.cost.unpriced_calls and nanousd is not None else "")


def amount_text(nanousd: int | None) -> str:
    """Return an amount in a session with four decimals, so that they line up; no cost is shown as zero."""
    if nanousd is not None and 0 < nanousd <= _ROUNDED_TO_ZERO:
        return "<$0.0001"
    return dollars(nanousd, 4)


def period(session: Session, zone: tzinfo | None, name: str = "") -> str:
    """Return start, end and duration of a session in a zone, with the zone's name if one is passed."""
    if session.started is None:
        return ""
    start = local(session.started, zone)
    start_text = f"{day(start)}, {start:%H:%M}"
    if session.ended is None or session.ended <= session.started:
        return f"{start_text} {name}".rstrip()
    end = local(session.ended, zone)
    end_text = f"{end:%H:%M}" if end.date() == start.date() else f"{day(end)}, {end:%H:%M}"
    return " ".join(filter(None, (start_text, "to", end_text, name, f"({duration(end - start)})")))


def day(at: datetime) -> str:
    """Return a day such as `Thu 12 Nov 2026`."""
    return f"{at:%a} {at.day} {at:%b %Y}"


def clock(at: datetime | None) -> str:
    """Return a time of day in UTC; empty without a time."""
    return f"{at.astimezone(UTC):%H:%M}" if at else ""
