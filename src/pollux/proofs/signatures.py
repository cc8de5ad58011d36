"""Signatures, looked at: what does not match is named."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pollux.errors import PolluxError
from pollux.proofs import cose
from pollux.proofs.canonical import sha256
from pollux.proofs.public import PublicKey, shown, uri
from pollux.proofs.signing import record_from
from pollux.proofs.trace import HASH_LABEL, LABEL, metadata_hash, trace_of_record
from pollux.proofs.verdict import Verdict

_ALGORITHMS = {cose.EDDSA, -19}
"""EdDSA, and the same under its newer name (RFC 9864)."""


def verify(data: bytes, file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Look at a signature: over the file, or over what it carries itself."""
    found = Verdict("signature")
    try:
        envelope = cose.opened(data)
    except cose.NoEnvelopeError as error:
        found.fault("envelope", str(error).rstrip("."))
        return found
    found.facts |= signature_facts(envelope)
    payload = file if envelope.payload is None else envelope.payload
    if payload is None:
        found.fault("payload", "it is kept outside of the envelope, and no file was given")
        return found
    if file is not None and file != payload:
        found.fault("payload", f"the file (SHA-256 {_hex(file)}) is not what the envelope carries ({_hex(payload)})")
    _check_metadata(envelope, payload, found)
    check_signature(envelope, payload, keys, found)
    return found


def payload_of(data: bytes) -> bytes | None:
    """Return what an envelope carries."""
    try:
        return cose.opened(data).payload
    except cose.NoEnvelopeError:
        return None


def check_signature(envelope: cose.Envelope, payload: bytes, keys: Sequence[PublicKey], found: Verdict) -> None:
    """Look for the key of an envelope, and at its signature."""
    if envelope.protected.get(cose.ALGORITHM, cose.EDDSA) not in _ALGORITHMS:
        found.fault("header", f"its algorithm is {envelope.protected[cose.ALGORITHM]}, not EdDSA (-8)")
    if not all(isinstance(envelope.claims.get(label), str) for label in (cose.ISSUER, cose.SUBJECT)):
        found.fault("claims", "its header does not say who signed what (CWT claims 1 and 2)")
    key = _key(envelope, keys, found)
    if key is None or cose.is_signed(envelope, payload, key):
        return
    if any(one.what == "payload" for one in found.faults):
        found.fault("signature", "it does not fit this payload")
    else:
        found.fault("signature", "it does not fit: the protected header, the payload or the signature was changed")


def _key(envelope: cose.Envelope, keys: Sequence[PublicKey], found: Verdict) -> PublicKey | None:
    """Find the key that an envelope names; one without a name is tried with the only key there is."""
    key_id = envelope.key_id
    if key_id is None:
        if len(keys) == 1:
            return keys[0]
        found.fault("key", "the envelope does not name its key, and there is not just one to try")
        return None
    for one in keys:
        if one.id == key_id:
            return one
    others = ", ".join(shown(one.id) for one in keys) or "none"
    found.fault("key", f"signed with the key {shown(key_id)}, which is not known here (known: {others})")
    return None


def _check_metadata(envelope: cose.Envelope, payload: bytes, found: Verdict) -> None:
    metadata = envelope.unprotected.get(LABEL)
    bound = envelope.protected.get(HASH_LABEL)
    if bound is not None and _hash_of(metadata) != bound:
        found.fault("metadata", "the trace metadata are not those that were signed")
    if not isinstance(metadata, dict):
        return
    said, there = metadata.get("content-hash"), _hex(payload)
    if isinstance(said, str) and metadata.get("content-hash-alg", "sha-256") == "sha-256" and said.lower() != there:
        found.fault("payload", f"its SHA-256 is {there}, but what was signed has {said}{_rewritten(payload, said)}")
    session_id = _session_id(payload, metadata)
    if session_id is not None and session_id != metadata.get("session-id"):
        found.fault("metadata", f"they speak of session {metadata.get('session-id')}, the record of {session_id!s}")


def _hash_of(metadata: object) -> bytes | None:
    try:
        return metadata_hash(metadata) if isinstance(metadata, dict) else None
    except PolluxError:  # values that nobody would write
        return None


def _rewritten(payload: bytes, said: str) -> str:
    """Tell whether only the spelling differs: spaces, or the order of members."""
    try:
        _, canonical, _ = record_from(payload)
    except PolluxError:
        return ""
    return ": the same values, but written differently" if _hex(canonical) == said.lower() else ""


def _session_id(payload: bytes, metadata: dict[str, Any]) -> str | bytes | None:
    if not str(metadata.get("trace-format")).startswith("ietf-vac"):
        return None
    try:
        return trace_of_record(record_from(payload)[0]).session_id
    except PolluxError:
        return None


def signature_facts(envelope: cose.Envelope) -> dict[str, str]:
    """Say what an envelope says of itself."""
    claims, metadata = envelope.claims, envelope.unprotected.get(LABEL)
    found = {
        **signer_facts(envelope),
        "signed at": _when(claims.get(cose.ISSUED_AT)),
        "subject": claims.get(cose.SUBJECT),
        "content": envelope.protected.get(cose.CONTENT_TYPE),
    }
    if isinstance(metadata, dict):
        found |= {"format": metadata.get("trace-format"), "began": metadata.get("timestamp-start")}
        found |= {"ended": metadata.get("timestamp-end")}
    return {name: str(value) for name, value in found.items() if value is not None}


def signer_facts(envelope: cose.Envelope) -> dict[str, str]:
    """Say who signed; where nobody is named, the key."""
    issuer, key_id = envelope.claims.get(cose.ISSUER), envelope.key_id
    is_named = isinstance(issuer, str) and (key_id is None or issuer != uri(key_id))
    return {**({"signed by": str(issuer)} if is_named else {}), **({"key": shown(key_id)} if key_id else {})}


def _when(seconds: object) -> str | None:
    if not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None


def _hex(data: bytes) -> str:
    return sha256(data).hex()
