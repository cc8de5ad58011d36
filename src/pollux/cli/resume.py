"""`pollux resume`: go on with a session in the client, in the folder where it belongs."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.text import shell

if TYPE_CHECKING:
    from pollux.library.resume import ResumePlan

_WARNING = (
    "Most releases of the client since 0.42 delete a session that was resumed as soon as another one is started in the "
    "same project; it is kept here, and `pollux restore {id}` brings it back."
)


@click.command()
@click.argument("wanted", metavar="[ID]", default="latest", shell_complete=session_ids)
@options()
@click.option("--exec", "run", is_flag=True, help="Start the client there; restore the session first if it is gone.")
@click.option("--yes", is_flag=True, help="Do not ask before restoring.")
def command(scope: Scope, wanted: str, *, run: bool, yes: bool) -> None:
    """Print the command that goes on with a session in Gemini CLI, in the right folder; or run it.

    The client only finds sessions of the folder that it is started in. Most of its releases since 0.42 delete a session
    that was resumed as soon as another one is started there: `pollux restore` brings it back as often as needed.

    \b
      pollux resume latest
      pollux resume a82545c4 --exec
      eval "$(pollux resume @2)"
    """
    from pollux.views.contracts.archive import ResumeDocument

    if run and scope.as_json:
        raise click.UsageError("--exec hands the terminal over to the client: leave --json out.")
    scope.note_freshness()
    plan = scope.library.resume(wanted, scope.wanted, may_rename=run)
    if run:
        click.get_current_context().exit(_run(scope, plan, is_sure=yes))
    if scope.as_json:
        output.print_json(ResumeDocument(plan.id, plan.folder, not plan.problems, plan.command))
    else:
        click.echo(plan.command)
    for sentence in (*plan.notes, *plan.problems):
        output.words(sentence)
    click.get_current_context().exit(1 if plan.problems else 0)


def _run(scope: Scope, plan: ResumePlan, *, is_sure: bool) -> int:
    """Start the client and wait for it; what it has written is archived at once, before it can delete it."""
    import shutil
    import subprocess

    from pollux.library.client_command import CLIENT

    client = shutil.which(CLIENT)
    if client is None:
        raise click.ClickException(
            f"There is no `{CLIENT}` on the PATH; `npm install -g @google/gemini-cli` brings it."
        )
    if plan.restore and plan.restore.files:
        _restore(plan, is_sure=is_sure)
    words = [client, plan.option]
    status = subprocess.run(words, cwd=plan.folder, env=plan.environ, check=False).returncode  # noqa: S603  as asked for
    if plan.restore:
        scope.library.refresh()
        if not plan.is_safe:
            output.words(_WARNING.format(id=shell.quoted(plan.id)))
    return status


def _restore(plan: ResumePlan, *, is_sure: bool) -> None:
    """Write the session back, after a question."""
    from pollux.render.terminal.archive import written_line

    assert plan.restore is not None
    if not is_sure:
        if not output.is_anybody_there():
            raise click.UsageError("Nobody is here to be asked; say --yes to restore the session first.")
        renamed = " under a new id, since other files of it are in the way" if plan.is_renamed else ""
        question = f"The client would not find this session. Write it to {plan.restore.main}{renamed}?"
        click.confirm(question, default=True, abort=True, err=True)
    plan.write()
    output.words(written_line(plan.restore, output.short))
