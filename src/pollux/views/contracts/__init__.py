"""Build every JSON document that Pollux prints; all front ends print the same.

`CONTRACTS` maps types of values to documents; `docs/json.md` describes the keys. The other modules of this package
build the documents. They are imported on first use, because each imports the package of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import NamedTuple

from pollux.model import Fate, Json, Message, ModelCall, Problem, Project, Session, Tokens, Usage
from pollux.prices import Prices, usage_of
from pollux.reports.sessions import SessionRow
from pollux.sessions.family import with_subagents
from pollux.text.encode import encode


class Contract(NamedTuple):
    """The schema of a document, and the function that builds it."""

    schema: str
    builder: str
    """A function in a module of this package, which returns all keys but `schema`."""


CONTRACTS: Mapping[str, Contract] = {
    "archive.maintenance.ArchiveInfo": Contract("pollux.archive/1", "archive.info_json"),
    "proofs.seal.SealOutcome": Contract("pollux.sealed/1", "proofs.sealed_json"),
    "archive.watch.SyncReport": Contract("pollux.sync/1", "archive.sync_json"),
    "reports.audit.AuditReport": Contract("pollux.audit/1", "usage.audit_json"),
    "reports.doctor.Diagnosis": Contract("pollux.doctor/1", "status.doctor_json"),
    "reports.stats.Statistics": Contract("pollux.stats/1", "usage.stats_json"),
    "reports.status.StatusReport": Contract("pollux.status/1", "status.status_json"),
    "reports.usage.UsageReport": Contract("pollux.usage/1", "usage.usage_json"),
    "views.contracts.archive.ImportDocument": Contract("pollux.imported/1", "archive.import_json"),
    "views.contracts.archive.RestorePlan": Contract("pollux.restore/1", "archive.restore_json"),
    "views.contracts.archive.ResumeDocument": Contract("pollux.resume/1", "archive.resume_json"),
    "views.contracts.archive.VerifyDocument": Contract("pollux.verify/1", "archive.verify_json"),
    "views.contracts.proofs.KeysDocument": Contract("pollux.keys/1", "proofs.keys_json"),
    "views.contracts.proofs.VerdictDocument": Contract("pollux.verdict/1", "proofs.verdict_json"),
    "views.contracts.sessions.MessageDocument": Contract("pollux.message/1", "sessions.message_json"),
    "reports.projects.ProjectList": Contract("pollux.projects/1", "sessions.projects_json"),
    "reports.sessions.SavedPage": Contract("pollux.sessions/1", "sessions.saved_json"),
    "reports.sessions.SessionPage": Contract("pollux.sessions/1", "sessions.sessions_json"),
    "search.values.CommandPage": Contract("pollux.commands/1", "search.commands_json"),
    "search.values.FilePage": Contract("pollux.files/1", "search.files_json"),
    "search.values.HitPage": Contract("pollux.hits/1", "search.hits_json"),
    "views.contracts.sessions.TreeDocument": Contract("pollux.tree/1", "sessions.tree_json"),
}
"""By the type of the value: its module below `pollux`, and its name. If a document contains more than one value, a
`…Document` holds them."""
SESSION = "pollux.session/1"
"""The schema of `stream_json`, whose document never exists in memory as a whole."""


def to_json(value: object) -> dict[str, Json]:
    """Return the document of a value of one of the types in `CONTRACTS`."""
    kind = type(value)
    contract = CONTRACTS[f"{kind.__module__.removeprefix('pollux.')}.{kind.__qualname__}"]
    module, _, function = contract.builder.partition(".")
    build = getattr(import_module(f"{__name__}.{module}"), function)
    return {"schema": contract.schema, **build(value)}


def stream_json(row: SessionRow, messages: Iterable[Message], children: Sequence[str]) -> Iterator[bytes]:
    """Yield the document of a session and its messages in pieces, so that a huge one fits in memory."""
    head = encode({"schema": SESSION, "session": listed_row(row)})
    yield head.removesuffix(b"}") + b',"timeline":['
    for number, message in enumerate(messages):
        yield (b"," if number else b"") + encode(message_row(message))
    yield b'],"children":' + encode(children) + b"}\n"


def calls_of(session: Session, by_id: Mapping[str, Session]) -> Iterator[ModelCall]:
    """Yield the model calls of a session and of all its subagents, at any depth."""
    for member in with_subagents(session, by_id):
        yield from member.calls


def total(calls: Iterable[ModelCall]) -> Tokens:
    """Return the sum of the calls' tokens."""
    return sum((call.tokens for call in calls), Tokens())


def session_row(session: Session, by_id: Mapping[str, Session], prices: Prices) -> dict[str, Json]:
    """Return the keys of a session, with the usage of its subagents."""
    calls = list(calls_of(session, by_id))
    active = [call for call in calls if call.fate == Fate.ACTIVE]
    return described(
        session, session.parent, usage_of(calls, prices), usage_of(active, prices), deleted=session.deleted
    )


def listed_row(row: SessionRow) -> dict[str, Json]:
    """Return the keys of a session in a list."""
    return described(row, row.parent_id, row.usage, row.active, deleted=row.deleted)


def described(
    session: Session | SessionRow, parent: str | None, usage: Usage, active: Usage, *, deleted: bool
) -> dict[str, Json]:
    """Return the keys of a session with its usage."""
    return {
        "id": session.id,
        "kind": session.kind,
        "parent": parent,
        "title": session.title,
        "project": project_row(session.project),
        "started": rfc3339(session.started),
        "ended": rfc3339(session.ended),
        "updated": rfc3339(session.updated),
        "messages": dict(session.counts),
        "tool_calls": session.tool_calls,
        "models": session.models,
        "tokens": tokens_row(usage.tokens),
        "calls": usage.calls,
        "active": {"calls": active.calls, "tokens": tokens_row(active.tokens)},
        "cost_nanousd": usage.cost_nanousd,
        "files": [{"path": str(ref.path), "role": ref.role, "format": ref.format} for ref in session.files],
        "deleted": deleted,
        "problems": len(session.problems),
    }


def project_row(project: Project) -> dict[str, Json]:
    """Return the keys of a project."""
    return {
        "path": project.path,
        "hash": project.hash,
        "slug": project.slug,
        "source": project.source,
        "proven": project.proven,
    }


def message_row(message: Message) -> dict[str, Json]:
    """Return the keys of a message."""
    return {
        "id": message.id,
        "kind": message.kind,
        "origin": message.origin,
        "fate": message.fate,
        "at": rfc3339(message.at),
        "model": message.model,
        "text": message.text,
        "thoughts": [
            {"subject": thought.subject, "text": thought.text, "at": rfc3339(thought.at)}
            for thought in message.thoughts
        ],
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
                "at": rfc3339(call.at),
                "agent": call.agent_id,
            }
            for call in message.tool_calls
        ],
        "tokens": tokens_row(message.tokens) if message.tokens else None,
        "attachments": [
            {"media_type": file.media_type, "size": file.size, "uri": file.uri} for file in message.attachments
        ],
    }


def problem_row(problem: Problem) -> dict[str, Json]:
    """Return the keys of a problem."""
    return {"code": problem.code, "message": problem.message, "file": problem.file, "line": problem.line}


def tokens_row(tokens: Tokens) -> dict[str, Json]:
    """Return the six counts by name."""
    return {
        "input": tokens.input,
        "cached": tokens.cached,
        "output": tokens.output,
        "thoughts": tokens.thoughts,
        "tool": tokens.tool,
        "total": tokens.total,
    }


def rfc3339(at: datetime | None) -> str | None:
    """Return a time in RFC 3339 with its zone."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z") if at else None
