"""`pollux stats`: what was asked, answered and done."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import FilterHelp, Scope, options
from pollux.library.stats import TABLES, StatsQuery

if TYPE_CHECKING:
    from pollux.library.values import Statistics


@click.command()
@options(filters=FilterHelp("what happened", "what happened"), timezone=True)
@click.option("--by", type=click.Choice(TABLES), help="One table, whole, instead of all in brief.")
@click.option("--csv", "as_csv", is_flag=True, help="Every number of a table, as CSV; needs --by.")
def command(scope: Scope, *, by: str | None, as_csv: bool) -> None:
    """Count sessions, prompts, answers, tool calls and what came of them, files and programs.

    All that ever happened is counted once, also what was rewound later. Active is the time between messages, without
    pauses of a quarter of an hour and more. Money is the business of `pollux usage`.

    \b
      pollux stats --last 30d
      pollux stats --by tool --project .
      pollux stats --json | jq '.totals'
    """
    if as_csv and (scope.as_json or by is None):
        raise click.UsageError("--csv writes one table: say which with --by, and leave --json out.")
    has_tables = scope.as_json or output.is_terminal()  # in a pipe there are only totals
    found = scope.library.stats(StatsQuery(by, scope.wanted, has_tables))
    scope.note_freshness()
    _print(found, scope, as_csv=as_csv)
    click.get_current_context().exit(_status(found, scope))


def _print(found: Statistics, scope: Scope, *, as_csv: bool) -> None:
    from pollux.render.terminal import stats

    if scope.as_json:
        output.print_json(found)
    elif as_csv or not output.is_terminal():
        lines = stats.section_csv(found.sections[0]) if as_csv else stats.lines(found)
        output.write(one.encode("utf-8", "replace") for one in lines)
    elif not found.is_empty:
        console = output.console()
        for one in stats.screen(found, width=output.width(), encoding=console.encoding):
            console.print(one)


def _status(found: Statistics, scope: Scope) -> int:
    from pollux.cli.ls import say_count

    if not scope.as_json:
        if found.is_empty:
            output.words("Nothing happened that fits; `pollux ls` lists the sessions there are.")
        say_count(found.problems)
    return 1 if found.problems or found.is_empty else 0
