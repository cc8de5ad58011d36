"""`pollux resume`: continue a session in Gemini CLI."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.text import shell

if TYPE_CHECKING:
    from pollux.library.resume import ResumePlan

_WARNING = (
    "Since 0.42, most releases of Gemini CLI delete a resumed session when another one is started in the same project. "
    "This session is archived: `pollux restore {id}` brings it back."
)


@click.command()
@click.argument("session", metavar="[SESSION]", default="latest", shell_complete=session_ids)
@click.option("--exec", "run", is_flag=True, help="Start Gemini CLI; restore the session first if it was deleted.")
@click.option("--yes", is_flag=True, help="Restore without asking.")
@options()
def command(scope: Context, session: str, *, run: bool, yes: bool) -> None:
    """Print the command that continues a session in Gemini CLI, in the right folder; or run it with --exec.

    Gemini CLI only finds the sessions of the folder in which it is started. Since 0.42, most releases delete a resumed
    session when another one is started there; `pollux restore` brings it back.

    \b
      pollux resume latest
      pollux resume a82545c4 --exec
      eval "$(pollux resume @2)"
    """
    from pollux.views.contracts.archive import ResumeDocument

    if run and scope.as_json:
        raise click.UsageError("--exec starts Gemini CLI in this terminal and cannot be combined with --json.")
    scope.note_freshness()
    plan = scope.library.resume(session, scope.wanted, may_rename=run)
    if run:
        click.get_current_context().exit(_run(scope, plan, yes=yes))
    if scope.as_json:
        output.print_json(ResumeDocument(plan.id, plan.folder, not plan.problems, plan.command))
    else:
        click.echo(plan.command)
    for sentence in (*plan.notes, *plan.problems):
        output.note(sentence)
    click.get_current_context().exit(1 if plan.problems else 0)


def _run(scope: Context, plan: ResumePlan, *, yes: bool) -> int:
    """Run the client, then archive what it has written before it can delete it. Return the client's exit status."""
    import shutil
    import subprocess

    from pollux.library.resume import CLIENT

    client = shutil.which(CLIENT)
    if client is None:
        raise click.ClickException(
            f"`{CLIENT}` is not on the PATH. Install it with `npm install -g @google/gemini-cli`."
        )
    if plan.restore and plan.restore.files:
        _restore(plan, yes=yes)
    arguments = [client, plan.option]
    status = subprocess.run(arguments, cwd=plan.folder, env=plan.environ, check=False).returncode  # noqa: S603
    if plan.restore:
        scope.library.refresh()
        if not plan.is_safe:
            output.note(_WARNING.format(id=shell.quoted(plan.id)))
    return status


def _restore(plan: ResumePlan, *, yes: bool) -> None:
    from pollux.render.terminal.archive import written_line

    assert plan.restore is not None
    if not yes:
        if not output.can_prompt():
            raise click.UsageError("Cannot ask for confirmation without a terminal. Pass --yes to restore the session.")
        renamed = " under a new ID, because other files of it exist" if plan.is_renamed else ""
        question = f"Gemini CLI would not find this session. Restore it to {plan.restore.main}{renamed}?"
        click.confirm(question, default=True, abort=True, err=True)
    plan.write()
    output.note(written_line(plan.restore, output.short))
