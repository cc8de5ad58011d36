"""Bare `pollux`: an overview a person is glad to see; in a pipe, the session list."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.ls import print_lines, say_count
from pollux.cli.scope import Scope, archive_path

if TYPE_CHECKING:
    from pollux.sessions.reader import History

_NEWEST = 8


@click.command()
def command() -> None:
    """Say what there is, what is new, and what the client is going to delete."""
    from pollux.reports.filters import Filter

    with Scope((), Filter(), archive_path=archive_path()) as scope:
        found = scope.history()
        if output.is_terminal():
            _print(scope, found)
            return
        print_lines(found, found.main)
        if not found.main:
            output.words(scope.nothing_here())
        say_count([*found.problems, *(problem for one in found.sessions for problem in one.problems)])


def _print(scope: Scope, found: History) -> None:
    from rich.text import Text

    from pollux.library.expiry import fates_of
    from pollux.render.terminal.overview import first_look
    from pollux.render.terminal.tables import session_table
    from pollux.reports.overview import overview
    from pollux.reports.status import Turn, risks

    now = output.now()
    n_problems = len(found.problems) + sum(len(one.problems) for one in found.sessions)
    homes = ", ".join(output.short(home.root) for home in found.located.homes)
    console = output.console()
    rows = fates_of(scope, found, now)
    turns = Counter(row.turn for row in rows if not row.session.is_stub)
    deleted = (turns[Turn.NEXT], turns[Turn.SOON]) if scope.archive else None
    view = overview(found.sessions, n_problems, now=now, deleted=deleted)
    for text in first_look(view, homes, encoding=console.encoding):
        console.print(text)
    if found.main:
        newest = found.main[:_NEWEST]
        numbers = {one.id: number for number, one in enumerate(newest, 1)}
        by_id = {one.id: one for one in found.sessions}
        console.print()
        console.print(session_table(newest, by_id, numbers, now=now, width=output.width(), risks=risks(rows, now=now)))
        console.print(Text("\npollux show @1 reads the first · pollux ls lists all · pollux --help", "dim"))
