"""A record, keys, and bytes with one bit flipped."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pollux.proofs import signing
from pollux.proofs.canonical import json_bytes
from pollux.proofs.public import public_from_private

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PUBLIC, STRANGER = public_from_private(KEY), public_from_private(OTHER)
AT = datetime(2026, 11, 15, 12, tzinfo=UTC)
SECRET = bytes(range(32))


def record(**more: Any) -> dict[str, Any]:  # noqa: ANN401  any JSON
    """Return a small record with each kind of member."""
    return {
        "version": "3.0.0-draft",
        "id": "6ece72aa",
        "created": "2026-11-15T12:00:00Z",
        "recording-agent": {"name": "pollux", "version": "0.1.0"},
        "session": {
            "session-id": "6ece72aa",
            "session-start": "2026-11-15T19:30:00.000Z",
            "session-end": "2026-11-15T19:31:00.000Z",
            "agent-meta": {"model-id": "gemini-2.5-pro", "model-provider": "google"},
            "entries": [
                {"type": "user", "content": "where is the kéy?", "timestamp": "2026-11-15T19:30:01.000Z"},
                {
                    "type": "assistant",
                    "content": [{"text": "under the mat"}],
                    "token-usage": {"input": 10, "output": 2, "cost": 0.25},
                    "children": [
                        {"type": "tool-call", "name": "read_file", "input": {"path": "a/b~c.txt", "n": 3, "all": True}},
                        {"type": "tool-result", "output": {"output": "hunter2", "lines": [], "meta": {}, "more": None}},
                    ],
                },
            ],
        },
    } | more


PAYLOAD = json_bytes(record())


def signed(payload: bytes = PAYLOAD, *, attached: bool = True, **more: Any) -> bytes:  # noqa: ANN401
    signed_record = signing.record_from(payload)
    about = signing.trace_from_record(signed_record[0])
    return signing.sign(payload, KEY, about, content_type=signed_record[2], at=AT, attached=attached, **more)


def flipped(data: bytes, place: int, bit: int = 0) -> bytes:
    """Return data with one bit flipped."""
    changed = bytearray(data)
    changed[place] ^= 1 << bit
    return bytes(changed)
