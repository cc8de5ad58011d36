"""Make redacted records with their proof, and check them without the archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pollux.archive import seals
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import disclosure
from pollux.proofs.commitment import MEMBER, Salts, commitment
from pollux.proofs.disclosure import REDACTED, UNPROVEN, Recomputed, disclosed, recomputed
from pollux.proofs.entries import TREE, SessionEntry, entry_from
from pollux.proofs.fields import Field
from pollux.proofs.inclusion import opened, proof_of, session_entry
from pollux.proofs.public import PublicKey
from pollux.proofs.verdict import Verdict, listed
from pollux.text.shell import quoted


def prove_record(
    archive: Archive, session: str, original: Mapping[str, Json], copy: Mapping[str, Json]
) -> dict[str, Json]:
    """Add the proof to a redacted copy of a record. Raises `PolluxError` if the original was not sealed as it is."""
    bodies = [body for _, body in seals.entries(archive.database)]
    salts = Salts(seals.known_secret(archive.database) or b"", session)
    root = commitment(original, salts).root.hex()
    for place in reversed(range(len(bodies))):
        match entry_from(bodies[place]):
            case SessionEntry(session=name, root=sealed, form=form) if (name, sealed, form) == (session, root, TREE):
                proof = proof_of(archive, session, bodies, [place])
                fields = disclosed(original, copy, salts)
                checks = disclosure.checks(recomputed(copy, fields).leaves)
                return {**copy, MEMBER: {**proof, "fields": fields, "checks": checks}}
    raise PolluxError(
        f"What session {session} says now is not what was sealed. "
        f"Run `pollux archive seal {quoted(session)}`, then try again."
    )


def verify_record(record: Mapping[str, Json], keys: Sequence[PublicKey], *, is_signed: bool = False) -> Verdict:
    """Check a redacted record: whether all that it shows was sealed, and `[redacted]` stands where a value is hidden.

    Where the record as a whole `is_signed`, the signer vouches for members that no seal covers, and for other words in
    place of `[redacted]`.
    """
    found = Verdict("redacted record")
    opened_proof = opened(record.get(MEMBER), keys, found)
    if opened_proof is None:
        return found
    proof, entries = opened_proof
    session = session_entry(proof, entries, found)
    if session is None:
        return found
    if len(entries) > 1:
        found.fault("leaf", f"its proof has {len(entries)} entries, where it should have only that of its session")
    if session.form != TREE:
        found.fault(
            "leaf",
            "its session was sealed by another version of Pollux, in a form that this version does not accept; "
            f"run `pollux archive seal {session.session}` and redact it again",
        )
        return found
    try:
        copy = recomputed(record, proof.fields or ())
    except (ValueError, PolluxError) as error:
        found.fault("field", str(error).rstrip("."))
        return found
    if copy.root.hex() != session.root:
        wrong = _pointers(disclosure.changed(copy.leaves, proof.checks or ""))
        found.fault("field", f"what it shows is not what was sealed: {wrong or 'its proof was changed'}")
    n_shown = sum(leaf.is_shown for leaf in copy.leaves)
    found.facts |= {"fields": str(session.fields), "shown": str(n_shown), "hidden": str(len(copy.leaves) - n_shown)}
    _check_other_words(copy, found, is_signed=is_signed)
    _name_unproven(record, found, is_signed=is_signed)
    return found


def _check_other_words(copy: Recomputed, found: Verdict, *, is_signed: bool) -> None:
    """Check that hidden values show `[redacted]` and nothing else."""
    others = [leaf.field for leaf in copy.leaves if not leaf.is_shown and leaf.field.value != REDACTED]
    if others and is_signed:
        found.notes.append(f"hidden fields show other words, for which only the signer vouches: {_pointers(others)}")
    elif others:
        found.fault("field", f"hidden fields show other words, which nothing proves: {_pointers(others)}")


def _name_unproven(record: Mapping[str, Json], found: Verdict, *, is_signed: bool) -> None:
    """Name the members that no seal covers."""
    names = [name for name in UNPROVEN if name in record]
    if names and is_signed:
        found.notes.append(f"no seal covers these members, for which only the signer vouches: {', '.join(names)}")
    elif names:
        words = "Nothing proves these members, which no seal covers and anyone can have set"
        found.leave_unproven(names, f"{words}: {', '.join(names)}")


def _pointers(fields: Sequence[Field]) -> str:
    return listed([field.pointer for field in fields])
