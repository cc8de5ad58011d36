"""Lists of the files and the shell commands that a search has found, on a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from rich.text import Text

from pollux.model import Fate
from pollux.render.terminal.screen import line
from pollux.render.terminal.search import next_page, nothing_found
from pollux.render.terminal.tables import TableColumn, TextTable, distinct_names, tab_lines
from pollux.search.values import CommandPage, CommandRun, FilePage, TouchedFile
from pollux.sessions.reader import short_id_of
from pollux.text.numbers import short_age
from pollux.views.contracts import rfc3339

_SHORT_ID = 8
_PROJECT, _PROJECT_LEAST = 24, 12
_NAME, _NAME_LEAST = 300, 20


def file_table(files: Sequence[TouchedFile], *, now: datetime) -> TextTable:
    """Return a table of touched files; the first column is what `pollux show` takes."""
    changes = [_changes(row.lines_added, row.lines_removed) for row in files]
    columns = [
        *_place_columns(files, now),
        TableColumn("access", [line(row.op, 12) for row in files], rank=3),
        TableColumn("file", [line(_path(row), _NAME) for row in files], least=_NAME_LEAST, keeps_end=True),
    ]
    if any(changes):
        columns.append(TableColumn("lines", changes, rank=6, is_right=True))
    return TextTable([*columns, *_last_columns(files)])


def command_table(commands: Sequence[CommandRun], *, now: datetime) -> TextTable:
    """Return a table of shell commands; the first column is what `pollux show` takes."""
    return TextTable(
        [
            *_place_columns(commands, now),
            TableColumn("ended", [_outcome(row) for row in commands], rank=3),
            TableColumn("command", [line(row.command, _NAME) for row in commands], least=_NAME_LEAST),
            *_last_columns(commands),
        ]
    )


def _place_columns(rows: Sequence[TouchedFile | CommandRun], now: datetime) -> list[TableColumn]:
    places = [f"{line(short_id_of(row.session_id), _SHORT_ID, ellipsis='')}#{row.number + 1}" for row in rows]
    ages = [short_age(row.at, now) if row.at else "" for row in rows]
    return [TableColumn("message", places, "bright_blue"), TableColumn("used", ages, rank=4, is_right=True)]


def _last_columns(rows: Sequence[TouchedFile | CommandRun]) -> list[TableColumn]:
    names = distinct_names((row.project.key, row.project.name) for row in rows)
    cells = [line(names[row.project.key], _PROJECT) for row in rows]
    columns = [TableColumn("project", cells, "green", 5, least=_PROJECT_LEAST)]
    if any(row.fate != Fate.ACTIVE for row in rows):
        fates = ["" if row.fate == Fate.ACTIVE else Fate(row.fate).label for row in rows]
        columns.append(TableColumn("dropped", fates, "bright_magenta", rank=2))
    return columns


def _path(row: TouchedFile) -> str:
    """Return a path relative to the project, if it is in the project's folder."""
    return row.path.removeprefix(f"{row.project.path}/") if row.project.path else row.path


def _changes(added: int | None, removed: int | None) -> str:
    """Return the lines that a call added and removed: `+3 -1`."""
    changes = [f"+{added:,}"] if added else []
    changes += [f"-{removed:,}"] if removed else []
    return " ".join(changes)


def _outcome(row: CommandRun) -> Text:
    if row.exit_code is not None:
        return Text(f"exit {row.exit_code}", "bright_red" if row.exit_code else "")
    return Text(line(row.status, 12), "bright_red" if row.status == "error" else "")


def file_lines(files: Iterable[TouchedFile], *, header: bool = True) -> Iterator[str]:
    """Yield a tab-separated line per touched file."""
    names = ("session", "message", "number", "at", "access", "file", "added", "removed", "fate", "project")
    rows = (
        (
            row.session_id,
            row.message_id,
            row.number + 1,
            rfc3339(row.at),
            row.op,
            row.path,
            row.lines_added,
            row.lines_removed,
            row.fate,
            row.project.path or row.project.name,
        )
        for row in files
    )
    return tab_lines(names, rows, header=header)


def command_lines(commands: Iterable[CommandRun], *, header: bool = True) -> Iterator[str]:
    """Yield a tab-separated line per shell command."""
    names = ("session", "message", "number", "at", "status", "exit_code", "program", "command", "fate", "project")
    rows = (
        (
            row.session_id,
            row.message_id,
            row.number + 1,
            rfc3339(row.at),
            row.status,
            row.exit_code,
            row.program,
            row.command,
            row.fate,
            row.project.path or row.project.name,
        )
        for row in commands
    )
    return tab_lines(names, rows, header=header)


def list_notes(page: FilePage | CommandPage, query: str, nouns: str, *, is_terminal: bool) -> Iterator[str]:
    """Yield the sentences below a list of files or commands."""
    yield from page.notes
    if not page.rows:
        yield nothing_found(query, ["fewer words", "fewer options", "a star for a part of a name, such as file:*.py"])
        return
    if page.next is not None:
        yield next_page(len(page.rows), page.total, nouns)
    if is_terminal:
        row = page.rows[0]
        yield f"`pollux show {short_id_of(row.session_id)}#{row.number + 1}` opens the first one."
