"""`pollux record`: create, sign, redact and verify records of sessions."""
# ruff: noqa: PLC0415  imported when a command runs

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import CommandGroup, output
from pollux.cli.completion import session_ids
from pollux.cli.context import Context, options
from pollux.cli.keys import issuer_option, load_signing_key, load_trusted_keys, signing_key, trusted_keys
from pollux.cli.options import file_option, file_sink, reference_from_argument, refuse_binary, write_data

if TYPE_CHECKING:
    from pollux.library.export_values import Secrets, Verdict

_SHOWN_NOTES = 10


@click.group(cls=CommandGroup)
def command() -> None:
    """Create records of sessions, sign them, redact them, and verify records that you receive.

    \b
      pollux record create latest -o session.json
      pollux record sign session.json
      pollux record verify session.sig.cbor --key mara.pub
    """


@command.command(short_help="Write a session as a record.")
@click.argument("session", metavar="[SESSION]", default="latest", shell_complete=session_ids)
@file_option
@click.option(
    "--format",
    "-f",
    "name",
    type=click.Choice(["json", "cbor"]),
    default="json",
    show_default=True,
    help="Encoding of the record.",
)
@click.option(
    "--profile",
    type=click.Choice(("vac-00", "seed")),
    default="vac-00",
    show_default=True,
    help="Use `seed` to write only the fields of the draft's translation document.",
)
@click.option(
    "--branches",
    type=click.Choice(["active", "all"]),
    default="active",
    show_default=True,
    help="Use `all` to include messages that were rewound, rolled back or compressed.",
)
@click.option("--created", metavar="DATE", help="Record a creation time: `now` or a date.")
@click.option("--vcs", is_flag=True, help="Record what git has checked out in the project's folder now.")
@options(json=False)
def create(
    scope: Context,
    session: str,
    *,
    target: str,
    name: str,
    profile: str,
    branches: str,
    created: str | None,
    vcs: bool,
) -> None:
    """Write a session as a verifiable agent record, which you can sign and others can check.

    The same session always gives the same bytes, unless you add --created or --vcs.

    \b
      pollux record create latest -o session.json
      pollux record create a82545c4 --branches all --format cbor -o session.cbor
    """
    from pollux.library.records import RecordOptions, creation_time, write_record
    from pollux.views.transcript import Branches

    if name == "cbor":
        refuse_binary(target)
    chosen = RecordOptions(
        profile=profile,
        format=name,
        branches=Branches(branches),
        created=creation_time(created, scope.library.config),
        vcs=vcs,
    )
    reference = reference_from_argument(scope, session)
    result = write_record(scope.library, reference, file_sink(target), chosen, scope.wanted)
    for note in result.notes:
        output.note(note)
    for loss, count in result.losses.items():
        output.note(f"{loss}: {count:,} ×")
    scope.finish(asked=result.problems)


@command.command(short_help="Sign a record or a session file.")
@click.argument("reference", metavar="FILE|SESSION", shell_complete=session_ids)
@signing_key
@click.option("--raw", is_flag=True, help="Sign the bytes of a session file; SESSION may then be an archived session.")
@click.option("--attached", is_flag=True, help="Include the signed data in the signature file.")
@issuer_option
@click.option("--subject", metavar="NAME", help="Name of what is signed.  [default: the session ID]")
@click.option(
    "--output", "-o", "target", metavar="FILE", help="File, or - for stdout.  [default: next to the signed file]"
)
@options(json=False, filters=None)
def sign(
    scope: Context,
    reference: str,
    *,
    key: str | None,
    raw: bool,
    attached: bool,
    issuer: str | None,
    subject: str | None,
    target: str | None,
) -> None:
    """Sign a record, or with --raw a session file, as COSE_Sign1 with Ed25519.

    The signature covers the bytes of the file. A record must be in canonical form (RFC 8785), which `record create`
    writes: otherwise a program that rewrites the same values would break the signature. --attached converts it.

    \b
      pollux record sign session.json
      pollux record sign session.json --attached --issuer mailto:mara@example.org
      pollux record sign --raw latest
    """
    from pollux.library import records
    from pollux.library.outputs import write_output

    if target:
        refuse_binary(target)
    if raw:
        payload = records.session_payload(scope.library, reference_from_argument(scope, reference))
    else:
        payload = records.record_payload(Path(reference), attached=attached)
    signer = load_signing_key(key)
    if payload.trace.start is None:
        output.note("The file contains no time, so the signature names only the session ID.")
    data = records.sign(payload, signer, at=output.now(), issuer=issuer, subject_name=subject, attached=attached)
    path = target or str(records.signature_path(payload.path, attached=attached))
    write_output(scope.library.outputs, file_sink(path), [data], advice="name another file with -o")
    if path != "-":
        output.note(f"Signed with the key {signer.name}: {output.short(path)}, {len(data)} bytes.")


