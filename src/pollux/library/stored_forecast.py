"""When and why the client deletes each session, packed: of 100,000 sessions, objects would take 30 MB."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pollux.reports import sessions
from pollux.text.times import from_microseconds, microseconds

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.sessions.retention import Deletion

_FEW = 500
"""Sessions that are looked up by their IDs; of more, the last used are found in the order of use."""
_NEVER = datetime.max.replace(tzinfo=UTC)


class DueSession(NamedTuple):
    """A session that the client will delete."""

    id: str
    due: datetime
    reason: str
    """A value of `DeletionReason`."""


class StoredForecast(msgspec.Struct):
    """When and why the client deletes each session, as the archive stores it; the first to be deleted come first."""

    generation: int
    key: str
    unarchived: list[str]
    """Session files on the disk that the archive does not have completely."""
    dues: bytes = b""
    """Microseconds as 64-bit numbers; of equal ones, the last used session comes first."""
    ids: bytes = msgspec.msgpack.encode([])
    """A list in msgpack."""
    reasons: tuple[str, ...] = ()
    reason_numbers: bytes = b""
    listed: bytes = b""
    """Whether a list without a filter shows the session: 1 or 0."""
    n_projects: int | None = None
    """The projects of all sessions, which take long to count in a large archive; None if they were not counted."""

    @property
    def n_unarchived(self) -> int:
        """The number of these files."""
        return len(self.unarchived)

    def n_until(self, at: datetime) -> int:
        """Return the number of sessions that are deleted until a time."""
        return bisect_right(memoryview(self.dues).cast("q"), microseconds(at) or 0)

    def n_listed(self, start: datetime | None, end: datetime | None) -> int:
        """Return the number of listed sessions that are deleted after a time and until another one."""
        first = self.n_until(start) if start else 0
        return sum(self.listed[first : self.n_until(end) if end else None])

    def until(self, at: datetime) -> Iterator[DueSession]:
        """Yield the sessions that are deleted until a time."""
        ids = self._ids()
        return (self._due(number, ids) for number in range(self.n_until(at)))

    def among(self, wanted: Iterable[str]) -> dict[str, DueSession]:
        """Return those of some sessions that are deleted, by ID."""
        ids, chosen = self._ids(), frozenset(wanted)
        return {id_: self._due(number, ids) for number, id_ in enumerate(ids) if id_ in chosen}

    def first(self, snapshot: Snapshot, now: datetime, n_most: int, until: datetime = _NEVER) -> list[DueSession]:
        """Return the listed sessions that are deleted first; of those deleted at the next start, the last used ones."""
        ids, n_due, query = self._ids(), self.n_until(now), sessions.SessionQuery(snapshot.ids)
        at_once: Iterable[str] = sessions.among(snapshot.database, ids[:n_due], query) if n_due <= _FEW else ()
        if n_due > _FEW:
            due = frozenset(ids[:n_due])
            at_once = (id_ for id_ in sessions.in_order(snapshot.database, query) if id_ in due)
        chosen = [*islice(at_once, n_most)]
        later = (ids[number] for number in range(n_due, self.n_until(until)) if self.listed[number])
        chosen += islice(later, n_most - len(chosen))
        found = self.among(chosen)
        return [found[id_] for id_ in chosen]

    def _ids(self) -> list[str]:
        return msgspec.msgpack.decode(self.ids, type=list[str])

    def _due(self, number: int, ids: list[str]) -> DueSession:
        due = from_microseconds(memoryview(self.dues).cast("q")[number])
        assert due is not None
        return DueSession(ids[number], due, self.reasons[self.reason_numbers[number]])


def packed_forecast(
    snapshot: Snapshot, fates: Mapping[str, Deletion], unarchived: list[str], generation: int, key: str
) -> StoredForecast:
    """Return the forecast for some sessions."""
    database = snapshot.database
    listed = frozenset(sessions.among(database, fates, sessions.SessionQuery()))
    by_use = sessions.among(database, fates, sessions.SessionQuery(subagents=True, empty=True))
    ids = sorted(by_use, key=lambda session_id: fates[session_id].due)  # stable: the last used first
    reasons = tuple(sorted({str(fate.reason) for fate in fates.values()}))
    return StoredForecast(
        generation,
        key,
        unarchived,
        array("q", (microseconds(fates[session_id].due) or 0 for session_id in ids)).tobytes(),
        msgspec.msgpack.encode(ids),
        reasons,
        bytes(reasons.index(str(fates[session_id].reason)) for session_id in ids),
        bytes(session_id in listed for session_id in ids),
    )
