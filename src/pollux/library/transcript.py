"""Open the transcript of a session: its header, its messages and the blocks to show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from pollux.library.references import Ref, open_reference
from pollux.model import Json, Message, Session
from pollux.reports import sessions
from pollux.reports.sessions import SessionRow
from pollux.sessions.grouping import OpenSession
from pollux.sessions.replay.reading import build_message
from pollux.views.transcript import Block, TranscriptOptions, blocks

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices
    from pollux.reports.filters import Filter


NORMAL = TranscriptOptions()


class Transcript(msgspec.Struct, frozen=True):
    """An open session; readable inside `Library.transcript`."""

    row: SessionRow
    session: Session
    family: Mapping[str, Session]
    """The session, its parents and its subagents, by ID."""
    options: TranscriptOptions
    _group: OpenSession

    @property
    def n_imported(self) -> int:
        """Number of messages that come only from imported archives."""
        return self._group.n_imported

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks that the options select; very long texts are cut."""
        return blocks(self._group.messages(shortened=True), self.options)

    def messages(self, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        """Yield messages `start` to `stop` of the timeline; the first is 0."""
        for placed, entry in self._group.timeline[start:stop]:
            yield build_message(placed.reading, entry)

    def state(self) -> Iterator[Json]:
        """Yield the messages that the client would load, in the client's format."""
        return self._group.state()


def open_transcript(
    snapshot: Snapshot | None, reference: Ref, options: TranscriptOptions, wanted: Filter, prices: Prices
) -> Transcript:
    """Open the session that a reference names; a path needs no snapshot."""
    session, group, family = open_reference(snapshot, reference, wanted)
    if snapshot is None:
        row = _row_of_file(session, prices)
    else:
        (row,) = sessions.rows(snapshot.database, [session], snapshot.ids)
    return Transcript(row, session, family, msgspec.structs.replace(options, root=session.project.path), group)


def _row_of_file(session: Session, prices: Prices) -> SessionRow:
    """Return the row of a session outside any snapshot."""
    from pollux.archive.memory import in_memory  # noqa: PLC0415  large, and for files alone
    from pollux.archive.pricing import price_calls  # noqa: PLC0415

    with closing(in_memory([session], [])) as database:
        price_calls(database, prices)
        return sessions.rows(database, [session])[0]
