"""Documents of what the client will delete, and of what could not be read."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from pollux.model import Json
from pollux.reports.doctor import Diagnosis, generations
from pollux.reports.status import FolderPolicy, StatusReport, StatusRow, Turn, days_left
from pollux.sessions.retention import CLIENT, Why
from pollux.views.contracts import problem_row, when


def status_json(report: StatusReport) -> dict[str, Json]:
    """Return the keys of `pollux status --json`.

    `sessions[].turn` is a `Turn`, `why` a `Why` or null, `because` the file that takes the session along, `due` when
    its age deletes it; `going` and `staying` are its files and those of its subagents.
    """
    counts = Counter(row.turn for row in report.rows)
    return {
        "client": CLIENT,
        "now": when(report.now),
        "archive": str(report.archive) if report.archive else None,
        "policies": [_policy_row(policy) for policy in report.policies],
        "sessions": [_session_row(row, report.now) for row in report.rows],
        "counts": {str(turn): counts[turn] for turn in Turn},
        "at_risk": sum(row.is_at_risk for row in report.rows),
        "problems": [problem_row(problem) for problem in report.problems],
    }


def doctor_json(health: Diagnosis) -> dict[str, Json]:
    """Return the keys of `pollux doctor --json`."""
    history = health.found
    return {
        "homes": [{"root": str(home.root), "tmp": str(home.tmp), "how": home.how} for home in history.located.homes],
        "folders": len(history.located.folders),
        "files": {"count": len(health.files), "bytes": sum(file.size for file in health.files)},
        "sessions": {
            "main": len(history.main),
            "all": len(history.sessions),
            "by_generation": generations(history.sessions),
        },
        "unknown": health.unknown,
        "lost": [{"id": session_id, "prompts": len(prompts)} for session_id, prompts in health.lost.items()],
        "problems": [problem_row(problem) for problem in health.problems],
    }


def _session_row(row: StatusRow, now: datetime) -> dict[str, Json]:
    session, fate = row.session, row.fate
    project = session.project
    return {
        "id": session.id,
        "kind": session.kind,
        "title": session.title,
        "project": {"path": project.path, "hash": project.hash, "slug": project.slug},
        "updated": when(session.updated),
        "turn": row.turn,
        "why": fate.why if fate else None,
        "because": str(fate.because) if fate and fate.because else None,
        "due": when(fate.due) if fate and fate.why == Why.AGE else None,
        "days_left": days_left(fate.due, now) if fate else None,
        "stub": session.is_stub,
        "kept": row.is_kept,
        "at_risk": row.is_at_risk,
        "going": [str(path) for path in row.going],
        "staying": [str(path) for path in row.staying],
    }


def _policy_row(folder: FolderPolicy) -> dict[str, Json]:
    policy = folder.policy
    return {
        "folder": str(folder.folder),
        "project": folder.project,
        "deletes": policy.off is None,
        "off": policy.off,
        "is_fault": policy.is_fault,
        "settings": dict(policy.given),
        "sources": list(policy.sources),
        "notes": list(policy.notes),
    }
