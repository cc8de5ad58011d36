"""Pictures, sounds and files of a session: their bytes, and what to call them."""

from __future__ import annotations

import base64
import binascii
import re

from pollux.model import Attachment
from pollux.text.numbers import size
from pollux.views.excerpts import line

PICTURES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
"""What every browser shows, and what can hold no script."""
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
    """Tell whether it can be shown."""
    return _media_type(attachment) in PICTURES


def words(attachment: Attachment) -> str:
    """Say what it is, in one line."""
    size_or_place = attachment.uri if attachment.size is None else size(attachment.size)
    return line(", ".join(filter(None, (attachment.media_type, size_or_place))), 200)


def name(attachment: Attachment, number: int) -> str:
    """Name its file; sessions record no names."""
    kind = _media_type(attachment)
    suffix = PICTURES.get(kind) or _OTHERS.get(kind) or "bin"
    return f"{'picture' if kind.startswith('image/') else 'file'}-{number}.{suffix}"


def data(attachment: Attachment) -> bytes | None:
    """Return its bytes, if they are recorded and whole."""
    if not attachment.data:
        return None
    try:
        return base64.b64decode(attachment.data, validate=True)
    except (binascii.Error, ValueError):
        return None


def web_address(uri: str | None) -> str | None:
    """Return a link that may be followed: to a page, and nothing else."""
    return uri if uri and _WEB.fullmatch(uri) else None


def _media_type(attachment: Attachment) -> str:
    return attachment.media_type.partition(";")[0].strip().lower()
