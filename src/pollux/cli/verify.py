"""`pollux verify`: check the archive, and repair what can be repaired."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path

import click

from pollux.cli import key_options as keyring
from pollux.cli import output
from pollux.cli.scope import Scope, options


@click.command()
@options(filters=None, all_homes=False)
@click.option(
    "--repair", is_flag=True, help="Put back bytes that are elsewhere with the same hash; derive wrong facts anew."
)
@click.option("--deep", is_flag=True, help="Also derive all facts once more from the bytes, and compare.")
@click.option(
    "--seal",
    metavar="[FILE]",
    is_flag=False,
    flag_value="",
    help="Instead, compare the bytes with the archive's seals, or with one in a FILE kept elsewhere.",
)
@keyring.believed_keys
def command(scope: Scope, *, repair: bool, deep: bool, seal: str | None, keys: tuple[str, ...]) -> None:
    """Compare every archived byte with its SHA-256, and the rows of each session with the digest written with them.

    Damage is named with the place that still has the same bytes: the client's own file, a copy of it, another version.
    Whether the facts follow from the bytes is only checked with --deep: a digest tells of accidents, and whoever
    forges rows can write it anew. Ends with status 1 if something is damaged.

    \b
      pollux verify
      pollux verify --repair
      pollux verify --deep --json | jq '.damage[]'
      pollux verify --seal /mnt/safe/seal.cbor
    """
    from pollux.render.terminal.archive import verify_lines, verify_notes
    from pollux.views.contracts.archive import VerifyDocument

    path = scope.library.archive.path
    if seal is not None:
        if repair or deep:
            raise click.UsageError("--seal looks for what was changed since; --repair and --deep are for another time.")
        _compare_with_seals(scope, seal, keys)
        return
    if keys:
        raise click.UsageError("--key says whose seals to believe: give --seal with it.")
    report = scope.library.verify(repair=repair, deep=deep)
    if scope.as_json:
        output.print_json(VerifyDocument(report, path, deep))
    else:
        for line in verify_lines(report, path, output.short):
            click.echo(line)
        for note in verify_notes(report, path, output.short):
            output.words(note)
    click.get_current_context().exit(0 if report.is_sound else 1)


def _compare_with_seals(scope: Scope, seal: str, keys: tuple[str, ...]) -> None:
    """Check that no byte was changed or removed since the archive was sealed."""
    from pollux.cli.record_verify import say
    from pollux.library.sealing import read_seal
    from pollux.views.contracts.proofs import VerdictDocument

    path = scope.library.archive.path
    given = read_seal(Path(seal)) if seal else None
    verdict = scope.library.archive.verify_seals(keyring.believed(keys), given)
    if scope.as_json:
        output.print_json(VerdictDocument(verdict, str(path)))
    else:
        say(verdict, output.short(path))
    click.get_current_context().exit(0 if verdict.is_good else 1)
