"""Bare `pollux`: the overview of a home."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.context import open_context

if TYPE_CHECKING:
    from pollux.render.terminal.screen import Renderable


@click.command()
def command() -> None:
    """Show how many sessions there are, their cost, the newest ones, and what the client will delete."""
    from pollux.render.terminal.sessions import session_table
    from pollux.render.terminal.status import overview_lines

    with open_context() as scope:
        report = scope.library.overview()
        scope.note_freshness()
        homes = ", ".join(output.short(home) for home in report.homes)
        screen: list[Renderable] = [*overview_lines(report.overview, homes, encoding=output.encoding())]
        if report.newest:
            table = session_table(
                report.newest, now=output.now(), deletions=report.deletions, projects=report.project_names
            )
            screen += ["", table]
            screen += ["", "Next: `pollux show @1`, `pollux ls`, `pollux search WORDS`, `pollux --help`"]
        output.print_screen(screen, pager=False)
