"""`pollux record sign`: sign a record or a session file."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path

import click

from pollux.cli import output
from pollux.cli.arguments import reference_from_argument
from pollux.cli.complete import session_ids
from pollux.cli.key_options import own_key, signing_key
from pollux.cli.scope import Scope, options
from pollux.cli.targets import file_sink


@click.command(short_help="Sign a record, or a session file.")
@click.argument("wanted", metavar="FILE|ID", shell_complete=session_ids)
@signing_key
@click.option("--raw", is_flag=True, help="Sign a session's own file as it is; an ID means the one in the archive.")
@click.option("--attached", is_flag=True, help="Put what is signed into the signature's file.")
@click.option(
    "--issuer", metavar="NAME", help="A name to sign under, which is only your claim; without it, the key's thumbprint."
)
@click.option("--subject", metavar="NAME", help="What is signed; without it, the id of the session.")
@click.option("--output", "-o", "target", help="Where to; without it, beside the file. - is stdout.")
@options(json=False, filters=None)
def command(
    scope: Scope,
    wanted: str,
    *,
    key: str | None,
    raw: bool,
    attached: bool,
    issuer: str | None,
    subject: str | None,
    target: str | None,
) -> None:
    """Sign a record, or with --raw a session file, as COSE_Sign1 with Ed25519.

    The signature covers the bytes of the file. A record has to be in canonical form (RFC 8785), as `record create`
    writes it, so that no program breaks the signature by writing the same values differently; --attached converts it.

    \b
      pollux record sign session.json
      pollux record sign session.json --attached --issuer mailto:mara@example.org
      pollux record sign --raw latest
    """
    from pollux.library import records
    from pollux.library.sinks import write_output

    if raw:
        payload = records.session_payload(scope.library, reference_from_argument(scope, wanted))
    else:
        payload = records.record_payload(Path(wanted), attached=attached)
    signer = own_key(key)
    if payload.trace.start is None:
        output.words("It says no time, so the signature says nothing of the session but its id.")
    data = records.sign(payload, signer, at=output.now(), issuer=issuer, subject_name=subject, attached=attached)
    path = target or str(records.signature_path(payload.path, attached=attached))
    write_output(scope.library.outputs, file_sink(path), [data], advice="say where to with -o")
    if path != "-":
        output.words(f"Signed with the key {signer.name}: {output.short(path)}, {len(data)} bytes.")
