"""The projects that have sessions, as rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pollux.model import Json, Project, Session, Tokens
from pollux.sessions.family import root
from pollux.views.contracts import total, when

PROJECTS = "pollux.projects/1"


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """What was done in one project."""

    project: Project
    n_sessions: int
    n_prompts: int
    tokens: Tokens
    last: datetime | None


def project_rows(sessions: Sequence[Session]) -> tuple[ProjectRow, ...]:
    """Put sessions together by project, the one last used first; a project known under two folders is one.

    A subagent belongs where the session does that started it, whatever is known of its own path.
    """
    by_id = {one.id: one for one in sessions}
    found: dict[str, list[Session]] = defaultdict(list)
    for one in sessions:
        found[project_key(root(one, by_id).project)].append(one)
    rows = [_row(members) for members in found.values()]
    return tuple(sorted(rows, key=lambda row: (-row.last.timestamp() if row.last else 0.0, row.project.name)))


def project_key(project: Project) -> str:
    """Return what tells one project from another: the path, as far as it is known."""
    return project.path or project.hash or project.slug or ""


def project_json(row: ProjectRow) -> dict[str, Json]:
    """Tell all about a project."""
    project = row.project
    return {
        "path": project.path,
        "hash": project.hash,
        "slug": project.slug,
        "how": project.how,
        "proven": project.proven,
        "sessions": row.n_sessions,
        "prompts": row.n_prompts,
        "tokens": row.tokens.total,
        "last": when(row.last),
    }


def _row(sessions: list[Session]) -> ProjectRow:
    mains = [one for one in sessions if one.kind == "main" and not one.is_stub]
    known = [one.project for one in mains or sessions]
    best = max(known, key=lambda project: (project.proven, project.slug is not None))
    return ProjectRow(
        best,
        len(mains),
        sum(one.counts.get("user", 0) for one in mains),
        total(call for one in sessions for call in one.calls),
        max((at for one in sessions if (at := one.ended or one.updated)), default=None),
    )
