"""Headers follow RFC 9052, section 3.1: what a reader must understand and does not, fails."""

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
    """Check an envelope that was signed with this header, whatever is in it."""
    header = cbor2.dumps({label: value for label, value in (GOOD | more).items() if value is not ABSENT})
    signature = KEY.sign(cbor_bytes(["Signature1", header, b"", PAYLOAD]))
    data = cbor2.dumps(cbor2.CBORTag(18, [header, unprotected or {}, PAYLOAD, signature]))
    return signatures.verify(data, None, [PUBLIC])


def messages(found: Verdict) -> list[tuple[str, str]]:
    return [(one.what, one.message) for one in found.errors]


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
def test_headers_that_hold(more: dict[Any, Any]) -> None:
    found = verify(more)
    assert [one for one in messages(found) if one[0] != "metadata"] == []


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
def test_headers_that_fail(more: dict[Any, Any], words: str) -> None:
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
def test_unprotected_headers_that_fail(unprotected: dict[Any, Any], words: str) -> None:
    assert ("header", words) in messages(verify({}, unprotected))


def test_an_algorithm_that_is_not_signed_does_not_count() -> None:
    assert [what for what, _ in messages(verify({1: ABSENT}, {1: -8}))] == ["header"]


def test_a_key_id_in_the_unprotected_header() -> None:
    found = verify({4: ABSENT}, {4: PUBLIC.id})
    assert found.is_ok
    assert found.signers[0].key == PUBLIC


@pytest.mark.parametrize("claims", [[], "x", {}, {1: "a", 2: 5}, {1: ["a"], 2: "b"}])
def test_claims_that_fail(claims: object) -> None:
    assert ("claims", "its header does not name the issuer and the subject (CWT claims 1 and 2)") in messages(
        verify({15: claims})
    )
