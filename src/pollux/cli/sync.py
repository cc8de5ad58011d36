"""`pollux sync`: take in what is new, once."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pollux.cli import output
from pollux.cli.scope import Scope, options, progress
from pollux.library import project_memory

if TYPE_CHECKING:
    from pathlib import Path

    from pollux.archive.refresh import Refreshed

SCHEMA = "pollux.sync/1"


@click.command()
@options(filters=False, all_homes=False)
@click.option(
    "--keep-only", is_flag=True, help="Only keep the bytes: the next command that asks reads what is in them."
)
def command(scope: Scope, *, keep_only: bool) -> None:
    """Take everything that is new into the archive, once.

    Every file of every project folder is kept, byte for byte, also after Gemini CLI has deleted it. Only what changed
    is read. Whatever stops it, what was taken in stays, and the next time goes on from there.

    First all bytes are kept, then what is in them is read. Where time is short, as in a hook, the first is enough.

    \b
      pollux sync
      pollux sync --keep-only
      pollux sync --home /mnt/backup/alice
      pollux sync --json | jq .bytes
    """
    from pollux.archive.watch import capture

    archive, places = archive_path(scope), scope.places()
    with progress("taking in") as tell:
        known = project_memory.recalled()
        found = capture(
            archive, places, memory=known, progress=tell, waiting=say_who_writes, derives=not keep_only
        ).result
    if scope.as_json:
        output.print_json(row(found, archive))
    else:
        click.echo(summary(found, archive))
        output.say_problems(found.problems)
        if not found.located.folders:
            output.words(output.NOTHING_HERE)
    click.get_current_context().exit(1 if found.problems else 0)


def archive_path(scope: Scope) -> Path:
    """Tell where to keep things."""
    if scope.archive_path is None:
        raise click.UsageError(
            "There is nothing to do without an archive: leave --no-archive and POLLUX_ARCHIVE=- out."
        )
    return scope.archive_path.expanduser().absolute()


def say_who_writes(who: str) -> None:
    """Tell a person why nothing happens."""
    output.words(f"Waiting for {who}, which is writing to the archive …")


def row(found: Refreshed, archive: Path) -> dict[str, Any]:
    """Write what was taken in as a JSON object."""
    from pollux.views.contracts import problem_row

    return {
        "schema": SCHEMA,
        "archive": str(archive),
        "homes": [str(one.root) for one in found.located.homes],
        "files": found.n_files,
        "bytes": found.n_bytes,
        "sessions": sorted(found.sessions),
        "gone": found.n_gone,
        "problems": [problem_row(one) for one in found.problems],
    }


def summary(found: Refreshed, archive: Path) -> str:
    """Say in one line what was taken in."""
    from pollux.render.terminal.tables import counted
    from pollux.text.amounts import size

    gone = f"; {counted(found.n_gone, 'file')} gone since, kept here" if found.n_gone else ""
    if not found.n_bytes:
        return f"Nothing new in {counted(len(found.located.folders), 'project')}{gone}."
    taken = f"{counted(found.n_files, 'file')}, {size(found.n_bytes)}"
    sessions = f", {counted(len(found.sessions), 'session')}" if found.sessions else ""
    return f"Taken into {output.short(archive)}: {taken}{sessions}{gone}."
