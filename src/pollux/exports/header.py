"""What a transcript says of a session before it begins, and an index of many: the same facts in every form."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from pollux.exports.source import Subject
from pollux.model import Usage
from pollux.views.excerpts import counted
from pollux.views.session_text import cost_text, messages_of, period, shares, tokens_of, usage_of_session


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
    yield "Messages", messages_of(session, subject.by_id)
    usage, own_usage = usage_of_session(session, subject.by_id, subject.prices)
    if usage.calls:
        yield "Usage", "; ".join(shares(_usage(usage), _usage(own_usage)))
        yield "Cost", "; ".join(shares(_cost(usage), _cost(own_usage)))
    yield "Session", session.id
    if session.problems:
        yield "Problems", f"{counted(len(session.problems), 'problem')} while reading its files"


def _usage(usage: Usage) -> str:
    return f"{counted(usage.calls, 'model call')}, {tokens_of(usage.tokens)}"


def _cost(usage: Usage) -> str:
    n_unpriced = usage.cost.unpriced_calls
    return cost_text(usage) + (f" ({counted(n_unpriced, 'call')} without a price)" if n_unpriced else "")
