"""Lists of sessions and projects, and the tree of one session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rich.style import Style
from rich.text import Text
from rich.tree import Tree

from pollux.model import Fate, Session
from pollux.render.terminal.screen import line
from pollux.render.terminal.tables import (
    NO_NAMES,
    TableColumn,
    TextTable,
    align_points,
    distinct_names,
    dollars,
    tab_lines,
)
from pollux.reports.projects import ProjectRow
from pollux.reports.sessions import SessionRow
from pollux.sessions.family import SessionTree
from pollux.text.numbers import count, plural, relative_time, short_age
from pollux.views.contracts import calls_of, rfc3339, total
from pollux.views.session_text import NO_TITLE, cost_text, title

_SHORT_ID = 8
_TAG = 24
_PROJECT, _PROJECT_LEAST = 24, 12
_TITLE, _TITLE_LEAST = 300, 30
_NO_DELETIONS: Mapping[str, str] = {}
_LONG_FOLDER = re.compile(r"(?<![^/\\])([0-9a-f]{8})(?:[0-9a-f]{56}|-[0-9a-f-]{27})(?=[/\\])")
"""A folder that is named by a project hash or a session ID."""


def session_table(
    sessions: Sequence[SessionRow],
    *,
    now: datetime,
    deletions: Mapping[str, str] = _NO_DELETIONS,
    projects: Mapping[str, str] = NO_NAMES,
    link: Callable[[str], str] | None = None,
) -> TextTable:
    """Return a table of sessions.

    Args:
        sessions: the rows.
        now: the time, to which ages refer.
        deletions: by session ID, in a word, when the client deletes a session soon.
        projects: the names of all projects by their keys, so that each has the same name in every table.
        link: returns the address of a session, to which its ID and its title then lead.

    """
    has_numbers = all(row.number for row in sessions)
    ids: list[Text | str] = [line(row.short_id, _SHORT_ID, ellipsis="") for row in sessions]
    titles = [marked_title(row, deletions.get(row.id)) for row in sessions]
    if link is not None:
        styles = [Style(link=link(row.id)) for row in sessions]
        ids = [Text(str(text), style) for text, style in zip(ids, styles, strict=True)]
        for title, style in zip(titles, styles, strict=True):
            title.stylize(style)
    ages = [short_age(row.last_used, now) if row.last_used else "" for row in sessions]
    columns = [
        TableColumn("session", ids, "bright_blue", rank=6 if has_numbers else 0),
        TableColumn("used", ages, rank=4, is_right=True),
        _project_column(sessions, projects, rank=5),
        TableColumn("title", titles, least=_TITLE_LEAST),
        TableColumn("prompts", [f"{row.prompts:,}" for row in sessions], rank=7, is_right=True),
        TableColumn("tokens", [count(row.usage.tokens.total) for row in sessions], rank=8, is_right=True),
        TableColumn("cost", align_points([cost_text(row.usage) for row in sessions]), rank=3, is_right=True),
    ]
    if any(row.number for row in sessions):
        numbers = [f"@{row.number}" if row.number else "" for row in sessions]
        columns.insert(0, TableColumn("", numbers, "dim", is_right=True))
    if any(dropped := [_dropped(row) for row in sessions]):
        columns.append(TableColumn("dropped", dropped, "dim", rank=9))
    return TextTable(columns)


def session_lines(
    sessions: Sequence[SessionRow], *, header: bool = True, link: Callable[[str], str] | None = None
) -> Iterator[str]:
    """Yield a tab-separated line per session; with `link`, the last column is the address in the viewer."""
    names = ["session", "used", "project", "title", "prompts", "tool_calls", "tokens", "cost_usd"]
    names += ["link"] if link else []
    rows = (
        (
            row.id,
            rfc3339(row.last_used),
            row.project.path or row.project.name,
            row.title,
            row.prompts,
            row.tool_calls,
            row.usage.tokens.total,
            dollars(row.usage.cost_nanousd),
            *([link(row.id)] if link else []),
        )
        for row in sessions
    )
    return tab_lines(names, rows, header=header)


def saved_table(conversations: Sequence[Session], *, now: datetime) -> TextTable:
    """Return a table of the conversations that `/chat save` stored."""
    ages = [short_age(saved.last_used, now) if saved.last_used else "" for saved in conversations]
    prompts = [f"{saved.counts.get('user', 0):,}" for saved in conversations]
    return TextTable(
        [
            TableColumn("tag", [line(saved.tag, _TAG) for saved in conversations], "bright_blue"),
            TableColumn("saved", ages, rank=4, is_right=True),
            _project_column(conversations, rank=5),
            TableColumn("title", [marked_title(saved, None) for saved in conversations], least=_TITLE_LEAST),
            TableColumn("prompts", prompts, rank=7, is_right=True),
        ]
    )


def saved_lines(conversations: Sequence[Session], *, header: bool = True) -> Iterator[str]:
    """Yield a tab-separated line per saved conversation."""
    names = ("tag", "saved", "project", "title", "prompts", "file")
    rows = (
        (
            saved.tag,
            rfc3339(saved.last_used),
            saved.project.path or saved.project.name,
            saved.title,
            saved.counts.get("user", 0),
            saved.files[0].path,
        )
        for saved in conversations
    )
    return tab_lines(names, rows, header=header)


def project_table(projects: Sequence[ProjectRow], *, now: datetime) -> TextTable:
    """Return a table of projects; a question mark follows a path that is not proven."""
    return TextTable(
        [
            _project_column(projects),
            TableColumn("path", [_path(row) for row in projects], rank=5, least=30),
            TableColumn("known by", [_known_by(row) for row in projects], rank=8),
            TableColumn("sessions", [f"{row.n_sessions:,}" for row in projects], is_right=True),
            TableColumn("prompts", [f"{row.n_prompts:,}" for row in projects], rank=7, is_right=True),
            TableColumn("tokens", [count(row.n_tokens) for row in projects], rank=4, is_right=True),
            TableColumn(
                "used", [short_age(row.last, now) if row.last else "" for row in projects], rank=3, is_right=True
            ),
        ]
    )


def project_lines(projects: Sequence[ProjectRow], *, header: bool = True) -> Iterator[str]:
    """Yield a tab-separated line per project."""
    names = ("project", "known_by", "sessions", "tokens", "prompts", "used")
    rows = (
        (
            row.project.path or row.project.name,
            row.project.source,
            row.n_sessions,
            row.n_tokens,
            row.n_prompts,
            rfc3339(row.last),
        )
        for row in projects
    )
    return tab_lines(names, rows, header=header)


def _project_column(
    rows: Sequence[Session | SessionRow | ProjectRow], projects: Mapping[str, str] = NO_NAMES, *, rank: int = 0
) -> TableColumn:
    listed = [row.project for row in rows]
    names = distinct_names([*projects.items(), *((project.key, project.name) for project in listed)])
    cells = [line(names[project.key], _PROJECT) for project in listed]
    return TableColumn("project", cells, "green", rank, least=_PROJECT_LEAST)


def marked_title(session: Session | SessionRow, deletion: str | None) -> Text:
    """Return the title after the marks of the session."""
    name = title(session)
    marks = []
    if session.kind == "subagent":
        marks.append(("↳ ", "dim"))
    if session.deleted:
        marks.append(("deleted ", "bright_magenta"))
    if session.is_stub:
        marks.append(("empty ", "dim"))
    elif deletion:
        marks.append((f"{deletion} ", "bright_red"))
    if session.problems:
        marks.append(("! ", "bright_magenta"))
    return Text.assemble(*marks, (line(name, _TITLE), "dim" if name == NO_TITLE else ""))


def _dropped(session: SessionRow) -> str:
    """Return how many messages left the conversation, by fate: `rewound 2`."""
    fates = [(fate, session.fates.get(fate, 0)) for fate in Fate if fate != Fate.ACTIVE]
    return ", ".join(f"{fate.value.replace('_', ' ')} {number:,}" for fate, number in fates if number)


def _path(row: ProjectRow) -> Text:
    project = row.project
    if project.path:
        return Text(line(project.path, 300) + ("" if project.proven else " ?"))
    return Text(line(project.hash or "", 300), "dim")


def _known_by(row: ProjectRow) -> Text:
    project = row.project
    return Text(line(project.source or "hash only", 40), "" if project.proven else "dim")


def draw_tree(tree: SessionTree, *, now: datetime, tops: Sequence[Path] = ()) -> Tree:
    """Return a session with its files and subagents; paths below one of `tops` are shown relative to it."""
    by_id = tree.by_id()
    return _branch(tree, by_id, Tree(_label(tree.session, by_id, now), guide_style="dim"), now, tops)


def _branch(branch: SessionTree, by_id: Mapping[str, Session], tree: Tree, now: datetime, tops: Sequence[Path]) -> Tree:
    session = branch.session
    for ref in session.files:
        role = f"{ref.role:<5} " if len(session.files) > 1 else ""
        tree.add(Text.assemble((role, "dim"), line(_relative(ref.path, tops), 1000)))
    for child in branch.children:
        _branch(child, by_id, tree.add(_label(child.session, by_id, now)), now, tops)
    return tree


def _label(session: Session, by_id: Mapping[str, Session], now: datetime) -> Text:
    at = session.last_used
    tokens = count(total(calls_of(session, by_id)).total)
    facts = [plural(session.tool_calls, "tool call"), f"{tokens} tokens", relative_time(at, now) if at else ""]
    started_by = f"started by {session.parent_call}" if session.parent_call else ""
    return Text.assemble(
        (line(session.id, _SHORT_ID, ellipsis=""), "bright_blue"),
        " ",
        (line(title(session), 60), "bold"),
        ("\n" + ", ".join(fact for fact in (*facts, line(started_by, 60)) if fact), "dim"),
    )


def _relative(path: Path, tops: Sequence[Path]) -> str:
    """Return a path relative to its top folder, with eight digits for a folder that is named by a hash or an ID."""
    for top in tops:
        if path.is_relative_to(top):
            return _LONG_FOLDER.sub(r"\1…", str(path.relative_to(top)))
    return str(path)
