"""Check the seals of an archive: that each is signed, continues the previous one, and matches the sealed entries."""

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
class SealCopy:
    """A copy of a seal from outside the archive, optionally with the entries that it covers."""

    data: bytes
    entries: tuple[bytes, ...] | None = None

    @property
    def file_bytes(self) -> bytes:
        """The content of its file: the seal alone, or an array of the seal and all entries."""
        return self.data if self.entries is None else cbor_bytes([self.data, [*self.entries]])


def seal_copy_from(data: bytes) -> SealCopy:
    """Parse a copy of a seal. Raises `PolluxError` if the bytes are not a seal."""
    match cose.decode_cbor(data):
        case [bytes(seal), list(entries)] if all(isinstance(entry, bytes) for entry in entries):
            return SealCopy(seal, tuple(entries))
        case _:
            seal_from(data)
            return SealCopy(data)


def check_chain(stored: Numbered, entries: Numbered, keys: Sequence[PublicKey], verdict: Verdict) -> list[Seal]:
    """Check all seals of an archive; return those that can be read."""
    _check_places(entries, verdict)
    chain: list[Seal] = []
    previous_number, previous = 0, None
    for number, data in stored:
        try:
            seal, envelope = seal_from(data)
        except PolluxError as error:
            verdict.add_error("seal", f"seal {number} cannot be read: {str(error).rstrip('.')}")
        else:
            if number > previous_number + 1:
                verdict.add_error("chain", f"{_numbers(previous_number + 1, number - 1)} missing before seal {number}")
            elif seal.number != number:
                verdict.add_error("chain", f"the seal in place {number} has the number {seal.number}")
            elif seal.previous != (sha256(previous).hex() if previous is not None else None):
                verdict.add_error("chain", f"seal {number} does not continue seal {number - 1} of this archive")
            _check_named(seal, envelope, f"seal {number}", keys, verdict)
            chain.append(seal)
        previous_number, previous = number, data
    _check_roots(chain, entries, verdict)
    return chain


def check_seal(seal: Seal, envelope: cose.Envelope, keys: Sequence[PublicKey], verdict: Verdict) -> None:
    """Check the signature of a seal, and that it was signed as a seal and not as something else."""
    check_signature(envelope, envelope.payload or b"", keys, verdict, of=f"seal {seal.number}")
    if envelope.claims.get(cose.SUBJECT) != SUBJECT:
        verdict.add_error("claims", f"its subject (CWT claim 2) is not '{SUBJECT}', so it was not signed as a seal")


def check_seal_copy(copy: SealCopy, keys: Sequence[PublicKey], verdict: Verdict) -> Seal:
    """Check a copy of a seal, and the entries that came with it."""
    seal, envelope = seal_from(copy.data)
    _check_named(seal, envelope, _name(seal), keys, verdict)
    if copy.entries is not None and _root(copy.entries) != (seal.size, seal.root):
        verdict.add_error("leaf", f"{_name(seal)} does not cover the {len(copy.entries)} entries that came with it")
    return seal


def check_external_seal(
    copy: SealCopy, stored: Numbered, entries: Numbered, keys: Sequence[PublicKey], verdict: Verdict
) -> tuple[Seal, list[bytes]]:
    """Check a copy of a seal, and that the archive still has that seal and its entries.

    Returns the seal with the entries that it covers: those of the copy, or else the archive's.
    """
    seal = check_seal_copy(copy, keys, verdict)
    name, archived = _name(seal), dict(stored).get(seal.number)
    if archived is None:
        last = f"its last seal is {stored[-1][0]}" if stored else "it has no seal"
        verdict.add_error("chain", f"{name} is not in the archive: {last}")
    elif archived != copy.data:
        verdict.add_error("chain", f"{name} differs from the seal that the archive has under this number")
    bodies = [body for _, body in entries][: max(0, seal.size)]
    if _root(bodies) != (seal.size, seal.root):
        verdict.add_error("leaf", f"the first {len(bodies)} entries of the archive are not the {seal.size} of {name}")
    return seal, bodies if copy.entries is None else [*copy.entries]


def _check_named(seal: Seal, envelope: cose.Envelope, name: str, keys: Sequence[PublicKey], verdict: Verdict) -> None:
    checked = Verdict("seal")
    check_seal(seal, envelope, keys, checked)
    for error in checked.errors:
        verdict.add_error(error.what, f"{name} of {seal.at}: {error.message}")
    # A chain can have thousands of seals: list only the newest one of each key and issuer.
    new = {(signer.key_id, signer.issuer, signer.is_verified) for signer in checked.signers}
    verdict.signers[:] = [
        signer for signer in verdict.signers if (signer.key_id, signer.issuer, signer.is_verified) not in new
    ]
    verdict.signers += checked.signers


def _check_places(entries: Numbered, verdict: Verdict) -> None:
    expected = 0
    for place, _ in entries:
        if place != expected:
            verdict.add_error("leaf", f"sealed entries {expected}–{place - 1} are missing")
        expected = place + 1


def _check_roots(chain: Sequence[Seal], entries: Numbered, verdict: Verdict) -> None:
    """Compare the entries with the root of every seal; the first that differs locates the change."""
    sizes = [seal.size for seal in chain]
    if sizes != sorted(sizes):
        verdict.add_error("chain", "a later seal covers fewer entries than an earlier one")
        return
    hashes = [merkle.leaf_hash(body) for _, body in entries]
    covered = [seal for seal in chain if seal.size <= len(hashes)]
    start = 0
    for seal, root in zip(covered, merkle.roots(hashes, [seal.size for seal in covered]), strict=True):
        if root.hex() != seal.root:
            change = f"one of the sealed entries {start}–{seal.size - 1} was altered, added or removed"
            verdict.add_error("leaf", f"{change}: seal {seal.number} has another root")
            return
        start = seal.size
    if len(covered) < len(chain):
        seal = chain[len(covered)]
        verdict.add_error("leaf", f"seal {seal.number} covers {seal.size} entries, but the archive has {len(hashes)}")
    elif len(hashes) > start:
        verdict.add_error("leaf", f"no seal covers the entries from {start} on")


def _name(seal: Seal) -> str:
    return f"the given seal {seal.number}"


def _root(bodies: Sequence[bytes]) -> tuple[int, str]:
    return len(bodies), merkle.root([merkle.leaf_hash(body) for body in bodies]).hex()


def _numbers(first: int, last: int) -> str:
    return f"seal {first} is" if first == last else f"seals {first}–{last} are"
