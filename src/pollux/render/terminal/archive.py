"""What was done with the archive, in lines: data for stdout, notes for stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from pollux.archive.verify import PROVEN_BY_BYTES
from pollux.render.terminal.tables import counted
from pollux.render.terminal.text import cut, line
from pollux.text.escape import clean, printable
from pollux.text.numbers import ago, size
from pollux.text.times import moment

if TYPE_CHECKING:
    from pathlib import Path

    from pollux.archive.damage import Damage, VerifyReport
    from pollux.archive.forget import Forgotten
    from pollux.archive.import_archive import Merged
    from pollux.archive.maintenance import Info
    from pollux.archive.restore import Plan
    from pollux.archive.watch import SyncReport
    from pollux.views.contracts.archive import ImportDocument, RestorePlan

Shorten: TypeAlias = Callable[["str | Path"], str]
"""Writes a path with `~` for the user's own folder."""

_NAMED = 5
"""Imported files that are named."""
_LISTED = 10
"""Other names in a list."""


def info_lines(info: Info, now: datetime, short: Shorten) -> Iterator[str]:
    """Yield what an archive holds and who writes to it."""
    room = f", {info.ratio:.1f} times smaller than the {size(info.n_kept)} it holds" if info.ratio else ""
    sessions = f"{info.n_sessions}, {info.n_subagents} subagents; {info.n_gone} deleted by the client and kept here"
    last = moment(info.last_us)
    lines = {
        "archive": clean(short(info.path)),
        "size": f"{size(info.n_on_disk)}{room}",
        "files": f"{info.n_files}, {info.n_gone_files} of them gone; {counted(info.n_versions, 'version')}",
        "imported": f"{counted(info.n_imported, 'version')}, not read on this machine" if info.n_imported else "",
        "sessions": sessions if info.facts_are_current else "not counted yet: `pollux sync` does",
        "forgotten": str(info.n_forgotten) if info.n_forgotten else "",
        "last new": ago(last, now) if last else "never",
        "writer": clean(info.writer) if info.writer else "nobody",
        "homes": str(len(info.places)),
    }
    for label, text in lines.items():
        if text:
            yield f"{label:<10}{text}"
    for home in info.places:
        name = clean(f"{short(home.home)} on {home.machine or 'an unnamed machine'}")
        yield f"  {counted(home.n_files, 'file')}, {size(home.n_bytes)}, {home.n_gone} gone: {name}"


def import_line(imported: ImportDocument, short: Shorten) -> str:
    """Return how much an import has brought."""
    result = imported.result
    if not result.n_files:
        return "Everything is here already."
    amount = f"{counted(result.n_files, 'file')}, {counted(result.n_versions, 'version')}, {size(result.n_bytes)}"
    return f"Imported from {short(imported.other)}: {amount}."


def import_notes(imported: ImportDocument, short: Shorten) -> Iterator[str]:
    """Yield what an import left out or keeps apart."""
    result = imported.result
    yield from _not_read_here(result, short)
    if result.n_forgotten:
        yield f"{counted(result.n_forgotten, 'file')} of forgotten sessions left out."
    if imported.n_adopted:
        seals = counted(imported.n_adopted, "seal")
        yield f"This archive has taken over {seals}: your key signed the chain, and it fits what was imported."
    elif result.n_seals:
        seals = counted(result.n_seals, "seal")
        yield f"{seals} of it kept apart from this archive's own; `pollux verify --seal` checks them separately."


def _not_read_here(result: Merged, short: Shorten) -> Iterator[str]:
    """Yield the files that claim to be of this machine, which has not read those bytes itself."""
    files = result.not_read_here
    if not files:
        return
    amount = f"{counted(len(files), 'file')}, {size(sum(file.n_bytes for file in files))}"
    yield (
        f"Said to be from this machine, which never read these bytes: {amount}. "
        "They are kept as imports and change nothing that it has read."
    )
    for file in files[:_NAMED]:
        yield f"  {printable(short(file.file))}: {size(file.n_bytes)}"
    if len(files) > _NAMED:
        yield f"  … and {len(files) - _NAMED} more; --json lists them all."


def sync_line(report: SyncReport, short: Shorten) -> str:
    """Return what a sync copied."""
    gone = f"; {counted(report.n_deleted, 'file')} gone since, kept here" if report.n_deleted else ""
    if not report.n_bytes:
        return f"Nothing new in {counted(report.n_projects, 'project')}{gone}."
    amount = f"{counted(report.n_files, 'file')}, {size(report.n_bytes)}"
    sessions = f", {counted(len(report.sessions), 'session')}" if report.sessions else ""
    return f"Taken into {short(report.archive)}: {amount}{sessions}{gone}."


def watch_line(report: SyncReport, now: datetime, width: int) -> str:
    """Return what a sync copied while watching, in one line; nothing if it copied nothing."""
    changes = [f"+{size(report.n_bytes)}"] if report.n_bytes else []
    if report.n_deleted:
        changes.append(f"{counted(report.n_deleted, 'file')} gone, kept here")
    if not changes:
        return ""
    changes += [f"{session_id[:8]} {title}".rstrip() for session_id, title in report.titles.items()]
    n_more = len(report.sessions) - len(report.titles)
    changes += [f"{n_more} more"] if n_more else []
    text = clean(", ".join(changes)).replace("\n", " ")
    return cut(f"{now.astimezone():%H:%M:%S}  {text}", width)


