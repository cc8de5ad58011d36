"""Create the file of a search index, and insert prepared messages into it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from pollux.archive.index_file import index_files, index_path
from pollux.archive.migrations import transaction
from pollux.archive.store import check_size
from pollux.model import Problem
from pollux.search import prepare
from pollux.search.index import APPLICATION, KINDS, TABLES, is_current, meta_values, versions
from pollux.search.prepare import SIGNATURE, PreparedChunk
from pollux.sessions.reader import Progress

_BYTES_PER_MESSAGE = 64
"""No more messages than this are expected in a session file, so that a first build reserves enough ordinals."""
_LATEST_US = (1 << 63) - 1


def open_writable(archive: Path) -> sqlite3.Connection:
    """Open the index of an archive for writing; a missing, damaged or foreign one is created."""
    path = index_path(archive)
    with suppress(sqlite3.DatabaseError):
        index = _connected(path)
        try:
            if is_current(index):
                return index
            is_archive = index.execute("SELECT 1 FROM sqlite_schema WHERE name = 'segments'").fetchone()
        except BaseException:
            index.close()
            raise
        index.close()
        if is_archive:
            raise FileExistsError(0, f"{path} is an archive, not an index")
    remove_files(archive)
    index = _connected(path)
    try:
        with transaction(index):
            for statement in TABLES:
                index.execute(statement)
            index.execute(f"PRAGMA application_id = {APPLICATION}")
            rows = [
                ("versions", versions()),
                ("low", 0),
                ("high", 0),
                ("live", 0),
                ("dead", 0),
                ("oldest_us", _LATEST_US),
            ]
            index.executemany("INSERT INTO meta VALUES (?, ?)", rows)
    except BaseException:
        index.close()
        raise
    return index


def _connected(path: Path) -> sqlite3.Connection:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    os.close(os.open(path, flags, 0o600))
    check_size(path)
    index = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        index.execute("PRAGMA journal_mode = WAL")
        index.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        index.close()
        raise
    return index


def remove_files(archive: Path) -> None:
    """Delete the files of an index. Raises `OSError` if that is not possible."""
    for path in index_files(archive):  # the database first: without its journal, it could be read in a wrong state
        with suppress(FileNotFoundError):
            path.unlink()


class WrittenSessions(msgspec.Struct):
    """What was inserted."""

    n_sessions: int = 0
    n_messages: int = 0
    problems: list[Problem] = msgspec.field(default_factory=list)
    """One for each session that cannot be read."""


class IndexWriter:
    """Inserts prepared messages in batches."""

    def __init__(self, archive: Path) -> None:
        """Open the index of an archive, or create it."""
        self.index = open_writable(archive)
        self._path = index_path(archive)
        self._inode = self._path.stat().st_ino
        self._counters: dict[str, int] = {}
        self._next: dict[str, int] = {}
        """The next ordinal of each session of which more chunks follow."""

    def close(self) -> None:
        """Close the file."""
        self.index.close()

    def load_counters(self) -> None:
        """Read the counters, which another process may have changed."""
        self._counters = dict(meta_values(self.index))
        self._next.clear()

    @property
    def n_live(self) -> int:
        """Number of messages that can be found."""
        return self._counters["live"]

    @property
    def n_dead(self) -> int:
        """Number of messages whose rows are still there but do not count any more."""
        return self._counters["dead"]

    @property
    def is_in_place(self) -> bool:
        """Whether the file is still the index: `forget` deletes it even while it is being built."""
        try:
            return self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def write(self, chunks: Iterable[PreparedChunk], n_bytes: int, progress: Progress) -> WrittenSessions:
        """Insert chunks that were read from a number of bytes, one transaction for each batch."""
        done, n_chars, result = 0, 0, WrittenSessions()
        batch: list[PreparedChunk] = []
        for chunk in chunks:
            batch.append(chunk)
            n_chars += chunk.n_chars
            if n_chars >= prepare.BATCH:
                if not self.is_in_place:
                    return result
                self._commit(batch, result)
                done += sum(each.n_bytes for each in batch)
                progress(done, n_bytes)
                batch, n_chars = [], 0
        if batch and self.is_in_place:
            self._commit(batch, result)
            progress(n_bytes, n_bytes)
        return result

    def reserve(self, n_bytes: int) -> None:
        """Reserve ordinals for a first build, which fills them from the end."""
        if self._counters["high"] == 0:
            self._counters["low"] = self._counters["high"] = n_bytes // _BYTES_PER_MESSAGE + 1000

    def remove(self, sessions: Sequence[str]) -> None:
        """Remove sessions that the archive does not contain any more."""
        if sessions:
            with transaction(self.index):
                for session_id in sessions:
                    self._truncate(session_id, 0)
                    self.index.execute("DELETE FROM sessions WHERE session_id = ?", (session_id,))
                self._store_counters()

    def finish(self, anchors: bytes) -> None:
        """Record that the index is complete as of some writes of the archive."""
        row = self.index.execute("SELECT value FROM meta WHERE key = 'anchors'").fetchone()
        if row is not None and row[0] == anchors:
            return
        with transaction(self.index):
            self.index.execute("INSERT OR REPLACE INTO meta VALUES ('anchors', ?)", (anchors,))
            if row is None:
                for table in ("parts", "wholes"):
                    self.index.execute(f"INSERT INTO {table}({table}, rank) VALUES ('automerge', 4)")  # noqa: S608

    def _commit(self, batch: Sequence[PreparedChunk], result: WrittenSessions) -> None:
        with transaction(self.index):
            placed = [(self._place(chunk), chunk) for chunk in batch]
            placed.sort(key=lambda pair: pair[0])  # FTS5 writes a segment whenever rows come in another order
            for first, chunk in placed:
                self._insert(first, chunk, result)
            self._store_counters()

    def _place(self, chunk: PreparedChunk) -> int:
        """Return the ordinal of the first message of a chunk, after removing what it replaces."""
        if chunk.is_first:
            if chunk.n_same or self._is_known(chunk.session_id):
                self._truncate(chunk.session_id, chunk.n_same, chunk.same_signatures)
            self._next[chunk.session_id] = self._allocate(chunk)
        first = self._next[chunk.session_id]
        self._next[chunk.session_id] += chunk.n
        if chunk.is_last:
            del self._next[chunk.session_id]
        return first

    def _is_known(self, session_id: str) -> bool:
        row = self.index.execute("SELECT 1 FROM blocks WHERE session_id = ? LIMIT 1", (session_id,)).fetchone()
        return row is not None

    def _allocate(self, chunk: PreparedChunk) -> int:
        """Return the first of the ordinals for the new messages of a session."""
        n = chunk.n_all - chunk.n_same
        if chunk.below_us is not None and not chunk.n_same and self._counters["low"] > n:
            self._counters["low"] -= n
            self._counters["oldest_us"] = chunk.below_us
            return self._counters["low"]
        self._counters["high"] += n
        return self._counters["high"] - n

    def _insert(self, first: int, chunk: PreparedChunk, result: WrittenSessions) -> None:
        index = self.index
        if chunk.n:
            rows = [((first + at) * KINDS + kind, text) for at, kind, text in chunk.rows]
            index.executemany("INSERT INTO parts(rowid, text) VALUES (?, ?)", rows)
            texts = "\n".join(text for _, _, text in chunk.rows)
            index.execute("INSERT INTO wholes(rowid, text) VALUES (?, ?)", (first, texts))
            block = (first, chunk.n, chunk.n, chunk.session_id, chunk.start)
            index.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?)", block)
            index.execute("INSERT INTO signatures VALUES (?, ?)", (first, chunk.signatures))
            index.executemany(
                "INSERT INTO cuts VALUES (?)", [((first + at) * KINDS + kind,) for at, kind in chunk.cuts]
            )
            self._counters["live"] += chunk.n
            result.n_messages += chunk.n
        if chunk.is_last:
            state = (chunk.session_id, chunk.number, chunk.token, chunk.reason)
            index.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)", state)
            result.n_sessions += 1
        if chunk.reason:
            message = f"session {chunk.session_id} is not in the search index: {chunk.reason}"
            result.problems.append(Problem("not-indexed", message))

    def _truncate(self, session_id: str, n_same: int, signatures: bytes = b"") -> None:
        """Leave only the first messages of a session alive, with new signatures if there are some."""
        index = self.index
        blocks = index.execute("SELECT first, n, seq FROM blocks WHERE session_id = ?", (session_id,)).fetchall()
        for first, n, seq in blocks:
            n_left = min(n, max(0, n_same - seq))
            if n_left == 0:
                index.execute("DELETE FROM blocks WHERE first = ?", (first,))
                index.execute("DELETE FROM signatures WHERE first = ?", (first,))
            elif n_left < n or signatures:
                index.execute("UPDATE blocks SET n = ? WHERE first = ?", (n_left, first))
                if signatures:
                    body = signatures[seq * SIGNATURE : (seq + n_left) * SIGNATURE]
                    index.execute("UPDATE signatures SET body = ? WHERE first = ?", (body, first))
                else:
                    index.execute(
                        "UPDATE signatures SET body = substr(body, 1, ?) WHERE first = ?", (n_left * SIGNATURE, first)
                    )
            if n_left < n:
                rows = ((first + n_left) * KINDS, (first + n) * KINDS)
                index.execute("DELETE FROM cuts WHERE row >= ? AND row < ?", rows)
                index.execute("INSERT INTO dead VALUES (?, ?)", (first + n_left, n - n_left))
                self._counters["live"] -= n - n_left
                self._counters["dead"] += n - n_left

    def _store_counters(self) -> None:
        self.index.executemany("UPDATE meta SET value = ?2 WHERE key = ?1", list(self._counters.items()))


def signatures_of(index: sqlite3.Connection, session_id: str) -> bytes:
    """Return the signatures of the indexed messages of a session."""
    rows = index.execute(
        "SELECT body FROM blocks JOIN signatures USING (first) WHERE session_id = ? ORDER BY seq", (session_id,)
    )
    return b"".join(body for (body,) in rows)
