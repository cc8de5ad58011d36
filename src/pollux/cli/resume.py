"""`pollux resume`: go on with a session in the client, in the folder where it belongs."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.errors import PolluxError
from pollux.text import shell

if TYPE_CHECKING:
    from pollux.archive.restore import Plan
    from pollux.model import Session
    from pollux.sessions.locate import Home

_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
_CLIENT = "gemini"
_LONGEST_ID = 60
"""Characters of an ID in a sentence."""
_WARNING = (
    "Most releases of the client since 0.42 delete a session that was resumed as soon as another one is started in the "
    "same project; it is kept here, and `pollux restore {id}` brings it back."
)


class UnsafeIdError(PolluxError):
    """A session has an ID that the client would not take for one."""

    status = 2

    def __init__(self, id_: str) -> None:
        """Say what to do instead."""
        shown = id_ if len(id_) <= _LONGEST_ID else f"{id_[:_LONGEST_ID]}…"
        super().__init__(
            f"The client cannot be started with the session ID {shown!r}, which begins with a dash, is empty or holds "
            "control characters; `pollux restore --new-id` writes a copy under another ID."
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
    from pollux.library.select import in_history

    if run and scope.as_json:
        raise click.UsageError("--exec hands the terminal over to the client: leave --json out.")
    session = in_history(scope, scope.history(), wanted)
    resume_option(session.id)  # refuse a bad ID before anything is looked up or written
    folder = project_folder(session)
    if run:
        click.get_current_context().exit(_run(scope, session, folder, is_sure=yes))
    home, problems = _found(scope, session)
    line = command_line(folder, session.id, home, os.environ, Path.home())
    if scope.as_json:
        row = {"id": session.id, "project": folder, "there": not problems, "command": line}
        output.print_json({"schema": "pollux.resume/1", **row})
    else:
        click.echo(line)
    for problem in problems:
        output.words(problem)
    click.get_current_context().exit(1 if problems else 0)


def project_folder(session: Session) -> str:
    """Return where the client must be started; a folder that is gone or unknown ends the command."""
    project = session.project
    if project.path is None:
        raise click.ClickException(
            f"Nobody knows the folder of this session; `pollux projects` tells what is known of {project.name}."
        )
    if not os.path.isdir(project.path):  # noqa: PTH112  which does not fail where it may not look
        raise click.ClickException(
            f"The folder of this session, {project.path}, is gone; make it again, since the client goes by its path."
        )
    return project.path


def command_line(folder: str | None, id_: str, home: Home | None, environ: Mapping[str, str], user_home: Path) -> str:
    """Return what to type: for PowerShell where the folder is one of Windows, else for any other shell.

    Raises `UnsafeIdError`.
    """
    is_windows = bool(folder and _WINDOWS.match(folder))
    quote = shell.powershell_quoted if is_windows else shell.quoted
    resume = f"{_CLIENT} {quote(resume_option(id_))}"
    if (place := client_home(home, environ, user_home)) is not None:
        name = "$env:GEMINI_CLI_HOME = {}; {}" if is_windows else "GEMINI_CLI_HOME={} {}"
        resume = name.format(quote(str(place)), resume)
    if folder is None:
        return resume
    return f"cd -LiteralPath {quote(folder)}; {resume}" if is_windows else f"cd {quote(folder)} && {resume}"


def resume_option(id_: str) -> str:
    """Return the one word that has the client resume a session. Raises `UnsafeIdError`.

    The ID comes from a file that anybody may have written, and as a word of its own it could be an option, `--yolo`.
    """
    if not id_ or id_.startswith("-") or not id_.isprintable():
        raise UnsafeIdError(id_)
    return f"--resume={id_}"


def client_home(home: Home | None, environ: Mapping[str, str], user_home: Path) -> Path | None:
    """Return what GEMINI_CLI_HOME must be for the client to look into a home; nothing if it does so by itself."""
    if home is None or home.root.name != ".gemini":
        return None
    usual = Path(environ.get("GEMINI_CLI_HOME") or user_home)
    if home.root.resolve() in ((usual / ".gemini").resolve(), (usual / ".cache" / ".gemini").resolve()):
        return None
    return home.root.parent


def _found(scope: Scope, session: Session) -> tuple[Home | None, list[str]]:
    """Tell in which home the client would find the session, and why it would not."""
    from pollux.archive.restore import plan
    from pollux.disk.placing import CollisionError

    if scope.archive is None:
        return _home(scope, session), []
    try:
        found = plan(scope.archive.database, session, scope.places(), now=output.now())
    except CollisionError as error:
        return _home(scope, session), [str(error)]
    for note in () if found.files else found.notes:
        output.words(note)
    hint = f"It is not where the client looks for it: `pollux restore {shell.quoted(session.id)}` writes it back."
    return found.home, [hint] if found.files else []


def _home(scope: Scope, session: Session) -> Home | None:
    return next((one for one in scope.places() if any(ref.path.is_relative_to(one.tmp) for ref in session.files)), None)


def _run(scope: Scope, session: Session, folder: str, *, is_sure: bool) -> int:
    """Start the client and wait for it; what it has written is taken in at once, before it can delete it."""
    import shutil
    import subprocess

    from pollux.archive.restore import is_restored

    client = shutil.which(_CLIENT)
    if client is None:
        raise click.ClickException(
            f"There is no `{_CLIENT}` on the PATH; `npm install -g @google/gemini-cli` brings it."
        )
    plan = _restored(scope, session, is_sure=is_sure)
    place = client_home(plan.home if plan else _home(scope, session), os.environ, Path.home())
    environment = {**os.environ, **({"GEMINI_CLI_HOME": str(place)} if place else {})}
    id_ = plan.id if plan else session.id
    words = [client, resume_option(id_)]
    status = subprocess.run(words, cwd=folder, env=environment, check=False).returncode  # noqa: S603  what was asked for
    if plan:
        scope.history()
        if not is_restored(plan.main):
            output.words(_WARNING.format(id=shell.quoted(id_)))
    return status


def _restored(scope: Scope, session: Session, *, is_sure: bool) -> Plan | None:
    """Write the session back if the client would not find it; under a new id where the old one is in the way."""
    import uuid

    from pollux.archive.restore import carry_out, plan
    from pollux.cli.restore import written
    from pollux.disk.placing import CollisionError

    if scope.archive is None:
        return None
    database, places, renamed = scope.archive.database, scope.places(), ""
    try:
        found = plan(database, session, places, now=output.now())
    except CollisionError:
        found = plan(database, session, places, now=output.now(), new_id=str(uuid.uuid4()))
        renamed = " under a new id, since other files of it are in the way"
    if found.files:
        if not is_sure:
            if not output.is_anybody_there():
                raise click.UsageError("Nobody is here to be asked; say --yes to restore the session first.")
            question = f"The client would not find this session. Write it to {found.main}{renamed}?"
            click.confirm(question, default=True, abort=True, err=True)
        carry_out(found)
        output.words(written(found))
    return found
