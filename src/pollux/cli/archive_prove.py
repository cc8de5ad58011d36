"""`pollux archive prove`: prove to others that a session is as it was sealed."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.errors import UnreadableFileError
from pollux.library.select import in_history

if TYPE_CHECKING:
    from pollux.proofs.chain import Given


@click.command("prove", short_help="Prove to others what a seal is over.")
@click.argument("wanted", metavar="[ID]", required=False, shell_complete=session_ids)
@click.option("--continues", "old", metavar="SEAL", help="Instead: that the last seal goes on from this older one.")
@click.option("--output", "-o", "target", default="-", show_default=True, help="A file, or - for stdout.")
@options(json=False, filters=False, all_homes=False)
def command(scope: Scope, wanted: str | None, *, old: str | None, target: str) -> None:
    """Write the proof that the last seal covers a session and the files that it was read from.

    The proof holds names and hashes, but no text. `pollux record verify` checks it on any machine, without the archive;
    with `--file` it also checks that a file is one of those that were sealed. Files of subagents, tool outputs and
    plans are listed too: they are proven to be sealed, but not to belong to the session. With --continues, the proof
    shows to whoever keeps an older seal that the last one covers all that the older one covered, and nothing else.

    \b
      pollux archive prove latest -o proof.json
      pollux record verify proof.json --file session.jsonl --key mara.pub
      pollux archive prove --continues january.cbor -o nothing-lost.json
    """
    from pollux.proofs.canonical import json_bytes
    from pollux.proofs.continuation import continuation
    from pollux.proofs.inclusion import prove

    if (wanted is None) == (old is None):
        raise click.UsageError("Say what to prove: a session by its ID, or --continues with an older seal.")
    found = scope.history()
    if scope.archive is None:
        raise click.UsageError("Seals are in the archive alone: leave --no-archive and POLLUX_ARCHIVE=- out.")
    database = scope.archive.database
    if wanted is not None:
        proof = prove(database, in_history(scope, found, wanted).id)
    else:
        proof = continuation(database, given_seal(str(old)).data)
    hand_over(json_bytes(proof) + b"\n", target)


def given_seal(path: str) -> Given:
    """Read a seal that was kept elsewhere."""
    from pollux.cli.record_sign import read
    from pollux.errors import PolluxError
    from pollux.proofs.chain import given_from

    try:
        return given_from(read(Path(path)))
    except UnreadableFileError:
        raise
    except PolluxError as error:
        raise click.ClickException(f"{path} is no seal. {error}") from None


def hand_over(data: bytes, target: str) -> None:
    """Write to stdout or into a file."""
    from pollux.library.export_folder import write

    if target == "-":
        output.write([data])
        return
    try:
        write(Path(target), [data])
    except OSError as error:
        raise click.ClickException(f"{target} cannot be written: {error.strerror}; give another with -o.") from None
    output.words(f"{target}: {len(data)} bytes.")
