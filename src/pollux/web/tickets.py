"""Tickets that let a browser in once, within five minutes."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Callable

LIFETIME = 300.0
"""Seconds in which a ticket can be used."""
_BYTES = 32


class Tickets:
    """The tickets that were issued and not used yet; thread-safe."""

    def __init__(
        self, used: Callable[[str], None] = lambda _ticket: None, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        """Start without tickets; `used` is called with each ticket that lets a browser in, `seconds` is the clock."""
        self._used, self._seconds = used, seconds
        self._lock = threading.Lock()
        self._deadlines: dict[bytes, float] = {}

    def issue(self) -> str:
        """Return a new ticket."""
        ticket = secrets.token_urlsafe(_BYTES)
        now = self._seconds()
        with self._lock:
            self._deadlines = {key: deadline for key, deadline in self._deadlines.items() if deadline > now}
            self._deadlines[_key(ticket)] = now + LIFETIME
        return ticket

    def redeem(self, ticket: str) -> bool:
        """Use up a ticket; return whether it was issued here, unused and not too old."""
        with self._lock:
            deadline = self._deadlines.pop(_key(ticket), None)
        is_valid = deadline is not None and self._seconds() < deadline
        if is_valid:
            self._used(ticket)
        return is_valid


def _key(ticket: str) -> bytes:
    """Return the digest under which a ticket is stored, so that the time of a lookup reveals nothing."""
    return hashlib.sha256(ticket.encode("utf-8", "replace")).digest()
