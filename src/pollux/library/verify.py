"""Checking an archive, and repairing what can be repaired."""

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

if TYPE_CHECKING:
    from pollux.archive.damage import VerifyReport
    from pollux.archive.store import Archive
    from pollux.library.config import Config
    from pollux.library.freshness import Reporter
    from pollux.proofs.chain import Given
    from pollux.proofs.public import PublicKey
    from pollux.proofs.verdict import Verdict
    from pollux.sessions.reader import Progress

_NOT_SEALED = (
    "A seal covers bytes: the facts (titles, counts, tokens) were not compared; `pollux verify --deep` compares them."
)
_ON_DISK = ("gap", "edited")
"""Damage that another look at the client's files repairs."""


def verify(config: Config, report: Reporter, *, repair: bool, deep: bool) -> VerifyReport:
    """Compare every archived byte with its hash and the rows of each session with their digest.

    Args:
        config: names the archive and the homes that may still have the right bytes.
        report: told how far the work is.
        repair: whether to put back bytes that are elsewhere, and to derive wrong facts anew.
        deep: whether to derive all facts once more and compare them.

    """
    path = archive_file(config)
    with writable(path) if repair else readable(path) as archive:
        with report("verifying") as progress:
            result = checks.verify(archive, config.homes, repair=repair, progress=progress)
        if repair:
            _repair(archive, config, report, result)
        if deep:
            _compare_facts(archive, config, report, result, repair=repair)
        return result


def verify_seals(archive: Archive, known: Sequence[PublicKey], copy: Given | None, progress: Progress) -> Verdict:
    """Compare the bytes of an archive with its seals, or with a copy of one that was kept elsewhere.

    The seals of imported archives are only noted: they never decide about this one.
    """
    from pollux.archive import seals  # noqa: PLC0415  only what is sealed needs cryptography
    from pollux.proofs import imported_seals  # noqa: PLC0415
    from pollux.proofs.verify_archive import verify  # noqa: PLC0415

    chains = seals.chains(archive.database)
    notes = [imported_seals.note(chain, imported_seals.look_at(archive, chain, known)) for chain in chains]
    try:
        verdict = verify(archive, known, copy, progress=progress)
    except PolluxError as error:  # no seal of its own
        error.args = ("\n".join([*(f"{note}." for note in notes), str(error)]),)
        raise
    verdict.notes[:] = [_NOT_SEALED, *verdict.notes, *notes]
    return verdict


def _compare_facts(archive: Archive, config: Config, report: Reporter, result: VerifyReport, *, repair: bool) -> None:
    with report("comparing") as progress:
        verify_deeply(archive, result, memory=project_memory.load(config), progress=progress)
    if not repair or result.is_sound:
        return
    _repair(archive, config, report, result)
    if result.bytes_are_sound:  # new facts do not help if Pollux itself reads the bytes in two ways
        result.damage += timeline_differences(archive.database)


def _repair(archive: Archive, config: Config, report: Reporter, result: VerifyReport) -> None:
    """Derive wrong facts anew, and copy again what is on the disk."""
    left = [damage for damage in result.damage if not damage.is_repaired]
    if any(damage.code == "facts" for damage in left) and result.bytes_are_sound:
        with report("making facts") as progress:
            checks.rebuild(archive, memory=project_memory.load(config), progress=progress)
        _mark_repaired(result, "facts")
    if any(damage.code in _ON_DISK and damage.source for damage in left):
        update(archive, config, report, label="taking in")
        _mark_repaired(result, "edited")


def _mark_repaired(result: VerifyReport, code: str) -> None:
    result.damage = [replace(damage, is_repaired=True) if damage.code == code else damage for damage in result.damage]
