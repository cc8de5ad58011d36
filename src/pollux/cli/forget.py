"""`pollux forget`: remove sessions for good, with all that is archived of them."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options

if TYPE_CHECKING:
    from pollux.library.archive_tools import ForgetPlan


@click.command()
@click.argument("wanted", metavar="ID...", nargs=-1, required=True, shell_complete=session_ids)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@options(json=False, filters=None, all_homes=False)
def command(scope: Scope, wanted: tuple[str, ...], *, yes: bool) -> None:
    """Remove sessions from the archive for good: their files, subagents, outputs and plans, and all that was told.

    They do not come back, not even while Gemini CLI still has their files; those are not touched. There is no way back
    but a backup. A session may also be named by its file, which works too where Pollux fails to read it. A file that
    holds another session too keeps its bytes until that one is forgotten as well; the command names both.

    \b
      pollux forget a82545c4
      pollux forget @1 @2 --yes
      pollux forget session-2026-01-27T15-21-a82545c4
    """
    from pollux.render.terminal.archive import forget_notes
    from pollux.text.escape import clean

    forgotten = scope.library.archive.forget(wanted, confirm=(lambda _plan: None) if yes else _ask)
    for file in forgotten.files:
        click.echo(clean(file).replace("\n", "␊"))
    for note in forget_notes(forgotten, output.short):
        output.words(note)


def _ask(plan: ForgetPlan) -> None:
    from pollux.render.terminal.archive import forget_question_lines
    from pollux.render.terminal.tables import counted

    if not output.is_anybody_there():
        raise click.UsageError("Cannot ask for confirmation without a terminal; pass --yes to remove them for good.")
    for line in forget_question_lines(plan.titles, plan.unreadable, plan.shared, output.short):
        output.words(line)
    sessions = counted(len(plan.titles), "session")
    subagents = f" with {counted(plan.n_subagents, 'subagent')}" if plan.n_subagents else ""
    click.confirm(f"Remove {sessions}{subagents}, {counted(plan.n_files, 'file')}, for good?", abort=True, err=True)
