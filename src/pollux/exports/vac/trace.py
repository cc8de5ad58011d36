"""What is said of a session besides its entries: who answered, when, where, and the client's own words for it."""

from __future__ import annotations

from pollux.exports.source import Subject
from pollux.exports.vac.values import time, told
from pollux.model import Json

_NATIVE = ("kind", "summary", "directories", "projectHash", "lastUpdated", "memoryScratchpad")
"""The client's metadata that stands beside the members of the schema, under the same names."""
_TOLD = frozenset({"sessionId", "startTime", "messages", *_NATIVE})
_GOOGLE = ("gemini", "gemma", "auto", "pro", "flash")
"""How the names of Google's models begin, with those that only the client uses."""


def trace(subject: Subject) -> dict[str, Json]:
    """Describe a session; its folder only where the hash in the file proves it."""
    session, project = subject.session, subject.session.project
    seen = subject.clean(dict(subject.group.main.seen))
    assert isinstance(seen, dict)
    return (
        {name: seen[name] for name in _NATIVE if seen.get(name) is not None}
        | told(
            session_id=session.id,
            session_start=time(session.started),
            session_end=time(session.ended or session.updated),
            agent_meta=agent_meta(models(subject)),
            environment={"working-dir": project.path} if project.proven and project.path else None,
            kind=session.kind,
            parent_session_id=session.parent,
            parent_call_id=session.parent_call,
            project=told(hash=project.hash, slug=project.slug, path=project.path, proven=project.proven),
            generation=session.generation or None,
        )
        | told(native={name: value for name, value in seen.items() if name not in _TOLD} or None)
    )


def models(subject: Subject) -> list[str]:
    """List the models that answered, in order of appearance: those with counts, then those without."""
    named = subject.clean([entry.model for entry in subject.group.entries if entry.model])
    assert isinstance(named, list)
    return list(dict.fromkeys([*subject.session.models, *map(str, named)]))


def agent_meta(names: list[str]) -> dict[str, Json]:
    """Name the models of a session, the first one apart."""
    first = names[0] if names else "unknown"
    meta: dict[str, Json] = {"cli-name": "gemini-cli", "model-id": first, "model-provider": provider(first)}
    return meta | ({"models": names} if len(names) > 1 else {})


def provider(model: str) -> str:
    """Tell by its name who runs a model."""
    return "google" if model.removeprefix("models/").startswith(_GOOGLE) else "unknown"