def verify_lines(report: VerifyReport, archive: Path, short: Shorten) -> Iterator[str]:
    """Yield the damage of an archive, or that there is none, and what was not compared."""
    for damage in report.damage:
        yield clean(_damage_line(damage, short))
    if not report.damage:
        yield f"{short(archive)} is sound: {_examined(report)}, every byte as it was kept."
    if report.not_compared:
        hint = " `pollux verify --deep` compares the facts." if PROVEN_BY_BYTES in report.not_compared else ""
        yield f"Not compared: {'; '.join(report.not_compared)}.{hint}"


def verify_notes(report: VerifyReport, archive: Path, short: Shorten) -> Iterator[str]:
    """Yield what was left out, how much is damaged, and what to do."""
    yield from report.notes
    if not report.damage:
        return
    left = [damage for damage in report.damage if not damage.is_repaired]
    n_repaired = len(report.damage) - len(left)
    repaired = f"{n_repaired} repaired, " if n_repaired else ""
    yield f"{_examined(report)} looked at in {short(archive)}: {repaired}{len(left)} damaged."
    if any(damage.source or damage.code == "facts" for damage in left):
        yield "`pollux verify --repair` puts back what can be had, and makes the facts anew."


def _examined(report: VerifyReport) -> str:
    return f"{counted(report.n_segments, 'piece')}, {size(report.n_bytes)}"


def _damage_line(damage: Damage, short: Shorten) -> str:
    place = f"{short(damage.file)}: " if damage.file else ""
    if damage.is_repaired:
        remedy = f"; repaired from {damage.source}" if damage.source else "; made anew"
    elif damage.source:
        remedy = f"; to be had from {damage.source}"
    else:
        remedy = "" if damage.code == "facts" else "; found nowhere else"
    return f"{place}{damage.message}{remedy}"


def forget_question_lines(
    titles: Mapping[str, str], unreadable: Sequence[str], shared: Mapping[str, Sequence[str]], short: Shorten
) -> Iterator[str]:
    """Yield what is going to be forgotten, before it is."""
    for session_id, title in titles.items():
        yield f"{session_id}  {line(title or '(no prompt)', 60)}"
    for path in unreadable:
        yield f"{line(path, 100)}  (cannot be read)"
    yield from _shared_files(shared, "will stay", short)


def forget_notes(forgotten: Forgotten, short: Shorten) -> Iterator[str]:
    """Yield how much was forgotten, and where something of it may still be."""
    amount = f"{counted(len(forgotten.sessions), 'session')}, {counted(len(forgotten.files), 'file')}"
    removed = "Removed" if forgotten.shared else "Removed for good"
    yield f"{removed}: {amount}, {counted(forgotten.n_versions, 'version')}, {size(forgotten.n_bytes)}."
    yield from _shared_files(forgotten.shared, "stay", short)
    if forgotten.mentions:
        yield "What was typed may still stand in files that all sessions of the project share; they stay:"
    yield from _listed([short(path) for path in forgotten.mentions])
    if forgotten.repeats:
        yield "These sessions were made from it and repeat some of it; forget them too if that matters:"
    yield from _listed(forgotten.repeats)
    if not forgotten.is_clean:
        yield "Somebody still reads the archive: run `pollux archive compact` once they are done."


def _shared_files(shared: Mapping[str, Sequence[str]], stay: str, short: Shorten) -> Iterator[str]:
    """Yield which files keep the bytes of a forgotten session, and what to forget so that they go too."""
    if not shared:
        return
    n_others = len({session_id for ids in shared.values() for session_id in ids})
    files = "This file" if len(shared) == 1 else "Each of these files"
    others, them = ("another session", "that") if n_others == 1 else ("other sessions", "those")
    yield f"{files} also holds {others}; its bytes {stay} in the archive until you forget {them} too:"
    yield from _listed([f"{short(path)}  ({', '.join(ids)})" for path, ids in shared.items()])


def _listed(names: Sequence[str]) -> Iterator[str]:
    for name in names[:_LISTED]:
        yield f"  {name}"
    if len(names) > _LISTED:
        yield f"  … and {len(names) - _LISTED} more"


def restore_notes(restored: RestorePlan, short: Shorten) -> Iterator[str]:
    """Yield what was written or would be, and why the client may still not find the session."""
    plan = restored.plan
    if not plan.files:
        yield f"Nothing to restore: {printable(short(plan.main))} is there, with {counted(plan.n_messages, 'message')}."
    elif restored.is_written:
        yield written_line(plan, short)
    else:
        messages = counted(plan.n_messages, "message")
        yield f"Nothing is written yet; this would be, to resume {printable(plan.id)} with {messages}:"
    yield from plan.notes
    yield from restored.warnings


def written_line(plan: Plan, short: Shorten) -> str:
    """Return what was written where."""
    n_others = len(plan.files) - 1
    others = f", and {counted(n_others, 'file')} that belong to it" if n_others else ""
    messages = counted(plan.n_messages, "message")
    return f"Written below {short(plan.home.root)}: {printable(plan.main.name)} with {messages}{others}."
