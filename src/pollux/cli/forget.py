"""`pollux forget`: remove sessions from the archive, and undo that."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options

if TYPE_CHECKING:
    from pollux.library.values import ForgetPlan


@click.command()
@click.argument("sessions", metavar="[SESSION]...", nargs=-1, shell_complete=session_ids)
@click.option("--undo", is_flag=True, help="Bring back what was forgotten in the last 7 days.")
@click.option("--no-undo", is_flag=True, help="Do not store an undo copy: nothing can bring the sessions back.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@options(json=False, filters=None, all_homes=False)
def command(scope: Context, sessions: tuple[str, ...], *, undo: bool, no_undo: bool, yes: bool) -> None:
    """Remove sessions from the archive, with their subagents, tool outputs, plans and facts.

    The client's own files stay: delete them yourself if they must not remain. Pollux does not archive them again, and
    does not list the sessions any more. A file that also contains another session keeps its bytes until that session
    is forgotten, too.

    The archive itself is overwritten at once. For 7 days an undo copy next to it allows `pollux forget --undo` to bring
    back what was forgotten last, or the SESSION that you name. `--no-undo` stores no copy, and `pollux archive compact`
    deletes the copies.

    \b
      pollux forget a82545c4
      pollux forget @1 @2 --yes
      pollux forget session-2026-01-27T15-21-a82545c4 --no-undo
      pollux forget --undo
    """
    from pollux.library.config import demo_folder
    from pollux.render.terminal.archive import forget_notes
    from pollux.text.escape import printable

    if undo:
        if no_undo:
            raise click.UsageError("--undo and --no-undo contradict each other: pass one of them.")
        _undo(scope, sessions)
        return
    if not sessions:
        raise click.UsageError("Name the sessions to forget by ID or file, or pass --undo to bring the last back.")
    confirm = _accept if yes else _ask
    forgotten = scope.library.archive.forget(sessions, confirm, undo=not no_undo)
    for file in forgotten.files:
        click.echo(printable(file))
    for note in forget_notes(forgotten, output.short, is_demo=demo_folder() is not None):
        output.note(note)


def _undo(scope: Context, sessions: tuple[str, ...]) -> None:
    from pollux.render.terminal.archive import undo_note
    from pollux.text.escape import printable

    for result in scope.library.archive.undo_forget(sessions):
        for session_id in result.sessions:
            click.echo(printable(session_id))
        output.note(undo_note(result))


def _accept(_plan: ForgetPlan) -> None:
    pass


def _ask(plan: ForgetPlan) -> None:
    from pollux.render.terminal.archive import forget_question_lines
    from pollux.text.numbers import plural

    if not output.can_prompt():
        raise click.UsageError("Cannot ask for confirmation without a terminal. Pass --yes to forget the sessions.")
    for line in forget_question_lines(plan.titles, plan.unreadable, plan.shared, output.short):
        output.note(line)
    sessions = plural(len(plan.titles), "session")
    subagents = f" with {plural(plan.n_subagents, 'subagent')}" if plan.n_subagents else ""
    files = plural(plan.n_files, "file")
    click.confirm(f"Remove {sessions}{subagents}, {files}, from the archive?", abort=True, err=True)
