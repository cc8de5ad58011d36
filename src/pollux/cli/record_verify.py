"""`pollux record verify`: check a signature, a seal, a proof or a redacted record."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pollux.cli import output
from pollux.cli.key_options import believed, believed_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pollux.library.export_values import Verdict

_SHOWN = 10


@click.command(short_help="Check a signature, a seal or a proof.")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help="The file that was signed, or that a proof is about: a session file, or an older seal.",
)
@believed_keys
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
    from pollux.library.records import verify_file
    from pollux.views.contracts.proofs import VerdictDocument

    found = verify_file(path, file, believed(keys))
    if as_json:
        output.print_json(VerdictDocument(found, str(path)))
    else:
        say(found, output.short(path))
    click.get_current_context().exit(0 if found.is_good else 1)


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
