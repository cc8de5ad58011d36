"""`pollux sync`: copy new and changed session files into the archive."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import click

from pollux.cli import output
from pollux.cli.context import Context, options


@click.command()
@click.option("--raw-only", is_flag=True, help="Only copy bytes; the next command derives the facts from them.")
@options(filters=None, all_homes=False)
def command(scope: Context, *, raw_only: bool) -> None:
    """Copy new and changed session files into the archive.

    Pollux archives every file of every project folder byte for byte, and keeps it after Gemini CLI has deleted it. It
    reads only files that changed. If a sync is interrupted, what it copied stays, and the next sync continues.

    A sync first copies bytes and then derives facts such as token counts from them. Where time is short, for example in
    a hook, --raw-only does only the first step.

    \b
      pollux sync
      pollux sync --raw-only
      pollux sync --home /mnt/backup/alice
      pollux sync --json | jq .bytes
    """
    from pollux.render.terminal.archive import sync_line

    report = scope.library.sync(derive=not raw_only, waiting=output.note)
    if scope.as_json:
        output.print_json(report)
    else:
        click.echo(sync_line(report, output.short))
        if not report.n_projects:
            output.note(output.NOTHING_HERE)
    scope.finish(asked=report.problems)
