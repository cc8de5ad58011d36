"""What the client will delete, on a terminal, and as plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

from rich.table import Table

from pollux.render.terminal.tables import counted, tabbed
from pollux.render.terminal.text import line
from pollux.reports.status import FolderPolicy, StatusRow, days_left
from pollux.sessions.client_settings import Policy, span_words
from pollux.sessions.retention import HASHED
from pollux.views import session_text

# Columns that a terminal must have for a column of ours to be worth its room.
_FROM = {"project": 72, "title": 100}
_TITLES = {
    "next": "At the next start",
    "soon": "Within 7 days",
    "later": "Later",
    "never": "Never",
    "gone": "Deleted but kept",
}
_WHY = {
    "count": "more sessions than maxCount",
    "empty": "nothing to resume in it",
    "stub": "a stub beside it, left by --resume",
    "unreadable": "the client cannot read it",
    "headerless": "its header is missing",
    "subagent": "an old subagent file beside it",
}


def status_lines(rows: Iterable[StatusRow], policies: Iterable[FolderPolicy], *, now: datetime) -> Iterator[str]:
    """Give one line a session, fields apart by tabs."""
    limits = _limits(policies)
    for row in rows:
        yield tabbed(*_cells(row, limits, now).values())


def status_tables(
    rows: Sequence[StatusRow], policies: Iterable[FolderPolicy], *, now: datetime, width: int
) -> Iterator[tuple[str, Table]]:
    """Give a title and a table for each time at which sessions go."""
    limits = _limits(policies)
    for turn, title in _TITLES.items():
        group = [row for row in rows if row.turn == turn]
        if group:
            yield title, _table(group, limits, now, width)


def summary(rows: Sequence[StatusRow]) -> str:
    """Say in one line how much there is, how much of it is kept, and when it goes."""
    telling = [row for row in rows if not row.session.is_stub]
    there = [row for row in telling if row.turn != "gone"]
    n_unkept = sum(not row.is_kept for row in there)
    kept = "all kept" if not n_unkept else "none kept" if n_unkept == len(there) else f"{n_unkept} not kept"
    turns = [(sum(row.turn == turn for row in telling), title) for turn, title in _TITLES.items()]
    parts = ", ".join(f"{number} {title[0].lower()}{title[1:]}" for number, title in turns if number)
    return f"{counted(len(there), 'session')}, {kept}: {parts}" if parts else "No sessions."


def remarks(one: FolderPolicy) -> Iterator[str]:
    """Say what is to be known of the settings of a folder."""
    policy = one.policy
    if policy.is_fault:
        yield f"Settings: {policy.off}."
    yield from (f"Settings: {note}." for note in policy.notes)


def _cells(row: StatusRow, limits: dict[Path, str], now: datetime) -> dict[str, str]:
    """Say of one session what its line says."""
    session = row.session
    return {
        "session": session.id,
        "when": _when(row, now),
        "why": _why(row, limits),
        "kept": "yes" if row.is_kept else "no",
        "project": session.project.name,
        "title": session_text.title(session),
    }


def _table(rows: Sequence[StatusRow], limits: dict[Path, str], now: datetime, width: int) -> Table:
    room = {"session": 8, "when": 12, "why": 34, "kept": 4, "project": 16, "title": 300}
    names = [name for name in room if width >= _FROM.get(name, 0)]
    table = Table(box=None, pad_edge=False, header_style="dim", expand="title" in names)
    styles = {"session": "cyan", "project": "green"}
    for name in names:
        ratio = 1 if name == "title" else None
        is_whole = name != "why"  # which goes on in the next line where room is scarce
        table.add_column(name, style=styles.get(name, ""), no_wrap=is_whole, overflow="ellipsis", ratio=ratio)
    for row in rows:
        cells = _cells(row, limits, now)
        ellipses = {"session": ""}
        style = "dim" if row.session.is_stub else "yellow" if row.is_at_risk else ""
        table.add_row(*(line(cells[name], room[name], ellipsis=ellipses.get(name, "…")) for name in names), style=style)
    return table


def _limits(policies: Iterable[FolderPolicy]) -> dict[Path, str]:
    """Say for each project folder what its sessions go by."""
    return {one.folder: _limit(one.policy) for one in policies}


def _limit(policy: Policy) -> str:
    if policy.off:
        return "not cleaned up" if policy.off == HASHED else "wrong settings" if policy.is_fault else "turned off"
    return f"{span_words(policy.max_age)} unused" if policy.max_age else "no limit of age"


def _when(row: StatusRow, now: datetime) -> str:
    if row.turn == "next":
        return "next start"
    if row.fate:
        days = days_left(row.fate.due, now)
        return f"in {days} day{'' if days == 1 else 's'}" if days else "in hours"
    return str(row.turn)


def _why(row: StatusRow, limits: dict[Path, str]) -> str:
    if row.fate and row.fate.why != "age":
        return _WHY[row.fate.why]
    paths = row.going or row.staying
    limit = next((limits[folder] for path in paths for folder in path.parents if folder in limits), "")
    return f"an older file of it: {limit}" if row.fate and row.fate.because else limit
