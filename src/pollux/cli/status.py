"""`pollux status`: what the client will delete, when and why, and what is kept of it."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options

if TYPE_CHECKING:
    from pollux.library.values import StatusReport, StatusRow


@click.command()
@options()
@click.option("--all", "everything", is_flag=True, help="Also what goes later, what stays, and empty stubs.")
def command(scope: Scope, *, everything: bool) -> None:
    """Say what the client will delete at its next start, and whether it is kept.

    Gemini CLI deletes sessions at every start in their project: after 30 days unless its settings say otherwise, and
    much earlier what it cannot use. Ends with status 1 if something goes within a week that is not in the archive, or
    cannot be read.

    \b
      pollux status
      pollux status --project . --all
      pollux status --json | jq '.sessions[] | select(.at_risk)'
    """
    report = scope.library.status(scope.wanted)
    scope.note_freshness()
    if scope.as_json:
        output.print_json(report)
    else:
        _print([row for row in report.rows if everything or _is_telling(row)], report)
        _say(report)
        if report.unreadable:
            places = f"{len(report.unreadable)} place{'s' * (len(report.unreadable) > 1)}"
            output.words(
                f"Not everything can be read: what is in {places} may not be kept; `pollux doctor` says where."
            )
    click.get_current_context().exit(1 if report.is_at_risk else 0)


def _is_telling(row: StatusRow) -> bool:
    return row.turn in ("next", "soon", "gone") and not row.session.is_stub


def _print(shown: Sequence[StatusRow], report: StatusReport) -> None:
    from pollux.render.terminal.status import status_lines, status_tables, summary

    if not output.is_terminal():
        lines = status_lines(shown, report.policies, now=report.now)
        output.write(line.encode("utf-8", "replace") for line in lines)
        return
    console = output.console()
    for title, table in status_tables(shown, report.policies, now=report.now, width=output.width()):
        console.print(title, style="bold")
        console.print(table)
        console.print()
    console.print(summary(report.rows))


def _say(report: StatusReport) -> None:
    from pollux.render.terminal.status import remarks, summary

    if not output.is_terminal():
        output.words(summary(report.rows))
    for text in dict.fromkeys(text for folder in report.policies for text in remarks(folder)):
        output.words(text)
    output.words(f"By the rules of Gemini CLI {report.client}, the newest known: older releases delete less.")
    if not all(row.is_kept for row in report.rows):
        output.words("`pollux sync` keeps what is not kept yet.")
