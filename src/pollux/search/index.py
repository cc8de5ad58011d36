"""The search index: a file next to the archive that can be deleted at any time and is then built again.

It contains two full-text tables without their texts: `parts` has a row for each part of a message, `wholes` a row for
each block. A *block* is a run of messages of one session that were indexed together; its messages have consecutive
ordinals, and the row of a part is the ordinal of its message × 8 + its kind. Newer messages have higher ordinals.

Nothing is ever deleted from the full-text tables, because SQLite 3.40 cannot do that without the old text. A message
that changed is indexed again in a new block, and the old block is shortened: ordinals in no block are *dead*.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from pollux.archive import schema
from pollux.archive.index_file import index_path
from pollux.archive.load_sessions import AMONG, ids_as_json
from pollux.archive.store import check_size, has_journal
from pollux.search import tokenizer
from pollux.search.changes import IndexState, compare, newest_first
from pollux.search.parts import DIGEST, LIMITS, PartKind
from pollux.search.values import IndexCoverage

APPLICATION = 0x504C5853
"""SQLite's `application_id` of an index."""
FORMAT = "1"
"""Increase this whenever the tables change."""
TABLES = (
    "CREATE VIRTUAL TABLE parts USING fts5(text, content='', columnsize=0, tokenize='ascii')",
    "CREATE VIRTUAL TABLE wholes USING fts5(text, content='', columnsize=0, detail=none, tokenize='ascii')",
    # One segment for each batch, and fewer merges until the first build has finished (`write.py`).
    "INSERT INTO parts(parts, rank) VALUES ('hashsize', 8388608), ('automerge', 8)",
    "INSERT INTO wholes(wholes, rank) VALUES ('hashsize', 8388608), ('automerge', 8)",
    """
    CREATE TABLE blocks (
        first INTEGER PRIMARY KEY, n INTEGER NOT NULL, n_all INTEGER NOT NULL, session_id TEXT NOT NULL,
        seq INTEGER NOT NULL
    )
    """,
    "CREATE INDEX blocks_by_session ON blocks (session_id, seq)",
    "CREATE TABLE signatures (first INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE cuts (row INTEGER PRIMARY KEY)",
    "CREATE TABLE dead (first INTEGER PRIMARY KEY, n INTEGER NOT NULL)",
    """
    CREATE TABLE sessions (
        session_id TEXT PRIMARY KEY, number INTEGER NOT NULL, token BLOB NOT NULL, reason TEXT NOT NULL
    ) WITHOUT ROWID
    """,
    "CREATE INDEX sessions_by_number ON sessions (number)",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
)
KINDS = 8
"""Rows of a message; a power of two that is larger than the number of kinds."""
_MOST_WALKED = 12_000
"""Rows that are looked at for the newest ones of two groups, one of which may be rare."""
_COMMON = 5
"""A word in one of so many sessions is common."""
PREFIX = "*"
"""In an expression, where words contain only letters and digits."""
_KINDS = tuple(PartKind)
_OUTPUT = int(PartKind.OUTPUT)
_decode_rows = msgspec.json.Decoder(list[int]).decode
_NO_BLOCK = (0, 0, "", 0)
_QUOTED = re.compile(r'"((?:[^"]|"")*)"(\s*\*)?')
_TOKEN = re.compile(r"[0-9A-Za-z\x80-\U0010ffff]+")
_JOINED = re.compile(r"\s*\+\s*")


class Place(NamedTuple):
    """The message and the kind of text that a row stands for."""

    session_id: str
    seq: int
    """Position of the message in the session's timeline, as in `messages.seq`."""
    kind: PartKind


class NewestRows(NamedTuple):
    """The newest rows that match."""

    rows: list[int]
    is_complete: bool
    """Whether there are no others."""
    below: int | None
    """Only rows below this one were looked at; None for all."""
    walked: list[int]
    """All rows that match from the first of them on, in ascending order."""


class DamagedIndexError(Exception):
    """The index cannot be read; it has to be deleted and built again."""


def versions() -> str:
    """Return what the index depends on besides the archive; an index with other versions is built again."""
    return f"{FORMAT} {schema.READER} {tokenizer.VERSION} {LIMITS} {unicodedata.unidata_version}"


def is_current(index: sqlite3.Connection) -> bool:
    """Return whether a database is an index of these versions. Raises `sqlite3.DatabaseError` for another file."""
    if index.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        return False
    try:
        row = index.execute("SELECT value FROM meta WHERE key = 'versions'").fetchone()
    except sqlite3.OperationalError:  # it was not finished
        return False
    return row is not None and row[0] == versions()


