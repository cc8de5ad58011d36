"""`pollux verify`: check archived bytes and facts, and repair damage."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from pathlib import Path

import click

from pollux.cli import output
from pollux.cli.context import Context, options
from pollux.cli.keys import load_trusted_keys, trusted_keys


@click.command()
@click.option(
    "--repair",
    is_flag=True,
    help="Restore damaged segments from files or versions with the same SHA-256, and rebuild wrong facts.",
)
@click.option("--deep", is_flag=True, help="Also derive all facts again from the archived bytes and compare them.")
@click.option(
    "--seal",
    metavar="[FILE]",
    is_flag=False,
    flag_value="",
    help="Compare archived bytes with the archive's seals, or with the copy of a seal in FILE.",
)
@trusted_keys
@options(filters=None, all_homes=False)
def command(scope: Context, *, repair: bool, deep: bool, seal: str | None, keys: tuple[str, ...]) -> None:
    """Check archived bytes against their SHA-256, and the facts of each session against their digest.

    For each damaged segment, the command names where the same bytes still exist: the client's own file, a copy of it or
    another version. `--repair` restores them from there. The digest of facts detects accidents, not forgery: run
    `--deep` to check that the facts follow from the bytes. The exit status is 1 if anything is damaged.

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
            raise click.UsageError("--seal cannot be combined with --repair or --deep: run them separately.")
        _compare_with_seals(scope, seal, keys)
        return
    if keys:
        raise click.UsageError("--key names a key that checks seals: add --seal.")
    report = scope.library.verify(repair=repair, deep=deep)
    if scope.as_json:
        output.print_json(VerifyDocument(report, path, deep))
    else:
        output.print_screen(verify_lines(report, path, output.short), pager=False)
        for note in verify_notes(report, path, output.short):
            output.note(note)
    click.get_current_context().exit(0 if report.is_ok else 1)


def _compare_with_seals(scope: Context, seal: str, keys: tuple[str, ...]) -> None:
    from pollux.cli.record import print_verdict
    from pollux.library.sealing import read_seal
    from pollux.views.contracts.proofs import VerdictDocument

    path = scope.library.archive.path
    copy = read_seal(Path(seal)) if seal else None
    verdict = scope.library.archive.verify_seals(load_trusted_keys(keys), copy)
    if scope.as_json:
        output.print_json(VerdictDocument(verdict, str(path)))
    else:
        print_verdict(verdict, output.short(path))
    click.get_current_context().exit(0 if verdict.is_ok else 1)
