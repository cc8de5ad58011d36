"""Documents of `status` and `doctor`."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from pollux.model import Json
from pollux.reports.doctor import Diagnosis, generations
from pollux.reports.status import DeletionTime, FolderPolicy, StatusReport, StatusRow, days_left
from pollux.sessions.retention import CLIENT, DeletionReason
from pollux.views.contracts import problem_row, rfc3339


def status_json(report: StatusReport) -> dict[str, Json]:
    """Return the keys of `pollux status --json`.

    `sessions[].deletion` is a `DeletionTime` and `reason` a `DeletionReason` or null. `caused_by` is the file because
    of which the client deletes the session, and `due` when its age does. `deleted_files` and `remaining_files` are
    files of the session and of its subagents.
    """
    counts = Counter(row.deletion_time for row in report.rows)
    return {
        "client": CLIENT,
        "now": rfc3339(report.now),
        "archive": str(report.archive) if report.archive else None,
        "policies": [_policy_row(policy) for policy in report.policies],
        "sessions": [_session_row(row, report.now) for row in report.rows],
        "counts": {str(time): counts[time] for time in DeletionTime},
        "at_risk": sum(row.is_at_risk for row in report.rows),
        "problems": [problem_row(problem) for problem in report.problems],
    }


def doctor_json(health: Diagnosis) -> dict[str, Json]:
    """Return the keys of `pollux doctor --json`."""
    history = health.history
    return {
        "homes": [
            {"root": str(home.root), "tmp": str(home.tmp), "source": home.source} for home in history.located.homes
        ],
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
    session, fate = row.session, row.deletion
    project = session.project
    return {
        "id": session.id,
        "kind": session.kind,
        "title": session.title,
        "project": {"path": project.path, "hash": project.hash, "slug": project.slug},
        "updated": rfc3339(session.updated),
        "deletion": row.deletion_time,
        "reason": fate.reason if fate else None,
        "caused_by": str(fate.caused_by) if fate and fate.caused_by else None,
        "due": rfc3339(fate.due) if fate and fate.reason == DeletionReason.AGE else None,
        "days_left": days_left(fate.due, now) if fate else None,
        "stub": session.is_stub,
        "archived": row.is_archived,
        "at_risk": row.is_at_risk,
        "deleted_files": [str(path) for path in row.deleted_files],
        "remaining_files": [str(path) for path in row.remaining_files],
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
