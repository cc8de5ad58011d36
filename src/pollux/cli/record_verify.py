"""`pollux record verify`: check a signature, a seal, a proof or a redacted record."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollux.cli import output
from pollux.cli.record_sign import DETACHED, read
from pollux.library import keys as keyring

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pollux.proofs.verdict import Signer, Verdict

SCHEMA = "pollux.verdict/1"
_SUFFIXES = (".json", ".jsonl", ".cbor")
_SHOWN = 10


@click.command(short_help="Check a signature, a seal or a proof.")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help="The file that was signed, or that a proof is about: a session file, or an older seal.",
)
@keyring.believed_keys
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of words.")
def command(path: Path, *, file: Path | None, keys: tuple[str, ...], as_json: bool) -> None:
    """Check a signature, a seal, a proof or a redacted record, without network and without the archive.

    Prints what does not match, which key signed and why you believe it, and what the file says that nothing proves.
    Ends with status 1 if anything does not match. A signature finds the file beside it that has the same name.

    \b
      pollux record verify session.sig.cbor --key mara.pub
      pollux record verify proof.json --file session.jsonl --key mara.pub
      pollux record verify redacted.json --key mara.pub
    """
    from pollux.proofs.verify import examine, is_detached

    data = read(path)
    if file is None and is_detached(data):
        file = _signed(path)
    found = examine(data, read(file) if file else None, keyring.believed(keys))
    if file and found.kind not in ("signature", "proof", "continuation"):
        raise click.UsageError(f"--file is for signatures and proofs, but {path} is a {found.kind}; leave --file out.")
    if as_json:
        output.print_json(row(found, str(path)))
    else:
        say(found, output.short(path))
    click.get_current_context().exit(0 if found.is_good else 1)


def row(found: Verdict, subject: str) -> dict[str, Any]:
    """Return a verdict as JSON."""
    return {
        "schema": SCHEMA,
        "subject": subject,
        "kind": found.kind,
        "good": found.is_good,
        "faults": [{"what": fault.what, "message": fault.message, "file": fault.file} for fault in found.faults],
        "unproven": [name for unproven in found.unproven for name in unproven.names],
        "signers": [_signer_row(signer) for signer in found.signers],
        "notes": [*found.notes, *(unproven.sentence for unproven in found.unproven)],
        "files": [{"sha256": digest, "length": length, "path": path} for digest, length, path in found.digests],
        "facts": {name.replace(" ", "_"): value for name, value in found.facts.items()},
    }


def say(found: Verdict, subject: str) -> None:
    """Print a verdict: what does not match, who signed, what the proof says, and what nothing proves."""
    lines = [*_signer_lines(found), *found.facts.items()]
    width = max((len(name) for name, _ in lines), default=0)
    for fault in found.faults:
        _line(f"{output.short(fault.file) if fault.file else fault.what}: {fault.message}.")
    for name, value in lines:
        _line(f"{name:<{width}}  {value}")
    for digest, _, path in found.digests:
        _line(f"{digest}  {path}")
    for note in found.notes[:_SHOWN]:
        output.words(f"{note}.")
    if len(found.notes) > _SHOWN:
        output.words(f"… and {len(found.notes) - _SHOWN} more; --json lists them all.")
    for unproven in found.unproven:
        output.words(f"{unproven.sentence}.")
    output.words(f"{subject}: {_verdict(found)}.")


def _signer_lines(found: Verdict) -> Iterator[tuple[str, str]]:
    for signer in found.signers:
        yield ("signed by" if signer.of == "signature" else f"{signer.of} by"), signer.words
        if signer.thumbprint:
            yield "key", signer.thumbprint


def _signer_row(signer: Signer) -> dict[str, Any]:
    return {
        "of": signer.of,
        "key": signer.thumbprint,
        "key_file": signer.file,
        "trust": signer.trust,
        "verified": signer.is_verified,
        "issuer": signer.issuer,
        "issuer_proven": signer.is_issuer_proven,
    }


def _verdict(found: Verdict) -> str:
    if found.faults and all(fault.what == "key" for fault in found.faults):
        return "no key known here has signed this; give the public key of whoever should have signed it with --key"
    if found.kind == "archive":
        return "all is as it was sealed" if found.is_good else "not all is as it was sealed"
    if found.is_good and found.unproven:
        return f"the {found.kind} is good, except for what nothing proves (see above)"
    return f"the {found.kind} {'is good' if found.is_good else 'does not hold'}"


def _line(text: str) -> None:
    from pollux.text.escape import clean

    click.echo(clean(text).replace("\n", "␊"))


def _signed(path: Path) -> Path:
    """Return the file that a signature is about: the one of the same name beside it."""
    stem = path.name.removesuffix(DETACHED)
    for suffix in _SUFFIXES if stem != path.name else ():
        place = path.with_name(stem + suffix)
        if place.is_file():
            return place
    raise click.UsageError(f"What {path} signs is not beside it under its name; name it with `--file`.")
