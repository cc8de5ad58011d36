"""`pollux audit`: how a session's cost comes about."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.cli.usage import price_table
from pollux.library.select import in_file, in_history, named_file

if TYPE_CHECKING:
    from pollux.model import Session, Tokens
    from pollux.prices import Prices
    from pollux.reports.audit import AuditedCall
    from pollux.sessions.grouping import Group
    from pollux.sessions.reader import History


@click.command()
@click.argument("wanted", metavar="[ID|FILE]", default="latest", shell_complete=session_ids)
@options()
@click.option(
    "--prices", "price_file", type=click.Path(path_type=Path), help="Your own prices, which go before the table's."
)
@click.option("--pager/--no-pager", default=True, help="Scroll on a terminal.")
def command(scope: Scope, wanted: str, *, price_file: Path | None, pager: bool) -> None:
    """Show how the cost of a session comes about: each call, where it stands, what of it goes at which price.

    Subagents follow the session that started them. Every other place where a call is recorded is named too: lines that
    the client wrote again, checkpoints, copies of files, imports. So the total can be recomputed by hand.

    \b
      pollux audit latest
      pollux audit a82545c4 --json | jq '.calls[] | [.file, .line, .cost_nanousd]'
    """
    prices = price_table(price_file)
    audits = _from_file(wanted, prices) or _from_history(scope, wanted, prices)
    if scope.as_json:
        _print_json(audits, prices)
    else:
        _print(audits, prices, pager=pager)
    problems = [problem for session, _ in audits for problem in session.problems]
    click.get_current_context().exit(1 if scope.as_json and problems else output.say_problems(problems))


def _from_file(wanted: str, prices: Prices) -> list[tuple[Session, list[AuditedCall]]]:
    from pollux.reports.audit import audited

    file = named_file(wanted)
    if file is None:
        return []
    session, group = in_file(file)
    return [(session, list(audited(session, group, prices, owners={})))]


def _from_history(scope: Scope, wanted: str, prices: Prices) -> list[tuple[Session, list[AuditedCall]]]:
    from pollux.reports.audit import audited

    found = scope.history()
    session = in_history(scope, found, wanted)
    owners: dict[tuple[str, Tokens], str] = {
        (call.message_id, call.tokens): one.id for one in found.sessions for call in one.calls
    }
    return [
        (one, list(audited(one, scope.opened(one), prices, owners=owners, others=_others(scope, found, one))))
        for one in _family(session, found)
    ]


def _family(session: Session, found: History) -> list[Session]:
    """Return a session and its subagents, however deep, each after the one that started it."""
    by_id = {one.id: one for one in found.sessions}
    family, waiting = [], [session]
    while waiting:
        one = waiting.pop(0)
        if one not in family:
            family.append(one)
            waiting = [*(by_id[child] for child in one.children if child in by_id), *waiting]
    return family


def _others(scope: Scope, found: History, session: Session) -> Iterator[tuple[str, Group]]:
    """Open the sessions that may repeat calls of this one: imports, and what the archive knows of."""
    from pollux.model import Role
    from pollux.reports.audit import repeating

    known = repeating(scope.archive.database, session.id) if scope.archive else set()
    for one in found.sessions:
        is_import = any(ref.role == Role.IMPORT for ref in one.files)
        if one.id != session.id and (is_import or one.id in known):
            yield one.id, scope.opened(one)


def _print_json(audits: list[tuple[Session, list[AuditedCall]]], prices: Prices) -> None:
    from pollux.reports.audit import SCHEMA, call_json
    from pollux.views.contracts import problem_row

    session = audits[0][0]
    output.print_json(
        {
            "schema": SCHEMA,
            "session": session.id,
            "title": session.title,
            "prices": {"table": prices.table, "date": prices.date},
            "calls": [call_json(call) for _, calls in audits for call in calls],
            **_totals(audits),
            "problems": [problem_row(problem) for one, _ in audits for problem in one.problems],
        }
    )


def _print(audits: list[tuple[Session, list[AuditedCall]]], prices: Prices, *, pager: bool) -> None:
    from rich.text import Text

    from pollux.render.terminal.tables import counted
    from pollux.render.terminal.usage import audit_lines, dollars

    total = _totals(audits)
    unpriced = total["unpriced_calls"]
    with output.paged(wanted=pager) as console:
        for session, calls in audits:
            for text in audit_lines(session, calls):
                console.print(text, soft_wrap=True)
        amount = dollars(total["cost_nanousd"])
        console.print(
            Text.assemble("total     ", (amount, "bold green"), f"  {counted(total['counted'] or 0, 'call')}")
        )
        if unpriced:
            models = "a model that has" if unpriced == 1 else "models that have"
            console.print(Text(f"          without {counted(unpriced, 'call')} of {models} no price", "yellow"))
        console.print(Text(f"prices    {prices.table}, {prices.date}", "dim"))


def _totals(audits: list[tuple[Session, list[AuditedCall]]]) -> dict[str, int | None]:
    counted = [call for _, calls in audits for call in calls if call.owner is None]
    priced = [call.cost_nanousd for call in counted if call.cost_nanousd is not None]
    return {
        "counted": len(counted),
        "not_counted": sum(len(call.duplicates) + bool(call.owner) for _, calls in audits for call in calls),
        "unpriced_calls": len(counted) - len(priced),
        "cost_nanousd": sum(priced) if priced or not counted else None,
    }
