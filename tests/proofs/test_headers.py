"""Headers follow RFC 9052, section 3.1: a critical header that Pollux does not know fails."""

from __future__ import annotations

from typing import Any

import cbor2
import pytest
from tests.proofs.samples import KEY, PAYLOAD, PUBLIC

from pollux.proofs import signatures
from pollux.proofs.canonical import cbor_bytes
from pollux.proofs.verdict import Verdict

GOOD: dict[Any, Any] = {1: -8, 4: PUBLIC.id, 15: {1: "a", 2: "b"}}
ABSENT = object()


def verify(more: dict[Any, Any], unprotected: dict[Any, Any] | None = None) -> Verdict:
    """Return the verdict on an envelope signed with this header."""
    header = cbor2.dumps({label: value for label, value in (GOOD | more).items() if value is not ABSENT})
    signature = KEY.sign(cbor_bytes(["Signature1", header, b"", PAYLOAD]))
    data = cbor2.dumps(cbor2.CBORTag(18, [header, unprotected or {}, PAYLOAD, signature]))
    return signatures.verify(data, None, [PUBLIC])


def messages(verdict: Verdict) -> list[tuple[str, str]]:
    return [(error.what, error.message) for error in verdict.errors]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {1: -19},
        {3: "text/plain"},
        {3: 0},
        {99: 1, "x": [2**70]},
        {2: [1, 4, 15]},
        {2: [3], 3: "text/plain"},
        {2: ["trace-metadata-sha-256"], "trace-metadata-sha-256": b""},
    ],
)
def test_valid_headers_verify(more: dict[Any, Any]) -> None:
    verdict = verify(more)
    assert [message for message in messages(verdict) if message[0] != "metadata"] == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({1: ABSENT}, "its protected header does not name the signature algorithm (label 1)"),
        ({1: None}, "its algorithm (label 1) is of another type"),
        ({1: [-8]}, "its algorithm (label 1) is an array"),
        ({1: True}, "its algorithm (label 1) is true or false"),
        ({1: 2**20000}, "its algorithm (label 1) is of another type"),
        ({1: -7}, "its algorithm is -7, not EdDSA (-8)"),
        ({1: "x" * 5000}, "its algorithm is xxxxxxxxxxxxxxxxxxxxxx…, not EdDSA (-8)"),
        ({2: []}, "its list of critical labels (label 2) is empty"),
        ({2: 99, 99: 1}, "its list of critical labels (label 2) is a number"),
        ({2: [99], 99: 1}, "the label 99 is critical, but this Pollux does not understand it"),
        ({2: ["x"], "x": 1}, "the label x is critical, but this Pollux does not understand it"),
        ({2: [3]}, "the critical label 3 is not in the protected header"),
        ({2: [99]}, "the critical label 99 is not in the protected header"),
        ({2: [[1]]}, "a critical label is neither a number nor a text"),
        ({2: [True]}, "a critical label is neither a number nor a text"),
        ({3: b"x"}, "its content type (label 3) is bytes"),
        ({b"x": 1}, "a label is neither a number nor a text"),
        ({"trace-metadata-sha-256": "x"}, "its hash of the trace metadata (label trace-metadata-sha-256) is a text"),
    ],
)
def test_invalid_headers_fail(more: dict[Any, Any], words: str) -> None:
    assert ("header", words) in messages(verify(more))


@pytest.mark.parametrize(
    ("unprotected", "words"),
    [
        (
            {2: [99], 99: 1},
            "its list of critical labels (label 2) must not be in the unprotected header",
        ),
        ({4: PUBLIC.id}, "label 4 is in both headers, so it is not clear which one counts"),
        ({3: b""}, "its content type (label 3) is bytes"),
    ],
)
def test_invalid_unprotected_headers_fail(unprotected: dict[Any, Any], words: str) -> None:
    assert ("header", words) in messages(verify({}, unprotected))


def test_unsigned_algorithm_is_ignored() -> None:
    assert [what for what, _ in messages(verify({1: ABSENT}, {1: -8}))] == ["header"]


def test_key_id_in_the_unprotected_header_is_used() -> None:
    verdict = verify({4: ABSENT}, {4: PUBLIC.id})
    assert verdict.is_ok
    assert verdict.signers[0].key == PUBLIC


@pytest.mark.parametrize("claims", [[], "x", {}, {1: "a", 2: 5}, {1: ["a"], 2: "b"}])
def test_invalid_claims_fail(claims: object) -> None:
    assert ("claims", "its header does not name the issuer and the subject (CWT claims 1 and 2)") in messages(
        verify({15: claims})
    )
