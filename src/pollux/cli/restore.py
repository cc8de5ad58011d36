"""`pollux restore`: write a deleted session back to where the client finds it."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path

import click

from pollux.cli import output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options


@click.command()
@click.argument("session", metavar="SESSION", shell_complete=session_ids)
@click.option("--new-id", is_flag=True, help="Restore a copy under a new session ID, which never conflicts.")
@click.option("--to", type=click.Path(path_type=Path), help="Restore to another Gemini home.")
@click.option("--dry-run", is_flag=True, help="Only list the files that would be written.")
@options()
def command(scope: Context, session: str, *, new_id: bool, to: Path | None, dry_run: bool) -> None:
    """Write a session back to where Gemini CLI looks for it, with its subagents, tool outputs and plans.

    This is the only command that writes below a Gemini home, and it never overwrites a file. It writes the archived
    bytes with a new time of last update, so that the client does not delete the session at its next start. Then it
    prints the command that resumes the session.

    \b
      pollux restore a82545c4
      pollux restore a82545c4 --dry-run
      pollux restore latest --new-id
      pollux restore a82545c4 --to /mnt/bob
    """
    from pollux.render.terminal.archive import restore_notes
    from pollux.text.escape import printable

    restored = scope.library.restore(session, scope.wanted, to=to, new_id=new_id, dry_run=dry_run)
    scope.note_freshness()
    if scope.as_json:
        output.print_json(restored)
        return
    for note in restore_notes(restored, output.short):
        output.note(note)
    if dry_run:
        for file in restored.plan.files:
            click.echo(printable(str(file.place)))
    elif restored.command:
        click.echo(restored.command)
