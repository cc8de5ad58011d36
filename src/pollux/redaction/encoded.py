"""Base64 in texts and attachments: decode what is text, report what is not."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pollux.model import Attachment

if TYPE_CHECKING:
    from pollux.redaction.values import Cleaner

_QUAD = r"[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-]"
"""Three ASCII characters in base64: the first bit of each is zero."""
_ALIGNED = re.compile(rf"(?:[A-Za-z0-9+/_-]{{4}})*?(?:{_QUAD}){{4}}[A-Za-z0-9+/_-]*+={{0,2}}")
_AFTER_SIGN = re.compile(rf"[+/_-]((?:{_QUAD}){{5}}[A-Za-z0-9+/_-]*+={{0,2}})")
_LINE = re.compile(r"(?:\r?\n|\\r\\n|\\n)([A-Za-z0-9+/]{2,76}={0,2})(?![A-Za-z0-9+/=])")
_LINE_WIDTHS = (60, 64, 72, 76)
"""Widths to which programs wrap base64."""
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_TEXT_TYPE = re.compile(
    r"text/.*|.*\+(?:json|xml)|application/(?:json|xml|yaml|toml|sql|javascript|typescript|ecmascript|x-[a-z-]*sh|x-yaml"
    r"|x-python|x-javascript|x-httpd-php|x-ndjson|jsonl|x-pem-file|rtf)(?:;.*)?",
    re.IGNORECASE | re.DOTALL,
)


class Blob(NamedTuple):
    """Base64 in a text: its position and its content."""

    start: int
    end: int
    text: str | None
    """None if it is not text."""


def read_blob(text: str, start: int, end: int) -> Blob | None:
    """Return the base64 in a run of letters and digits, with the lines that continue it.

    It starts where the run does, after an escaped line end there, or else after a sign in the run.
    """
    end = end + 2 if text.startswith("=", end) else end
    skip = start > 0 and text[start - 1] == "\\" and text[start] in "nrt"
    aligned = _ALIGNED.match(text, start + skip, end)
    first = _read_lines(text, *aligned.span()) if aligned else None
    if first is not None and first.text is not None:
        return first
    after_sign = _AFTER_SIGN.search(text, start, end)
    second = _read_lines(text, *after_sign.span(1)) if after_sign else None
    return second if first is None or (second and second.text is not None) else first


def _read_lines(text: str, start: int, end: int) -> Blob:
    """Decode base64 with the lines that continue it; the last one may be a word that only looks like base64."""
    lines, ends = [text[start:end]], [end]
    while len(lines[-1]) in _LINE_WIDTHS and (line := _LINE.match(text, ends[-1])) and len(line[1]) % 4 == 0:
        lines.append(line[1])
        ends.append(line.end())
    plain = decode_base64("".join(lines))
    if plain is None and len(lines) > 1:
        return Blob(start, ends[-2], decode_base64("".join(lines[:-1])))
    return Blob(start, ends[-1], plain)


def decode_base64(data: str) -> str | None:
    """Return the text in base64 of either alphabet, or None if it is not text."""
    plain = data.rstrip("=").replace("-", "+").replace("_", "/")
    plain = plain[: len(plain) - (len(plain) % 4 == 1)]
    try:
        raw = base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        return None
    return _text_from_bytes(raw)


def _text_from_bytes(raw: bytes) -> str | None:
    """Decode UTF-8, or the UTF-16 of Windows; return None for anything else."""
    is_wide = len(raw) >= 8 and len(raw) % 2 == 0 and not any(raw[1:64:2])
    try:
        text = raw.decode("utf-16-le" if is_wide else "utf-8")
    except UnicodeDecodeError:
        return None
    return None if _BINARY.search(text) else text


def redact_attachment(attachment: Attachment, cleaner: Cleaner, where: str) -> Attachment:
    """Redact the address of an attachment, and its bytes if they are text."""
    uri = cleaner.redact_text(attachment.uri, where) if attachment.uri else attachment.uri
    if attachment.data is None:
        return msgspec.structs.replace(attachment, uri=uri)
    data = redact_data(attachment.media_type, attachment.data, cleaner, where)
    size = attachment.size if not data or data == attachment.data else _size(data)
    return msgspec.structs.replace(attachment, uri=uri, data=data or None, size=size)


def redact_data(media_type: str, data: str, cleaner: Cleaner, where: str) -> str:
    """Redact base64 data that is text; other data is noted, and dropped if the cleaner drops it."""
    text = _decode_attachment(data) if _TEXT_TYPE.fullmatch(media_type) else None
    if text is None:
        cleaner.note_unscanned(media_type, _size(data))
        return "" if cleaner.drop_binary else data
    redacted = cleaner.redact_text(text, where)
    return data if redacted == text else base64.b64encode(redacted.encode("utf-8", "replace")).decode()


def _decode_attachment(data: str) -> str | None:
    try:
        return _text_from_bytes(base64.b64decode(data, validate=False))
    except (binascii.Error, ValueError):
        return None


def _size(data: str) -> int:
    return len(data.rstrip("=")) * 3 // 4
