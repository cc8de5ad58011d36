"""An archive sealed: a Merkle root over all that was kept, signed, and chained to the seal before it.

All entries stand in one list that only grows, as in a transparency log. A seal is a signed statement of how long the
list is, what the root over it is, and which seal came before. So the last seal speaks for everything: a removed or
changed entry, wherever it stands, gives another root.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pollux.archive import seals
from pollux.archive.store import Archive
from pollux.errors import PolluxError
from pollux.model import Json
from pollux.proofs import cose, merkle
from pollux.proofs.canonical import json_bytes, sha256
from pollux.proofs.entries import entry_bytes, entry_from
from pollux.proofs.pending import New, unsealed
from pollux.proofs.public import public_of
from pollux.sessions.reader import Progress
from pollux.text.times import stamp

SCHEMA = "pollux.seal/1"
SUBJECT = "pollux archive"
"""The CWT subject of every seal, which tells it from other signatures of the same key."""


class Seal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is signed."""

    schema: str
    number: int
    at: str
    size: int
    """How many entries there are."""
    root: str
    previous: str | None
    """SHA-256 of the seal before it, envelope and all."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """What came out of sealing."""

    seal: Seal | None
    """The newest seal there is."""
    data: bytes
    """Its envelope."""
    new: New
    is_new: bool = False


def seal(
    archive: Archive,
    private: Ed25519PrivateKey,
    *,
    at: datetime,
    record_of: Callable[[str], Mapping[str, Json]],
    again: Sequence[str] = (),
    issuer: str | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Sealed:
    """Seal what is new since the last seal: versions of files, and what the sessions in them say.

    Args:
        archive: one that can be written.
        private: the key to sign with.
        at: now.
        record_of: makes the record of a session.
        again: sessions to commit to even if nothing of theirs is new.
        issuer: who says so; without one, the key.
        progress: is told first how many bytes are done, then how many sessions.

    """
    database = archive.database
    before = seals.entries(database)
    last = _last(before, seals.seals(database))
    known = [one for one in (entry_from(body) for _, body in before) if one]
    new = unsealed(archive, known, record_of, again=again, progress=progress)
    if not new.entries:
        return Sealed(last[0] if last else None, last[1] if last else b"", new)
    bodies = [*enumerate((entry_bytes(one) for one in new.entries), len(before))]
    hashes = [merkle.leaf_hash(body) for _, body in (*before, *bodies)]
    made = Seal(
        SCHEMA,
        last[0].number + 1 if last else 1,
        stamp(at),
        len(hashes),
        merkle.root(hashes).hex(),
        sha256(last[1]).hex() if last else None,
    )
    data = _signed(made, private, at, issuer)
    seals.append(database, bodies, made.number, data)
    return Sealed(made, data, new, is_new=True)


def seal_from(data: bytes) -> tuple[Seal, cose.Envelope]:
    """Open a seal without checking it. Raises `PolluxError` where the bytes are none."""
    envelope = cose.opened(data)
    try:
        found = msgspec.json.decode(envelope.payload or b"", type=Seal)
    except ValueError:  # msgspec's own error is one, too
        raise PolluxError("This is a signature, but not one of an archive's seal.") from None
    if found.schema != SCHEMA:
        raise PolluxError(
            f"This seal is of the form {found.schema}, which this Pollux does not know; please update it."
        )
    return found, envelope


def _last(entries: Sequence[tuple[int, bytes]], known: Sequence[tuple[int, bytes]]) -> tuple[Seal, bytes] | None:
    """Return the last seal, if it still fits; nothing may be put on top of what was tampered with."""
    if not known:
        if entries:
            raise PolluxError("There are sealed entries without a seal; `pollux verify --seal` tells more.")
        return None
    data = known[-1][1]
    found, _ = seal_from(data)
    hashes = [merkle.leaf_hash(body) for _, body in entries]
    if len(hashes) != found.size or merkle.root(hashes).hex() != found.root:
        raise PolluxError(
            "The last seal does not fit what it sealed, so none is put on it; see `pollux verify --seal`."
        )
    return found, data


def _signed(seal: Seal, private: Ed25519PrivateKey, at: datetime, issuer: str | None) -> bytes:
    claims: dict[int | str, object] = {
        cose.ISSUER: issuer or public_of(private).uri,
        cose.SUBJECT: SUBJECT,
        cose.ISSUED_AT: int(at.timestamp()),
    }
    payload = json_bytes(msgspec.to_builtins(seal))
    return cose.sign(payload, private, content_type="application/json", claims=claims)
