"""Records and session files, signed."""

from __future__ import annotations

from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pollux.model import Json
from pollux.proofs import cose
from pollux.proofs.canonical import cbor_bytes, json_bytes, json_value
from pollux.proofs.public import public_of
from pollux.proofs.trace import HASH_LABEL, LABEL, NoRecordError, Trace, metadata_hash

JSON, CBOR, LOG = "application/json", "application/cbor", "application/jsonl"


def record_from(data: bytes) -> tuple[Json, bytes, str]:
    """Read a record from JSON or CBOR; return it with its one form as bytes, and the media type of that."""
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            record = json_value(data)
        except ValueError as error:
            raise NoRecordError(f"its JSON cannot be read ({error})") from None
        return record, json_bytes(record), JSON
    try:
        record = cose.decoded(data)
    except cose.NoEnvelopeError:
        raise NoRecordError("it is neither JSON nor CBOR") from None
    return cose.untagged(record), cbor_bytes(record), CBOR


def sign(
    payload: bytes,
    private: Ed25519PrivateKey,
    trace: Trace,
    *,
    content_type: str,
    at: datetime,
    issuer: str | None = None,
    subject: str | None = None,
    attached: bool = False,
) -> bytes:
    """Sign a record or a file. Without an issuer the key speaks for itself, without a subject it is the session."""
    name = trace.session_id
    claims: dict[int | str, object] = {
        cose.ISSUER: issuer or public_of(private).uri,
        cose.SUBJECT: subject or (name if isinstance(name, str) else name.hex()),
        cose.ISSUED_AT: int(at.timestamp()),
    }
    metadata = trace.metadata(payload)
    return cose.sign(
        payload,
        private,
        content_type=content_type,
        claims=claims,
        protected={HASH_LABEL: metadata_hash(metadata)} if metadata else {},
        unprotected={LABEL: metadata} if metadata else {},
        attached=attached,
    )
