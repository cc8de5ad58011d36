"""A session in a few words: what is in it, what it used, when it was. The same on a terminal and in an export."""

from __future__ import annotations

from datetime import datetime, tzinfo

from pollux.model import Fate, Session, Tokens
from pollux.reports.periods import local
from pollux.text.amounts import count, lasted
from pollux.views.excerpts import counted
from pollux.views.transcript import FATES


def messages_of(session: Session) -> str:
    """Count what is in a session, in words."""
    words = [counted(session.counts.get(kind, 0), noun) for kind, noun in (("user", "prompt"), ("gemini", "answer"))]
    words += [counted(session.tool_calls, "tool call")] if session.tool_calls else []
    words += [counted(session.counts["error"], "error")] if session.counts.get("error") else []
    words += [counted(len(session.children), "subagent")] if session.children else []
    gone = [f"{session.fates[fate]:,} {FATES[fate]}" for fate in Fate if fate in session.fates and fate != Fate.ACTIVE]
    return ", ".join(words) + (f" ({', '.join(gone)})" if gone else "")


def tokens_of(tokens: Tokens) -> str:
    """Say what a model call used."""
    words = [f"{count(tokens.input)} tokens in"]
    words[0] += f" ({count(tokens.cached)} cached)" if tokens.cached else ""
    words.append(f"{count(tokens.output)} out")
    words += [f"{count(tokens.thoughts)} thoughts"] if tokens.thoughts else []
    words += [f"{count(tokens.tool)} for tools"] if tokens.tool else []
    return ", ".join(words)


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
