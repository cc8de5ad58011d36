"""Envelopes follow RFC 9052: a published example verifies, and broken envelopes are rejected with a message."""

from __future__ import annotations

from contextlib import suppress

import cbor2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from pollux.proofs import cose
from pollux.proofs.cose import InvalidEnvelopeError
from pollux.proofs.public import PublicKey, public_from_private

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))

# `eddsa-sig-01` of the examples of the COSE working group, made with the key of RFC 8032's first test.
EXAMPLE = bytes.fromhex(
    "d28445a201270300a10442313154546869732069732074686520636f6e74656e742e58407142fd2ff96d56db85bee905a76ba1d0b7321a95c8c4"
    "d3607c5781932b7afb8711497dfa751bf40b58b3bcc32300b1487f3db34085eef013bf08f4a44d6fef0d"
)
EXAMPLE_KEY = PublicKey(bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"))


def signed(payload: bytes = b"payload", *, attached: bool = True) -> bytes:
    return cose.sign(payload, KEY, content_type="text/plain", claims={1: "me", 2: "it"}, attached=attached)


def test_published_example_verifies() -> None:
    envelope = cose.open_envelope(EXAMPLE)
    assert (envelope.payload, envelope.key_id, envelope.protected) == (b"This is the content.", b"11", {1: -8, 3: 0})
    assert cose.is_signed(envelope, b"This is the content.", EXAMPLE_KEY)
    assert not cose.is_signed(envelope, b"This is the content!", EXAMPLE_KEY)


def test_attached_and_detached_payloads_have_the_same_signature() -> None:
    attached, detached = cose.open_envelope(signed()), cose.open_envelope(signed(attached=False))
    assert (attached.payload, detached.payload) == (b"payload", None)
    assert attached.signature == detached.signature, "both sign the same bytes"
    assert cose.is_signed(detached, b"payload", public_from_private(KEY))
    assert attached.protected == {1: -8, 3: "text/plain", 4: public_from_private(KEY).id, 15: {1: "me", 2: "it"}}
    assert (attached.claims, attached.key_id) == ({1: "me", 2: "it"}, public_from_private(KEY).id)


def test_signatures_are_deterministic() -> None:
    assert signed() == signed()


@given(st.binary(max_size=400))
def test_any_bytes_are_rejected_or_opened(data: bytes) -> None:
    for envelope_data in (data, b"\xd2" + data, b"\xd2\x84" + data):
        with suppress(InvalidEnvelopeError):
            cose.open_envelope(envelope_data)


@given(st.integers(0, len(signed()) - 1))
def test_cut_envelope_is_rejected(length: int) -> None:
    with pytest.raises(InvalidEnvelopeError):
        cose.open_envelope(signed()[:length])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (signed() + b"x", "1 bytes come after its end"),
        (cbor2.dumps([b"", {}, b"", b""]), "does not begin with tag 18"),
        (cbor2.dumps(cbor2.CBORTag(98, [b"", {}, b"", b""])), "does not begin with tag 18"),
        (cbor2.dumps(cbor2.CBORTag(18, [b"", {}, b""])), "two headers, a payload and a signature"),
        (cbor2.dumps(cbor2.CBORTag(18, [b"", {}, "text", b""])), "two headers, a payload and a signature"),
        (cbor2.dumps(cbor2.CBORTag(18, ["", {}, b"", b""])), "two headers, a payload and a signature"),
        (cbor2.dumps(cbor2.CBORTag(18, [b"\x01", {}, b"", b""])), "protected header is not a map"),
        (cbor2.dumps(cbor2.CBORTag(18, [b"\xa1", {}, b"", b""])), "cannot be read"),
        (b"\xd2" + b"\x9f" * 5000, "cannot be read"),
    ],
)
def test_invalid_envelopes_are_rejected(data: bytes, words: str) -> None:
    with pytest.raises(InvalidEnvelopeError, match=words):
        cose.open_envelope(data)


def test_empty_header_has_no_fields() -> None:
    envelope = cose.open_envelope(cbor2.dumps(cbor2.CBORTag(18, [b"", {4: "text"}, b"", b""])))
    assert (envelope.protected, envelope.key_id, envelope.claims) == ({}, None, {})
    assert not cose.is_signed(envelope, b"", public_from_private(KEY))
