"""`pollux sync`: copy new and changed session files into the archive."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options


@click.command()
@options(filters=None, all_homes=False)
@click.option(
    "--keep-only", is_flag=True, help="Only keep the bytes: the next command that asks reads what is in them."
)
def command(scope: Scope, *, keep_only: bool) -> None:
    """Take everything that is new into the archive, once.

    Every file of every project folder is kept, byte for byte, also after Gemini CLI has deleted it. Only what changed
    is read. Whatever stops it, what was taken in stays, and the next time goes on from there.

    First all bytes are kept, then what is in them is read. Where time is short, as in a hook, the first is enough.

    \b
      pollux sync
      pollux sync --keep-only
      pollux sync --home /mnt/backup/alice
      pollux sync --json | jq .bytes
    """
    from pollux.render.terminal.archive import sync_line

    report = scope.library.sync(derive=not keep_only, waiting=output.words)
    if scope.as_json:
        output.print_json(report)
    else:
        click.echo(sync_line(report, output.short))
        output.say_problems(report.problems)
        if not report.n_projects:
            output.words(output.NOTHING_HERE)
    click.get_current_context().exit(1 if report.problems else 0)
