"""The session that an argument names: an id, its beginning, a stem, `latest`, `@2`, or a file."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pollux.cli.scope import Scope
    from pollux.grouping import Group
    from pollux.model import Session
    from pollux.sessions import History


def meant(scope: Scope, wanted: str) -> tuple[Session, Group, dict[str, Session]]:
    """Open a session; the last value holds all sessions that were read on the way, by id."""
    if file := named_file(wanted):
        session, group = in_file(file)
        return session, group, {session.id: session}
    found = scope.history()
    session = _with_unread(in_history(scope, found, wanted), found)
    return session, scope.opened(session), {one.id: one for one in found.sessions}


def named_file(wanted: str) -> Path | None:
    """Return the file that an argument means: it names one, or can mean nothing else."""
    path = Path(wanted)
    if os.path.isfile(wanted):  # noqa: PTH113  which answers no where Path.is_file() raises
        return path
    if os.sep not in wanted and (os.altsep is None or os.altsep not in wanted):
        return None
    if os.path.isdir(wanted):  # noqa: PTH112
        raise _is_folder(wanted)
    return path


def in_file(path: Path) -> tuple[Session, Group]:
    """Open the session of a file that somebody named."""
    from pollux.sessions import from_file

    if not os.path.lexists(path):
        raise click.ClickException(f"There is no file {path}; `pollux ls` lists the sessions there are.")
    session, group = from_file(path)
    if group.timeline or group.main.reading.id:
        return session, group
    if group.main.reading.format == "prompts":
        raise click.ClickException(f"{path} is the client's log of what was typed; sessions are in `chats` beside it.")
    reasons = [f": {problem.message}" for problem in session.problems if problem.code != "no-session"]
    why = reasons[0] if reasons else ""
    raise click.ClickException(f"{path} holds no session{why}; `pollux ls` lists the sessions there are.")


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
    return click.UsageError(f"{wanted} is a folder, not a session; `pollux ls --home {wanted}` lists what it holds.")
