"""`pollux doctor`: what was found where, and all that could not be read."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options


@click.command()
@options(filters=None)
def command(scope: Scope) -> None:
    """Say what was found, which variable decided where, and everything that could not be read or is unknown.

    \b
      pollux doctor
      pollux doctor --home /mnt/backup/alice
      pollux doctor --json | jq '.problems[]'
    """
    from pollux.render.terminal.doctor import findings, fitted, plain

    health = scope.library.doctor()
    scope.note_freshness()
    if scope.as_json:
        output.print_json(health)
    else:
        for label, text in findings(health, output.short):
            click.echo(fitted(label, text, output.width()) if output.is_terminal() else plain(label, text))
    click.get_current_context().exit(1 if health.problems or not health.found.sessions else 0)
