"""What an archive contains and what was done with it, as lines for standard output and notes for standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from pollux.archive.verify import PROVEN_BY_BYTES
from pollux.render.terminal.screen import cut, line
from pollux.text.escape import make_visible, printable
from pollux.text.numbers import plural, relative_time, size
from pollux.text.times import moment

if TYPE_CHECKING:
    from pathlib import Path

    from pollux.archive.damage import Damage, VerifyReport
    from pollux.archive.forget import ForgetResult
    from pollux.archive.import_archive import ImportResult
    from pollux.archive.maintenance import ArchiveInfo
    from pollux.archive.restore import WritePlan
    from pollux.archive.undo import UndoResult
    from pollux.archive.watch import SyncReport
    from pollux.views.contracts.archive import ImportDocument, RestorePlan

Shorten: TypeAlias = Callable[["str | Path"], str]
"""Returns a path with `~` for the user's own folder."""

_N_IMPORTED = 5
"""Imported files that are listed."""
_N_LISTED = 10
"""Names in other lists."""


def info_lines(info: ArchiveInfo, now: datetime, short: Shorten) -> Iterator[str]:
    """Yield what an archive contains and which process is writing to it."""
    room = f", {info.ratio:.1f} times smaller than the {size(info.n_bytes)} that it contains" if info.ratio else ""
    sessions = f"{info.n_sessions}, {info.n_subagents} subagents; {info.n_deleted} deleted by the client, but archived"
    last = moment(info.last_us)
    lines = {
        "archive": make_visible(short(info.path)),
        "size": f"{size(info.n_on_disk)}{room}",
        "files": f"{info.n_files}, {info.n_deleted_files} of them deleted; {plural(info.n_versions, 'version')}",
        "imported": f"{plural(info.n_imported, 'version')}, not read on this machine" if info.n_imported else "",
        "sessions": sessions if info.facts_are_current else "not counted yet: run `pollux sync`",
        "index": f"{size(info.n_index_bytes)}; {info.n_indexed} of {info.n_indexable} sessions and subagents indexed",
        "forgotten": str(info.n_forgotten) if info.n_forgotten else "",
        "last new": relative_time(last, now) if last else "never",
        "writer": make_visible(info.writer) if info.writer else "none",
        "homes": str(len(info.homes)),
    }
    for label, text in lines.items():
        if text:
            yield f"{label:<10}{text}"
    for home in info.homes:
        name = make_visible(f"{short(home.home)} on {home.machine or 'an unnamed machine'}")
        yield f"  {plural(home.n_files, 'file')}, {size(home.n_bytes)}, {home.n_deleted} deleted: {name}"


def import_line(imported: ImportDocument, short: Shorten) -> str:
    """Return how much was imported."""
    result = imported.result
    if not result.n_files:
        return "Nothing to import: this archive has every file of the other one."
    amount = f"{plural(result.n_files, 'file')}, {plural(result.n_versions, 'version')}, {size(result.n_bytes)}"
    return f"Imported from {short(imported.other)}: {amount}."


def import_notes(imported: ImportDocument, short: Shorten) -> Iterator[str]:
    """Yield what an import left out or stored separately."""
    result = imported.result
    yield from _not_read_here(result, short)
    if result.n_forgotten:
        yield f"{plural(result.n_forgotten, 'file')} of forgotten sessions not imported."
    if imported.n_adopted:
        seals = plural(imported.n_adopted, "seal")
        yield f"This archive continues the chain of {seals}: your key signed it, and it matches what was imported."
    elif result.n_seals:
        seals = plural(result.n_seals, "seal")
        yield f"{seals} stored separately from those of this archive; `pollux verify --seal` checks both."


