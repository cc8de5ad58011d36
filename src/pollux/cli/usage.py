"""`pollux usage`: count tokens and money."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import time
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.context import Context, FilterHelp, options
from pollux.library.usage import GROUPS, SORTS, UsageQuery

if TYPE_CHECKING:
    from pollux.library.values import UsageReport

_SECONDS_BETWEEN_DRAWINGS = 1.0


@click.command()
@click.option("--by", type=click.Choice(GROUPS), help="What to group by.  [default: day]")
@click.option("--sort", type=click.Choice(SORTS), help="Sort by a number, largest first, or by name.")
@output.limit_option("Print only the N largest rows: by cost, or by --sort.", "--top")
@click.option(
    "--subagents",
    type=click.Choice(("merged", "separate")),
    default="merged",
    show_default=True,
    help="By session: count subagents in the session that started them, or list them separately.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV with every number.")
@click.option("--currency", default="USD", show_default=True, metavar="CODE", help="Currency to show; needs --rate.")
@click.option("--rate", metavar="NUMBER", help="How much of that currency a US dollar buys.")
@click.option("--live", is_flag=True, help="Draw the table again every second, until Ctrl-C.")
@output.table_options
@options(filters=FilterHelp("calls", "calls", "calls of such a model"), timezone=True, prices=True, strict=True)
def command(  # noqa: PLR0913  one per option
    scope: Context,
    *,
    by: str | None,
    sort: str | None,
    top: int | None,
    subagents: str,
    as_csv: bool,
    currency: str,
    rate: str | None,
    live: bool,
    table: output.TableOptions,
) -> None:
    """Count tokens and money, every model call once.

    Billed is every call that was recorded; active is what is still part of the conversations. The difference was
    rewound, rolled back, compressed or replaced. Both include subagents. Models without a price are named, and their
    tokens are in no amount. In a pipe there is a tab-separated line per row; the cost is in US dollars.

    \b
      pollux usage --last 30d
      pollux usage --by session --top 10 --project .
      pollux usage --by month --timezone UTC --csv
    """
    if as_csv and scope.as_json:
        raise click.UsageError("--csv and --json exclude each other: choose one.")
    money = _money(currency, rate)
    query = UsageQuery(by or ("session" if live else "day"), scope.wanted, subagents == "separate", sort, top)
    if query.separate_subagents and query.by != "session":
        raise click.UsageError("--subagents separate lists sessions: add --by session.")
    if live:
        _follow(scope, query, money)
        return
    report = scope.library.usage(query)
    scope.note_freshness()
    if scope.as_json:
        output.print_json(report)
    else:
        _print(scope, report, money, table, as_csv=as_csv)
        if not report.rows:
            output.note("No model call matches. `pollux ls` lists the sessions.")
    scope.finish(report.problems, found=bool(report.rows))


def _money(code: str, rate: str | None) -> tuple[str, Decimal]:
    """Return the currency in which money is shown, and how much of it a dollar buys."""
    if rate is None:
        if code.upper() != "USD":
            raise click.UsageError(f"--currency {code} needs --rate: how much {code} a US dollar buys, such as 0.92.")
        return "USD", Decimal(1)
    try:
        value = Decimal(rate)
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or value <= 0:
        raise click.UsageError(f"Invalid --rate '{rate}': use a positive number, such as 0.92.")
    if code.upper() == "USD":
        raise click.UsageError(f"--rate {rate} needs a currency, as in --currency EUR --rate {rate}.")
    return code.upper(), value


def _print(
    scope: Context, report: UsageReport, money: tuple[str, Decimal], table: output.TableOptions, *, as_csv: bool
) -> None:
    from pollux.render.terminal import usage
    from pollux.text.numbers import Currency

    currency = Currency(*money)
    if as_csv:
        output.print_lines(usage.usage_csv(report, header=table.header))
        return
    output.print_table(
        report.rows,
        lambda: usage.usage_screen(report, currency, projects=_project_names(scope, report.by)),
        lambda: usage.usage_lines(report, header=table.header),
        table,
    )
    if report.rows and not output.is_terminal():
        for text in usage.notes(report, currency):
            output.note(text)


def _project_names(scope: Context, by: str) -> dict[str, str]:
    return scope.library.project_names() if by == "project" else {}


def _follow(scope: Context, query: UsageQuery, money: tuple[str, Decimal]) -> None:
    """Draw the report every second until Ctrl-C; the last one stays on the screen."""
    from pollux.render.terminal.usage import LiveScreen
    from pollux.text.numbers import Currency

    if scope.as_json or not output.is_terminal():
        raise click.UsageError("--live needs a terminal. Other programs can run `pollux usage --json` repeatedly.")
    if scope.archive_path is None:
        raise click.UsageError("--live needs the archive, from which it continues every second: omit --no-archive.")
    library = scope.library
    report, currency, console = library.usage(query), Currency(*money), output.console()
    projects = _project_names(scope, query.by)
    with suppress(KeyboardInterrupt), LiveScreen(console, currency, projects) as screen:
        while True:
            screen.draw(report)
            time.sleep(_SECONDS_BETWEEN_DRAWINGS)
            library.refresh(quiet=True, add_up=True)
            report = library.usage(query)
    screen.print(report)
