"""Open the transcript of a session: its header, its messages and the blocks to show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.errors import PolluxError
from pollux.library.references import Ref, find_message, open_reference, split_message
from pollux.model import Json, Message, Session
from pollux.reports import sessions
from pollux.reports.sessions import SessionRow
from pollux.sessions.grouping import OpenSession
from pollux.sessions.replay.reading import build_message
from pollux.views.transcript import Block, Branches, Detail, HiddenBlock, TranscriptOptions, blocks

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
    place: int | None = None
    """Where the message is that `SESSION#MESSAGE` names; the first is 0."""

    @property
    def n_messages(self) -> int:
        """Number of messages in the timeline."""
        return len(self._group.timeline)

    @property
    def n_imported(self) -> int:
        """Number of messages that come only from imported archives."""
        return self._group.n_imported

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Yield the blocks that the options select of messages `start` to `stop`; very long texts are cut."""
        return blocks(self._messages(start, stop, shortened=True), self.options)

    def named_blocks(self) -> list[Block]:
        """Return the blocks of the message that the reference names, in full and even if the message was dropped."""
        assert self.place is not None
        options = msgspec.structs.replace(self.options, branches=Branches.ALL, detail=Detail.FULL)
        return list(blocks(self._messages(self.place, self.place + 1, shortened=True), options))

    def start_before(self, n_messages: int) -> int:
        """Return from where to read so that a number of messages with something to show precede the named one."""
        place = self.place or 0
        while place and n_messages:
            place -= 1
            shown = self.blocks(place, place + 1)
            n_messages -= any(not isinstance(block, HiddenBlock) for block in shown)
        return place

    def messages(self, start: int | None = None, stop: int | None = None) -> Iterator[Message]:
        """Yield messages `start` to `stop` of the timeline, by default from the named one on; the first is 0."""
        return self._messages((self.place or 0) if start is None else start, stop)

    def _messages(self, start: int, stop: int | None, *, shortened: bool = False) -> Iterator[Message]:
        for placed, entry in self._group.timeline[start:stop]:
            yield build_message(placed.reading, entry, shortened=shortened)

    def state(self) -> Iterator[Json]:
        """Yield the messages that the client would load, in the client's format."""
        return self._group.state()


def open_transcript(
    snapshot: Snapshot | None, reference: Ref, options: TranscriptOptions, wanted: Filter, prices: Prices
) -> Transcript:
    """Open the session that a reference names, at a message if it names one; a path needs no snapshot."""
    session, group, family, place = _open_at(snapshot, reference, wanted)
    if snapshot is None:
        row = _row_of_file(session, prices)
    else:
        (row,) = sessions.rows(snapshot.database, [session], snapshot.ids)
    options = msgspec.structs.replace(options, root=session.project.path)
    return Transcript(row, session, family, options, group, place)


def _open_at(
    snapshot: Snapshot | None, reference: Ref, wanted: Filter
) -> tuple[Session, OpenSession, dict[str, Session], int | None]:
    """Open the session that a reference names; also return the place of the message that it names."""
    session_reference, message = split_message(reference)
    try:
        session, group, family = open_reference(snapshot, session_reference, wanted)
        place = None if message is None else find_message(group, message)
    except PolluxError:
        if message is None or isinstance(reference, Path):
            raise
        try:  # the tag of a saved conversation may contain a `#`
            return *open_reference(snapshot, reference, wanted), None
        except PolluxError:
            pass
        raise
    return session, group, family, place


def _row_of_file(session: Session, prices: Prices) -> SessionRow:
    """Return the row of a session outside any snapshot."""
    from pollux.archive.memory import in_memory  # noqa: PLC0415  large, and for files alone
    from pollux.archive.pricing import price_calls  # noqa: PLC0415

    with closing(in_memory([session], [])) as database:
        price_calls(database, prices)
        return sessions.rows(database, [session])[0]
