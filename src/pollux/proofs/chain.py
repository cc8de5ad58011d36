"""The seals of an archive: whether each is signed, follows the one before it, and fits the entries that it sealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pollux.errors import PolluxError
from pollux.proofs import cose, merkle
from pollux.proofs.canonical import cbor_bytes, sha256
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import SUBJECT, Seal, seal_from
from pollux.proofs.signatures import check_signature
from pollux.proofs.verdict import Verdict

Numbered: TypeAlias = Sequence[tuple[int, bytes]]
"""Seals with their numbers, or entries with their places."""


@dataclass(frozen=True, slots=True)
class Given:
    """A seal that was kept in another place, and maybe the entries that it sealed."""

    data: bytes
    entries: tuple[bytes, ...] | None = None

    @property
    def file_bytes(self) -> bytes:
        """How it is written into a file: the seal alone, or an array of the seal and all entries."""
        return self.data if self.entries is None else cbor_bytes([self.data, [*self.entries]])


def given_from(data: bytes) -> Given:
    """Read a seal from a file. Raises `PolluxError` where it is none."""
    match cose.decoded(data):
        case [bytes(seal), list(entries)] if all(isinstance(one, bytes) for one in entries):
            return Given(seal, tuple(entries))
        case _:
            seal_from(data)
            return Given(data)


def check_chain(stored: Numbered, entries: Numbered, keys: Sequence[PublicKey], found: Verdict) -> list[Seal]:
    """Look at all seals that an archive has; return those that can be read."""
    _check_places(entries, found)
    good: list[Seal] = []
    before: bytes | None = None
    for place, (number, data) in enumerate(stored, 1):
        try:
            seal, envelope = seal_from(data)
        except PolluxError as error:
            found.fault("seal", f"seal {number} cannot be read: {str(error).rstrip('.')}")
            before = data
            continue
        if number > place and (place == 1 or stored[place - 2][0] != number - 1):
            first = stored[place - 2][0] + 1 if place > 1 else 1
            found.fault("chain", f"{_numbers(first, number - 1)} missing: seal {number} follows on what is not there")
        elif seal.number != number:
            found.fault("chain", f"the seal in place {number} says that it is seal {seal.number}")
        elif seal.previous != (sha256(before).hex() if before is not None else None):
            found.fault("chain", f"seal {number} does not follow on seal {number - 1} as it stands here")
        _check_named(seal, envelope, f"seal {number}", keys, found)
        good.append(seal)
        before = data
    _check_roots(good, entries, found)
    return good


def check_seal(seal: Seal, envelope: cose.Envelope, keys: Sequence[PublicKey], found: Verdict) -> None:
    """Check the signature of a seal, and that it was signed as a seal and not as something else."""
    check_signature(envelope, envelope.payload or b"", keys, found, of=f"seal {seal.number}")
    if envelope.claims.get(cose.SUBJECT) != SUBJECT:
        found.fault("claims", f"its subject (CWT claim 2) is not '{SUBJECT}', so it was not signed as a seal")


def check_given(given: Given, keys: Sequence[PublicKey], found: Verdict) -> Seal:
    """Check a seal, and the entries that came with it."""
    seal, envelope = seal_from(given.data)
    _check_named(seal, envelope, _name(seal), keys, found)
    if given.entries is not None and _root(given.entries) != (seal.size, seal.root):
        found.fault("leaf", f"{_name(seal)} is not over the {len(given.entries)} entries that came with it")
    return seal


def check_outside(
    given: Given, stored: Numbered, entries: Numbered, keys: Sequence[PublicKey], found: Verdict
) -> tuple[Seal, list[bytes]]:
    """Look at a seal from elsewhere, and whether the archive's own chain still leads through it.

    Returns it with the entries that it speaks for: its own, or the archive's.
    """
    seal = check_given(given, keys, found)
    name, there = _name(seal), dict(stored).get(seal.number)
    if there is None:
        last = f"seal {stored[-1][0]} is its last" if stored else "it has none"
        found.fault("chain", f"{name} is not in the archive: {last}")
    elif there != given.data:
        found.fault("chain", f"{name} is not the one that the archive has under this number")
    bodies = [body for _, body in entries][: max(0, seal.size)]
    if _root(bodies) != (seal.size, seal.root):
        found.fault("leaf", f"{name} is over {seal.size} other entries than the first {len(bodies)} of the archive")
    return seal, bodies if given.entries is None else [*given.entries]


def _check_named(seal: Seal, envelope: cose.Envelope, name: str, keys: Sequence[PublicKey], found: Verdict) -> None:
    verdict = Verdict("seal")
    check_seal(seal, envelope, keys, verdict)
    for fault in verdict.faults:
        found.fault(fault.what, f"{name} of {seal.at}: {fault.message}")
    # A chain can have thousands of seals: only the newest one of each key and name is kept.
    new = {(one.key_id, one.issuer, one.is_verified) for one in verdict.signers}
    found.signers[:] = [one for one in found.signers if (one.key_id, one.issuer, one.is_verified) not in new]
    found.signers += verdict.signers


def _check_places(entries: Numbered, found: Verdict) -> None:
    expected = 0
    for place, _ in entries:
        if place != expected:
            found.fault("leaf", f"sealed entries {expected}–{place - 1} are missing")
        expected = place + 1


def _check_roots(good: Sequence[Seal], entries: Numbered, found: Verdict) -> None:
    """Hold the entries against the root of every seal; the first that differs tells between which it was changed."""
    sizes = [one.size for one in good]
    if sizes != sorted(sizes):
        found.fault("chain", "a later seal is over fewer entries than an earlier one")
        return
    hashes = [merkle.leaf_hash(body) for _, body in entries]
    covered = [one for one in good if one.size <= len(hashes)]
    start = 0
    for seal, root in zip(covered, merkle.roots(hashes, [one.size for one in covered]), strict=True):
        if root.hex() != seal.root:
            words = f"one of the sealed entries {start}–{seal.size - 1} was altered, added or removed"
            found.fault("leaf", f"{words}: seal {seal.number} has another root")
            return
        start = seal.size
    if len(covered) < len(good):
        seal = good[len(covered)]
        found.fault("leaf", f"seal {seal.number} is over {seal.size} entries, of which {len(hashes)} are there")
    elif len(hashes) > start:
        found.fault("leaf", f"{len(hashes) - start} entries come after the last seal, and no seal is over them")


def _name(seal: Seal) -> str:
    return f"the given seal {seal.number}"


def _root(bodies: Sequence[bytes]) -> tuple[int, str]:
    return len(bodies), merkle.root([merkle.leaf_hash(one) for one in bodies]).hex()


def _numbers(first: int, last: int) -> str:
    return f"seal {first} is" if first == last else f"seals {first}–{last} are"
