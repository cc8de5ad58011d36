"""Pictures, sounds and files of a session: their bytes, file names and one-line descriptions."""

from __future__ import annotations

import base64
import binascii
import re

from pollux.model import Attachment
from pollux.text.numbers import size
from pollux.views.excerpts import line

PICTURES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
"""Image types that every browser shows and that cannot contain scripts."""
_OTHERS = {
    "image/svg+xml": "svg",
    "image/heic": "heic",
    "application/pdf": "pdf",
    "application/json": "json",
    "text/plain": "txt",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "video/mp4": "mp4",
    "video/webm": "webm",
}
_WEB = re.compile(r"https?://[^\s\x00-\x20\"'<>\\]+", re.IGNORECASE)


def is_picture(attachment: Attachment) -> bool:
    """Return whether a page can show it as an image."""
    return _media_type(attachment) in PICTURES


def describe(attachment: Attachment) -> str:
    """Return its media type and its size, or its address, in one line."""
    size_or_address = attachment.uri if attachment.size is None else size(attachment.size)
    return line(", ".join(filter(None, (attachment.media_type, size_or_address))), 200)


def file_name(attachment: Attachment, number: int) -> str:
    """Return a file name for it; sessions record none."""
    media_type = _media_type(attachment)
    suffix = PICTURES.get(media_type) or _OTHERS.get(media_type) or "bin"
    return f"{'picture' if media_type.startswith('image/') else 'file'}-{number}.{suffix}"


def decode(attachment: Attachment) -> bytes | None:
    """Return its bytes, or None if they are not recorded or not valid Base64."""
    if not attachment.data:
        return None
    try:
        return base64.b64decode(attachment.data, validate=True)
    except (binascii.Error, ValueError):
        return None


def web_address(uri: str | None) -> str | None:
    """Return the address if it is an HTTP or HTTPS link."""
    return uri if uri and _WEB.fullmatch(uri) else None


def _media_type(attachment: Attachment) -> str:
    return attachment.media_type.partition(";")[0].strip().lower()
