"""`pollux archive`: where everything is kept, how much room it takes, copies of it and other archives."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollux.cli import output
from pollux.cli.groups import Group
from pollux.cli.scope import Scope, options, progress
from pollux.library import project_memory

if TYPE_CHECKING:
    from pollux.archive.import_archive import Merged
    from pollux.archive.maintenance import Info
    from pollux.proofs.public import PublicKey

MODULES = {"seal": "pollux.cli.archive_seal", "prove": "pollux.cli.archive_prove"}
SCHEMA = "pollux.archive/1"
IMPORTED = "pollux.imported/1"

_NAMED = 5
"""Files that are named in words."""
_STILL_READ = "Somebody still reads the old file: `pollux archive compact` once they are done frees the rest."


def place(scope: Scope) -> Path:
    """Tell where the archive is."""
    if scope.archive_path is None:
        raise click.UsageError("This is about the archive: leave --no-archive and POLLUX_ARCHIVE=- out.")
    return scope.archive_path.expanduser().absolute()


@click.group(cls=Group, modules=MODULES, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Look after the archive: what is in it, less room, backups, other archives, seals. Alone it is `info`.

    \b
      pollux archive info
      pollux archive backup /mnt/backup/pollux.db
      pollux archive import laptop.db
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(info)


@command.command(short_help="Say what it holds.")
@options(filters=False, all_homes=False)
def info(scope: Scope) -> None:
    """Say what the archive holds, how much room it takes, and who writes to it.

    \b
      pollux archive info
      pollux archive info --json | jq .homes
    """
    from pollux.archive import maintenance

    with maintenance.readable(place(scope)) as archive:
        found = maintenance.info(archive)
    if scope.as_json:
        output.print_json(_row(found))
        return
    for label, text in _lines(found).items():
        click.echo(f"{label:<10}{text}")
    for one in found.places:
        click.echo(f"  {_counted(one.n_files, 'file')}, {_size(one.n_bytes)}, {one.n_gone} gone: {_named(one)}")


@command.command(short_help="Print where it is.")
@options(json=False, filters=False, all_homes=False)
def path(scope: Scope) -> None:
    """Print where the archive is.

    \b
      pollux archive path
      ls -l "$(pollux archive path)"
    """
    click.echo(str(place(scope)))


@command.command(short_help="Make it smaller.")
@options(json=False, filters=False, all_homes=False)
def compact(scope: Scope) -> None:
    """Take less room: small pieces are put together, and what was deleted leaves no gaps. No byte is lost.

    \b
      pollux archive compact
    """
    from pollux.archive import maintenance

    with maintenance.writable(place(scope)) as archive, progress("compacting") as tell:
        found = maintenance.compact(archive, progress=tell)
    click.echo(f"{_size(found.before)} before, {_size(found.after)} now; {_counted(found.n_merged, 'piece')} fewer.")
    if not found.is_clean:
        output.words(_STILL_READ)
    for sentence in found.damaged:
        output.words(sentence)
    click.get_current_context().exit(1 if found.damaged else 0)


@command.command(short_help="Copy it into a file.")
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace what is there.")
@options(json=False, filters=False, all_homes=False)
def backup(scope: Scope, target: Path, *, force: bool) -> None:
    """Copy the archive into a file, also while somebody writes to it, and look at every byte of the copy.

    \b
      pollux archive backup /mnt/backup/pollux.db
      pollux archive backup ~/pollux-today.db --force
    """
    from pollux.archive import backup
    from pollux.cli.output_guard import check_output

    own, target = place(scope), backup.target_of(place(scope), target.expanduser())
    for suffix in ("", "-wal", "-shm"):  # all that a backup replaces or removes
        check_output(target.with_name(target.name + suffix))
    with progress("copying") as tell:
        found = backup.backup(own, target, force=force, progress=tell)
    if found.is_sound:
        click.echo(f"{output.short(found.path)}: {_size(found.n_bytes)}, every byte checked.")
    else:
        output.words(f"{output.short(found.path)} is as damaged as the archive is; `pollux verify` tells more.")
    click.get_current_context().exit(0 if found.is_sound else 1)


@command.command("import", short_help="Import another archive.")
@click.argument("other", metavar="OTHER.DB", type=click.Path(path_type=Path))
@options(filters=False, all_homes=False)
def import_(scope: Scope, other: Path) -> None:
    """Import another archive: one of another machine, a backup, a colleague's.

    Files keep their machine and home. Nothing that this machine has read itself is changed: bytes that it has not read
    become versions of their own, marked as imported, and the result names those that claim to be from this machine.
    What was forgotten here stays forgotten. A session that both have is one session. An import that fails or is stopped
    changes nothing.

    \b
      pollux archive import laptop.db
      pollux archive import /mnt/backup/pollux.db
    """
    from pollux.archive import foreign, import_archive, store
    from pollux.errors import PolluxError
    from pollux.proofs.imported_seals import adopt_own
    from pollux.text.times import microseconds

    own, other = place(scope), other.expanduser().absolute()
    if not other.exists():
        raise click.UsageError(f"{other} does not exist.")
    if own.exists() and own.samefile(other):
        raise click.UsageError(f"{other} is the archive itself.")
    known = project_memory.recalled()
    now_us = microseconds(output.now()) or 0
    with foreign.opened(other) as theirs, store.opened(own) as archive, progress("importing") as tell:
        if not archive.is_writable:
            raise PolluxError(f"The archive {own} cannot be changed now: {archive.why_not}.")
        found = import_archive.take_in(archive, theirs, memory=known, now_us=now_us, progress=tell)
        n_adopted = adopt_own(archive, _own_keys())
    if scope.as_json:
        output.print_json(_imported_row(found, other, n_adopted))
    else:
        _say_imported(found, other, n_adopted)
    click.get_current_context().exit(1 if found.problems else 0)


def _lines(found: Info) -> dict[str, str]:
    from pollux.text.amounts import ago
    from pollux.text.escape import clean

    room = f", {found.ratio:.1f} times smaller than the {_size(found.n_kept)} it holds" if found.ratio else ""
    sessions = f"{found.n_sessions}, {found.n_subagents} subagents; {found.n_gone} deleted by the client and kept here"
    last = _moment(found.last_us)
    lines = {
        "archive": clean(output.short(found.path)),
        "size": f"{_size(found.n_on_disk)}{room}",
        "files": f"{found.n_files}, {found.n_gone_files} of them gone; {_counted(found.n_versions, 'version')}",
        "imported": f"{_counted(found.n_imported, 'version')}, not read on this machine",
        "sessions": sessions if found.facts_are_current else "not counted yet: `pollux sync` does",
        "forgotten": str(found.n_forgotten),
        "last new": ago(last, output.now()) if last else "never",
        "writer": clean(found.writer) if found.writer else "nobody",
        "homes": str(len(found.places)),
    }
    left_out = {"forgotten": not found.n_forgotten, "imported": not found.n_imported}
    return {label: text for label, text in lines.items() if not left_out.get(label)}


def _row(found: Info) -> dict[str, Any]:
    from pollux.views.contracts import when

    return {
        "schema": SCHEMA,
        "archive": str(found.path),
        "bytes": found.n_on_disk,
        "files": found.n_files,
        "gone_files": found.n_gone_files,
        "versions": found.n_versions,
        "imported_versions": found.n_imported,
        "segments": found.n_segments,
        "kept_bytes": found.n_kept,
        "stored_bytes": found.n_stored,
        "ratio": round(found.ratio, 2) if found.ratio else None,
        "sessions": found.n_sessions if found.facts_are_current else None,
        "subagents": found.n_subagents if found.facts_are_current else None,
        "gone": found.n_gone if found.facts_are_current else None,
        "forgotten": found.n_forgotten,
        "last_sync": when(_moment(found.last_us)),
        "writer": found.writer,
        "homes": [
            {
                "machine": one.machine,
                "home": one.home,
                "files": one.n_files,
                "gone_files": one.n_gone,
                "bytes": one.n_bytes,
            }
            for one in found.places
        ],
    }


def _own_keys() -> list[PublicKey]:
    """Return the public halves of the keys that the user can sign with."""
    from pollux.library import keys as keyring
    from pollux.proofs import keys

    return [one.public for one in keys.known(keyring.folder()) if one.is_own and one.public]


def _imported_row(found: Merged, other: Path, n_adopted: int) -> dict[str, Any]:
    from pollux.views.contracts import problem_row

    return {
        "schema": IMPORTED,
        "from": str(other),
        "files": found.n_files,
        "versions": found.n_versions,
        "bytes": found.n_bytes,
        "not_read_here": [{"file": one.file, "bytes": one.n_bytes} for one in found.not_read_here],
        "forgotten": found.n_forgotten,
        "seals": {"imported": found.n_seals, "adopted": n_adopted},
        "problems": [problem_row(one) for one in found.problems],
    }


def _say_imported(found: Merged, other: Path, n_adopted: int) -> None:
    taken = f"{_counted(found.n_files, 'file')}, {_counted(found.n_versions, 'version')}, {_size(found.n_bytes)}"
    click.echo(f"Imported from {output.short(other)}: {taken}." if found.n_files else "Everything is here already.")
    _say_not_read_here(found)
    if found.n_forgotten:
        output.words(f"{_counted(found.n_forgotten, 'file')} of forgotten sessions left out.")
    if n_adopted:
        output.words(
            f"This archive has taken over {_counted(n_adopted, 'seal')}: your key signed the chain, "
            "and it fits what was imported."
        )
    elif found.n_seals:
        output.words(
            f"{_counted(found.n_seals, 'seal')} of it kept apart from this archive's own; `pollux verify --seal` checks"
            " them separately."
        )
    output.say_problems(found.problems, hint="--json lists them all.")


def _say_not_read_here(found: Merged) -> None:
    """Name the files that are said to be of this machine, which has not read those bytes itself."""
    from pollux.disk.names import printable

    files = found.not_read_here
    if not files:
        return
    amount = f"{_counted(len(files), 'file')}, {_size(sum(one.n_bytes for one in files))}"
    output.words(
        f"Said to be from this machine, which never read these bytes: {amount}. "
        "They are kept as imports and change nothing that it has read."
    )
    for one in files[:_NAMED]:
        output.words(f"  {printable(output.short(one.file))}: {_size(one.n_bytes)}")
    if len(files) > _NAMED:
        output.words(f"  … and {len(files) - _NAMED} more; --json lists them all.")


def _moment(at_us: int | None) -> datetime | None:
    """Return a time; none for what an archive says that is no time at all."""
    if not at_us or not isinstance(at_us, int):
        return None
    try:
        return datetime.fromtimestamp(at_us / 1_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _named(one: Any) -> str:  # noqa: ANN401  imported late
    from pollux.text.escape import clean

    return clean(f"{output.short(one.home)} on {one.machine or 'an unnamed machine'}")


def _counted(number: int, noun: str) -> str:
    from pollux.render.terminal.tables import counted

    return counted(number, noun)


def _size(number: int) -> str:
    from pollux.text.amounts import size

    return size(number)
