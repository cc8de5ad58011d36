"""A session to be read: what it is, its messages, and the blocks that a transcript shows of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from pollux.library.references import Ref, open_reference
from pollux.model import Json, Message, Session
from pollux.reports import sessions
from pollux.reports.sessions import SessionRow
from pollux.sessions.grouping import Group
from pollux.sessions.replay.reading import whole
from pollux.views.transcript import Block, Options, blocks

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices
    from pollux.reports.filters import Filter


NORMAL = Options()


class Transcript(msgspec.Struct, frozen=True):
    """A session that can be read while the library holds it open."""

    row: SessionRow
    session: Session
    family: Mapping[str, Session]
    """The session, those above it and its subagents, by ID."""
    options: Options
    _group: Group

    @property
    def n_imported(self) -> int:
        """Messages that imports add to what this machine has read itself."""
        return self._group.n_imported

    def blocks(self) -> Iterator[Block]:
        """Yield what the options show, in order; very long texts are cut."""
        return blocks(self._group.messages(shortened=True), self.options)

    def messages(self, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        """Yield messages of the timeline, one at a time, from one number to another; the first is 0."""
        for placed, entry in self._group.timeline[start:stop]:
            yield whole(placed.reading, entry)

    def state(self) -> Iterator[Json]:
        """Yield the messages that the client itself would load, in its own words."""
        return self._group.state()


def open_transcript(
    snapshot: Snapshot | None, reference: Ref, options: Options, wanted: Filter, prices: Prices
) -> Transcript:
    """Open the session that a reference names; a path needs no snapshot."""
    session, group, family = open_reference(snapshot, reference, wanted)
    if snapshot is None:
        row = _row_of_file(session, prices)
    else:
        (row,) = sessions.rows(snapshot.database, [session], snapshot.ids)
    return Transcript(row, session, family, msgspec.structs.replace(options, root=session.project.path), group)


def _row_of_file(session: Session, prices: Prices) -> SessionRow:
    """Return the row of a session that is in no snapshot."""
    from pollux.archive.memory import in_memory  # noqa: PLC0415  large, and for files alone
    from pollux.archive.pricing import price_calls  # noqa: PLC0415

    with closing(in_memory([session], [])) as database:
        price_calls(database, prices)
        return sessions.rows(database, [session])[0]
