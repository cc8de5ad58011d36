"""Prove to whoever keeps an old seal that the newest seal covers everything that the old one covered.

The proof holds no entries, so it reveals nothing else.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence

import msgspec

from pollux.archive import seals
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import merkle
from pollux.proofs.canonical import json_bytes
from pollux.proofs.chain import check_seal, given_from
from pollux.proofs.public import PublicKey
from pollux.proofs.seal import Seal, seal_from
from pollux.proofs.verdict import Verdict

SCHEMA = "pollux.continuation/1"


class _Continuation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schema: str
    old: str
    new: str
    path: tuple[str, ...]


_decode = msgspec.json.Decoder(_Continuation).decode


def continuation(archive: Archive, old: bytes) -> dict[str, Json]:
    """Return the proof that the last seal continues an old one. Raises `PolluxError` where it does not."""
    seal, _ = seal_from(old)
    stored = seals.seals(archive.database)
    hashes = [merkle.leaf_hash(body) for _, body in seals.entries(archive.database)]
    if not stored or not 0 < seal.size <= len(hashes) or merkle.root(hashes[: seal.size]).hex() != seal.root:
        raise PolluxError(f"This archive does not go on from seal {seal.number}; `pollux verify --seal` tells more.")
    path = [one.hex() for one in merkle.consistency(hashes, seal.size)]
    return {"schema": SCHEMA, "old": b64encode(old).decode(), "new": b64encode(stored[-1][1]).decode(), "path": path}


def verify(value: Mapping[str, Json], file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check such a proof; `file`, if given, is the old seal that somebody kept."""
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
        check_seal(seal, envelope, keys, found)
        found.facts[f"seal {seal.number}"] = f"{seal.at}, {seal.size} entries, root {seal.root}"
    if not merkle.is_consistent(old[0].size, new[0].size, roots[0], roots[1], path):
        found.fault("chain", f"seal {new[0].number} does not go on from seal {old[0].number}")
    _check_kept(old[0], b64decode(proof.old), file, found)
    return found


def _check_kept(seal: Seal, old: bytes, file: bytes | None, found: Verdict) -> None:
    """Check that the proof begins with the seal that was kept: whoever has the key can make another chain."""
    if file is None:
        found.leave_unproven(
            [f"seal {seal.number}"],
            f"Nothing proves that seal {seal.number} is the one that you kept; name your copy of it with --file",
        )
        return
    try:
        kept = given_from(file).data
    except PolluxError as error:
        found.fault("file", f"the file is no seal: {str(error).rstrip('.')}")
        return
    if kept != old:
        found.fault("file", f"the file is not the seal {seal.number} that the proof begins with")
