"""`pollux archive prove`: prove to others that a session is as it was sealed."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path

import click

from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.cli.targets import write_data


@click.command("prove", short_help="Prove to others what a seal is over.")
@click.argument("wanted", metavar="[ID]", required=False, shell_complete=session_ids)
@click.option("--continues", "old", metavar="SEAL", help="Instead: that the last seal goes on from this older one.")
@click.option("--output", "-o", "target", default="-", show_default=True, help="A file, or - for stdout.")
@options(json=False, filters=None, all_homes=False)
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
    from pollux.library.sealing import prove_continuation, prove_session

    if (wanted is None) == (old is None):
        raise click.UsageError("Say what to prove: a session by its ID, or --continues with an older seal.")
    scope.note_freshness()
    if wanted is not None:
        proof = prove_session(scope.library, wanted)
    else:
        proof = prove_continuation(scope.library, Path(str(old)))
    write_data(scope, target, proof)
