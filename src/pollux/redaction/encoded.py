"""Base64 in a text, and what it says."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

_QUAD = r"[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
"""Three ASCII characters in base64: the first bit of each is zero."""
_ALIGNED = re.compile(rf"(?:[A-Za-z0-9+/_-]{{4}})*?(?:{_QUAD}){{4}}[A-Za-z0-9+/_-]*+={{0,2}}")
_BEHIND_SIGN = re.compile(rf"[+/_-]((?:{_QUAD}){{5}}[A-Za-z0-9+/_-]*+={{0,2}})")
_LINE = re.compile(r"(?:\r?\n|\\r\\n|\\n)([A-Za-z0-9+/]{2,76}={0,2})(?![A-Za-z0-9+/=])")
_WIDTHS = (60, 64, 72, 76)
"""Lines of base64 that is broken into lines."""
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


class Blob(NamedTuple):
    """Encoded text, where it stands and what it says."""

    start: int
    end: int
    text: str | None
    """None if it is no text."""


def blob(text: str, start: int, end: int) -> Blob | None:
    """Read the base64 in a run of letters and digits, with the lines that go on with it.

    It begins with the run (or behind an escaped line end), or else behind one of the signs in it.
    """
    end = end + 2 if text.startswith("=", end) else end
    skip = start > 0 and text[start - 1] == "\\" and text[start] in "nrt"
    found = _ALIGNED.match(text, start + skip, end)
    first = _read(text, *found.span()) if found else None
    if first is None or first.text is None:
        found = _BEHIND_SIGN.search(text, start, end)
        second = _read(text, *found.span(1)) if found else None
        return second if first is None or (second and second.text is not None) else first
    return first


def _read(text: str, start: int, end: int) -> Blob:
    """Decode a blob with the lines that go on with it; the last of them may be a word that only looks like one."""
    lines, ends = [text[start:end]], [end]
    while len(lines[-1]) in _WIDTHS and (line := _LINE.match(text, ends[-1])) and len(line[1]) % 4 == 0:
        lines.append(line[1])
        ends.append(line.end())
    plain = decoded("".join(lines))
    if plain is None and len(lines) > 1:
        return Blob(start, ends[-2], decoded("".join(lines[:-1])))
    return Blob(start, ends[-1], plain)


def decoded(data: str) -> str | None:
    """Decode base64 of either alphabet; what is no text gives nothing."""
    plain = data.rstrip("=").replace("-", "+").replace("_", "/")
    plain = plain[: len(plain) - (len(plain) % 4 == 1)]
    try:
        raw = base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        return None
    return as_text(raw)


def as_text(raw: bytes) -> str | None:
    """Read bytes as text, if they are text: UTF-8, or the UTF-16 of Windows."""
    wide = len(raw) >= 8 and len(raw) % 2 == 0 and not any(raw[1:64:2])
    try:
        text = raw.decode("utf-16-le" if wide else "utf-8")
    except UnicodeDecodeError:
        return None
    return None if _BINARY.search(text) else text
