"""A second verifier of proofs, written only from the documentation, which imports nothing of Pollux."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

OUTSIDE = {"created", "recording-agent", "redacted", "vcs", "pollux-proof"}


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def canonical(value: object) -> bytes:
    """Return canonical JSON of values without fractions and with ASCII names, which are enough here."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def root_of(leaves: list[bytes]) -> bytes:
    """Return the root of a tree as RFC 9162 defines it."""
    if len(leaves) < 2:
        return leaves[0] if leaves else sha256(b"")
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return sha256(b"\x01" + root_of(leaves[:half]) + root_of(leaves[half:]))


def root_by_path(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """Return the root from a leaf and its audit path, whose last hash is that of the other half."""
    if size == 1:
        assert not path
        return leaf
    half = 1
    while half * 2 < size:
        half *= 2
    if index < half:
        return sha256(b"\x01" + root_by_path(leaf, index, half, path[:-1]) + path[-1])
    return sha256(b"\x01" + path[-1] + root_by_path(leaf, index - half, size - half, path[:-1]))


def opened_seal(data: bytes, public: bytes) -> dict[str, Any]:
    """Check the signature and the name of the key, and return the sealed value."""
    tagged = cbor2.loads(data)
    assert tagged.tag == 18
    protected, unprotected, payload, signature = tagged.value
    assert not unprotected
    header = cbor2.loads(protected)
    assert (header[1], header[3], header[15][2]) == (-8, "application/json", "pollux archive")
    assert header[4] == sha256(bytes.fromhex("a30101200621" + "5820") + public)
    signed = cbor2.dumps(["Signature1", protected, b"", payload])
    Ed25519PublicKey.from_public_bytes(public).verify(signature, signed)
    sealed: dict[str, Any] = json.loads(payload)
    assert canonical(sealed) == payload
    return sealed


def proven_entries(proof: dict[str, Any], public: bytes) -> list[dict[str, Any]]:
    """Check a proof, and return its entries."""
    seal = opened_seal(base64.b64decode(proof["seal"]), public)
    for entry in proof["entries"]:
        leaf = sha256(b"\x00" + canonical(entry["entry"]))
        path = [bytes.fromhex(step) for step in entry["path"]]
        assert root_by_path(leaf, entry["index"], seal["size"], path).hex() == seal["root"]
    return [entry["entry"] for entry in proof["entries"]]


def fields(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[list[str | int], Any]]:  # noqa: ANN401  any JSON
    if isinstance(value, dict) and value:
        return [field for name in sorted(value) for field in fields(value[name], (*path, name))]
    if isinstance(value, list) and value:
        return [field for place, item in enumerate(value) for field in fields(item, (*path, place))]
    return [([*path], value)]


def proven_fields(record: dict[str, Any], public: bytes) -> int:
    """Check a redacted record, and return the number of its proven fields."""
    (entry,) = proven_entries(record["pollux-proof"], public)
    assert entry["form"] == "tree"
    proofs = list(record["pollux-proof"]["fields"])
    n_shown = 0

    def digest(value: Any) -> str:  # noqa: ANN401  any JSON
        nonlocal n_shown
        if isinstance(value, dict) and value:
            members = [part for name in sorted(value) for part in (name, digest(value[name]))]
            return sha256(canonical(["object", *members])).hex()
        if isinstance(value, list) and value:
            return sha256(canonical(["array", *map(digest, value)])).hex()
        ((kind, proof_value),) = proofs.pop(0).items()
        if kind == "hidden":
            assert value == "[redacted]"
            return str(proof_value)
        assert kind == "salt"
        n_shown += 1
        return sha256(canonical(["value", proof_value, value])).hex()

    assert digest({name: value for name, value in record.items() if name not in OUTSIDE}) == entry["root"]
    assert not proofs
    return n_shown
