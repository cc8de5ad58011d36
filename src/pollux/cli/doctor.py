"""`pollux doctor`: list homes, files and problems."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli import output
from pollux.cli.context import Context, options


@click.command()
@output.pager_option
@options(filters=None)
def command(scope: Context, *, pager: bool) -> None:
    """List the homes that are read and the setting that chose them, and everything that is unreadable or unknown.

    Ends with status 1 if any file has problems, or if there are no sessions.

    \b
      pollux doctor
      pollux doctor --home /mnt/backup/alice
      pollux doctor --json | jq '.problems[]'
    """
    diagnosis = scope.library.doctor()
    scope.note_freshness()
    if scope.as_json:
        output.print_json(diagnosis)
    else:
        from pollux.render.terminal.doctor import findings, fitted, plain

        if output.is_terminal():
            screen = [fitted(label, text, output.width()) for label, text in findings(diagnosis, output.short)]
            output.print_screen(screen, pager=pager)
        else:
            for label, text in findings(diagnosis, output.short):
                click.echo(plain(label, text))
    is_healthy = diagnosis.history.sessions and not diagnosis.problems
    click.get_current_context().exit(0 if is_healthy else 1)
