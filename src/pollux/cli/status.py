"""`pollux status`: list what the client will delete, and whether it is archived."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from pollux.cli import output
from pollux.cli.context import Context, options

if TYPE_CHECKING:
    from pollux.library.values import StatusReport, StatusRow
    from pollux.render.terminal.screen import Renderable


@click.command()
@click.option("--all", "everything", is_flag=True, help="Include sessions that expire later or never, and empty ones.")
@output.limit_option("List at most N sessions.")
@output.table_options
@options()
def command(scope: Context, *, everything: bool, limit: int | None, table: output.TableOptions) -> None:
    """List what the client will delete at its next start and within a week, and whether it is archived.

    Gemini CLI deletes sessions whenever it starts in their project: after 30 days unless its settings say otherwise,
    and much earlier if it cannot use them. The exit status is 1 if a session expires within a week that is not
    archived, or if a file cannot be read.

    \b
      pollux status
      pollux status --project . --all
      pollux status --json | jq '.sessions[] | select(.at_risk)'
    """
    report = scope.library.status(scope.wanted)
    scope.note_freshness()
    if scope.as_json:
        output.print_json(msgspec.structs.replace(report, rows=report.rows[:limit]))
    else:
        from pollux.render.terminal.status import status_lines, status_summary, status_table

        rows = [row for row in report.rows if everything or _is_urgent(row)][:limit]
        summary = status_summary(report.rows)
        if output.is_terminal():
            screen: list[Renderable] = [summary]
            if rows:
                projects = scope.library.project_names(row.session.project for row in rows)
                screen = [status_table(rows, report.policies, now=report.now, projects=projects), "", summary]
            output.print_screen(screen, pager=table.pager, has_header=bool(rows))
        else:
            output.print_lines(status_lines(rows, report.policies, now=report.now, header=table.header))
            output.note(summary)
        _print_notes(report)
    click.get_current_context().exit(1 if report.is_at_risk else 0)


def _is_urgent(row: StatusRow) -> bool:
    return row.deletion_time in ("next", "soon", "deleted") and not row.session.is_stub


def _print_notes(report: StatusReport) -> None:
    from pollux.render.terminal.status import settings_notes

    for text in dict.fromkeys(text for folder in report.policies for text in settings_notes(folder)):
        output.note(text)
    output.note(f"By the rules of Gemini CLI {report.client}, the newest known to Pollux; older releases delete less.")
    if not all(row.is_archived for row in report.rows):
        output.note("`pollux sync` archives what is not archived yet.")
    if report.unreadable:
        n_unreadable = len(report.unreadable)
        files = "1 file or folder" if n_unreadable == 1 else f"{n_unreadable} files or folders"
        output.note(f"{files} cannot be read and may not be archived; `pollux doctor` lists them.")
