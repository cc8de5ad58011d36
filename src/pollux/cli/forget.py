"""`pollux forget`: a session removed for good, with all that is kept of it."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pollux.cli import memory, output
from pollux.cli.archive import place
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options, progress

if TYPE_CHECKING:
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
    but a backup.

    \b
      pollux forget a82545c4
      pollux forget @1 @2 --yes
    """
    from pollux.archive import forget, upkeep
    from pollux.times import microseconds

    known = memory.recalled()
    with upkeep.writable(place(scope)) as archive:
        sessions = _meant(scope, archive, wanted, known)
        if not yes:
            _ask(archive, sessions)
        with progress("removing") as tell:
            found = forget.forget(
                archive,
                [one.id for one in sessions],
                now_us=microseconds(output.now()) or 0,
                memory=known,
                progress=tell,
            )
    _say(found)


def _meant(scope: Scope, archive: Archive, wanted: tuple[str, ...], known: dict[str, str]) -> list[Session]:
    """Take in what is new, so that all of a session goes, and find the sessions meant."""
    from pollux.archive.history import history
    from pollux.archive.refresh import refresh

    with progress("reading") as tell:
        result = refresh(archive, scope.places(), memory=known, progress=tell)
    found = history(archive.database, result.located)
    return list({one.id: one for one in (scope.session(found, each) for each in wanted)}.values())


def _ask(archive: Archive, sessions: list[Session]) -> None:
    from pollux.archive import forget
    from pollux.terminal.listing import counted
    from pollux.terminal.text import line

    if not output.is_anybody_there():
        raise click.UsageError("Nobody is here to be asked; say --yes to remove them for good.")
    whole = forget.family(archive.database, [one.id for one in sessions])
    n_files = len(forget.files_of(archive.database, whole))
    for one in sessions:
        output.words(f"{one.id}  {line(one.title or '(no prompt)', 60)}")
    others = len(whole) - len(sessions)
    more = f" with {counted(others, 'subagent')}" if others else ""
    words = f"Remove {counted(len(sessions), 'session')}{more}, {counted(n_files, 'file')}, for good?"
    click.confirm(words, abort=True, err=True)


def _say(found: Forgotten) -> None:
    from pollux.terminal.listing import counted
    from pollux.views.amounts import size
    from pollux.views.harmless import clean

    for one in found.files:
        click.echo(clean(one).replace("\n", "␊"))
    what = f"{counted(len(found.sessions), 'session')}, {counted(len(found.files), 'file')}"
    output.words(f"Removed for good: {what}, {counted(found.n_versions, 'version')}, {size(found.n_bytes)}.")
    if found.mentions:
        output.words("What was typed may still stand in files that all sessions of the project share; they stay:")
    _list([output.short(one) for one in found.mentions])
    if found.repeats:
        output.words("These sessions were made from it and repeat some of it; forget them too if that matters:")
    _list(found.repeats)
    if not found.is_clean:
        output.words("Somebody still reads the archive: run `pollux archive compact` once they are done.")


def _list(names: list[str]) -> None:
    for one in names[:_SHOWN]:
        output.words(f"  {one}")
    if len(names) > _SHOWN:
        output.words(f"  … and {len(names) - _SHOWN} more")
