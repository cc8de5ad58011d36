"""The session that owns a model call which several sessions hold, so that no report counts the call twice.

A session that the client loaded from another repeats its messages with their token counts. Calls are the same if they
have the same message ID and the same six counts; a session that has other counts has made a call of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple, TypeVar

from pollux.model import Role, Session
from pollux.text.times import microseconds

_Call = TypeVar("_Call", bound=Hashable)


class Holder(NamedTuple):
    """A session that holds a call; of several, the least is the owner."""

    is_imported: bool
    """Whether this machine has read none of its files itself: all came from another archive."""
    is_loaded: bool
    """Whether the client loaded it from another session, so that none of its files has the role `main`."""
    has_no_start: bool
    started_us: int
    session_id: str


def holder(session_id: str, started_us: int | None, *, is_loaded: bool, is_imported: bool = False) -> Holder:
    """Return a session as a holder of calls."""
    return Holder(is_imported, is_loaded, started_us is None, started_us or 0, session_id)


def session_holder(session: Session) -> Holder:
    """Return a session that was read from the disk as a holder of calls."""
    is_loaded = not any(ref.role == Role.MAIN for ref in session.files)
    return holder(session.id, microseconds(session.started), is_loaded=is_loaded)


def find_owners(claims: Iterable[tuple[Holder, _Call]]) -> dict[_Call, Holder]:
    """Return the session that owns each call.

    Args:
        claims: each session with each call that it holds: the message ID and the six token counts.

    """
    owners: dict[_Call, Holder] = {}
    for candidate, call in claims:
        owner = owners.setdefault(call, candidate)
        if owner is not candidate and candidate < owner:
            owners[call] = candidate
    return owners
