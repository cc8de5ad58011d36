"""Check the headers of a COSE envelope as RFC 9052, section 3.1, wants them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pollux.proofs import cose
from pollux.proofs.public import uri
from pollux.proofs.trace import HASH_LABEL
from pollux.proofs.verdict import Verdict

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
"""The labels that we understand, and the types of their values."""
_THUMBPRINT = uri(b"")


def check_headers(envelope: cose.Envelope, found: Verdict) -> None:
    """Check both headers of an envelope, and the claims in it."""
    for header in (envelope.protected, envelope.unprotected):
        _check_types(header, found)
    for label in sorted(envelope.protected.keys() & envelope.unprotected.keys(), key=str):
        found.fault("header", f"label {_name(label)} is in both headers, so it is not clear which one counts")
    _check_algorithm(envelope, found)
    _check_critical(envelope, found)
    _check_claims(envelope, found)


def signed_at(envelope: cose.Envelope) -> str | None:
    """Return the time that the signer gives, where it is one."""
    seconds = envelope.claims.get(cose.ISSUED_AT)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None


def _check_types(header: cose.Header, found: Verdict) -> None:
    for label, value in header.items():
        if isinstance(label, bytes):
            found.fault("header", "a label is neither a number nor a text")
        elif label in _TYPES and not _is_a(value, _TYPES[label][1]):
            found.fault("header", f"its {_TYPES[label][0]} (label {_name(label)}) is {_kind(value)}")


def _check_algorithm(envelope: cose.Envelope, found: Verdict) -> None:
    algorithm = envelope.protected.get(cose.ALGORITHM)
    if algorithm is None:
        found.fault("header", "its protected header names no algorithm (label 1), so it is not clear how it was signed")
    elif _is_a(algorithm, (int, str)) and algorithm not in _ALGORITHMS:
        found.fault("header", f"its algorithm is {_name(algorithm)}, not EdDSA (-8)")


def _check_critical(envelope: cose.Envelope, found: Verdict) -> None:
    """Check the labels that a reader must understand, or refuse the message."""
    if cose.CRITICAL in envelope.unprotected:
        found.fault("header", "its list of critical labels (label 2) is in the unprotected header, where none may be")
    labels = envelope.protected.get(cose.CRITICAL)
    if labels == []:
        found.fault("header", "its list of critical labels (label 2) is empty")
    for label in labels if isinstance(labels, list) else ():
        if not _is_a(label, (int, str)):
            found.fault("header", "a critical label is neither a number nor a text")
        elif label not in envelope.protected:
            found.fault("header", f"the critical label {_name(label)} is not in the protected header")
        elif label not in _TYPES:
            found.fault("header", f"the label {_name(label)} is critical, and this Pollux does not understand it")


def _check_claims(envelope: cose.Envelope, found: Verdict) -> None:
    claims = envelope.claims
    if not all(isinstance(claims.get(label), str) for label in (cose.ISSUER, cose.SUBJECT)):
        found.fault("claims", "its header does not say who signed what (CWT claims 1 and 2)")
    if cose.ISSUED_AT in claims and signed_at(envelope) is None:
        found.fault("claims", "the time at which it was signed (CWT claim 6) is no time")
    issuer, key_id = claims.get(cose.ISSUER), envelope.key_id
    if isinstance(issuer, str) and issuer.startswith(_THUMBPRINT) and key_id and issuer != uri(key_id):
        found.fault("claims", f"it claims to be signed with {issuer}, but names the key {uri(key_id)}")


def _is_a(value: object, types: tuple[type, ...]) -> bool:
    return isinstance(value, types) and not isinstance(value, bool)


def _name(label: Any) -> str:  # noqa: ANN401  a number or a text of any length
    text = str(label)
    return text if len(text) <= len(HASH_LABEL) else f"{text[: len(HASH_LABEL)]}…"


def _kind(value: object) -> str:
    names = {bool: "true or false", list: "an array", dict: "a map", str: "a text", bytes: "bytes", int: "a number"}
    return names.get(type(value), "of no type that belongs there")
