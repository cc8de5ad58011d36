"""Create and parse COSE_Sign1 envelopes (RFC 9052) with Ed25519.

An envelope is CBOR tag 18 around the protected header, the unprotected header, the payload or null, and the signature.
The signature covers the array `["Signature1", protected header, empty, payload]`, as deterministic CBOR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pollux.errors import PolluxError
from pollux.proofs.canonical import cbor_bytes
from pollux.proofs.cbor import Tag, read_cbor
from pollux.proofs.public import PublicKey, public_from_private

ALGORITHM, CRITICAL, CONTENT_TYPE, KEY_ID, CLAIMS = 1, 2, 3, 4, 15
"""Labels of header parameters."""
ISSUER, SUBJECT, ISSUED_AT = 1, 2, 6
"""Labels of CWT claims."""
EDDSA = -8
_TAG = 18

Header: TypeAlias = Mapping[int | str, Any]


class InvalidEnvelopeError(PolluxError):
    """The bytes are not a COSE_Sign1 envelope."""

    def __init__(self, reason: str) -> None:
        """Build the message from the reason."""
        super().__init__(f"This is not a COSE_Sign1 envelope: {reason}.")


@dataclass(frozen=True, slots=True)
class Envelope:
    """A parsed COSE_Sign1 envelope whose signature is not checked yet."""

    protected_bytes: bytes
    protected: Header
    unprotected: Header
    payload: bytes | None
    """None if the payload is in another file."""
    signature: bytes

    @property
    def key_id(self) -> bytes | None:
        """The key that the envelope names."""
        key_id = self.protected.get(KEY_ID, self.unprotected.get(KEY_ID))
        return key_id if isinstance(key_id, bytes) else None

    @property
    def claims(self) -> Header:
        """The CWT claims: issuer, subject, time."""
        claims = self.protected.get(CLAIMS)
        return claims if isinstance(claims, dict) else {}


def sign(
    payload: bytes,
    private: Ed25519PrivateKey,
    *,
    content_type: str,
    claims: Header,
    protected: Header | None = None,
    unprotected: Header | None = None,
    attached: bool = True,
) -> bytes:
    """Return an envelope that signs a payload, with the header parameters that all envelopes of Pollux have."""
    header = {
        ALGORITHM: EDDSA,
        CONTENT_TYPE: content_type,
        KEY_ID: public_from_private(private).id,
        CLAIMS: dict(claims),
        **(protected or {}),
    }
    header_bytes = cbor_bytes(header)
    signature = private.sign(_to_be_signed(header_bytes, payload))
    parts = [header_bytes, dict(unprotected or {}), payload if attached else None, signature]
    return cbor_bytes(Tag(_TAG, parts))


def open_envelope(data: bytes) -> Envelope:
    """Parse an envelope. Raises `InvalidEnvelopeError`."""
    tagged = decode_cbor(data)
    if not isinstance(tagged, Tag) or tagged.tag != _TAG:
        raise InvalidEnvelopeError("it does not begin with tag 18")
    match tagged.value:
        case [bytes(protected), dict(unprotected), bytes() | None as payload, bytes(signature)]:
            header = decode_cbor(protected) if protected else {}
        case _:
            raise InvalidEnvelopeError("it does not consist of two headers, a payload and a signature")
    if not isinstance(header, dict):
        raise InvalidEnvelopeError("its protected header is not a map")
    return Envelope(protected, header, unprotected, payload, signature)


def is_signed(envelope: Envelope, payload: bytes, public: PublicKey) -> bool:
    """Return whether a key signed this header and this payload."""
    signed = _to_be_signed(envelope.protected_bytes, payload)
    try:
        Ed25519PublicKey.from_public_bytes(public.raw).verify(envelope.signature, signed)
    except InvalidSignature:
        return False
    return True


def decode_cbor(data: bytes) -> Any:  # noqa: ANN401  any CBOR
    """Parse one CBOR item. Raises `InvalidEnvelopeError`."""
    try:
        return read_cbor(data)
    except ValueError as error:
        raise InvalidEnvelopeError(f"its CBOR cannot be read ({error})") from None


def _to_be_signed(protected: bytes, payload: bytes) -> bytes:
    return cbor_bytes(["Signature1", protected, b"", payload])
