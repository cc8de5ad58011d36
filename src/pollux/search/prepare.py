"""Prepare the messages of a session for the search index.

Each message has a *signature*: a digest of the records that it was read from, and one of its texts. When a session
grew, the messages before the first different signature stay as they are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from pollux.archive.open_session import open_session
from pollux.errors import PolluxError
from pollux.model import Message, Project, Session
from pollux.search import tokenizer
from pollux.search.parts import DIGEST, PartText, digest_of, limited, message_parts
from pollux.sessions.replay.reading import build_message, reason_of

if TYPE_CHECKING:
    from pollux.sessions.grouping import LocatedReading
    from pollux.sessions.replay import TimelineEntry

BATCH = 8 << 20
"""Bytes of text that are inserted in one transaction."""
MARK = 8
"""Bytes of a digest of the records of a message."""
SIGNATURE = MARK + DIGEST
"""Bytes of a whole signature."""


class IndexJob(msgspec.Struct, frozen=True):
    """A session to index."""

    session_id: str
    n_bytes: int
    used_us: int
    is_comparable: bool
    signatures: bytes = b""
    """Of the indexed messages."""
    is_first_build: bool = False
    """Whether the index has never been complete. Later, the last message of a session gets a block of its own, because
    the client will probably record it again."""
    goes_below: bool = False
    """Whether it is older than everything that is indexed."""


class PreparedChunk(msgspec.Struct):
    """Consecutive messages of a session, ready to be inserted."""

    session_id: str
    number: int
    token: bytes
    n_same: int
    """Messages of the session that stay as they are indexed."""
    n_all: int
    """Messages of the session."""
    start: int
    """The position of the first message."""
    is_first: bool = True
    is_last: bool = False
    same_signatures: bytes = b""
    """New signatures of the messages that stay; empty if they are unchanged."""
    below_us: int | None = None
    """When the session was last used, if it goes below all others."""
    signatures: bytes = b""
    rows: list[tuple[int, int, str]] = msgspec.field(default_factory=list)
    """Position in the chunk, kind and prepared text of each part."""
    cuts: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Position and kind of the parts that are indexed without some of their text."""
    n_chars: int = 0
    n_bytes: int = 0
    """Bytes of session files that are done with this chunk."""
    reason: str = ""

    @property
    def n(self) -> int:
        """The number of messages."""
        return len(self.signatures) // SIGNATURE


def prepare(database: sqlite3.Connection, job: IndexJob) -> Iterator[PreparedChunk]:
    """Yield the new messages of a session in chunks of a limited size; at least one chunk, which may be empty."""
    row = database.execute(
        "SELECT number, token, kind, parent_session_id, parent_call_id FROM session_changes "
        "JOIN sessions USING (session_id) WHERE session_id = ?",
        (job.session_id,),
    ).fetchone()
    if row is None:
        return  # forgotten in the meantime
    number, token, kind, parent, parent_call = row
    session = Session(job.session_id, kind, Project(), parent=parent, parent_call=parent_call)
    head = PreparedChunk(job.session_id, number, token, 0, 0, 0, n_bytes=job.n_bytes)
    try:
        timeline = open_session(database, session).timeline
        yield from _chunks(timeline, job, head)
    except Exception as error:
        if isinstance(error, sqlite3.OperationalError | OSError):  # of the disk, not of this session
            raise
        reason = str(error) if isinstance(error, PolluxError) else reason_of(error)
        yield msgspec.structs.replace(head, is_last=True, reason=reason)


def _chunks(
    timeline: Sequence[tuple[LocatedReading, TimelineEntry]], job: IndexJob, head: PreparedChunk
) -> Iterator[PreparedChunk]:
    marks = [_mark(placed, entry) for placed, entry in timeline]
    n_same, same_signatures, parts = _same_messages(timeline, marks, job)
    chunk = msgspec.structs.replace(
        head,
        n_same=n_same,
        n_all=len(timeline),
        start=n_same,
        same_signatures=same_signatures,
        below_us=job.used_us if job.goes_below else None,
        n_bytes=0,
    )
    collector = _Collector()
    for seq in range(n_same, len(timeline)):
        is_alone = not job.is_first_build and seq == len(timeline) - 1
        if collector.n_chars >= BATCH or (is_alone and collector.signatures):
            yield collector.filled(chunk)
            chunk = msgspec.structs.replace(chunk, start=seq, is_first=False, same_signatures=b"")
            collector = _Collector()
        if parts is None:
            parts = message_parts(_message(timeline[seq]))
        collector.add(marks[seq], parts)
        parts = None
    yield collector.filled(msgspec.structs.replace(chunk, is_last=True, n_bytes=head.n_bytes))


class _Collector:
    """The messages of a chunk."""

    def __init__(self) -> None:
        self.signatures = bytearray()
        self.n_chars = 0
        self._n = 0
        self._rows: list[tuple[int, int, str]] = []
        self._cuts: list[tuple[int, int]] = []

    def add(self, mark: bytes, parts: Sequence[PartText]) -> None:
        self.signatures += mark + digest_of(parts)
        for part in parts:
            text, is_cut = limited(part)
            if is_cut:
                self._cuts.append((self._n, part.kind))
            data = tokenizer.index_text(text).encode("utf-8", "replace")
            self._rows.append((self._n, part.kind, data.decode()))
            self.n_chars += len(data)
        self._n += 1

    def filled(self, chunk: PreparedChunk) -> PreparedChunk:
        return msgspec.structs.replace(
            chunk,
            signatures=bytes(self.signatures),
            rows=self._rows,
            cuts=self._cuts,
            n_chars=self.n_chars,
        )


def _same_messages(
    timeline: Sequence[tuple[LocatedReading, TimelineEntry]], marks: Sequence[bytes], job: IndexJob
) -> tuple[int, bytes, list[PartText] | None]:
    """Return how many messages are indexed as they are, their signatures if these changed, and the next one's parts."""
    old = job.signatures
    signatures = bytearray()
    parts: list[PartText] | None = None
    n_same = 0
    while n_same < min(len(marks), len(old) // SIGNATURE):
        start = n_same * SIGNATURE
        mark, digest = old[start : start + MARK], old[start + MARK : start + SIGNATURE]
        if not job.is_comparable or mark != marks[n_same]:
            parts = message_parts(_message(timeline[n_same]))
            if digest_of(parts) != digest:
                break
            parts = None
        signatures += marks[n_same] + digest
        n_same += 1
    return n_same, b"" if old.startswith(signatures) else bytes(signatures), parts


def _message(recording: tuple[LocatedReading, TimelineEntry]) -> Message:
    placed, entry = recording
    return build_message(placed.reading, entry, shortened=True)  # a record may have hundreds of megabytes


def _mark(placed: LocatedReading, entry: TimelineEntry) -> bytes:
    """Return a digest of the records that a message is read from; bytes of a version never change."""
    records = [record and record.span for record in (entry.content, entry.calls_from, entry.thoughts_from)]
    calls = [call.id for call in entry.calls]
    key = (entry.id, entry.kind, entry.origin, placed.version_id, records, calls, placed.reading.calls_line(entry))
    return blake2b(repr(key).encode("utf-8", "backslashreplace"), digest_size=MARK).digest()
