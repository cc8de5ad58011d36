"""Proofs that need no archive: a seal, the entries of one session, and the hashes that lead from them to its root.

A proof is a JSON file; a redacted record carries one in itself (`redacted`). Either is looked at with nothing but the
public key of who sealed.
"""

from __future__ import annotations

import sqlite3
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pollux.archive import forget, seals
from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import merkle
from pollux.proofs.canonical import json_bytes, sha256
from pollux.proofs.disclosure import Proof
from pollux.proofs.entries import Entry, FileEntry, SessionEntry, entry_from
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import Seal, seal_from
from pollux.proofs.signatures import check_signature, signer_facts
from pollux.proofs.verdict import Verdict

SCHEMA = "pollux.proof/1"


class _Included(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry, and the way from it to the root."""

    entry: dict[str, Any]
    index: int
    path: tuple[str, ...]


class InclusionProof(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entries that a seal is over."""

    schema: str
    session: str
    seal: str
    entries: tuple[_Included, ...]
    fields: tuple[Proof, ...] | None = None
    """How each field of a redacted record is proven."""
    checks: str | None = None
    """A little of the hash of each, to name what was changed."""


_decode = msgspec.json.Decoder(InclusionProof).decode


def prove(database: sqlite3.Connection, session: str) -> dict[str, Json]:
    """Make the proof that the last seal is over the files of a session, as they were then."""
    names = seals.names(database, forget.files_of(database, forget.family(database, [session])))
    last: dict[object, int] = {}
    bodies = [body for _, body in seals.entries(database)]
    for place, body in enumerate(bodies):
        match entry_from(body):
            case FileEntry() as entry if entry.name in names:
                last[entry.name, entry.first_seen_us] = place
            case SessionEntry() as entry if entry.session == session:
                last[session] = place
    if not last:
        raise PolluxError(f"Nothing of session {session} is sealed yet; `pollux archive seal` does it.")
    return proof_of(database, session, bodies, sorted(last.values()))


def verify_proof(value: Mapping[str, Json], file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Look at a proof about files, and at a file that should be one of them."""
    found = Verdict("proof")
    shown = opened(value, keys, found)
    if shown is None:
        return found
    proof, entries = shown
    check_session(proof, entries, found)
    files = [one for one in entries if isinstance(one, FileEntry)]
    found.digests += [(one.sha256, one.length, one.path) for one in files]
    if file is not None:
        _check_file(file, files, found)
    return found


def proof_of(
    database: sqlite3.Connection, session: str, bodies: Sequence[bytes], places: Sequence[int]
) -> dict[str, Json]:
    """Lead some entries to the root of the last seal. Raises `PolluxError` where they do not lead there."""
    stored = seals.seals(database)
    hashes = [merkle.leaf_hash(body) for body in bodies]
    if not stored or merkle.root(hashes).hex() != seal_from(stored[-1][1])[0].root:
        raise PolluxError(
            "The last seal does not fit what it sealed, so it proves nothing; see `pollux verify --seal`."
        )
    return {
        "schema": SCHEMA,
        "session": session,
        "seal": b64encode(stored[-1][1]).decode(),
        "entries": [
            {
                "entry": msgspec.json.decode(bodies[place]),
                "index": place,
                "path": [one.hex() for one in merkle.inclusion(hashes, place)],
            }
            for place in places
        ],
    }


def opened(value: Json, keys: Sequence[PublicKey], found: Verdict) -> tuple[InclusionProof, list[Entry]] | None:
    """Read a proof, look at its seal, and lead every entry to the root."""
    try:
        proof = _decode(json_bytes(value))
        if proof.schema != SCHEMA:
            raise ValueError(f"it is of the form {proof.schema}")  # noqa: TRY301
        seal, envelope = seal_from(b64decode(proof.seal, validate=True))
    except (msgspec.DecodeError, ValueError) as error:
        found.fault("envelope", f"it is no proof that can be read ({error})")
        return None
    except PolluxError as error:
        found.fault("seal", str(error).rstrip("."))
        return None
    found.facts |= {"session": proof.session, "seal": str(seal.number), "sealed at": seal.at, "root": seal.root}
    found.facts |= signer_facts(envelope)
    check_signature(envelope, envelope.payload or b"", keys, found)
    return proof, [entry for one in proof.entries if (entry := _led(one, seal, found))]


def _led(one: _Included, seal: Seal, found: Verdict) -> Entry | None:
    body = json_bytes(one.entry)
    try:
        path = [bytes.fromhex(step) for step in one.path]
    except ValueError:
        path = []
    root = merkle.root_from_inclusion(merkle.leaf_hash(body), one.index, seal.size, path)
    if root is None or root.hex() != seal.root:
        found.fault("leaf", f"entry {one.index} is not one that seal {seal.number} is over")
        return None
    entry = entry_from(body)
    if entry is None:
        found.fault("leaf", f"entry {one.index} is of no kind that this Pollux knows")
    return entry


def _check_file(file: bytes, files: Sequence[FileEntry], found: Verdict) -> None:
    """Look for the file among those that were sealed; one that has grown since is proven up to there."""
    same = [one for one in files if len(file) >= one.length and sha256(file[: one.length]).hex() == one.sha256]
    longest = max(same, key=lambda one: one.length, default=None)
    if longest is None:
        found.fault("file", f"the file (SHA-256 {sha256(file).hex()}) is none of those that were sealed")
    elif longest.length < len(file):
        words = f"of its {len(file)} bytes only the first {longest.length} were sealed"
        found.fault("file", f"{words}, as {longest.path}")
    else:
        found.notes.append(f"the file is {longest.path} as it was sealed")


def check_session(proof: InclusionProof, entries: Sequence[Entry], found: Verdict) -> None:
    """See whose the entries are said to be, and whose they were sealed as."""
    sealed = {one.session for one in entries if isinstance(one, SessionEntry)}
    if not sealed:
        found.notes.append(f"that these files are of session {proof.session} is said, but not sealed")
    elif sealed != {proof.session}:
        found.fault("leaf", f"it speaks of session {proof.session}, but was sealed for {', '.join(sorted(sealed))}")
