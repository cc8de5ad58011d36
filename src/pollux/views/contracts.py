"""Sessions and problems in the words of our JSON contract, the same for every front end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from pollux.model import Fate, Json, Message, ModelCall, Problem, Session, Tokens
from pollux.prices import Prices, cost, find

SESSIONS = "pollux.sessions/1"
SESSION = "pollux.session/1"


def calls_of(session: Session, by_id: Mapping[str, Session]) -> Iterator[ModelCall]:
    """Yield the model calls of a session and of all its subagents, however deep."""
    seen = {session.id}
    waiting = [session]
    while waiting:
        one = waiting.pop()
        yield from one.calls
        children = [by_id[child] for child in one.children if child in by_id and child not in seen]
        seen.update(child.id for child in children)
        waiting += children


def total(calls: Iterable[ModelCall]) -> Tokens:
    """Sum up tokens."""
    return sum((call.tokens for call in calls), Tokens())


def cost_of(calls: Iterable[ModelCall], prices: Prices) -> int | None:
    """Sum up what model calls cost, in nano-dollars; one without a price leaves the sum unknown."""
    total_cost = 0
    for call in calls:
        price = find(prices, call.model, call.at)
        if price is None:
            return None
        total_cost += cost(price, call.tokens)
    return total_cost


def session_row(session: Session, by_id: Mapping[str, Session], prices: Prices) -> dict[str, Json]:
    """Tell all about a session that a list tells."""
    calls = list(calls_of(session, by_id))
    kept = [call for call in calls if call.fate == Fate.ACTIVE]
    project = session.project
    return {
        "id": session.id,
        "kind": session.kind,
        "parent": session.parent,
        "title": session.title,
        "project": {
            "path": project.path,
            "hash": project.hash,
            "slug": project.slug,
            "how": project.how,
            "proven": project.proven,
        },
        "started": when(session.started),
        "ended": when(session.ended),
        "updated": when(session.updated),
        "messages": dict(session.counts),
        "tool_calls": session.tool_calls,
        "models": session.models,
        "tokens": tokens_row(total(calls)),
        "calls": len(calls),
        "kept": {"calls": len(kept), "tokens": tokens_row(total(kept))},
        "cost_nanousd": cost_of(calls, prices),
        "files": [{"path": str(ref.path), "role": ref.role, "format": ref.format} for ref in session.files],
        "gone": session.gone,
        "problems": len(session.problems),
    }


def message_row(message: Message) -> dict[str, Json]:
    """Tell all about a message that `show --json` tells."""
    return {
        "id": message.id,
        "kind": message.kind,
        "origin": message.origin,
        "fate": message.fate,
        "at": when(message.at),
        "model": message.model,
        "text": message.text,
        "thoughts": [{"subject": one.subject, "text": one.text, "at": when(one.at)} for one in message.thoughts],
        "tool_calls": [
            {
                "id": call.id,
                "name": call.name,
                "canonical": call.canonical,
                "category": call.category,
                "mcp_server": call.mcp_server,
                "status": call.status,
                "exit_code": call.exit_code,
                "args": call.args,
                "output": call.output,
                "error": call.error,
                "at": when(call.at),
                "agent": call.agent_id,
            }
            for call in message.tool_calls
        ],
        "tokens": tokens_row(message.tokens) if message.tokens else None,
        "attachments": [
            {"media_type": one.media_type, "size": one.size, "uri": one.uri} for one in message.attachments
        ],
    }


def problem_row(problem: Problem) -> dict[str, Json]:
    """Tell what is wrong, and where."""
    return {"code": problem.code, "message": problem.message, "file": problem.file, "line": problem.line}


def tokens_row(tokens: Tokens) -> dict[str, Json]:
    """Name the six counts."""
    return {
        "input": tokens.input,
        "cached": tokens.cached,
        "output": tokens.output,
        "thoughts": tokens.thoughts,
        "tool": tokens.tool,
        "total": tokens.total,
    }


def when(at: datetime | None) -> str | None:
    """Write a time as RFC 3339 with its zone."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else None
