"""The cursor of a page: after which session the next page starts, and which state of the index it belongs to.

The next page is computed from the same bounds as the first: rows and times that are newer than the first page change
no score, so no session is shown twice or left out because others were added. A session that itself changes between two
pages may be missing from the later one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

import msgspec

from pollux.errors import InvalidCursorError
from pollux.search.rank import TimeRange


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The place of a session in the order of a search."""

    tier: int
    """`FIRST`: the sessions of the newest matching rows, by score. `REST`: all others, window by window."""
    window: tuple[float, str] | None
    """The last session before the window; None for the first window."""
    key: tuple[float, float, str] | None
    """The sort key within the tier or window; None before its first session."""


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where a page ended, and the bounds from which the search was computed."""

    search: str
    """A digest of the query and its options."""
    position: Position
    times: TimeRange
    top: int | None
    """Rows of the index from this one on were added after the first page; None if no rows were used."""


FIRST, REST = 0, 1
START = Position(FIRST, None, None)
_decode = msgspec.msgpack.Decoder(Cursor).decode


def search_digest(*values: object) -> str:
    """Return a short digest of a query and its options."""
    return hashlib.sha256(repr(values).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def encode_cursor(cursor: Cursor) -> str:
    """Return a cursor as a short text."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(cursor)).decode().rstrip("=")


def decode_cursor(text: str, search: str) -> Cursor:
    """Return the cursor of a text. Raises `InvalidCursorError` if it is none, or belongs to another search."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        cursor = _decode(data)
    except (binascii.Error, msgspec.DecodeError, ValueError, UnicodeError):
        raise InvalidCursorError("is not valid") from None
    if cursor.search != search:
        raise InvalidCursorError("belongs to another search")
    return cursor
