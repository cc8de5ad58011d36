"""`pollux archive seal`: a signed root over all that is kept."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.key_options import own_key, signing_key
from pollux.cli.progress import progress
from pollux.cli.scope import Scope, options
from pollux.cli.targets import write_data

if TYPE_CHECKING:
    from pollux.library.export_values import Sealed

_SHOWN = 10


@click.command("seal", short_help="Seal it.")
@click.argument("wanted", metavar="[ID]...", nargs=-1, shell_complete=session_ids)
@signing_key
@click.option(
    "--issuer", metavar="NAME", help="A name to seal under, which is only your claim; without it, the key's thumbprint."
)
@click.option("--output", "-o", "target", help="Also write the newest seal into a file; - is stdout.")
@click.option("--entries", is_flag=True, help="Write all sealed entries with it: they name every file.")
@options(filters=None, all_homes=False)
def command(
    scope: Scope, wanted: tuple[str, ...], *, key: str | None, issuer: str | None, target: str | None, entries: bool
) -> None:
    """Take in what is new, and sign a Merkle root over all that is kept, chained to the seal before.

    From then on `pollux verify --seal` shows that nothing of it was changed or removed. A copy of the seal in another
    place also shows if the newest seals were taken away; it holds no names and no text. What the sessions say is sealed
    field by field, so that redacted records can be proven; an ID does that again for one.

    \b
      pollux archive seal
      pollux archive seal -o /mnt/safe/seal.cbor
    """
    from pollux.library.sealing import seal_archive

    if entries and not target:
        raise click.UsageError("--entries says what goes into a file; name it with -o.")
    if target and target != "-":
        scope.library.outputs.check(Path(target))  # before anything is sealed
    signer = own_key(key)
    sealed, data = seal_archive(scope.library, signer, wanted, issuer=issuer, with_entries=entries, report=progress)
    if target and data is not None:
        write_data(scope, target, data, advice="the archive is sealed")
    if scope.as_json and target != "-":
        output.print_json(sealed)
    elif target != "-":
        _say(sealed, signer.name, is_kept_elsewhere=bool(target))
    click.get_current_context().exit(output.say_problems(sealed.new.problems, hint="--json lists them all."))


def _say(found: Sealed, name: str, *, is_kept_elsewhere: bool) -> None:
    from pollux.render.terminal.tables import counted
    from pollux.text.escape import clean
    from pollux.text.numbers import size

    if found.seal is None:
        output.words("There is nothing to seal yet; `pollux sync` takes in what there is.")
        return
    seal = found.seal
    for label, text in (("seal", seal.number), ("at", seal.at), ("entries", seal.size), ("root", seal.root)):
        click.echo(f"{label:<8} {text}")
    for one in found.new.forgotten[:_SHOWN]:
        output.words(clean(f"{output.short(one)} was forgotten since the last seal."))
    if len(found.new.forgotten) > _SHOWN:
        output.words(f"… and {len(found.new.forgotten) - _SHOWN} more files; --json lists them all.")
    if not found.is_new:
        output.words(f"Nothing is new since seal {seal.number}, so it still speaks for everything.")
        return
    new = found.new
    files = f"{counted(new.n_files, 'file')} ({size(new.n_bytes)})"
    output.words(f"Sealed with the key {name}: {files} and {counted(new.n_sessions, 'session')} new.")
    if not is_kept_elsewhere:
        output.words("Keep a copy elsewhere with -o FILE: only that shows if the newest seals are taken away.")
