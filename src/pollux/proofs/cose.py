"""COSE_Sign1 (RFC 9052) with Ed25519: some bytes, who signed them, and what was said about them.

An envelope is CBOR tag 18 around protected header, unprotected header, payload or null, and signature. What is signed
is the array `["Signature1", protected header, empty, payload]`, as deterministic CBOR.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pollux.errors import PolluxError
from pollux.proofs.canonical import cbor_bytes
from pollux.proofs.public import PublicKey, public_of

ALGORITHM, CONTENT_TYPE, KEY_ID, CLAIMS = 1, 3, 4, 15
"""Labels of header parameters."""
ISSUER, SUBJECT, ISSUED_AT = 1, 2, 6
"""Labels of CWT claims."""
EDDSA = -8
_TAG = 18

Header: TypeAlias = Mapping[int | str, Any]


class NoEnvelopeError(PolluxError):
    """Bytes that are no COSE_Sign1 envelope."""

    def __init__(self, reason: str) -> None:
        """Say why."""
        super().__init__(f"This is no COSE_Sign1 envelope: {reason}.")


@dataclass(frozen=True, slots=True)
class Envelope:
    """A COSE_Sign1 envelope, opened but not yet believed."""

    protected_bytes: bytes
    protected: Header
    unprotected: Header
    payload: bytes | None
    """Nothing where it is kept elsewhere."""
    signature: bytes

    @property
    def key_id(self) -> bytes | None:
        """The key that it says it was signed with."""
        found = self.protected.get(KEY_ID, self.unprotected.get(KEY_ID))
        return found if isinstance(found, bytes) else None

    @property
    def claims(self) -> Header:
        """Who says what about whom, since when."""
        found = self.protected.get(CLAIMS)
        return found if isinstance(found, dict) else {}


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
    """Sign some bytes; the header parameters that every envelope of ours has are put in here."""
    header = {
        ALGORITHM: EDDSA,
        CONTENT_TYPE: content_type,
        KEY_ID: public_of(private).id,
        CLAIMS: dict(claims),
        **(protected or {}),
    }
    header_bytes = cbor_bytes(header)
    signature = private.sign(_to_be_signed(header_bytes, payload))
    parts = [header_bytes, dict(unprotected or {}), payload if attached else None, signature]
    return cbor_bytes(cbor2.CBORTag(_TAG, parts))


def opened(data: bytes) -> Envelope:
    """Take an envelope apart. Raises `NoEnvelopeError` where it is none."""
    found = decoded(data)
    if not isinstance(found, cbor2.CBORTag) or found.tag != _TAG:
        raise NoEnvelopeError("it does not begin with tag 18")
    match _plain(found.value):
        case [bytes(protected), dict(unprotected), bytes() | None as payload, bytes(signature)]:
            header = decoded(protected) if protected else {}
        case _:
            raise NoEnvelopeError("its four parts are not what they should be")
    if not isinstance(header, dict):
        raise NoEnvelopeError("its protected header is no map")
    return Envelope(protected, header, unprotected, payload, signature)


def is_signed(envelope: Envelope, payload: bytes, public: PublicKey) -> bool:
    """Tell whether a key has signed this header and this payload."""
    signed = _to_be_signed(envelope.protected_bytes, payload)
    try:
        Ed25519PublicKey.from_public_bytes(public.raw).verify(envelope.signature, signed)
    except InvalidSignature:
        return False
    return True


def decoded(data: bytes) -> Any:  # noqa: ANN401  whatever CBOR holds
    """Read one item of CBOR, and nothing after it."""
    stream = io.BytesIO(data)
    try:
        found = cbor2.CBORDecoder(stream).decode()
    except (cbor2.CBORError, ValueError, TypeError, RecursionError, OverflowError, MemoryError) as error:
        raise NoEnvelopeError(f"its CBOR cannot be read ({error})") from None
    if stream.tell() != len(data):
        raise NoEnvelopeError(f"{len(data) - stream.tell()} bytes come after its end")
    return found


def untagged(value: Any) -> Any:  # noqa: ANN401
    """Return what a tag is put around, if there is one."""
    return _plain(value.value) if isinstance(value, cbor2.CBORTag) else value


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Make lists and dictionaries of what a decoder gives inside a tag, where it wants values that do not change."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _to_be_signed(protected: bytes, payload: bytes) -> bytes:
    return cbor_bytes(["Signature1", protected, b"", payload])
