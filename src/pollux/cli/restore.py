"""`pollux restore`: give a session back to the client that has deleted it."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options


@click.command()
@click.argument("wanted", metavar="ID", shell_complete=session_ids)
@options()
@click.option("--new-id", is_flag=True, help="Under a new id, as a copy that nothing can be in the way of.")
@click.option(
    "--to", type=click.Path(path_type=Path), help="Into another home: a folder that contains .gemini, or is it."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be written.")
def command(scope: Scope, wanted: str, *, new_id: bool, to: Path | None, dry_run: bool) -> None:
    """Write a session back to where Gemini CLI looks for it, with its subagents, tool outputs and plans.

    This is the only command that writes below a Gemini home. It writes the file as it was kept, with a new time of last
    update, so that the next start of the client does not delete it again; it never overwrites a file. Then it prints
    how to go on with the session.

    \b
      pollux restore a82545c4
      pollux restore a82545c4 --dry-run
      pollux restore latest --new-id
      pollux restore a82545c4 --to /mnt/bob
    """
    from pollux.render.terminal.archive import restore_notes
    from pollux.text.escape import printable

    restored = scope.library.restore(wanted, scope.wanted, to=to, new_id=new_id, dry_run=dry_run)
    scope.note_freshness()
    if scope.as_json:
        output.print_json(restored)
        return
    for note in restore_notes(restored, output.short):
        output.words(note)
    if dry_run:
        for file in restored.plan.files:
            click.echo(printable(str(file.place)))
    elif restored.command:
        click.echo(restored.command)
