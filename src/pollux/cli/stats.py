"""`pollux stats`: count prompts, answers, tool calls, files and programs."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.context import Context, FilterHelp, options
from pollux.library.stats import TABLES, StatsQuery

if TYPE_CHECKING:
    from pollux.library.values import Statistics


@click.command()
@click.option("--by", type=click.Choice(TABLES), help="Print one table in full instead of all in brief.")
@click.option("--sort", metavar="COLUMN", help="Sort the table by a column, largest first, or by name; needs --by.")
@output.limit_option("Print only the first N rows of the table; needs --by.", "--top")
@click.option("--csv", "as_csv", is_flag=True, help="Print the table as CSV, with every column; needs --by.")
@output.table_options
@options(filters=FilterHelp("what happened", "what happened"), timezone=True, strict=True)
def command(
    scope: Context, *, by: str | None, sort: str | None, top: int | None, as_csv: bool, table: output.TableOptions
) -> None:
    """Count sessions, prompts, answers, tool calls and their outcomes, files and programs.

    Everything that happened is counted once, including what was rewound later. Active is the time between messages,
    without pauses of 15 minutes and more. `pollux usage` counts money. In a pipe there is a tab-separated line per row.

    \b
      pollux stats --last 30d
      pollux stats --by tool --project .
      pollux stats --by session --sort tokens --top 10
      pollux stats --json | jq '.totals'
    """
    if as_csv and (scope.as_json or by is None):
        raise click.UsageError("--csv prints one table: choose it with --by, and leave out --json.")
    if by is None and (sort or top):
        raise click.UsageError(f"{'--sort' if sort else '--top'} applies to one table: choose it with --by.")
    has_tables = scope.as_json or output.is_terminal()  # a pipe gets only the totals
    statistics = scope.library.stats(StatsQuery(by, scope.wanted, has_tables, sort, top))
    scope.note_freshness()
    if scope.as_json:
        output.print_json(statistics)
    else:
        _print(statistics, scope, table, as_csv=as_csv)
    if not scope.as_json and statistics.is_empty:
        output.note("Nothing matches. `pollux ls` lists the sessions.")
    scope.finish(statistics.problems, found=not statistics.is_empty)


def _print(statistics: Statistics, scope: Context, table: output.TableOptions, *, as_csv: bool) -> None:
    from pollux.render.terminal import stats

    if as_csv:
        output.print_lines(stats.stats_csv(statistics.sections[0], header=table.header))
    elif not output.is_terminal():
        output.print_lines(stats.stats_lines(statistics, header=table.header))
    elif not statistics.is_empty:
        projects = scope.library.project_names()
        screen = stats.stats_screen(statistics, width=output.width(), encoding=output.encoding(), projects=projects)
        output.print_screen(screen, pager=table.pager, has_header=statistics.summary is None)
