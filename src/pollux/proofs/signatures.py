"""Check signatures, and the headers of COSE envelopes as RFC 9052, section 3.1, requires them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pollux.errors import PolluxError
from pollux.proofs import cose
from pollux.proofs.canonical import sha256
from pollux.proofs.public import PublicKey, thumbprint_text, thumbprint_uri
from pollux.proofs.signing import HASH_LABEL, LABEL, metadata_hash, record_from, trace_from_record
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
_ALGORITHMS = (cose.EDDSA, -19)
"""EdDSA, and Ed25519 under its own number (RFC 9864)."""
_TYPES: dict[int | str, tuple[str, tuple[type, ...]]] = {
    cose.ALGORITHM: ("algorithm", (int, str)),
    cose.CRITICAL: ("list of critical labels", (list,)),
    cose.CONTENT_TYPE: ("content type", (int, str)),
    cose.KEY_ID: ("key ID", (bytes,)),
    cose.CLAIMS: ("CWT claims", (dict,)),
    HASH_LABEL: ("hash of the trace metadata", (bytes,)),
}
"""The header labels that Pollux understands, and the types of their values."""
_THUMBPRINT = thumbprint_uri(b"")


def verify(data: bytes, file: bytes | None, keys: Sequence[PublicKey]) -> Verdict:
    """Check a signature over a file, or over the payload that it carries."""
    verdict = Verdict("signature")
    try:
        envelope = cose.open_envelope(data)
    except cose.InvalidEnvelopeError as error:
        verdict.add_error("envelope", str(error).rstrip("."))
        return verdict
    payload = file if envelope.payload is None else envelope.payload
    if payload is None:
        verdict.add_error("payload", "it is not part of the envelope, and no file was given")
        return verdict
    if file is not None and file != payload:
        hashes = f"{_hex(file)}) is not what the envelope carries ({_hex(payload)}"
        verdict.add_error("payload", f"the file (SHA-256 {hashes})")
    verdict.facts |= _facts(envelope)
    _check_metadata(envelope, payload, verdict)
    check_signature(envelope, payload, keys, verdict)
    return verdict


def payload_of(data: bytes) -> bytes | None:
    """Return the payload that an envelope carries."""
    try:
        return cose.open_envelope(data).payload
    except cose.InvalidEnvelopeError:
        return None


def check_signature(
    envelope: cose.Envelope, payload: bytes, keys: Sequence[PublicKey], verdict: Verdict, of: str = "signature"
) -> None:
    """Check the headers of an envelope and its signature, and add its signer to the verdict."""
    check_headers(envelope, verdict)
    key = _find_key(envelope, keys, verdict)
    is_verified = key is not None and cose.is_signed(envelope, payload, key)
    issuer = envelope.claims.get(cose.ISSUER)
    verdict.signers.append(
        Signer(of, envelope.key_id, key, issuer if isinstance(issuer, str) else None, is_verified=is_verified)
    )
    if key is None or is_verified:
        return
    if any(error.what == "payload" for error in verdict.errors):
        verdict.add_error("signature", "it does not match this payload")
    else:
        changed = "the protected header, the payload or the signature was changed"
        verdict.add_error("signature", f"it does not match: {changed}")


def check_headers(envelope: cose.Envelope, verdict: Verdict) -> None:
    """Check both headers of an envelope, and the claims in it."""
    for header in (envelope.protected, envelope.unprotected):
        _check_types(header, verdict)
    for label in sorted(envelope.protected.keys() & envelope.unprotected.keys(), key=str):
        verdict.add_error("header", f"label {_name(label)} is in both headers, so it is not clear which one counts")
    _check_algorithm(envelope, verdict)
    _check_critical(envelope, verdict)
    _check_claims(envelope, verdict)


def _find_key(envelope: cose.Envelope, keys: Sequence[PublicKey], verdict: Verdict) -> PublicKey | None:
    """Return the key that an envelope names; if it names none, the only key there is."""
    key_id = envelope.key_id
    if key_id is None:
        if len(keys) == 1:
            return keys[0]
        verdict.add_error("key", f"the envelope does not name its key, and there are {len(keys)} to choose from")
        return None
    for key in keys:
        if key.id == key_id:
            return key
    key_list = ", ".join(thumbprint_text(key.id) for key in keys) or "none"
    verdict.add_error("key", f"signed with the unknown key {thumbprint_text(key_id)} (known: {key_list})")
    return None


def _check_metadata(envelope: cose.Envelope, payload: bytes, verdict: Verdict) -> None:
    """Check the trace metadata. Only their hash in the protected header makes them part of what was signed."""
    metadata = envelope.unprotected.get(LABEL)
    if HASH_LABEL in envelope.protected:
        if _metadata_hash(metadata) != envelope.protected[HASH_LABEL]:
            verdict.add_error("metadata", "the trace metadata were changed after signing")
    elif LABEL in envelope.unprotected:
        verdict.leave_unproven(
            [_METADATA],
            f"The signature does not cover the trace metadata (header {LABEL}): anyone can have set them, so they are "
            "not shown",
        )
    if not isinstance(metadata, dict):
        return
    for name, types in _MEMBERS.items():
        if name in metadata and not _is_a(metadata[name], types):
            verdict.add_error("metadata", f"the {name} in the trace metadata has the wrong type")
            return
    claimed, actual = metadata.get("content-hash"), _hex(payload)
    if claimed is not None and metadata.get("content-hash-alg", "sha-256") == "sha-256" and claimed.lower() != actual:
        hint = _rewritten_hint(payload, claimed)
        verdict.add_error("payload", f"its SHA-256 is {actual}, but the metadata name {claimed}{hint}")
    session_id = _session_id(payload, metadata)
    if session_id is not None and session_id != metadata.get("session-id"):
        named = metadata.get("session-id")
        verdict.add_error("metadata", f"they name session {named}, but the record is of {session_id!s}")


def _metadata_hash(metadata: object) -> bytes | None:
    try:
        return metadata_hash(metadata) if isinstance(metadata, dict) else None
    except PolluxError:  # a value without canonical encoding
        return None


def _rewritten_hint(payload: bytes, claimed: str) -> str:
    """Return a hint if a record differs only in its spaces or in the order of its members."""
    try:
        _, canonical, _ = record_from(payload)
    except PolluxError:
        return ""
    return ": the same values, but written differently" if _hex(canonical) == claimed.lower() else ""


def _session_id(payload: bytes, metadata: dict[str, Any]) -> str | bytes | None:
    if not metadata.get("trace-format", "").startswith("ietf-vac"):
        return None
    try:
        return trace_from_record(record_from(payload)[0]).session_id
    except PolluxError:
        return None


def _facts(envelope: cose.Envelope) -> dict[str, str]:
    """Return what the signer claims about the payload."""
    facts = {
        "signed at": _signed_at(envelope),
        "subject": envelope.claims.get(cose.SUBJECT),
        "content": envelope.protected.get(cose.CONTENT_TYPE),
    }
    metadata = envelope.unprotected.get(LABEL)
    if HASH_LABEL in envelope.protected and isinstance(metadata, dict):
        facts |= {"format": metadata.get("trace-format"), "began": metadata.get("timestamp-start")}
        facts |= {"ended": metadata.get("timestamp-end")}
    return {name: str(value) for name, value in facts.items() if isinstance(value, str | int)}


def _signed_at(envelope: cose.Envelope) -> str | None:
    """Return the time of signing that the signer claims, if it is a valid time."""
    seconds = envelope.claims.get(cose.ISSUED_AT)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None


def _check_types(header: cose.Header, verdict: Verdict) -> None:
    for label, value in header.items():
        if isinstance(label, bytes):
            verdict.add_error("header", "a label is neither a number nor a text")
        elif label in _TYPES and not _is_a(value, _TYPES[label][1]):
            verdict.add_error("header", f"its {_TYPES[label][0]} (label {_name(label)}) is {_type_name(value)}")


def _check_algorithm(envelope: cose.Envelope, verdict: Verdict) -> None:
    algorithm = envelope.protected.get(cose.ALGORITHM)
    if algorithm is None:
        verdict.add_error("header", "its protected header does not name the signature algorithm (label 1)")
    elif _is_a(algorithm, (int, str)) and algorithm not in _ALGORITHMS:
        verdict.add_error("header", f"its algorithm is {_name(algorithm)}, not EdDSA (-8)")


def _check_critical(envelope: cose.Envelope, verdict: Verdict) -> None:
    """Check the list of labels that a reader must understand or else reject the message."""
    if cose.CRITICAL in envelope.unprotected:
        verdict.add_error("header", "its list of critical labels (label 2) must not be in the unprotected header")
    labels = envelope.protected.get(cose.CRITICAL)
    if labels == []:
        verdict.add_error("header", "its list of critical labels (label 2) is empty")
    for label in labels if isinstance(labels, list) else ():
        if not _is_a(label, (int, str)):
            verdict.add_error("header", "a critical label is neither a number nor a text")
        elif label not in envelope.protected:
            verdict.add_error("header", f"the critical label {_name(label)} is not in the protected header")
        elif label not in _TYPES:
            verdict.add_error("header", f"the label {_name(label)} is critical, but this Pollux does not understand it")


def _check_claims(envelope: cose.Envelope, verdict: Verdict) -> None:
    claims = envelope.claims
    if not all(isinstance(claims.get(label), str) for label in (cose.ISSUER, cose.SUBJECT)):
        verdict.add_error("claims", "its header does not name the issuer and the subject (CWT claims 1 and 2)")
    if cose.ISSUED_AT in claims and _signed_at(envelope) is None:
        verdict.add_error("claims", "the time of signing (CWT claim 6) is not a time")
    issuer, key_id = claims.get(cose.ISSUER), envelope.key_id
    if isinstance(issuer, str) and issuer.startswith(_THUMBPRINT) and key_id and issuer != thumbprint_uri(key_id):
        verdict.add_error("claims", f"it claims to be signed with {issuer}, but names the key {thumbprint_uri(key_id)}")


def _is_a(value: object, types: tuple[type, ...]) -> bool:
    """Return whether a value has one of the types; a boolean is not a number."""
    return isinstance(value, types) and not isinstance(value, bool)


def _name(label: Any) -> str:  # noqa: ANN401  a number or a text of any length
    text = str(label)
    return text if len(text) <= len(HASH_LABEL) else f"{text[: len(HASH_LABEL)]}…"


def _type_name(value: object) -> str:
    names = {bool: "true or false", list: "an array", dict: "a map", str: "a text", bytes: "bytes", int: "a number"}
    return names.get(type(value), "of another type")


def _hex(data: bytes) -> str:
    return sha256(data).hex()
