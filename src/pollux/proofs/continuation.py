"""A proof for whoever keeps an old seal: the newest one is over all that the old one was over, and more.

It holds no entries, so that nothing is told but that nothing was taken away.
"""

from __future__ import annotations

import sqlite3
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence

import msgspec

from pollux.archive import seals
from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import merkle
from pollux.proofs.canonical import json_bytes
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import seal_from
from pollux.proofs.signatures import check_signature, signer_facts
from pollux.proofs.verdict import Verdict

SCHEMA = "pollux.continuation/1"


class _Continuation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: str
    old: str
    new: str
    path: tuple[str, ...]


_decode = msgspec.json.Decoder(_Continuation).decode


def continuation(database: sqlite3.Connection, old: bytes) -> dict[str, Json]:
    """Make the proof that the last seal goes on from an old one. Raises `PolluxError` where it does not."""
    seal, _ = seal_from(old)
    stored = seals.seals(database)
    hashes = [merkle.leaf_hash(body) for _, body in seals.entries(database)]
    if not stored or not 0 < seal.size <= len(hashes) or merkle.root(hashes[: seal.size]).hex() != seal.root:
        raise PolluxError(f"This archive does not go on from seal {seal.number}; `pollux verify --seal` tells more.")
    path = [one.hex() for one in merkle.consistency(hashes, seal.size)]
    return {"schema": SCHEMA, "old": b64encode(old).decode(), "new": b64encode(stored[-1][1]).decode(), "path": path}


def verify(value: Mapping[str, Json], keys: Sequence[PublicKey]) -> Verdict:
    """Look at such a proof."""
    found = Verdict("continuation")
    try:
        proof = _decode(json_bytes(value))
        old, new = (seal_from(b64decode(one, validate=True)) for one in (proof.old, proof.new))
        path = [bytes.fromhex(one) for one in proof.path]
        roots = (bytes.fromhex(old[0].root), bytes.fromhex(new[0].root))
    except (msgspec.DecodeError, ValueError, PolluxError) as error:
        found.fault("envelope", f"it is no proof that can be read ({str(error).rstrip('.')})")
        return found
    for seal, envelope in (old, new):
        check_signature(envelope, envelope.payload or b"", keys, found)
        found.facts |= signer_facts(envelope)
        found.facts[f"seal {seal.number}"] = f"{seal.at}, {seal.size} entries"
    if not merkle.is_consistent(old[0].size, new[0].size, roots[0], roots[1], path):
        found.fault("chain", f"seal {new[0].number} does not go on from seal {old[0].number}")
    return found
