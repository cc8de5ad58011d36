"""`pollux forget`: a session removed for good, with all that is kept of it."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.archive import place
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options, progress
from pollux.library import project_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pollux.archive.files import ArchivedFile
    from pollux.archive.forget import Forgotten
    from pollux.archive.store import Archive
    from pollux.model import Session

_SHOWN = 10


@click.command()
@click.argument("wanted", metavar="ID...", nargs=-1, required=True, shell_complete=session_ids)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@options(json=False, filters=False, all_homes=False)
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
    from pollux.archive import forget, maintenance
    from pollux.text.times import microseconds

    known = project_memory.recalled()
    with maintenance.writable(place(scope)) as archive:
        sessions, failed = _meant(scope, archive, wanted, known)
        if not yes:
            _ask(archive, sessions, failed)
        with progress("removing") as tell:
            found = forget.forget(
                archive,
                [one.id for one in sessions],
                {one.id: one.path for one in failed},
                now_us=microseconds(output.now()) or 0,
                memory=known,
                progress=tell,
            )
    _say(found)


def _meant(
    scope: Scope, archive: Archive, wanted: tuple[str, ...], known: dict[str, str]
) -> tuple[list[Session], list[ArchivedFile]]:
    """Take in what is new, so that all of a session goes; return the sessions meant, and files that cannot be read."""
    from pollux.archive.files import file_at
    from pollux.archive.open_session import history
    from pollux.archive.refresh import refresh
    from pollux.errors import FailedSessionError

    with progress("reading") as tell:
        result = refresh(archive, scope.places(), memory=known, progress=tell)
    found = history(archive.database, result.located, tuple(result.problems))
    sessions: dict[str, Session] = {}
    failed: dict[int, ArchivedFile] = {}
    for name in wanted:
        try:
            session = scope.session(found, str(Path(name).absolute()) if os.sep in name else name)
            sessions[session.id] = session
        except FailedSessionError as error:
            files = (file_at(archive.database, path) for path in error.files)
            failed |= {file.id: file for file in files if file}
    return [*sessions.values()], [*failed.values()]


def _ask(archive: Archive, sessions: list[Session], failed: list[ArchivedFile]) -> None:
    from pollux.archive import forget
    from pollux.render.terminal.tables import counted
    from pollux.render.terminal.text import line

    if not output.is_anybody_there():
        raise click.UsageError("Cannot ask for confirmation without a terminal; pass --yes to remove them for good.")
    whole = forget.family(archive.database, [one.id for one in sessions])
    n_files = len(forget.files_of(archive.database, whole)) + len(failed)
    for one in sessions:
        output.words(f"{one.id}  {line(one.title or '(no prompt)', 60)}")
    for file in failed:
        output.words(f"{line(file.path, 100)}  (cannot be read)")
    _say_shared(forget.shared_files(archive.database, whole), "will stay")
    others = len(whole) - len(sessions)
    more = f" with {counted(others, 'subagent')}" if others else ""
    words = f"Remove {counted(len(sessions), 'session')}{more}, {counted(n_files, 'file')}, for good?"
    click.confirm(words, abort=True, err=True)


def _say(found: Forgotten) -> None:
    from pollux.render.terminal.tables import counted
    from pollux.text.amounts import size
    from pollux.text.escape import clean

    for one in found.files:
        click.echo(clean(one).replace("\n", "␊"))
    what = f"{counted(len(found.sessions), 'session')}, {counted(len(found.files), 'file')}"
    removed = "Removed" if found.shared else "Removed for good"
    output.words(f"{removed}: {what}, {counted(found.n_versions, 'version')}, {size(found.n_bytes)}.")
    _say_shared(found.shared, "stay")
    if found.mentions:
        output.words("What was typed may still stand in files that all sessions of the project share; they stay:")
    _list([output.short(one) for one in found.mentions])
    if found.repeats:
        output.words("These sessions were made from it and repeat some of it; forget them too if that matters:")
    _list(found.repeats)
    if not found.is_clean:
        output.words("Somebody still reads the archive: run `pollux archive compact` once they are done.")


def _say_shared(shared: Mapping[str, list[str]], stay: str) -> None:
    """Say which files keep what was said in a session that is removed, and what to forget to be rid of it."""
    if not shared:
        return
    n_others = len({id_ for ids in shared.values() for id_ in ids})
    files = "This file" if len(shared) == 1 else "Each of these files"
    others, them = ("another session", "that") if n_others == 1 else ("other sessions", "those")
    output.words(f"{files} also holds {others}; its bytes {stay} in the archive until you forget {them} too:")
    _list([f"{output.short(path)}  ({', '.join(ids)})" for path, ids in shared.items()])


def _list(names: list[str]) -> None:
    for one in names[:_SHOWN]:
        output.words(f"  {one}")
    if len(names) > _SHOWN:
        output.words(f"  … and {len(names) - _SHOWN} more")
