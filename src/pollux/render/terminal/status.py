"""The overview of a home, and what the client will delete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rich.text import Text

from pollux.render.terminal.screen import line
from pollux.render.terminal.tables import TableColumn, TextTable, distinct_names, tab_lines
from pollux.reports.overview import Overview
from pollux.reports.status import FolderPolicy, StatusRow, days_left
from pollux.sessions.client_settings import RetentionPolicy, span_words
from pollux.sessions.retention import HASHED
from pollux.text.numbers import Currency, count, plural
from pollux.views import session_text
from pollux.views.session_text import cost_text

_BARS, _ASCII_BARS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
_HEADINGS = {
    "next": "At the next start",
    "soon": "Within 7 days",
    "later": "Later",
    "never": "Never",
    "deleted": "Deleted by the client",
}
_REASONS = {
    "count": "more sessions than maxCount",
    "empty": "nothing to resume in it",
    "stub": "a stub beside it, left by --resume",
    "unreadable": "the client cannot read it",
    "headerless": "its header is missing",
    "subagent": "an old subagent file beside it",
}


def overview_lines(overview: Overview, homes: str, *, encoding: str = "utf-8") -> Iterator[Text]:
    """Yield how much there is, what it cost, whether it is archived, what will be deleted and what is unreadable."""
    if not overview.n_sessions:
        yield Text(f"No Gemini CLI sessions in {line(homes, 300)}.", "bold")
        yield Text("`pollux demo` shows invented ones; `pollux doctor` lists the folders that were searched, and why.")
        return
    facts = [plural(overview.n_projects, "project"), plural(overview.n_prompts, "prompt")]
    facts += [plural(overview.n_subagents, "subagent")] if overview.n_subagents else []
    facts += ["all archived"] if not overview.n_unarchived else []
    yield Text.assemble((plural(overview.n_sessions, "session"), "bold"), f" in {', '.join(facts)}")
    yield Text(line(homes, 300), "dim")
    usage = overview.usage
    since = f" since {overview.first.day} {overview.first:%B %Y}" if overview.first else ""
    calls = f" for {count(usage.tokens.total)} tokens in {plural(usage.calls, 'model call')}{since}"
    yield Text.assemble((cost_text(usage), "bold"), calls)
    yield from _chart(overview, _BARS if encoding.lower().startswith("utf") else _ASCII_BARS)
    if overview.n_unarchived:
        yield Text(_unarchived(overview), "bright_red")
    if overview.n_deleted:
        yield Text(
            f"{plural(overview.n_deleted, 'session')} deleted by the client, but archived here.", "bright_magenta"
        )
    if overview.due or overview.soon:
        yield Text(_deletions(overview), "bright_magenta")
    if overview.n_problems:
        yield Text(
            f"{plural(overview.n_problems, 'problem')} while reading: `pollux doctor` lists them.", "bright_magenta"
        )


def _chart(overview: Overview, bars: str) -> Iterator[Text]:
    most = max(tokens for _, tokens in overview.days)
    if not most:
        return
    chart = "".join(bars[-(-tokens * (len(bars) - 1) // most)] for _, tokens in overview.days)
    first, last = overview.days[0][0], overview.days[-1][0]
    cost = "" if overview.usage.cost_nanousd is None else f"{Currency().show(overview.days_nanousd)} for "
    tokens = count(sum(tokens for _, tokens in overview.days))
    yield Text.assemble(
        (f"{first.day} {first:%b} ", "dim"),
        (chart, "bright_blue"),
        (f" {last.day} {last:%b}", "dim"),
        f"   {cost}{tokens} tokens in {len(overview.days)} days",
    )


def _unarchived(overview: Overview) -> str:
    if overview.n_unarchived == overview.n_files:
        return "Nothing is archived: sessions that the client deletes are lost. `pollux sync` archives them."
    return f"{overview.n_unarchived:,} of {plural(overview.n_files, 'session file')} not archived: run `pollux sync`."


def _deletions(overview: Overview) -> str:
    times = [f"{plural(overview.due, 'session')} at its next start"] if overview.due else []
    if overview.soon:
        sessions = f"{overview.soon:,} more" if overview.due else plural(overview.soon, "session")
        times.append(f"{sessions} within a week")
    return f"The client will delete {', '.join(times)}: `pollux status` lists them."


def status_table(
    rows: Sequence[StatusRow], policies: Iterable[FolderPolicy], *, now: datetime, projects: Mapping[str, str]
) -> TextTable:
    """Return sessions below headings that say when the client deletes them; `projects` names all projects by key."""
    limits = age_limits(policies)
    listed = [row.session.project for row in rows]
    names = distinct_names([*projects.items(), *((project.key, project.name) for project in listed)])
    headings = {}
    for number, row in enumerate(rows):
        if not number or rows[number - 1].deletion_time != row.deletion_time:
            headings[number] = _HEADINGS[row.deletion_time]
    styles = ["dim" if row.session.is_stub else "bright_red" if row.is_at_risk else "" for row in rows]
    titles = [line(session_text.title(row.session), 300) for row in rows]
    columns = [
        TableColumn("session", [line(row.session.id, 8, ellipsis="") for row in rows], "bright_blue"),
        TableColumn("expires", [_expires(row, now) for row in rows]),
        TableColumn("reason", [line(deletion_reason(row, limits), 60) for row in rows], rank=2, least=20),
        TableColumn("archived", ["yes" if row.is_archived else "no" for row in rows], rank=1),
        TableColumn("project", [line(names[project.key], 24) for project in listed], "green", 3, least=10),
        TableColumn("title", titles, rank=4, least=20),
    ]
    return TextTable(columns, styles, headings)


def status_lines(
    rows: Iterable[StatusRow], policies: Iterable[FolderPolicy], *, now: datetime, header: bool = True
) -> Iterator[str]:
    """Yield a tab-separated line per session."""
    limits = age_limits(policies)
    cells = (
        (
            row.session.id,
            _expires(row, now),
            deletion_reason(row, limits),
            "yes" if row.is_archived else "no",
            row.session.project.path or row.session.project.name,
            session_text.title(row.session),
        )
        for row in rows
    )
    return tab_lines(("session", "expires", "reason", "archived", "project", "title"), cells, header=header)


def status_summary(rows: Sequence[StatusRow]) -> str:
    """Return in one line how many sessions there are, how many are archived and when they expire."""
    with_messages = [row for row in rows if not row.session.is_stub]
    on_disk = [row for row in with_messages if row.deletion_time != "deleted"]
    n_unarchived = sum(not row.is_archived for row in on_disk)
    if not n_unarchived:
        archived = "all archived"
    else:
        archived = "none archived" if n_unarchived == len(on_disk) else f"{n_unarchived:,} not archived"
    parts = []
    for time, heading in _HEADINGS.items():
        number = sum(row.deletion_time == time for row in with_messages)
        if number:
            parts.append(f"{number:,} {heading[0].lower()}{heading[1:]}")
    if parts:
        return f"{plural(len(on_disk), 'session')}, {archived}: {', '.join(parts)}"
    return f"No sessions with messages; {plural(len(rows), 'empty session')}." if rows else "No sessions."


def settings_notes(folder: FolderPolicy) -> Iterator[str]:
    """Yield what is wrong or unusual in the client's settings for a folder."""
    policy = folder.policy
    if policy.is_fault:
        yield f"Settings: {policy.off}."
    yield from (f"Settings: {note}." for note in policy.notes)


def age_limits(policies: Iterable[FolderPolicy]) -> dict[Path, str]:
    """Return the rule by which the client deletes the sessions of each project folder."""
    return {folder.folder: _limit(folder.policy) for folder in policies}


def _limit(policy: RetentionPolicy) -> str:
    if policy.off:
        return "not cleaned up" if policy.off == HASHED else "wrong settings" if policy.is_fault else "turned off"
    return f"{span_words(policy.max_age)} unused" if policy.max_age else "no age limit"


def _expires(row: StatusRow, now: datetime) -> str:
    if row.deletion_time == "next":
        return "next start"
    if row.deletion:
        days = days_left(row.deletion.due, now)
        return f"in {plural(days, 'day')}" if days else "in hours"
    return "deleted" if row.deletion_time == "deleted" else "never"


def deletion_reason(row: StatusRow, limits: dict[Path, str]) -> str:
    """Return why the client deletes a session, or the rule that it is subject to."""
    if row.deletion and row.deletion.reason != "age":
        return _REASONS[row.deletion.reason]
    paths = row.deleted_files or row.remaining_files
    limit = next((limits[folder] for path in paths for folder in path.parents if folder in limits), "")
    return f"an older file of it: {limit}" if row.deletion and row.deletion.caused_by else limit
