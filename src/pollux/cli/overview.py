"""Bare `pollux`: an overview; in a pipe, the session list."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.ls import print_lines, say_count
from pollux.cli.scope import open_scope
from pollux.library.values import Page

if TYPE_CHECKING:
    from pollux.library.values import OverviewReport


@click.command()
def command() -> None:
    """Say what there is, what is new, and what the client is going to delete."""
    with open_scope() as scope:
        if output.is_terminal():
            report = scope.library.overview()
            scope.note_freshness()
            _print(report)
            return
        page = scope.library.sessions(page=Page(None))
        scope.note_freshness()
        print_lines(page.rows)
        if not page.rows:
            output.words(page.hint)
        say_count(scope.library.problems())


def _print(report: OverviewReport) -> None:
    from pollux.render.terminal.overview import first_look
    from pollux.render.terminal.tables import session_table

    homes = ", ".join(output.short(home) for home in report.homes)
    console = output.console()
    for text in first_look(report.overview, homes, encoding=console.encoding):
        console.print(text)
    if report.newest:
        table = session_table(report.newest, now=output.now(), width=output.width(), deletions=report.deletions)
        console.print()
        console.print(table)
        console.print("\npollux show @1 reads the first · pollux ls lists all · pollux --help", style="dim")
