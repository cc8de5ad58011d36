"""Redacted records with their proof: made from what was sealed, and looked at without the archive."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from pollux.archive import seals
from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import disclosure, merkle
from pollux.proofs.disclosure import MEMBER, REDACTED, commitment, disclosed, recomputed
from pollux.proofs.entries import SessionEntry, entry_from
from pollux.proofs.fields import Field
from pollux.proofs.inclusion import check_session, opened, proof_of
from pollux.proofs.public import PublicKey
from pollux.proofs.verdict import Verdict

_NAMED = 5


def prove_record(
    database: sqlite3.Connection, session: str, original: Mapping[str, Json], shown: Mapping[str, Json]
) -> dict[str, Json]:
    """Give a redacted copy of a record its proof. Raises `PolluxError` if what it was made from was not sealed so."""
    bodies = [body for _, body in seals.entries(database)]
    secret = seals.known_secret(database) or b""
    found = commitment(original, secret, session)
    for place in reversed(range(len(bodies))):
        match entry_from(bodies[place]):
            case SessionEntry() as entry if entry.session == session and entry.root == found.root.hex():
                proof = proof_of(database, session, bodies, [place])
                fields = disclosed(original, shown, secret, session)
                checks = disclosure.checks(recomputed(shown, fields))
                return {**shown, MEMBER: {**proof, "fields": fields, "checks": checks}}
    raise PolluxError(
        f"What session {session} says now was not sealed so; `pollux archive seal {session}` does it, then try again."
    )


def verify_record(record: Mapping[str, Json], keys: Sequence[PublicKey], *, is_signed: bool = False) -> Verdict:
    """Look at a redacted record: whether what it shows is what was sealed.

    Words that stand in place of hidden ones are nobody's, unless the record as a whole `is_signed`.
    """
    found = Verdict("redacted record")
    shown = opened(record.get(MEMBER), keys, found)
    if shown is None:
        return found
    proof, entries = shown
    try:
        leaves = recomputed(record, proof.fields or ())
    except ValueError as error:
        found.fault("field", str(error))
        return found
    sealed = [(one.root, one.fields) for one in entries if isinstance(one, SessionEntry)]
    if (merkle.root(one.hash for one in leaves).hex(), len(leaves)) not in sealed:
        wrong = _named(disclosure.changed(leaves, proof.checks or ""))
        found.fault("field", f"what it shows is not what was sealed: {wrong or 'its proof was changed'}")
    check_session(proof, entries, found)
    found.facts |= {"fields": str(len(leaves)), "shown": str(sum(one.is_shown for one in leaves))}
    others = _named([one.field for one in leaves if one.field and not one.is_shown and one.field.value != REDACTED])
    if others and is_signed:
        found.notes.append(f"hidden fields show other words, for which only the signer speaks: {others}")
    elif others:
        found.fault("field", f"hidden fields show other words, which nothing proves: {others}")
    return found


def _named(fields: Sequence[Field]) -> str:
    more = f" and {len(fields) - _NAMED} more" if len(fields) > _NAMED else ""
    return ", ".join(one.pointer for one in fields[:_NAMED]) + more
