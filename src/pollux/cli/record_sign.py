"""`pollux record sign`: sign a record or a session file."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.complete import session_ids
from pollux.cli.scope import Scope, options
from pollux.library import keys
from pollux.library.select import in_file, meant, named_file

if TYPE_CHECKING:
    from pollux.proofs.trace import Trace

DETACHED, ATTACHED = ".sig.cbor", ".signed.cbor"


@click.command(short_help="Sign a record, or a session file.")
@click.argument("wanted", metavar="FILE|ID", shell_complete=session_ids)
@keys.signing_key
@click.option("--raw", is_flag=True, help="Sign a session's own file as it is; an ID means the one in the archive.")
@click.option("--attached", is_flag=True, help="Put what is signed into the signature's file.")
@click.option(
    "--issuer", metavar="NAME", help="A name to sign under, which is only your claim; without it, the key's thumbprint."
)
@click.option("--subject", metavar="NAME", help="What is signed; without it, the id of the session.")
@click.option("--output", "-o", "target", help="Where to; without it, beside the file. - is stdout.")
@options(json=False, filters=False)
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
    from pollux.library.export_folder import write
    from pollux.proofs.signing import sign

    payload, trace, content_type, place = _native(scope, wanted) if raw else _record(wanted, attached=attached)
    private, name = keys.own_key(key)
    if trace.start is None:
        output.words("It says no time, so the signature says nothing of the session but its id.")
    data = sign(
        payload,
        private,
        trace,
        content_type=content_type,
        at=output.now(),
        issuer=issuer,
        subject=subject,
        attached=attached,
    )
    if target == "-":
        output.write([data])
        return
    path = Path(target) if target else _beside(place, ATTACHED if attached else DETACHED)
    try:
        write(path, [data])
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}; say where to with -o.") from None
    output.words(f"Signed with the key {name}: {output.short(path)}, {len(data)} bytes.")


def _record(wanted: str, *, attached: bool) -> tuple[bytes, Trace, str, Path]:
    """Read a record, and see that it is one, in its one form."""
    from pollux.proofs.signing import record_from
    from pollux.proofs.trace import trace_of_record

    path = Path(wanted)
    data = read(path)
    record, canonical, content_type = record_from(data)
    trace = trace_of_record(record)
    if data != canonical and not attached:
        raise click.ClickException(
            f"{path} is not written in its one form (RFC 8785 or deterministic CBOR), so its signature would break as "
            "soon as somebody writes it anew; --attached signs that form, --raw signs the bytes as they are."
        )
    return canonical, trace, content_type, path


def _native(scope: Scope, wanted: str) -> tuple[bytes, Trace, str, Path]:
    """Read a session file: one that was named, or the main one of a session in the archive."""
    from pollux.proofs.signing import JSON, LOG
    from pollux.proofs.trace import trace_of_session

    file = named_file(wanted)
    session, group = in_file(file) if file else meant(scope, wanted)[:2]
    source = group.main.reading.original
    trace = trace_of_session(session, source.path.name)
    payload = read(file) if file else b"".join(source.blocks())
    return payload, trace, JSON if source.path.suffix == ".json" else LOG, file or Path(source.path.name)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name.removesuffix(path.suffix) + suffix)


def read(path: Path) -> bytes:
    """Read a file that the user named. Raises `UnreadableFileError`."""
    from pollux.disk.regular_files import read_named
    from pollux.errors import UnreadableFileError

    try:
        return read_named(path)
    except OSError as error:
        raise UnreadableFileError(path, error.strerror) from None
