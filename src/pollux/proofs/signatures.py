"""Check signatures, and name what does not match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pollux.errors import PolluxError
from pollux.proofs import cose
from pollux.proofs.canonical import sha256
from pollux.proofs.headers import check_headers, signed_at
from pollux.proofs.public import PublicKey, shown
from pollux.proofs.signing import record_from
from pollux.proofs.trace import HASH_LABEL, LABEL, metadata_hash, trace_of_record
from pollux.proofs.verdict import Signer, Verdict

_METADATA = "trace-metadata"
_MEMBERS: dict[str, tuple[type, ...]] = {
    "session-id": (str, bytes),
    "agent-vendor": (str,),
    "trace-format": (str,),
    "timestamp-start": (str, int),
    "timestamp-end": (str, int),
    "content-hash": (str,),
    "content-hash-alg": (str,),
}
"""Members of trace metadata, and the types of their values."""


def verify(data: bytes, file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check a signature over a file, or over the payload that it carries."""
    found = Verdict("signature")
    try:
        envelope = cose.opened(data)
    except cose.NoEnvelopeError as error:
        found.fault("envelope", str(error).rstrip("."))
        return found
    payload = file if envelope.payload is None else envelope.payload
    if payload is None:
        found.fault("payload", "it is kept outside of the envelope, and no file was given")
        return found
    if file is not None and file != payload:
        found.fault("payload", f"the file (SHA-256 {_hex(file)}) is not what the envelope carries ({_hex(payload)})")
    found.facts |= _facts(envelope)
    _check_metadata(envelope, payload, found)
    check_signature(envelope, payload, keys, found)
    return found


def payload_of(data: bytes) -> bytes | None:
    """Return the payload that an envelope carries."""
    try:
        return cose.opened(data).payload
    except cose.NoEnvelopeError:
        return None


def check_signature(
    envelope: cose.Envelope, payload: bytes, keys: Sequence[PublicKey], found: Verdict, of: str = "signature"
) -> None:
    """Check the headers of an envelope and its signature, and add its signer to the verdict."""
    check_headers(envelope, found)
    key = _key(envelope, keys, found)
    is_verified = key is not None and cose.is_signed(envelope, payload, key)
    issuer = envelope.claims.get(cose.ISSUER)
    found.signers.append(
        Signer(of, envelope.key_id, key, issuer if isinstance(issuer, str) else None, is_verified=is_verified)
    )
    if key is None or is_verified:
        return
    if any(one.what == "payload" for one in found.faults):
        found.fault("signature", "it does not fit this payload")
    else:
        found.fault("signature", "it does not fit: the protected header, the payload or the signature was changed")


def _key(envelope: cose.Envelope, keys: Sequence[PublicKey], found: Verdict) -> PublicKey | None:
    """Return the key that an envelope names; if it names none, the only key there is."""
    key_id = envelope.key_id
    if key_id is None:
        if len(keys) == 1:
            return keys[0]
        found.fault("key", "the envelope does not name its key, and there is not just one to try")
        return None
    for key in keys:
        if key.id == key_id:
            return key
    others = ", ".join(shown(key.id) for key in keys) or "none"
    found.fault("key", f"signed with the key {shown(key_id)}, which is not known here (known: {others})")
    return None


def _check_metadata(envelope: cose.Envelope, payload: bytes, found: Verdict) -> None:
    """Check the trace metadata. Only their hash in the protected header makes them part of what was signed."""
    metadata = envelope.unprotected.get(LABEL)
    if HASH_LABEL in envelope.protected:
        if _hash_of(metadata) != envelope.protected[HASH_LABEL]:
            found.fault("metadata", "the trace metadata are not those that were signed")
    elif LABEL in envelope.unprotected:
        found.leave_unproven(
            [_METADATA],
            f"Nothing proves the trace metadata (header {LABEL}): the signature does not cover them, so anyone can "
            "have set them, and they are not shown",
        )
    if not isinstance(metadata, dict):
        return
    for name, types in _MEMBERS.items():
        if name in metadata and (not isinstance(metadata[name], types) or isinstance(metadata[name], bool)):
            found.fault("metadata", f"the {name} in the trace metadata has the wrong type")
            return
    said, there = metadata.get("content-hash"), _hex(payload)
    if said is not None and metadata.get("content-hash-alg", "sha-256") == "sha-256" and said.lower() != there:
        found.fault("payload", f"its SHA-256 is {there}, but the metadata name {said}{_rewritten(payload, said)}")
    session_id = _session_id(payload, metadata)
    if session_id is not None and session_id != metadata.get("session-id"):
        found.fault("metadata", f"they name session {metadata.get('session-id')}, the record is of {session_id!s}")


def _hash_of(metadata: object) -> bytes | None:
    try:
        return metadata_hash(metadata) if isinstance(metadata, dict) else None
    except PolluxError:  # it holds values that have no canonical form
        return None


def _rewritten(payload: bytes, said: str) -> str:
    """Return a hint where only the spelling of a record differs: its spaces, or the order of its members."""
    try:
        _, canonical, _ = record_from(payload)
    except PolluxError:
        return ""
    return ": the same values, but written differently" if _hex(canonical) == said.lower() else ""


def _session_id(payload: bytes, metadata: dict[str, Any]) -> str | bytes | None:
    if not metadata.get("trace-format", "").startswith("ietf-vac"):
        return None
    try:
        return trace_of_record(record_from(payload)[0]).session_id
    except PolluxError:
        return None


def _facts(envelope: cose.Envelope) -> dict[str, str]:
    """Return what the signer says about the payload."""
    facts = {
        "signed at": signed_at(envelope),
        "subject": envelope.claims.get(cose.SUBJECT),
        "content": envelope.protected.get(cose.CONTENT_TYPE),
    }
    metadata = envelope.unprotected.get(LABEL)
    if HASH_LABEL in envelope.protected and isinstance(metadata, dict):
        facts |= {"format": metadata.get("trace-format"), "began": metadata.get("timestamp-start")}
        facts |= {"ended": metadata.get("timestamp-end")}
    return {name: str(value) for name, value in facts.items() if isinstance(value, str | int)}


def _hex(data: bytes) -> str:
    return sha256(data).hex()
