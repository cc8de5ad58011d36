"""Sign records and session files."""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pollux.model import Json
from pollux.proofs import cose
from pollux.proofs.canonical import cbor_bytes, json_bytes, json_value
from pollux.proofs.public import public_of
from pollux.proofs.trace import HASH_LABEL, LABEL, NoRecordError, Trace, metadata_hash

JSON, CBOR, LOG = "application/json", "application/cbor", "application/jsonl"


def record_from(data: bytes) -> tuple[Json, bytes, str]:
    """Parse a record in JSON or CBOR; return it with its canonical bytes and their media type."""
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            record = json_value(data)
        except ValueError as error:
            raise NoRecordError(f"its JSON cannot be read ({error})") from None
        return record, json_bytes(record), JSON
    record, canonical = _cbor_value(data)
    return untagged(record), canonical, CBOR


def untagged(value: Any) -> Any:  # noqa: ANN401  any CBOR
    """Return the value inside a tag, or the value itself where it has none."""
    return _plain(value.value) if isinstance(value, cbor2.CBORTag) else value


def _cbor_value(data: bytes) -> tuple[Any, bytes]:
    """Parse CBOR with `cbor2`, which is much faster than `reader` on large records; return its canonical bytes too."""
    stream = io.BytesIO(data)
    try:
        value = cbor2.CBORDecoder(stream).decode()
        canonical = cbor_bytes(value)  # refuses what is not plain CBOR: dates, decimals, references in a circle
    except Exception:  # noqa: BLE001  the decoders of single tags raise exceptions of many libraries
        raise NoRecordError("it is neither JSON nor CBOR") from None
    if stream.tell() != len(data):
        raise NoRecordError("it is neither JSON nor CBOR")
    return value, canonical


def _plain(value: Any) -> Any:  # noqa: ANN401  any CBOR
    """Return lists and dictionaries for the immutable values that `cbor2` makes inside a tag."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


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
    """Sign a record or a file. The issuer defaults to the key's thumbprint, the subject to the session ID."""
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
