"""`pollux archive`: what is in the archive, how much room it takes, backups and other archives."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from pathlib import Path

import click

from pollux.cli import Group, output
from pollux.cli.scope import Scope, options

MODULES = {"seal": "pollux.cli.archive_seal", "prove": "pollux.cli.archive_prove"}

_STILL_READ = "Somebody still reads the old file: `pollux archive compact` once they are done frees the rest."


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
@options(filters=None, all_homes=False)
def info(scope: Scope) -> None:
    """Say what the archive holds, how much room it takes, and who writes to it.

    \b
      pollux archive info
      pollux archive info --json | jq .homes
    """
    from pollux.render.terminal.archive import info_lines

    result = scope.library.archive.info()
    if scope.as_json:
        output.print_json(result)
        return
    for line in info_lines(result, output.now(), output.short):
        click.echo(line)


@command.command(short_help="Print where it is.")
@options(json=False, filters=None, all_homes=False)
def path(scope: Scope) -> None:
    """Print where the archive is.

    \b
      pollux archive path
      ls -l "$(pollux archive path)"
    """
    click.echo(str(scope.library.archive.path))


@command.command(short_help="Make it smaller.")
@options(json=False, filters=None, all_homes=False)
def compact(scope: Scope) -> None:
    """Take less room: small pieces are put together, and what was deleted leaves no gaps. No byte is lost.

    \b
      pollux archive compact
    """
    from pollux.render.terminal.tables import counted
    from pollux.text.numbers import size

    result = scope.library.archive.compact()
    click.echo(f"{size(result.before)} before, {size(result.after)} now; {counted(result.n_merged, 'piece')} fewer.")
    if not result.is_clean:
        output.words(_STILL_READ)
    for sentence in result.damaged:
        output.words(sentence)
    click.get_current_context().exit(1 if result.damaged else 0)


@command.command(short_help="Copy it into a file.")
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace what is there.")
@options(json=False, filters=None, all_homes=False)
def backup(scope: Scope, target: Path, *, force: bool) -> None:
    """Copy the archive into a file, also while somebody writes to it, and look at every byte of the copy.

    \b
      pollux archive backup /mnt/backup/pollux.db
      pollux archive backup ~/pollux-today.db --force
    """
    from pollux.text.numbers import size

    tools = scope.library.archive
    for path in tools.backup_files(target):
        scope.library.outputs.check(path)
    result = tools.backup(target, force=force)
    if result.is_sound:
        click.echo(f"{output.short(result.path)}: {size(result.n_bytes)}, every byte checked.")
    else:
        output.words(f"{output.short(result.path)} is as damaged as the archive is; `pollux verify` tells more.")
    click.get_current_context().exit(0 if result.is_sound else 1)


@command.command("import", short_help="Import another archive.")
@click.argument("other", metavar="OTHER.DB", type=click.Path(path_type=Path))
@options(filters=None, all_homes=False)
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
    from pollux.render.terminal.archive import import_line, import_notes

    imported = scope.library.archive.import_(other)
    problems = imported.result.problems
    if scope.as_json:
        output.print_json(imported)
    else:
        click.echo(import_line(imported, output.short))
        for note in import_notes(imported, output.short):
            output.words(note)
        output.say_problems(problems, hint="--json lists them all.")
    click.get_current_context().exit(1 if problems else 0)