@command.command(short_help="Hide parts of a record, provably.")
@click.argument("session", metavar="SESSION", shell_complete=session_ids)
@click.option(
    "--hide",
    "names",
    metavar="NAME|/POINTER",
    multiple=True,
    help="Hide members with this name and everything in them, but not numbers. Repeatable.",
)
@click.option("--hide-text", "pattern", metavar="REGEX", help="Hide every text that matches.")
@click.option(
    "--secrets",
    "hide_secrets",
    is_flag=True,
    help="Replace every value that contains a key, token or password by a salted hash.",
)
@file_option
@options(json=False, filters=None)
def redact(
    scope: Context, session: str, *, names: tuple[str, ...], pattern: str | None, hide_secrets: bool, target: str
) -> None:
    """Write the record of a sealed session with `[redacted]` in place of the values that you hide.

    Each hidden value is replaced by a salted hash, from which it cannot be guessed. `pollux record verify` uses the
    hashes to prove that the other values are the sealed ones and that nothing else was removed, moved or renamed. The
    result can be signed like any record.

    --secrets hides every value in which a redaction rule matches a secret. E-mail addresses and names are not secrets.
    Afterwards the command prints what it replaced, and which data it could not search.

    \b
      pollux record redact latest --secrets -o redacted.json
      pollux record redact latest --hide output --hide input -o redacted.json
      pollux record redact latest --hide '/session/entries/3/*'
      pollux record redact latest --hide-text 'secret|token'
    """
    from pollux.library.records import field_chooser, redact_record

    if not names and pattern is None and not hide_secrets:
        raise click.UsageError("Nothing to hide. Pass --secrets, --hide NAME or --hide-text REGEX.")
    is_hidden = field_chooser(names, pattern)
    scope.note_freshness()
    redacted = redact_record(scope.library, session, is_hidden, hide_secrets=hide_secrets)
    write_data(scope, target, redacted.data)
    if redacted.secrets:
        _print_secrets(redacted.secrets)


def _print_secrets(secrets: Secrets) -> None:
    counts = ", ".join(f"{count} × {rule}" for rule, count in secrets.counts.most_common())
    n_values = len(secrets.places)
    if counts:
        values = f"{n_values} value{'s' * (n_values != 1)}"
        output.note(f"Replaced {values} that contained secrets by salted hashes: {counts}.")
    else:
        output.note("No secrets found.")
    for kind, count in sorted(secrets.unread.items()):
        output.note(f"Not searched: {count} × {kind}. Check them yourself.")


@command.command(short_help="Check a signature, seal, proof or redacted record.")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help="The file that was signed, or that a proof is about: a session file or an older seal.",
)
@trusted_keys
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(path: Path, *, file: Path | None, keys: tuple[str, ...], as_json: bool) -> None:
    """Check a signature, a seal, a proof or a redacted record, without network access and without the archive.

    Prints what does not match, which key signed and why you trust it, and which statements nothing proves. Without
    --file, a signature is checked against the file of the same name next to it. The exit status is 1 if anything does
    not match.

    \b
      pollux record verify session.sig.cbor --key mara.pub
      pollux record verify proof.json --file session.jsonl --key mara.pub
      pollux record verify redacted.json --key mara.pub
    """
    from pollux.library.records import verify_file
    from pollux.views.contracts.proofs import VerdictDocument

    verdict = verify_file(path, file, load_trusted_keys(keys))
    if as_json:
        output.print_json(VerdictDocument(verdict, str(path)))
    else:
        print_verdict(verdict, output.short(path))
    click.get_current_context().exit(0 if verdict.is_ok else 1)


def print_verdict(verdict: Verdict, subject: str) -> None:
    """Print what does not match, who signed, what the proof says, and what nothing proves."""
    lines = [*_signer_lines(verdict), *verdict.facts.items()]
    width = max((len(name) for name, _ in lines), default=0)
    for fault in verdict.errors:
        _print_line(f"{output.short(fault.file) if fault.file else fault.what}: {fault.message}.")
    for name, value in lines:
        _print_line(f"{name:<{width}}  {value}")
    for digest, _, path in verdict.digests:
        _print_line(f"{digest}  {path}")
    for note in verdict.notes[:_SHOWN_NOTES]:
        output.note(f"{note}.")
    if len(verdict.notes) > _SHOWN_NOTES:
        output.note(f"… and {len(verdict.notes) - _SHOWN_NOTES} more; --json lists all of them.")
    for unproven in verdict.unproven:
        output.note(f"{unproven.sentence}.")
    output.note(f"{subject}: {_conclusion(verdict)}.")


def _signer_lines(verdict: Verdict) -> Iterator[tuple[str, str]]:
    for signer in verdict.signers:
        yield ("signed by" if signer.of == "signature" else f"{signer.of} by"), signer.description
        if signer.thumbprint:
            yield "key", signer.thumbprint


def _conclusion(verdict: Verdict) -> str:
    if verdict.errors and all(fault.what == "key" for fault in verdict.errors):
        return "not signed by a key that you trust; pass the signer's public key with --key"
    if verdict.kind == "archive":
        return "everything is as it was sealed" if verdict.is_ok else "not everything is as it was sealed"
    if verdict.is_ok and verdict.unproven:
        return f"the {verdict.kind} is valid, except for the unproven statements above"
    return f"the {verdict.kind} is {'valid' if verdict.is_ok else 'not valid'}"


def _print_line(text: str) -> None:
    from pollux.text.escape import make_visible

    click.echo(make_visible(text).replace("\n", "␊"))
