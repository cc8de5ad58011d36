"""`pollux restore`: give a session back to the client that has deleted it."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.resume import UnsafeIdError, command_line
from pollux.cli.scope import Scope, options
from pollux.disk.names import printable

if TYPE_CHECKING:
    from pollux.archive.restore import Plan
    from pollux.model import Session
    from pollux.sessions.locate import Home

RESTORE = "pollux.restore/1"


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
    import uuid

    from pollux.archive import restore
    from pollux.library.select import in_history

    found = scope.history()
    if scope.archive is None:
        raise click.UsageError("What the client deleted is in the archive alone: leave --no-archive out.")
    session = in_history(scope, found, wanted)
    plan = restore.plan(
        scope.archive.database,
        session,
        scope.places(),
        now=output.now(),
        to=_home(to) if to else None,
        new_id=str(uuid.uuid4()) if new_id else None,
    )
    if plan.files and not dry_run:
        restore.carry_out(plan)
    line = _command_line(plan, session)
    if scope.as_json:
        output.print_json(_row(plan, session, line, is_written=bool(plan.files) and not dry_run))
        return
    _say(plan, session, dry_run=dry_run)
    if dry_run:
        for one in plan.files:
            click.echo(printable(str(one.place)))
    elif line:
        click.echo(line)


def _command_line(plan: Plan, session: Session) -> str | None:
    """Return how to go on with the session; nothing where its ID cannot be given to the client, which is said."""
    try:
        return command_line(session.project.path, plan.id, plan.home, os.environ, Path.home())
    except UnsafeIdError as error:
        output.words(str(error))
        return None


def written(plan: Plan) -> str:
    """Say what was written where."""
    n_others = len(plan.files) - 1
    others = f", and {n_others} file{'s' * (n_others != 1)} that belong to it" if n_others else ""
    name = printable(plan.main.name)
    return f"Written below {output.short(plan.home.root)}: {name} with {_messages(plan)}{others}."


def _say(plan: Plan, session: Session, *, dry_run: bool) -> None:
    if not plan.files:
        output.words(f"Nothing to restore: {printable(output.short(plan.main))} is there, with {_messages(plan)}.")
    elif dry_run:
        output.words(f"Nothing is written yet; this would be, to resume {printable(plan.id)} with {_messages(plan)}:")
    else:
        output.words(written(plan))
    for note in plan.notes:
        output.words(note)
    path = session.project.path
    if path is None:
        output.words(f"The folder of its project {printable(session.project.name)} is unknown: start the client there.")
    elif not os.path.isdir(path):  # noqa: PTH112  which does not fail where it may not look
        output.words(
            f"The folder of its project, {printable(path)}, is gone; make it again, since the client goes by its path."
        )
    if plan.home.root.name != ".gemini":
        output.words(f"The client only looks into folders called .gemini: it will not find {plan.home.root}.")


def _messages(plan: Plan) -> str:
    return f"{plan.n_messages} message{'s' * (plan.n_messages != 1)}"


def _home(path: Path) -> Home:
    from pollux.sessions.reader import homes

    try:
        return homes(path)[0]
    except FileNotFoundError:
        raise click.UsageError(
            f"--to {path} is no folder; name one that contains .gemini, or .gemini itself."
        ) from None


def _row(plan: Plan, session: Session, line: str | None, *, is_written: bool) -> dict[str, object]:
    return {
        "schema": RESTORE,
        "session": session.id,
        "id": plan.id,
        "home": str(plan.home.root),
        "main": str(plan.main),
        "messages": plan.n_messages,
        "files": [str(one.place) for one in plan.files],
        "written": is_written,
        "notes": list(plan.notes),
        "project": session.project.path,
        "command": line,
    }
