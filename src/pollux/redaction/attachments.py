"""Attachments: text is looked into, all else is told."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

import msgspec

from pollux.model import Attachment
from pollux.redaction.encoded import as_text

if TYPE_CHECKING:
    from pollux.redaction.values import Cleaner

_TEXT = re.compile(
    r"text/.*|.*\+(?:json|xml)|application/(?:json|xml|yaml|toml|sql|javascript|typescript|ecmascript|x-[a-z-]*sh|x-yaml"
    r"|x-python|x-javascript|x-httpd-php|x-ndjson|jsonl|x-pem-file|rtf)(?:;.*)?",
    re.IGNORECASE | re.DOTALL,
)


def redacted(attachment: Attachment, cleaner: Cleaner, where: str) -> Attachment:
    """Redact an attachment: its address, and its bytes if they are text."""
    uri = cleaner.one(attachment.uri, where) if attachment.uri else attachment.uri
    if attachment.data is None:
        return msgspec.structs.replace(attachment, uri=uri)
    data = redacted_data(attachment.media_type, attachment.data, cleaner, where)
    size = attachment.size if data == attachment.data else _size(data)
    return msgspec.structs.replace(attachment, uri=uri, data=data or None, size=size if data else attachment.size)


def redacted_data(media_type: str, data: str, cleaner: Cleaner, where: str) -> str:
    """Redact base64 data: text is written anew if something was found in it, anything else is left or dropped."""
    text = _decoded(data) if _TEXT.fullmatch(media_type) else None
    if text is None:
        cleaner.note_unscanned(media_type, _size(data))
        return "" if cleaner.drop_binary else data
    cleaned = cleaner.one(text, where)
    return data if cleaned == text else base64.b64encode(cleaned.encode("utf-8", "replace")).decode()


def _decoded(data: str) -> str | None:
    try:
        return as_text(base64.b64decode(data, validate=False))
    except (binascii.Error, ValueError):
        return None


def _size(data: str) -> int:
    return len(data.rstrip("=")) * 3 // 4