def _not_read_here(result: ImportResult, short: Shorten) -> Iterator[str]:
    """Yield the files that claim to be from this machine, which has not read those bytes itself."""
    files = result.not_read_here
    if not files:
        return
    amount = f"{plural(len(files), 'file')} ({size(sum(file.n_bytes for file in files))})"
    yield (
        f"{amount} claim to be from this machine, which never read these bytes. "
        "They are stored as imports and do not change what it has read."
    )
    for file in files[:_N_IMPORTED]:
        yield f"  {printable(short(file.file))}: {size(file.n_bytes)}"
    if len(files) > _N_IMPORTED:
        yield f"  … and {len(files) - _N_IMPORTED} more; --json lists them all."


def sync_line(report: SyncReport, short: Shorten) -> str:
    """Return what a sync archived."""
    deleted = f"; {plural(report.n_deleted, 'file')} deleted by the client, but archived" if report.n_deleted else ""
    if not report.n_bytes:
        return f"Nothing new in {plural(report.n_projects, 'project')}{deleted}."
    amount = f"{plural(report.n_files, 'file')}, {size(report.n_bytes)}"
    sessions = f", {plural(len(report.sessions), 'session')}" if report.sessions else ""
    return f"Archived in {short(report.archive)}: {amount}{sessions}{deleted}."


def watch_line(report: SyncReport, now: datetime, width: int) -> str:
    """Return in one line what a sync archived while watching; empty if nothing changed."""
    changes = [f"+{size(report.n_bytes)}"] if report.n_bytes else []
    if report.n_deleted:
        changes.append(f"{plural(report.n_deleted, 'file')} deleted, but archived")
    if not changes:
        return ""
    changes += [f"{session_id[:8]} {title}".rstrip() for session_id, title in report.titles.items()]
    n_more = len(report.sessions) - len(report.titles)
    changes += [f"{n_more} more"] if n_more else []
    text = make_visible(", ".join(changes)).replace("\n", " ")
    return cut(f"{now.astimezone():%H:%M:%S}  {text}", width)


def verify_lines(report: VerifyReport, archive: Path, short: Shorten) -> Iterator[str]:
    """Yield the damage of an archive, or that there is none, and what was not checked."""
    for damage in report.damage:
        yield make_visible(_damage_line(damage, short))
    if not report.damage:
        yield f"{short(archive)} is undamaged: {_examined(report)}, every byte as it was archived."
    if report.not_compared:
        hint = " `pollux verify --deep` checks the facts." if PROVEN_BY_BYTES in report.not_compared else ""
        yield f"Not checked: {'; '.join(report.not_compared)}.{hint}"


def verify_notes(report: VerifyReport, archive: Path, short: Shorten) -> Iterator[str]:
    """Yield what was not checked, how much is damaged, and what to do."""
    yield from report.notes
    if not report.damage:
        return
    left = [damage for damage in report.damage if not damage.is_repaired]
    n_repaired = len(report.damage) - len(left)
    repaired = f"{n_repaired} repaired, " if n_repaired else ""
    yield f"{_examined(report)} checked in {short(archive)}: {repaired}{len(left)} damaged."
    if any(damage.source or damage.code == "facts" for damage in left):
        yield "`pollux verify --repair` restores what it can from other copies, and rebuilds the facts."


def _examined(report: VerifyReport) -> str:
    return f"{plural(report.n_segments, 'segment')}, {size(report.n_bytes)}"


def _damage_line(damage: Damage, short: Shorten) -> str:
    place = f"{short(damage.file)}: " if damage.file else ""
    if damage.is_repaired:
        remedy = f"; repaired from {damage.source}" if damage.source else "; rebuilt"
    elif damage.source:
        remedy = f"; can be repaired from {damage.source}"
    else:
        remedy = "" if damage.code == "facts" else "; there is no other copy"
    return f"{place}{damage.message}{remedy}"


def forget_question_lines(
    titles: Mapping[str, str], unreadable: Sequence[str], shared: Mapping[str, Sequence[str]], short: Shorten
) -> Iterator[str]:
    """Yield what will be forgotten, before the user confirms."""
    for session_id, title in titles.items():
        yield f"{session_id}  {line(title or '(no prompt)', 60)}"
    for path in unreadable:
        yield f"{line(path, 100)}  (cannot be read)"
    yield from _shared_files(shared, "will stay", short)


