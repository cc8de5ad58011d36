"""`pollux record verify`: whether a signature, a proof or a redacted record holds, and if not, what does not match."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pollux.cli import keyring, output
from pollux.cli.record_sign import DETACHED, read

if TYPE_CHECKING:
    from pollux.proofs.verdict import Verdict

SCHEMA = "pollux.verdict/1"
_SUFFIXES = (".json", ".jsonl", ".cbor")
_SHOWN = 10


@click.command(short_help="Check a signature, a seal or a proof.")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--file", type=click.Path(path_type=Path), help="What was signed, or should be proven.")
@keyring.believed_keys
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of words.")
def command(path: Path, *, file: Path | None, keys: tuple[str, ...], as_json: bool) -> None:
    """Look at a signature, a seal, a proof or a redacted record, without network and without the archive.

    Names what does not match, and ends with status 1 if anything does not. A signature that stands beside what was
    signed finds it by its name.

    \b
      pollux record verify session.sig.cbor --key mara.pub
      pollux record verify proof.json --file session.jsonl --key mara.pub
      pollux record verify redacted.json --key mara.pub
    """
    from pollux.proofs.examine import examine, is_detached

    data = read(path)
    if file is None and is_detached(data):
        file = _signed(path)
    found = examine(data, read(file) if file else None, keyring.believed(keys))
    if as_json:
        output.print_json(row(found, str(path)))
    else:
        say(found, output.short(path))
    click.get_current_context().exit(0 if found.is_good else 1)


def row(found: Verdict, subject: str) -> dict[str, Any]:
    """Write a verdict as JSON."""
    return {
        "schema": SCHEMA,
        "subject": subject,
        "kind": found.kind,
        "good": found.is_good,
        "faults": [{"what": one.what, "message": one.message, "file": one.file} for one in found.faults],
        "notes": found.notes,
        "files": [{"sha256": digest, "length": length, "path": path} for digest, length, path in found.digests],
        "facts": {name.replace(" ", "_"): value for name, value in found.facts.items()},
    }


def say(found: Verdict, subject: str) -> None:
    """Say a verdict: what does not match, what the proof says, and what has to be known to read it rightly."""
    width = max((len(name) for name in found.facts), default=0)
    for fault in found.faults:
        _line(f"{output.short(fault.file) if fault.file else fault.what}: {fault.message}.")
    for name, value in found.facts.items():
        _line(f"{name:<{width}}  {value}")
    for digest, _, path in found.digests:
        _line(f"{digest}  {path}")
    for note in found.notes[:_SHOWN]:
        output.words(f"{note}.")
    if len(found.notes) > _SHOWN:
        output.words(f"… and {len(found.notes) - _SHOWN} more; --json lists them all.")
    output.words(f"{subject}: {_verdict(found)}.")


def _verdict(found: Verdict) -> str:
    if found.faults and all(one.what == "key" for one in found.faults):
        return "nobody known here has signed this; name the public key of who should have with --key"
    if found.kind == "archive":
        return "all is as it was sealed" if found.is_good else "not all is as it was sealed"
    return f"the {found.kind} {'is good' if found.is_good else 'does not hold'}"


def _line(text: str) -> None:
    from pollux.views.harmless import clean

    click.echo(clean(text).replace("\n", "␊"))


def _signed(path: Path) -> Path:
    """Find what a signature is about: the file of the same name."""
    stem = path.name.removesuffix(DETACHED)
    for suffix in _SUFFIXES if stem != path.name else ():
        place = path.with_name(stem + suffix)
        if place.is_file():
            return place
    raise click.UsageError(f"What {path} signs is not beside it under its name; name it with `--file`.")
