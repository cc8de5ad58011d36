"""JSON for other people's readers: no half characters, and no line ends that only some of them take for one."""

from __future__ import annotations

import json
import re
from collections import Counter

import msgspec

HALF = "half a character (U+FFFD stands in its place)"
_HALVES = re.compile("[\ud800-\udfff]")
_BREAKS = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")  # next line, line and paragraph separator
_ESCAPES = {b"\xc2\x85": b"\\u0085", b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029"}


def encode(value: object, losses: Counter[str]) -> bytes:
    """Encode in one line, whatever splits it: strict parsers refuse half a surrogate pair, so that one is lost."""
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        losses[HALF] += 1
        text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False, separators=(",", ":"))
        data = _HALVES.sub("\ufffd", text).encode()
    return _BREAKS.sub(lambda found: _ESCAPES[found[0]], data)


def text(value: object, losses: Counter[str]) -> str:
    """Encode as a text that stands inside another value."""
    return encode(value, losses).decode()
