"""`pollux archive`: inspect, compact, back up, import, seal and prove the archive."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import CommandGroup, output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.cli.keys import issuer_option, load_signing_key, signing_key
from pollux.cli.options import file_option, refuse_binary, write_data

if TYPE_CHECKING:
    from pollux.library.export_values import SealOutcome

_SHOWN_FILES = 10


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Inspect, compact, back up, import, seal and prove the archive. Without a subcommand: `info`.

    \b
      pollux archive info
      pollux archive backup /mnt/backup/pollux.db
      pollux archive import laptop.db
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(info)


@command.command(short_help="Show size, contents and writer.")
@options(filters=None, all_homes=False)
def info(scope: Context) -> None:
    """Show what the archive contains, how much space it takes, and which process writes to it.

    \b
      pollux archive info
      pollux archive info --json | jq .homes
    """
    from pollux.render.terminal.archive import info_lines

    result = scope.library.archive.info()
    if scope.as_json:
        output.print_json(result)
        return
    output.print_screen(info_lines(result, output.now(), output.short), pager=False)


@command.command(short_help="Print the path of the archive.")
@options(json=False, filters=None, all_homes=False)
def path(scope: Context) -> None:
    """Print the path of the archive.

    \b
      pollux archive path
      ls -l "$(pollux archive path)"
    """
    click.echo(str(scope.library.archive.path))


@command.command(short_help="Make the archive smaller.")
@options(json=False, filters=None, all_homes=False)
def compact(scope: Context) -> None:
    """Merge small segments, release unused space and delete all undo copies. No archived byte is lost.

    Without undo copies, `pollux forget --undo` cannot bring back what was forgotten in the last 7 days.

    \b
      pollux archive compact
    """
    from pollux.text.numbers import plural, size

    result = scope.library.archive.compact()
    click.echo(f"{size(result.before)} before, {size(result.after)} now; {plural(result.n_merged, 'segment')} fewer.")
    if result.n_undo_copies:
        copies = "1 undo copy" if result.n_undo_copies == 1 else f"{result.n_undo_copies:,} undo copies"
        output.note(f"{copies} deleted: `pollux forget --undo` cannot bring those sessions back any more.")
    if not result.is_clean:
        output.note("Another process is reading the archive. Run `pollux archive compact` again after it ends.")
    for sentence in result.damaged:
        output.note(sentence)
    click.get_current_context().exit(1 if result.damaged else 0)


@command.command(short_help="Copy the archive to a file.")
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@options(json=False, filters=None, all_homes=False)
def backup(scope: Context, target: Path, *, force: bool) -> None:
    """Copy the archive to a file, even while another process writes to it, and check every byte of the copy.

    \b
      pollux archive backup /mnt/backup/pollux.db
      pollux archive backup ~/pollux-today.db --force
    """
    from pollux.text.numbers import size

    tools = scope.library.archive
    for path in tools.backup_files(target):
        scope.library.outputs.check(path)
    result = tools.backup(target, force=force)
    if result.is_ok:
        click.echo(f"{output.short(result.path)}: {size(result.n_bytes)}, every byte checked.")
    else:
        output.note(f"{output.short(result.path)} has the same damage as the archive. Run `pollux verify` to list it.")
    click.get_current_context().exit(0 if result.is_ok else 1)


@command.command("import", short_help="Import another archive.")
@click.argument("other", metavar="ARCHIVE", type=click.Path(path_type=Path))
@options(filters=None, all_homes=False)
def import_(scope: Context, other: Path) -> None:
    """Import another archive: from another machine, from a backup or from a colleague.

    Imported files keep their machine and home. Bytes that this machine has not read itself become separate versions
    marked as imported; what it has read stays unchanged. Forgotten sessions stay forgotten. A session that is in both
    archives becomes one session. An import that fails or is interrupted changes nothing.

    \b
      pollux archive import laptop.db
      pollux archive import /mnt/backup/pollux.db
    """
    from pollux.render.terminal.archive import import_line, import_notes

    imported = scope.library.archive.import_(other)
    if scope.as_json:
        output.print_json(imported)
    else:
        click.echo(import_line(imported, output.short))
        for note in import_notes(imported, output.short):
            output.note(note)
    scope.finish(asked=imported.result.problems, hint="--json lists all of them.")


@command.command(short_help="Sign everything that is archived.")
@click.argument("sessions", metavar="[SESSION]...", nargs=-1, shell_complete=session_ids)
@signing_key
@issuer_option
@click.option("--output", "-o", "target", metavar="FILE", help="Also write the seal to a file, or - for stdout.")
@click.option("--entries", is_flag=True, help="Include all sealed entries in the file; they name every archived file.")
@options(filters=None, all_homes=False)
def seal(
    scope: Context, sessions: tuple[str, ...], *, key: str | None, issuer: str | None, target: str | None, entries: bool
) -> None:
    """Archive new files, then sign a Merkle root over the whole archive, chained to the previous seal.

    Later, `pollux verify --seal` shows whether sealed data was changed or removed. Store a copy of the seal elsewhere:
    only the copy shows whether the newest seals were removed. It contains no names and no text. Each session is sealed
    field by field, so that redacted records can be proven; pass a SESSION to seal its record again.

    \b
      pollux archive seal
      pollux archive seal -o /mnt/safe/seal.cbor
    """
    from pollux.library.sealing import seal_archive

    if entries and not target:
        raise click.UsageError("--entries needs a file to write to: name one with -o.")
    if target:
        refuse_binary(target)
    if target and target != "-":
        scope.library.outputs.check(Path(target))  # before anything is sealed
    signer = load_signing_key(key)
    sealed, data = seal_archive(
        scope.library, signer, sessions, issuer=issuer, with_entries=entries, report=output.progress
    )
    if target and data is not None:
        write_data(scope, target, data, advice="the archive is sealed")
    if scope.as_json and target != "-":
        output.print_json(sealed)
    elif target != "-":
        _print_seal(sealed, signer.name, has_copy=bool(target))
    scope.finish(asked=sealed.new.problems, hint="--json lists all of them.")


def _print_seal(sealed: SealOutcome, key_name: str, *, has_copy: bool) -> None:
    from pollux.text.escape import make_visible
    from pollux.text.numbers import plural, size

    seal, new = sealed.seal, sealed.new
    if seal is None:
        output.note("The archive is empty, so there is nothing to seal. Run `pollux sync` to archive sessions.")
        return
    for label, value in (("seal", seal.number), ("at", seal.at), ("entries", seal.size), ("root", seal.root)):
        click.echo(f"{label:<8} {value}")
    for file in new.forgotten[:_SHOWN_FILES]:
        output.note(make_visible(f"{output.short(file)} was forgotten since the last seal."))
    if len(new.forgotten) > _SHOWN_FILES:
        output.note(f"… and {len(new.forgotten) - _SHOWN_FILES} more files; --json lists all of them.")
    if not sealed.is_new:
        output.note(f"Nothing is new since seal {seal.number}, which still covers the whole archive.")
        return
    files = f"{plural(new.n_files, 'new file')} ({size(new.n_bytes)})"
    output.note(f"Sealed with the key {key_name}: {files} and {plural(new.n_sessions, 'new session')}.")
    if not has_copy:
        output.note("Store a copy elsewhere with -o FILE: only a copy shows whether the newest seals were removed.")


@command.command(short_help="Prove that a session is sealed.")
@click.argument("session", metavar="[SESSION]", required=False, shell_complete=session_ids)
@click.option(
    "--consistent-with", "older", metavar="SEAL", help="Prove instead that the newest seal extends this older one."
)
@file_option
@options(json=False, filters=None, all_homes=False)
def prove(scope: Context, session: str | None, *, older: str | None, target: str) -> None:
    """Write a proof that the newest seal covers a session and the files that it was read from.

    The proof contains names and hashes, but no text. `pollux record verify` checks it on any machine without the
    archive; with --file it also checks that a file is one of the sealed ones. Files of subagents, tool outputs and
    plans are listed too: the proof shows that they are sealed, but not that they belong to the session. With
    --consistent-with, the proof shows that the newest seal covers everything that an older one covered, unchanged.

    \b
      pollux archive prove latest -o proof.json
      pollux record verify proof.json --file session.jsonl --key mara.pub
      pollux archive prove --consistent-with january.cbor -o consistency.json
    """
    from pollux.library.sealing import prove_continuation, prove_session

    if (session is None) == (older is None):
        raise click.UsageError("Name what to prove: a session by its ID, or an older seal with --consistent-with.")
    scope.note_freshness()
    if session is not None:
        proof = prove_session(scope.library, session)
    else:
        proof = prove_continuation(scope.library, Path(str(older)))
    write_data(scope, target, proof)
