"""Verify and repair an archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pollux.archive import verify as checks
from pollux.archive.maintenance import readable, writable
from pollux.archive.verify_facts import timeline_differences, verify_deeply
from pollux.errors import PolluxError
from pollux.library import project_memory
from pollux.library.freshness import archive_file, update
from pollux.library.verified import remember_verification

if TYPE_CHECKING:
    from pollux.archive.damage import VerifyReport
    from pollux.archive.store import Archive
    from pollux.library.config import Config
    from pollux.library.freshness import Reporter
    from pollux.proofs.chain import SealCopy
    from pollux.proofs.public import PublicKey
    from pollux.proofs.verdict import Verdict
    from pollux.sessions.reader import Progress

_NOT_SEALED = (
    "A seal covers bytes: the facts (titles, counts, tokens) were not compared; `pollux verify --deep` compares them"
)
_ON_DISK = ("gap", "edited")
"""Damage that reading the client's files again repairs."""


def verify(config: Config, report: Reporter, *, repair: bool, deep: bool) -> VerifyReport:
    """Compare every archived byte with its hash and the rows of each session with their digest.

    Args:
        config: names the archive and the homes that may still have the right bytes.
        report: shows progress.
        repair: restore bytes that still exist elsewhere, and derive wrong facts again.
        deep: derive all facts again and compare them.

    """
    path = archive_file(config)
    with (writable if repair else readable)(path, machine=config.machine) as archive:
        with report("verifying") as progress:
            result = checks.verify(archive, config.homes, repair=repair, progress=progress)
        if repair:
            _repair(archive, config, report, result)
        if deep:
            _compare_facts(archive, config, report, result, repair=repair)
    remember_verification(config, result, deep=deep)
    return result


def verify_seals(archive: Archive, known: Sequence[PublicKey], copy: SealCopy | None, progress: Progress) -> Verdict:
    """Compare the bytes of an archive with its seals, or with a copy of a seal that was stored elsewhere.

    Seals of imported archives only add notes: they do not affect the verdict.
    """
    from pollux.archive import seals  # noqa: PLC0415  cryptography loads slowly
    from pollux.proofs.verify_archive import check_imported, describe_imported, verify  # noqa: PLC0415

    chains = seals.chains(archive.database)
    notes = [describe_imported(chain, check_imported(archive, chain, known)) for chain in chains]
    try:
        verdict = verify(archive, known, copy, progress=progress)
    except PolluxError as error:  # the archive has no seal
        error.args = ("\n".join([*(f"{note}." for note in notes), str(error)]),)
        raise
    verdict.notes[:] = [_NOT_SEALED, *verdict.notes, *notes]
    return verdict


def _compare_facts(archive: Archive, config: Config, report: Reporter, result: VerifyReport, *, repair: bool) -> None:
    with report("comparing") as progress:
        verify_deeply(archive, result, memory=project_memory.load(config), progress=progress)
    if not repair or result.is_ok:
        return
    _repair(archive, config, report, result)
    if result.bytes_are_ok:  # new facts do not help if two readers disagree about sound bytes
        result.damage += timeline_differences(archive.database)


def _repair(archive: Archive, config: Config, report: Reporter, result: VerifyReport) -> None:
    """Derive wrong facts again, and copy files again that still exist."""
    left = [damage for damage in result.damage if not damage.is_repaired]
    if any(damage.code == "facts" for damage in left) and result.bytes_are_ok:
        with report("deriving") as progress:
            checks.rebuild(archive, memory=project_memory.load(config), progress=progress)
        _mark_repaired(result, "facts")
    if any(damage.code in _ON_DISK and damage.source for damage in left):
        update(archive, config, report, label="taking in")
        _mark_repaired(result, "edited")


def _mark_repaired(result: VerifyReport, code: str) -> None:
    result.damage = [replace(damage, is_repaired=True) if damage.code == code else damage for damage in result.damage]