def forget_notes(forgotten: ForgetResult, short: Shorten, *, is_demo: bool = False) -> Iterator[str]:
    """Yield how much was forgotten, where parts of it may remain, and how to bring it back."""
    amount = f"{plural(len(forgotten.sessions), 'session')}, {plural(len(forgotten.files), 'file')}"
    versions = plural(forgotten.n_versions, "version")
    yield f"Removed from the archive: {amount}, {versions}, {size(forgotten.n_bytes)}."
    if forgotten.remaining:
        are_all = len(forgotten.remaining) == len(forgotten.files)
        which = "The client's own files, listed above, stay" if are_all else "These files of the client stay"
        yield f"{which} on the disk; delete them yourself if they must not remain{'.' if are_all else ':'}"
        yield from [] if are_all else _listed([short(path) for path in forgotten.remaining])
    yield from _shared_files(forgotten.shared, "stay", short)
    if forgotten.mentions:
        yield "Prompts may remain in these files, which all sessions of the project share:"
    yield from _listed([short(path) for path in forgotten.mentions])
    if forgotten.repeats:
        yield "These sessions contain messages copied from it; forget them, too, if necessary:"
    yield from _listed(forgotten.repeats)
    if not forgotten.is_clean:
        yield "Another process is reading the archive. Run `pollux archive compact` after it ends to free the space."
    expires = moment(forgotten.undo.expires_us) if forgotten.undo else None
    if is_demo:
        yield "The next `pollux demo` command has a new archive with all sessions, so there is nothing to undo."
    elif expires:
        yield f"`pollux forget --undo` brings this back until {expires.astimezone():%Y-%m-%d %H:%M}."
    else:
        yield "No undo copy was stored, so only a backup can bring this back."


def undo_note(result: UndoResult) -> str:
    """Return how much was brought back."""
    return f"Brought back: {plural(len(result.sessions), 'session')}, {plural(len(result.files), 'file')}."


def _shared_files(shared: Mapping[str, Sequence[str]], stay: str, short: Shorten) -> Iterator[str]:
    """Yield the files that still contain a forgotten session, and what else to forget to remove them."""
    if not shared:
        return
    n_others = len({session_id for ids in shared.values() for session_id in ids})
    files = "This file" if len(shared) == 1 else "Each of these files"
    others, them = ("another session", "that") if n_others == 1 else ("other sessions", "those")
    yield f"{files} also contains {others}; its bytes {stay} in the archive until you forget {them} too:"
    yield from _listed([f"{short(path)}  ({', '.join(ids)})" for path, ids in shared.items()])


def _listed(names: Sequence[str]) -> Iterator[str]:
    for name in names[:_N_LISTED]:
        yield f"  {name}"
    if len(names) > _N_LISTED:
        yield f"  … and {len(names) - _N_LISTED} more"


def restore_notes(restored: RestorePlan, short: Shorten) -> Iterator[str]:
    """Yield what was or would be written, and why the client may still not find the session."""
    plan = restored.plan
    if not plan.files:
        yield f"Nothing to restore: {printable(short(plan.main))} exists and has {plural(plan.n_messages, 'message')}."
    elif restored.is_written:
        yield written_line(plan, short)
    else:
        messages = plural(plan.n_messages, "message")
        yield f"Nothing is written yet. To restore {printable(plan.id)} with {messages}, this would be:"
    yield from plan.notes
    yield from restored.warnings


def written_line(plan: WritePlan, short: Shorten) -> str:
    """Return what was written and where."""
    n_others = len(plan.files) - 1
    others = f", and {plural(n_others, 'related file')}" if n_others else ""
    messages = plural(plan.n_messages, "message")
    return f"Written below {short(plan.home.root)}: {printable(plan.main.name)} with {messages}{others}."
