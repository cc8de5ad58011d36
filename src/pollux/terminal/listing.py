"""Lists of sessions and projects on a terminal, and as plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from pollux.model import Fate, Session
from pollux.terminal.text import age, clean, count, line
from pollux.views.listing import calls_of, total, when

_SHORT_ID = 8


def session_table(sessions: Sequence[Session], by_id: Mapping[str, Session], *, now: datetime) -> Table:
    """Lay sessions out in columns; the title takes what room is left."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    table.add_column("", justify="right", style="dim", no_wrap=True)
    table.add_column("session", no_wrap=True, style="cyan")
    table.add_column("used", justify="right", no_wrap=True)
    table.add_column("project", no_wrap=True, max_width=16, overflow="ellipsis", style="green")
    table.add_column("title", no_wrap=True, ratio=1, overflow="ellipsis")
    table.add_column("asks", justify="right", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    for number, one in enumerate(sessions, 1):
        at = one.ended or one.updated or one.started
        table.add_row(
            f"@{number}",
            one.id[:_SHORT_ID],
            age(at, now) if at else "",
            line(one.project.name, 40),
            _title(one),
            str(one.counts.get("user", 0)),
            count(total(calls_of(one, by_id)).total),
        )
    return table


def session_lines(sessions: Sequence[Session], by_id: Mapping[str, Session]) -> Iterator[str]:
    """Give one line a session, fields apart by tabs."""
    for one in sessions:
        fields = (
            one.id,
            when(one.ended or one.updated or one.started) or "",
            one.project.path or one.project.name,
            one.title,
            str(one.counts.get("user", 0)),
            str(one.tool_calls),
            str(total(calls_of(one, by_id)).total),
        )
        yield "\t".join(" ".join(clean(field).split()) for field in fields) + "\n"


def _title(session: Session) -> Text:
    """Show the title, after marks for what is special about the session."""
    title = Text(line(session.title or "(no prompt)", 300), style="" if session.title else "dim")
    marks = []
    if session.kind == "subagent":
        marks.append(("↳ ", "dim"))
    if session.is_stub:
        marks.append(("stub ", "dim"))
    if session.problems:
        marks.append(("! ", "yellow"))
    lost = sum(number for fate, number in session.fates.items() if fate != Fate.ACTIVE)
    suffix = Text(f"  ⑂{lost}", "dim yellow") if lost else Text()
    return Text.assemble(*marks, title, suffix)
