"""Lists of sessions and projects on a terminal, and as plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from pollux.model import Fate, Session
from pollux.render.terminal.text import line
from pollux.reports.projects import ProjectRow
from pollux.reports.sessions import SessionRow
from pollux.sessions.reader import saved_tag
from pollux.text.escape import clean
from pollux.text.numbers import age, count
from pollux.views.contracts import when
from pollux.views.session_text import NO_TITLE, title

_SHORT_ID = 8
_TAG = 24
_NO_DELETIONS: Mapping[str, str] = {}

# Columns that a terminal must have for a column of ours to be worth its room.
_FOR_BOTH_NAMES = 52
_FOR_PROJECT = 60
_FOR_NUMBERS = 72
_FOR_SOURCE = 100
_WIDE = 100


def session_table(
    sessions: Sequence[SessionRow],
    *,
    now: datetime,
    width: int,
    deletions: Mapping[str, str] = _NO_DELETIONS,
) -> Table:
    """Lay sessions out in columns; the title takes what room is left, and on a narrow terminal others make way."""
    columns: dict[str, list[Text | str]] = {}
    if any(row.number for row in sessions):
        columns["@"] = [f"@{row.number}" if row.number else "" for row in sessions]
    if width >= _FOR_BOTH_NAMES or any(row.number is None for row in sessions):
        columns["session"] = [line(row.short_id, _SHORT_ID, ellipsis="") for row in sessions]
    columns["used"] = [age(row.last_used, now) if row.last_used else "" for row in sessions]
    if width >= _FOR_PROJECT:
        columns["project"] = [line(row.project.name, 20 if width >= _WIDE else 12) for row in sessions]
    columns["title"] = [_title(row, deletions.get(row.id)) for row in sessions]
    if width >= _FOR_NUMBERS:
        columns["asks"] = [str(row.prompts) for row in sessions]
        columns["tokens"] = [count(row.usage.tokens.total) for row in sessions]
    return _table(columns, flexible="title")


def saved_table(conversations: Sequence[Session], *, now: datetime, width: int) -> Table:
    """Lay out conversations saved with `/chat save`; the title takes the room that is left."""
    columns: dict[str, list[Text | str]] = {"tag": [line(saved_tag(one), _TAG) for one in conversations]}
    columns["saved"] = [age(at, now) if (at := one.last_used) else "" for one in conversations]
    if width >= _FOR_PROJECT:
        columns["project"] = [line(one.project.name, 20 if width >= _WIDE else 12) for one in conversations]
    columns["title"] = [_title(one, None) for one in conversations]
    if width >= _FOR_NUMBERS:
        columns["asks"] = [str(one.counts.get("user", 0)) for one in conversations]
    return _table(columns, flexible="title")


def saved_lines(conversations: Sequence[Session]) -> Iterator[str]:
    """Yield one line per saved conversation: tag, time, project, title, prompts and file, separated by tabs."""
    for one in conversations:
        project = one.project.path or one.project.name
        path = one.files[0].path
        yield tabbed(saved_tag(one), when(one.last_used) or "", project, one.title, one.counts.get("user", 0), path)


def session_lines(sessions: Sequence[SessionRow]) -> Iterator[str]:
    """Yield one line per session, fields separated by tabs."""
    for row in sessions:
        yield tabbed(
            row.id,
            when(row.last_used) or "",
            row.project.path or row.project.name,
            row.title,
            row.prompts,
            row.tool_calls,
            row.usage.tokens.total,
        )


def project_table(rows: Sequence[ProjectRow], *, now: datetime, width: int) -> Table:
    """Lay projects out in columns; the path takes what room is left."""
    columns: dict[str, list[Text | str]] = {
        "project": [line(row.project.name, 24 if width >= _WIDE else 16) for row in rows]
    }
    if width >= _FOR_PROJECT:
        columns["path"] = [_path(row) for row in rows]
    if width >= _FOR_SOURCE:
        columns["known by"] = [_known_by(row) for row in rows]
    columns["sessions"] = [str(row.n_sessions) for row in rows]
    if width >= _FOR_NUMBERS:
        columns["asks"] = [str(row.n_prompts) for row in rows]
    columns["tokens"] = [count(row.n_tokens) for row in rows]
    columns["used"] = [age(row.last, now) if row.last else "" for row in rows]
    return _table(columns, flexible="path" if "path" in columns else "project")


def project_lines(rows: Sequence[ProjectRow]) -> Iterator[str]:
    """Give one line a project, fields apart by tabs."""
    for row in rows:
        yield tabbed(
            row.project.path or row.project.name,
            row.project.how or "",
            row.n_sessions,
            row.n_tokens,
            row.n_prompts,
            when(row.last) or "",
        )


def tabbed(*fields: object) -> str:
    """Put fields into one line; none of them can bring a tab or a line of its own."""
    return "\t".join(" ".join(clean(str(field)).split()) for field in fields) + "\n"


def counted(number: int, noun: str) -> str:
    """Say a number of things: 1 session, 2 sessions."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


_STYLES = {"@": "dim", "session": "cyan", "tag": "cyan", "project": "green"}
_RIGHT = frozenset({"@", "used", "saved", "asks", "sessions", "tokens"})


def _table(columns: Mapping[str, Sequence[Text | str]], *, flexible: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    for name in columns:
        table.add_column(
            "" if name == "@" else name,
            justify="right" if name in _RIGHT else "left",
            style=_STYLES.get(name, ""),
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if name == flexible else None,
        )
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def _title(session: Session | SessionRow, risk: str | None) -> Text:
    """Show the title, after marks for what is special about the session."""
    words = title(session)
    text = Text(line(words, 300), style="dim" if words == NO_TITLE else "")
    marks = []
    if session.kind == "subagent":
        marks.append(("↳ ", "dim"))
    if session.deleted if isinstance(session, SessionRow) else session.gone:
        marks.append(("gone ", "magenta"))  # from the client; it is kept here
    if session.is_stub:
        marks.append(("stub ", "dim"))
    elif risk:
        marks.append((f"{risk} ", "red"))  # the client will delete it soon, for this reason
    if session.problems:
        marks.append(("! ", "yellow"))
    lost = sum(number for fate, number in session.fates.items() if fate != Fate.ACTIVE)
    if lost:
        marks.append((f"⑂{lost} ", "dim yellow"))
    return Text.assemble(*marks, text)


def _path(row: ProjectRow) -> Text:
    """Show the path, with a question mark where it is not proven, else what is known of the hash."""
    project = row.project
    if project.path:
        return Text(line(project.path, 300) + ("" if project.proven else " ?"))
    return Text(line(project.hash or "", 300), "dim")


def _known_by(row: ProjectRow) -> Text:
    project = row.project
    return Text(project.how or "hash only", "" if project.proven else "dim")
