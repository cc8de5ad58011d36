"""`pollux verify`: check the archive, and repair what can be repaired."""
# ruff: noqa: PLC0415  imported when the command runs

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pollux.cli import output
from pollux.cli.archive import place
from pollux.cli.scope import Scope, options, progress
from pollux.library import keys as keyring
from pollux.library import project_memory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pollux.archive.damage import Damage, Report
    from pollux.archive.store import Archive
    from pollux.proofs.public import PublicKey

SCHEMA = "pollux.verify/1"
_NOT_SEALED = (
    "A seal covers bytes: the facts (titles, counts, tokens) were not compared; `pollux verify --deep` compares them."
)


@click.command()
@options(filters=False, all_homes=False)
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
    from pollux.archive import maintenance

    path = place(scope)
    if seal is not None:
        if repair or deep:
            raise click.UsageError("--seal looks for what was changed since; --repair and --deep are for another time.")
        _hold_against_seals(scope, path, seal, keys)
        return
    if keys:
        raise click.UsageError("--key says whose seals to believe: give --seal with it.")
    with maintenance.writable(path) if repair else maintenance.readable(path) as archive:
        report = _verified(scope, archive, repair=repair, deep=deep)
    if scope.as_json:
        output.print_json(_row(report, path, deep=deep))
    else:
        _print(report, path)
    click.get_current_context().exit(0 if report.is_sound else 1)


def _hold_against_seals(scope: Scope, path: Path, seal: str, keys: tuple[str, ...]) -> None:
    """Check that no byte was changed or removed since the archive was sealed."""
    from pollux.archive import maintenance
    from pollux.cli.archive_prove import given_seal
    from pollux.cli.record_verify import row, say
    from pollux.errors import PolluxError
    from pollux.proofs.verify_archive import verify

    given = given_seal(seal) if seal else None
    known = keyring.believed(keys)
    with maintenance.readable(path) as archive, progress("verifying") as tell:
        imported = _imported_seals(archive, known)
        try:
            found = verify(archive, known, given, progress=tell)
        except PolluxError:  # no seal of its own
            for one in imported:
                output.words(f"{one}.")
            raise
    found.notes += imported
    found.notes.insert(0, _NOT_SEALED)
    if scope.as_json:
        output.print_json(row(found, str(path)))
    else:
        say(found, output.short(path))
    click.get_current_context().exit(0 if found.is_good else 1)


def _imported_seals(archive: Archive, known: Sequence[PublicKey]) -> list[str]:
    """Return one sentence about the seals of each imported archive; they never decide about this one."""
    from pollux.archive import seals
    from pollux.proofs import imported_seals

    found = seals.chains(archive.database)
    return [imported_seals.note(one, imported_seals.look_at(archive, one, known)) for one in found]


def _verified(scope: Scope, archive: Archive, *, repair: bool, deep: bool) -> Report:
    from pollux.archive.verify import verify
    from pollux.archive.verify_facts import timeline_differences, verify_deeply

    homes, known = scope.places(), project_memory.recalled()
    with progress("verifying") as tell:
        report = verify(archive, homes, repair=repair, progress=tell)
    if repair:
        _mend(scope, archive, report)
    if deep:
        with progress("comparing") as tell:
            verify_deeply(archive, report, memory=known, progress=tell)
        if repair and not report.is_sound:
            _mend(scope, archive, report)
            if report.bytes_are_sound:  # new facts do not help where Pollux itself reads the bytes in two ways
                report.damage += timeline_differences(archive.database)
    return report


def _mend(scope: Scope, archive: Archive, report: Report) -> None:
    """Make the facts anew where they are wrong, and take in again what could not be put back."""
    from dataclasses import replace

    from pollux.archive.refresh import refresh
    from pollux.archive.verify import rebuild

    homes, known = scope.places(), project_memory.recalled()
    if any(one.code == "facts" and not one.is_repaired for one in report.damage) and report.bytes_are_sound:
        with progress("making facts") as tell:
            rebuild(archive, memory=known, progress=tell)
        report.damage = [replace(one, is_repaired=True) if one.code == "facts" else one for one in report.damage]
    is_on_disk = [one.code in ("gap", "edited") and one.source and not one.is_repaired for one in report.damage]
    if any(is_on_disk):
        with progress("taking in") as tell:
            refresh(archive, homes, memory=known, progress=tell)
        report.damage = [replace(one, is_repaired=True) if one.code == "edited" else one for one in report.damage]


def _print(report: Report, path: Path) -> None:
    from pollux.render.terminal.tables import counted
    from pollux.text.amounts import size
    from pollux.text.escape import clean

    for one in report.damage:
        click.echo(clean(_line(one)))
    for note in report.notes:
        output.words(note)
    n_left = sum(not one.is_repaired for one in report.damage)
    n_repaired = len(report.damage) - n_left
    seen = f"{counted(report.n_segments, 'piece')}, {size(report.n_bytes)}"
    if not report.damage:
        click.echo(f"{output.short(path)} is sound: {seen}, every byte as it was kept.")
    if report.not_compared:
        click.echo(f"Not compared: {'; '.join(report.not_compared)}.{_more(report)}")
    if not report.damage:
        return
    mended = f"{n_repaired} repaired, " if n_repaired else ""
    output.words(f"{seen} looked at in {output.short(path)}: {mended}{n_left} damaged.")
    if any(one.source or one.code == "facts" for one in report.damage if not one.is_repaired):
        output.words("`pollux verify --repair` puts back what can be had, and makes the facts anew.")


def _more(report: Report) -> str:
    from pollux.archive.verify import PROVEN_BY_BYTES

    return " `pollux verify --deep` compares the facts." if PROVEN_BY_BYTES in report.not_compared else ""


def _line(one: Damage) -> str:
    where = f"{output.short(one.file)}: " if one.file else ""
    if one.is_repaired:
        rest = f"; repaired from {one.source}" if one.source else "; made anew"
    else:
        rest = f"; to be had from {one.source}" if one.source else "" if one.code == "facts" else "; found nowhere else"
    return f"{where}{one.message}{rest}"


def _row(report: Report, path: Path, *, deep: bool) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "archive": str(path),
        "sound": report.is_sound,
        "deep": deep,
        "segments": report.n_segments,
        "bytes": report.n_bytes,
        "damage": [
            {
                "code": one.code,
                "message": one.message,
                "machine": one.machine,
                "file": one.file,
                "version": one.version,
                "start": one.start,
                "end": one.end,
                "source": one.source,
                "repaired": one.is_repaired,
            }
            for one in report.damage
        ],
        "notes": report.notes,
        "not_compared": report.not_compared,
    }