def open_index(archive: Path, database: sqlite3.Connection) -> SearchIndex | None:
    """Open the index of an archive for reading; None if there is none that can be used (`unusable_reason` says why).

    Args:
        archive: the archive's file.
        database: an open connection to it.

    """
    with suppress(sqlite3.DatabaseError, OSError, DamagedIndexError):
        return _opened(index_path(archive), database)
    return None


def unusable_reason(archive: Path, database: sqlite3.Connection) -> str:
    """Return why an archive has no index that can be used; empty if it has one."""
    path = index_path(archive)
    if not path.exists():
        return "there is none yet"
    try:
        index = _opened(path, database)
    except (sqlite3.DatabaseError, OSError, DamagedIndexError) as error:
        return str(error)
    if index is None:
        return "it belongs to another version of Pollux"
    index.close()
    return ""


def _opened(path: Path, database: sqlite3.Connection) -> SearchIndex | None:
    if not path.exists():
        return None
    check_size(path)
    index = _read_only(path)
    try:
        if is_current(index):
            index.execute("SELECT rowid FROM parts LIMIT 0")  # raises if SQLite has no FTS5
            return SearchIndex(index, database)
    except BaseException:
        index.close()
        raise
    index.close()
    return None


def _read_only(path: Path) -> sqlite3.Connection:
    """Open a database for reading, also in a folder where no other file can be created."""
    address = path.resolve().as_uri()
    index = sqlite3.connect(f"{address}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)
    try:
        index.execute("PRAGMA application_id").fetchone()
        index.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.OperationalError:
        index.close()
        if has_journal(path):
            raise
        return sqlite3.connect(f"{address}?mode=ro&immutable=1", uri=True, isolation_level=None)
    return index


class SearchIndex:
    """An index that is open for reading. Use a connection of its own for each thread.

    Sessions that changed since they were indexed are left out of all results; `coverage.missing` names them. Methods
    raise `DamagedIndexError` if the file is damaged, and `sqlite3.OperationalError` if a query was interrupted.
    """

    def __init__(self, index: sqlite3.Connection, database: sqlite3.Connection) -> None:
        """Compare the index with the archive as of now."""
        self.database = index
        """The connection to the index, for progress handlers and interrupts."""
        with _explained():
            state = compare(index, database)
            self._left_out = {change.session_id for change in state.changed} | set(state.removed)
            self.coverage = _coverage(index, database, state)

    def close(self) -> None:
        """Close the connection."""
        self.database.close()

    def rows(
        self, match: str, *, kinds: Collection[PartKind] | None = None, below: int | None = None, limit: int = 2000
    ) -> list[int]:
        """Return the newest rows that match an FTS5 expression, newest first; some may be dead (see `places`).

        Args:
            match: the expression.
            kinds: the kinds of text to search, or None for all.
            below: only rows below this one, for the next page.
            limit: the maximum number of rows.

        """
        which, values = _condition(match, kinds)
        if below is not None:
            which, values = f"{which} AND rowid < ?", (*values, below)
        with _explained():
            rows = self.database.execute(
                f"SELECT rowid FROM parts WHERE {which} ORDER BY rowid DESC LIMIT ?",  # noqa: S608  ours
                (*values, limit),
            ).fetchall()
        return [row for (row,) in rows]

    def newest_rows(self, match: str, below: int | None, n_words: int, n_output: int) -> NewestRows:
        """Return the newest rows of output and of all other kinds that match.

        One walk for both: for a prefix or a phrase, most of the time passes before the first row.
        """
        walked: list[int] = []
        words, output = walked, walked
        is_prefix = PREFIX in match  # SQLite collects all its rows before it returns the first
        for most in (_MOST_WALKED + 1,) if is_prefix else (n_words + n_output + 1, _MOST_WALKED + 1):
            limit = min(most, _MOST_WALKED + 1) - len(walked)
            walked += self._walked(match, walked[-1] if walked else below, limit)
            words = [row for row in walked[:_MOST_WALKED] if row % KINDS != _OUTPUT][:n_words]
            output = [row for row in walked[:_MOST_WALKED] if row % KINDS == _OUTPUT][:n_output]
            if len(walked) < most or (len(words) == n_words and len(output) == n_output):
                break
        return NewestRows([*words, *output], len(words) + len(output) == len(walked), below, walked[::-1])

    def _walked(self, match: str, below: int | None, limit: int) -> list[int]:
        """Return the newest rows that match; SQLite makes one text of them, which is quicker than to fetch them."""
        which, values = (
            ("parts MATCH ?", (match,)) if below is None else ("parts MATCH ? AND rowid < ?", (match, below))
        )
        newest = f"SELECT rowid FROM parts WHERE {which} ORDER BY rowid DESC LIMIT ?"  # noqa: S608  ours
        with _explained():
            query = f"SELECT json_group_array(rowid) FROM ({newest})"  # noqa: S608  ours
            (rows,) = self.database.execute(query, (*values, limit)).fetchone()
            return _decode_rows(rows)

    def counts_within(self, newest: NewestRows, session_ids: Collection[str]) -> dict[str, int]:
        """Return the number of matching rows of those sessions all of whose messages are among the newest rows."""
        with _explained():
            blocks = self.database.execute(_BLOCKS.format(which=AMONG), (ids_as_json(session_ids),)).fetchall()
        counts: dict[str, int] = {}
        others: set[str] = set()
        for first, n, session_id, _ in blocks:
            low, high = first * KINDS, (first + n) * KINDS
            if low < newest.walked[0] or (newest.below is not None and high > newest.below):
                others.add(session_id)
            n_rows = bisect_left(newest.walked, high) - bisect_left(newest.walked, low)
            counts[session_id] = counts.get(session_id, 0) + n_rows
        return {session_id: n_rows for session_id, n_rows in counts.items() if session_id not in others}

    def rows_within(self, match: str, session_id: str, limit: int) -> list[int]:
        """Return the rows of a session that match, its last message first."""
        rows: list[int] = []
        if session_id in self._left_out:
            return rows
        with _explained():
            blocks = self.database.execute(
                "SELECT first, n FROM blocks WHERE session_id = ? ORDER BY seq DESC", (session_id,)
            ).fetchall()
            for first, n in blocks:
                matches = self.database.execute(
                    "SELECT rowid FROM parts WHERE parts MATCH ? AND rowid >= ? AND rowid < ? "
                    "ORDER BY rowid DESC LIMIT ?",
                    (match, first * KINDS, (first + n) * KINDS, limit - len(rows)),
                )
                rows += [row for (row,) in matches]
                if len(rows) >= limit:
                    break
        return rows

    def sessions_with(self, match: str) -> set[str]:
        """Return the sessions with a message that may match the expression of one word or phrase.

        A phrase counts as all of its words, since `wholes` has no positions. Intersect the sets of several words
        instead of joining the words with AND: a session that grew has several blocks.
        """
        loose = loosened(match)
        with _explained():
            ids, others = self.database.execute(_SESSIONS_WITH, (loose,)).fetchone()
            sessions: set[str] = _decode_ids(ids)
            blocks = self.database.execute(_BLOCKS_FROM, (others,)).fetchall()
            for first, n, n_all, session_id in blocks:
                if session_id not in sessions and (n == n_all or self._contains(loose, first, n)):
                    sessions.add(session_id)
        return sessions - self._left_out

    def is_common(self, match: str) -> bool:
        """Return whether so many blocks match an expression that naming all sessions takes longer than testing some."""
        with _explained():
            rows = self.database.execute(_IS_COMMON, (loosened(match), self.coverage.n_indexed // _COMMON)).fetchall()
        return bool(rows)

    def sessions_among(self, match: str, ids: Collection[str]) -> set[str]:
        """Return those of some sessions that `sessions_with` returns."""
        loose = loosened(match)
        with _explained():
            blocks = self.database.execute(_BLOCKS_OF.format(which=AMONG), (ids_as_json(ids),)).fetchall()
            firsts = [first for first, *_ in blocks]
            ends = (min(firsts, default=0), max(firsts, default=0))
            (matching,) = self.database.execute(_WHOLES_BETWEEN, (loose, *ends)).fetchone()
            rows = set(_decode_rows(matching))
            return {
                session_id
                for first, n, n_all, session_id in blocks
                if first in rows
                and session_id not in self._left_out
                and (n == n_all or self._contains(loose, first, n))
            }

    def _contains(self, match: str, first: int, n: int) -> bool:
        """Return whether a message of a shortened block matches; its row in `wholes` still has the words of all."""
        row = self.database.execute(
            "SELECT 1 FROM parts WHERE parts MATCH ? AND rowid >= ? AND rowid < ? LIMIT 1",
            (match, first * KINDS, (first + n) * KINDS),
        ).fetchone()
        return row is not None

    def count(self, match: str, kinds: Collection[PartKind] | None = None) -> int:
        """Return the exact number of parts that match."""
        which, values = _condition(match, kinds)
        with _explained():
            ranges = [*self._dead_ranges()]
            if not ranges:
                query = f"SELECT count(*) FROM parts WHERE {which}"  # noqa: S608  ours
                number: int = self.database.execute(query, values).fetchone()[0]
                return number
            query = f"SELECT rowid FROM parts WHERE {which} ORDER BY rowid"  # noqa: S608  ours
            rows = [row for (row,) in self.database.execute(query, values).fetchall()]
        n_dead = 0
        for first, n in ranges:
            n_dead += bisect_left(rows, (first + n) * KINDS) - bisect_left(rows, first * KINDS)
        return len(rows) - n_dead

    def places(self, rows: Sequence[int]) -> dict[int, Place]:
        """Return the message and kind of each row, without rows that are dead."""
        places = {}
        for row, session_id, seq in self._placed(rows):
            if session_id not in self._left_out:
                places[row] = Place(session_id, seq, _KINDS[row % KINDS])
        return places

    def rows_by_session(self, rows: Collection[int]) -> dict[str, list[tuple[int, int]]]:
        """Return rows with the positions of their messages by session, without rows that are dead."""
        by_session: dict[str, list[tuple[int, int]]] = {}
        ordered = sorted(rows)
        blocks = self._blocks_with(ordered)
        firsts = [first for first, _, _, _ in blocks]
        start = 0
        while start < len(ordered):
            at = bisect_right(firsts, ordered[start] // KINDS) - 1
            first, n, session_id, seq = blocks[at] if at >= 0 else _NO_BLOCK
            end = bisect_left(ordered, (first + n) * KINDS, start)
            if end > start and session_id not in self._left_out:
                placed = [(row, row // KINDS + seq - first) for row in ordered[start:end]]
                by_session.setdefault(session_id, []).extend(placed)
            start = max(end, start + 1)
        return by_session

    def _blocks_with(self, rows: Sequence[int]) -> list[tuple[int, int, str, int]]:
        """Return the blocks that contain ascending rows, and perhaps others between them, in order."""
        if not rows:
            return []
        low, high = rows[0] // KINDS, rows[-1] // KINDS
        with _explained():
            (first,) = self.database.execute("SELECT max(first) FROM blocks WHERE first <= ?", (low,)).fetchone()
            ends = (first if first is not None else low, high)
            between = "first BETWEEN ? AND ?"
            (n_blocks,) = self.database.execute(f"SELECT count(*) FROM blocks WHERE {between}", ends).fetchone()  # noqa: S608
            if n_blocks <= 2 * len(rows):
                return self.database.execute(f"{_BLOCKS.format(which=between)} ORDER BY first", ends).fetchall()
            of_row = "SELECT (SELECT max(first) FROM blocks WHERE first <= value) FROM json_each(?)"
            ordinals = _as_json(dict.fromkeys([row // KINDS for row in rows]))
            which = _BLOCKS.format(which=f"first IN ({of_row})")
            return self.database.execute(f"{which} ORDER BY first", (ordinals,)).fetchall()

    def _placed(self, rows: Collection[int]) -> list[tuple[int, str, int]]:
        """Return each row that is in a block with its session and the position of its message."""
        with _explained():
            return self.database.execute(_PLACES, (_as_json(rows),)).fetchall()

    def digests(self, wanted: Mapping[str, Collection[int]]) -> dict[tuple[str, int], bytes]:
        """Return the digests of the texts of some messages, given by the positions in each session."""
        messages: dict[tuple[int, int], tuple[str, int]] = {}
        with _explained():
            blocks = self.database.execute(_BLOCKS.format(which=AMONG), (ids_as_json(wanted),)).fetchall()
            for first, n, session_id, start in blocks:
                for seq in wanted[session_id]:
                    if start <= seq < start + n:
                        messages[first, seq - start] = session_id, seq
            rows = self.database.execute(_DIGESTS, (msgspec.json.encode([*messages]).decode(),)).fetchall()
        return {messages[first, at]: digest for first, at, digest in rows}

    def cut_parts(self) -> list[Place]:
        """Return the parts that are indexed without their middle or without encoded data."""
        with _explained():
            rows = [row for (row,) in self.database.execute("SELECT row FROM cuts ORDER BY row").fetchall()]
        return list(self.places(rows).values())

    def _dead_ranges(self) -> Iterator[tuple[int, int]]:
        yield from self.database.execute("SELECT first, n FROM dead").fetchall()
        for session_id in self._left_out:
            yield from self.database.execute("SELECT first, n FROM blocks WHERE session_id = ?", (session_id,))


_IS_PLAIN = "n = n_all AND length(session_id) = length(CAST(session_id AS BLOB))"
_SESSIONS_WITH = f"""
    SELECT
        json_group_array(session_id) FILTER (WHERE {_IS_PLAIN}),
        json_group_array(first) FILTER (WHERE NOT ({_IS_PLAIN}))
    FROM wholes JOIN blocks ON blocks.first = wholes.rowid WHERE wholes MATCH ?
"""  # noqa: S608  ours
"""The sessions of whole blocks as one value, since rows take thrice as long, and the first rows of other blocks.

In JSON, SQLite ends a text at NUL; only IDs in ASCII without it have a byte for each character.
"""
_BLOCKS_OF = "SELECT first, n, n_all, session_id FROM blocks WHERE {which}"
_BLOCKS_FROM = _BLOCKS_OF.format(which="first IN (SELECT value FROM json_each(?))")
_WHOLES_BETWEEN = "SELECT json_group_array(rowid) FROM wholes WHERE wholes MATCH ? AND rowid BETWEEN ? AND ?"
_IS_COMMON = "SELECT 1 FROM wholes WHERE wholes MATCH ? LIMIT 1 OFFSET ?"
_decode_ids = msgspec.json.Decoder(set[str]).decode
_BLOCKS = "SELECT first, n, session_id, seq FROM blocks WHERE {which}"
_DIGESTS = f"""
    SELECT first, message.value ->> 1, substr(body, (message.value ->> 1) * {2 * DIGEST} + {DIGEST + 1}, {DIGEST})
    FROM json_each(?) AS message JOIN signatures ON first = message.value ->> 0
"""  # noqa: S608  ours
"""The second half of each signature (`prepare.py`)."""
_PLACES = f"""
    SELECT row.value, session_id, seq + row.value / {KINDS} - first FROM json_each(?) AS row
    JOIN blocks ON first = (SELECT max(first) FROM blocks WHERE first <= row.value / {KINDS})
    WHERE row.value / {KINDS} < first + n
"""  # noqa: S608  ours


def _as_json(numbers: Collection[int]) -> str:
    return msgspec.json.encode([*numbers]).decode()


def _coverage(index: sqlite3.Connection, database: sqlite3.Connection, state: IndexState) -> IndexCoverage:
    (n_sessions,) = database.execute("SELECT count(*) FROM sessions").fetchone()
    (n_cut,) = index.execute("SELECT count(*) FROM cuts").fetchone()
    missing = newest_first(database, {change.session_id for change in state.changed})
    return IndexCoverage(n_sessions, n_sessions - len(missing), n_cut, tuple(missing))


def loosened(match: str) -> str:
    """Return an FTS5 expression with all words of each phrase instead of the phrase, for a table without positions."""

    def all_words(phrase: re.Match[str]) -> str:
        tokens = [f'"{token}"' for token in _TOKEN.findall(phrase[1])]
        if not tokens:
            return '""'
        if phrase[2]:
            tokens[-1] += "*"
        return tokens[0] if len(tokens) == 1 else f"({' AND '.join(tokens)})"

    pieces = []
    end = 0
    for phrase in _QUOTED.finditer(match):
        pieces += [_JOINED.sub(" AND ", match[end : phrase.start()]), all_words(phrase)]
        end = phrase.end()
    return "".join((*pieces, match[end:]))


def _condition(match: str, kinds: Collection[PartKind] | None) -> tuple[str, tuple[object, ...]]:
    if kinds is None or len(kinds) == len(_KINDS):
        return "parts MATCH ?", (match,)
    numbers = ", ".join(str(int(kind)) for kind in sorted(kinds))
    return f"parts MATCH ? AND rowid % {KINDS} IN ({numbers})", (match,)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise DamagedIndexError(str(error)) from error
        raise
    except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
        raise DamagedIndexError(str(error)) from error


def meta_values(index: sqlite3.Connection) -> Mapping[str, int]:
    """Return the counters of an index."""
    return dict(index.execute("SELECT key, value FROM meta WHERE typeof(value) = 'integer'").fetchall())
