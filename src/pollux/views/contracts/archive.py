"""Documents of the archive, and of `restore` and `resume`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.model import Json, Session
from pollux.text.times import moment
from pollux.views.contracts import problem_row, rfc3339

if TYPE_CHECKING:  # each document needs only one of these
    from pollux.archive.damage import Damage, VerifyReport
    from pollux.archive.import_archive import ImportResult
    from pollux.archive.maintenance import ArchiveInfo
    from pollux.archive.restore import WritePlan
    from pollux.archive.watch import SyncReport


class VerifyDocument(msgspec.Struct, frozen=True):
    """The result of `pollux verify`."""

    report: VerifyReport
    archive: Path
    is_deep: bool
    """Whether the facts were compared with the bytes."""


class ImportDocument(msgspec.Struct, frozen=True):
    """The result of `pollux archive import`."""

    result: ImportResult
    other: Path
    n_adopted: int
    """Number of imported seals that now belong to this archive."""


class RestorePlan(msgspec.Struct, frozen=True):
    """The files that `pollux restore` writes."""

    plan: WritePlan
    session: Session
    command: str | None
    """The command that continues the session; None if its ID is unsafe."""
    is_written: bool
    warnings: tuple[str, ...] = ()
    """Reasons why the client may still not find the session."""


class ResumeDocument(msgspec.Struct, frozen=True):
    """The result of `pollux resume`."""

    id: str
    project: str
    is_there: bool
    """Whether the client would find the session."""
    command: str


def info_json(info: ArchiveInfo) -> dict[str, Json]:
    """Return the keys of `pollux archive info --json`."""
    return {
        "archive": str(info.path),
        "bytes": info.n_on_disk,
        "files": info.n_files,
        "deleted_files": info.n_deleted_files,
        "versions": info.n_versions,
        "imported_versions": info.n_imported,
        "segments": info.n_segments,
        "archived_bytes": info.n_bytes,
        "stored_bytes": info.n_stored,
        "ratio": round(info.ratio, 2) if info.ratio else None,
        "sessions": info.n_sessions if info.facts_are_current else None,
        "subagents": info.n_subagents if info.facts_are_current else None,
        "deleted": info.n_deleted if info.facts_are_current else None,
        "forgotten": info.n_forgotten,
        "index": {"bytes": info.n_index_bytes, "sessions": info.n_indexed, "of": info.n_indexable},
        "last_sync": rfc3339(moment(info.last_us)),
        "writer": info.writer,
        "homes": [
            {
                "machine": home.machine,
                "home": home.home,
                "files": home.n_files,
                "deleted_files": home.n_deleted,
                "bytes": home.n_bytes,
            }
            for home in info.homes
        ],
    }


def sync_json(report: SyncReport) -> dict[str, Json]:
    """Return the keys of `pollux sync --json`, and of a line of `pollux watch --json`."""
    return {
        "archive": str(report.archive),
        "homes": list(report.homes),
        "files": report.n_files,
        "bytes": report.n_bytes,
        "sessions": list(report.sessions),
        "deleted": report.n_deleted,
        "problems": [problem_row(problem) for problem in report.problems],
    }


def import_json(document: ImportDocument) -> dict[str, Json]:
    """Return the keys of `pollux archive import --json`."""
    result = document.result
    return {
        "from": str(document.other),
        "files": result.n_files,
        "versions": result.n_versions,
        "bytes": result.n_bytes,
        "not_read_here": [{"file": file.file, "bytes": file.n_bytes} for file in result.not_read_here],
        "forgotten": result.n_forgotten,
        "seals": {"imported": result.n_seals, "adopted": document.n_adopted},
        "problems": [problem_row(problem) for problem in result.problems],
    }


def verify_json(document: VerifyDocument) -> dict[str, Json]:
    """Return the keys of `pollux verify --json`."""
    report = document.report
    return {
        "archive": str(document.archive),
        "ok": report.is_ok,
        "deep": document.is_deep,
        "segments": report.n_segments,
        "bytes": report.n_bytes,
        "damage": [_damage_row(damage) for damage in report.damage],
        "notes": report.notes,
        "not_compared": report.not_compared,
    }


def restore_json(document: RestorePlan) -> dict[str, Json]:
    """Return the keys of `pollux restore --json`."""
    plan = document.plan
    return {
        "session": document.session.id,
        "id": plan.id,
        "home": str(plan.home.root),
        "main": str(plan.main),
        "messages": plan.n_messages,
        "files": [str(file.place) for file in plan.files],
        "written": document.is_written,
        "notes": list(plan.notes),
        "project": document.session.project.path,
        "command": document.command,
    }


def resume_json(document: ResumeDocument) -> dict[str, Json]:
    """Return the keys of `pollux resume --json`."""
    return {
        "id": document.id,
        "project": document.project,
        "there": document.is_there,
        "command": document.command,
    }


def _damage_row(damage: Damage) -> dict[str, Json]:
    return {
        "code": damage.code,
        "message": damage.message,
        "machine": damage.machine,
        "file": damage.file,
        "version": damage.version,
        "start": damage.start,
        "end": damage.end,
        "source": damage.source,
        "repaired": damage.is_repaired,
    }
