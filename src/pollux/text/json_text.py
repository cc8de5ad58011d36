"""Our values as JSON text: fast, and whatever a session may hold."""

from __future__ import annotations

import json

import msgspec


def encode(value: object) -> bytes:
    """Encode in one line; text as it is, half a surrogate pair as an escape."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
