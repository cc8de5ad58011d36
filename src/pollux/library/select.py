"""The session that an argument names: an id, its beginning, a stem, `latest`, `@2`, or a file."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.text.shell import quoted

if TYPE_CHECKING:
    from pollux.cli.scope import Scope
    from pollux.model import Session
    from pollux.sessions.grouping import Group
    from pollux.sessions.reader import History


_NOT_REASONS = ("no-session", "no-session-id")
"""Problems that only repeat that a file contains no session."""
_STDIN = "pollux.stdin"
"""Where a command's context keeps the name of the copy of standard input."""


def meant(scope: Scope, wanted: str) -> tuple[Session, Group, dict[str, Session]]:
    """Open the session or the saved conversation that an argument names; also return all sessions read, by ID."""
    from pollux.errors import NoSuchSessionError

    if file := named_file(wanted):
        session, group = in_file(file)
        return session, group, {session.id: session}
    found = scope.history()
    try:
        session = in_history(scope, found, wanted)
    except (NoSuchSessionError, click.ClickException):
        saved = _saved_file(scope, wanted)
        if saved is None:
            raise
        session, group = in_file(saved)
        return session, group, {session.id: session}
    session = _with_unread(session, found)
    return session, scope.opened(session), {one.id: one for one in found.sessions}


def _saved_file(scope: Scope, tag: str) -> Path | None:
    """Return the file of the one conversation that was saved under a tag."""
    from pollux.sessions.reader import saved_tag

    fitting = [one for one in scope.saved().sessions if saved_tag(one) == tag]
    return fitting[0].files[0].path if len(fitting) == 1 else None


def named_file(wanted: str) -> Path | None:
    """Return the file that an argument means: it names one, is `-` for standard input, or can mean nothing else."""
    if wanted == "-":
        return _standard_input()
    path = Path(wanted)
    if os.path.isfile(wanted):  # noqa: PTH113  which answers no where Path.is_file() raises
        return path
    if os.sep not in wanted and (os.altsep is None or os.altsep not in wanted):
        return None
    if os.path.isdir(wanted):  # noqa: PTH112
        raise _is_folder(wanted)
    return path


def _standard_input() -> Path:
    """Copy standard input to a private file that is deleted when the command ends, since readers need to seek."""
    import shutil
    import sys
    import tempfile

    context = click.get_current_context()
    if _STDIN in context.meta:
        return Path(context.meta[_STDIN])
    if sys.stdin.isatty():
        raise click.UsageError("`-` reads a session from a pipe, as in `gemini -o json -p hello | pollux show -`.")
    folder = tempfile.TemporaryDirectory(prefix="pollux-")
    context.call_on_close(folder.cleanup)
    path = Path(folder.name) / "stdin"
    context.meta[_STDIN] = str(path)
    with path.open("wb") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
    return path


def in_file(path: Path) -> tuple[Session, Group]:
    """Open the session of a file that somebody named."""
    from pollux.sessions.reader import from_file

    if not os.path.lexists(path):
        raise click.ClickException(f"There is no file {path}; `pollux ls` lists the sessions there are.")
    session, group = from_file(path)
    if group.timeline or group.main.reading.id:
        return session, group
    if group.main.reading.format == "prompts":
        raise click.ClickException(f"{path} is the client's log of what was typed; sessions are in `chats` beside it.")
    reasons = [f": {problem.message}" for problem in session.problems if problem.code not in _NOT_REASONS]
    why = reasons[0] if reasons else ""
    name = "Standard input" if click.get_current_context().meta.get(_STDIN) == str(path) else path
    raise click.ClickException(f"{name} contains no session{why}; `pollux ls` lists the sessions there are.")


def in_history(scope: Scope, found: History, wanted: str) -> Session:
    """Return the session that an argument names by its id."""
    from pollux.errors import NoSuchSessionError

    try:
        return scope.session(found, wanted)
    except NoSuchSessionError:
        if os.path.isdir(wanted):  # noqa: PTH112
            raise _is_folder(wanted) from None
        raise


_UNREAD = ("unreadable-file", "cannot-derive")


def _with_unread(session: Session, found: History) -> Session:
    """Return a session with the problems of files that by their names are its own, and that could not be read."""
    import msgspec

    ending = f"-{session.id[:8]}."
    unread = [one for one in found.problems if one.code in _UNREAD and one.file and ending in one.file]
    return msgspec.structs.replace(session, problems=(*session.problems, *unread)) if unread else session


def _is_folder(wanted: str) -> click.UsageError:
    return click.UsageError(
        f"{wanted} is a folder, not a session; `pollux ls --home {quoted(wanted)}` lists what it holds."
    )
