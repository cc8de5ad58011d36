"""`pollux usage`: tokens and money."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import time
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import FilterHelp, Scope, options
from pollux.library.usage import GROUPS, UsageQuery

if TYPE_CHECKING:
    from pollux.library.values import Report

_PAUSE = 1.0
"""Seconds between two looks at a running session."""


@click.command()
@options(filters=FilterHelp("calls", "calls", "calls of such a model"), timezone=True, prices=True)
@click.option("--by", type=click.Choice(GROUPS), help="What to add up by.  [default: day]")
@click.option(
    "--subagents",
    type=click.Choice(("together", "apart")),
    default="together",
    show_default=True,
    help="By session: count subagents with the session that started them, or list them by themselves.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Every number, as CSV.")
@click.option("--currency", default="USD", show_default=True, metavar="CODE", help="Show money in this; needs --rate.")
@click.option("--rate", metavar="NUMBER", help="What a dollar is worth in it.")
@click.option("--live", is_flag=True, help="Look again every second, until Ctrl-C.")
def command(
    scope: Scope, *, by: str | None, subagents: str, as_csv: bool, currency: str, rate: str | None, live: bool
) -> None:
    """Count tokens and money, every model call once.

    Billed is all that was ever recorded; kept is what is still part of the conversations. The difference was rewound,
    rolled back or compressed. Calls of subagents are in both. A model without a price is named, and in no amount.

    \b
      pollux usage --last 30d
      pollux usage --by session --project .
      pollux usage --by month --timezone UTC --csv
    """
    if as_csv and scope.as_json:
        raise click.UsageError("--csv and --json both say how to write it: give one of them.")
    money = _money(currency, rate)
    query = UsageQuery(by or ("session" if live else "day"), scope.wanted, subagents == "apart")
    if query.separate_subagents and query.by != "session":
        raise click.UsageError("--subagents apart lists sessions: it goes with --by session.")
    if live:
        _follow(scope, query, money)
        return
    found = scope.library.usage(query)
    scope.note_freshness()
    if scope.as_json:
        output.print_json(found)
    else:
        _print(found, money, as_csv=as_csv)
    click.get_current_context().exit(_status(found, scope))


def _money(code: str, rate: str | None) -> tuple[str, Decimal]:
    """Read in which currency money is to be shown, and what a dollar is worth in it."""
    if rate is None:
        if code.upper() != "USD":
            raise click.UsageError(f"--currency {code} needs a --rate: what a dollar is worth in it, such as 0.92.")
        return "USD", Decimal(1)
    try:
        value = Decimal(rate)
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or value <= 0:
        raise click.UsageError(f"--rate '{rate}' is not understood; give what a dollar is worth, such as 0.92.")
    if code.upper() == "USD":
        raise click.UsageError(f"--rate {rate} is of which money? Name it, as in --currency EUR --rate {rate}.")
    return code.upper(), value


def _print(found: Report, money: tuple[str, Decimal], *, as_csv: bool) -> None:
    from pollux.render.terminal import usage
    from pollux.text.numbers import Currency

    currency = Currency(*money)
    if as_csv:
        output.write(one.encode() for one in usage.usage_csv(found))
    elif output.is_terminal() and found.rows:
        console = output.console()
        console.print(usage.screen(found, currency, output.width(), console.encoding))
    else:
        output.write(one.encode("utf-8", "replace") for one in usage.usage_lines(found))
        for words in usage.notes(found, currency) if found.rows else ():
            output.words(words)


def _follow(scope: Scope, query: UsageQuery, money: tuple[str, Decimal]) -> None:
    """Draw the report again every second until Ctrl-C; the last one stays on the screen."""
    from pollux.render.terminal.usage import LiveScreen
    from pollux.text.numbers import Currency

    if scope.as_json or not output.is_terminal():
        raise click.UsageError("--live draws on a terminal; for other programs run `pollux usage --json` again.")
    if scope.archive_path is None:
        raise click.UsageError(
            "--live reads on from where it stopped: that needs the archive, so leave --no-archive out."
        )
    library = scope.library
    report, currency, console = library.usage(query), Currency(*money), output.console()
    with suppress(KeyboardInterrupt), LiveScreen(console, currency) as screen:
        while True:
            screen.draw(report)
            time.sleep(_PAUSE)
            library.refresh(quiet=True, add_up=True)
            report = library.usage(query)
    screen.print(report)


def _status(found: Report, scope: Scope) -> int:
    from pollux.cli.ls import say_count

    if not scope.as_json:
        if not found.rows:
            output.words("No model call fits; `pollux ls` lists the sessions there are.")
        say_count(found.problems)
    return 1 if found.problems or not found.rows else 0
