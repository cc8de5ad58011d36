"""Fact tables in memory, for sessions that are read from files without an archive."""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pollux.archive import dependents, fact_rows, pricing, schema
from pollux.archive.dependents import assign_owners
from pollux.archive.failures import concerns_database, value_problems
from pollux.archive.migrations import migrate, savepoint
from pollux.errors import UnreadableFileError
from pollux.model import ModelCall, Problem, Session
from pollux.sessions.parallel import map_in_processes
from pollux.text.escape import escape_surrogates

if TYPE_CHECKING:
    from pollux.prices import Prices
    from pollux.sessions.grouping import OpenSession
    from pollux.sessions.reader import RepeatedCall


_SessionRows = dict[str, list[schema.Row]]
"""The rows of a session by table."""
_ARGS = schema.TABLES["tool_calls"].names.index("args_json")
_PIECE = 50
"""Sessions that one process opens at a time."""
_WORTH_PROCESSES = 4
"""Pieces of work from which several processes are faster than one."""


def in_memory(
    sessions: Sequence[Session],
    problems: list[Problem],
    opened: Callable[[Session], OpenSession] | None = None,
    *,
    prices: Prices | None = None,
    repeated: Iterable[RepeatedCall] = (),
    files: Files | None = None,
    derived: Mapping[str, OpenedRows | None] = {},
) -> sqlite3.Connection:
    """Return a database with the tables of an archive, filled from sessions that were read from files.

    Args:
        sessions: to write.
        problems: receives those of sessions that cannot be opened or written, and of values that no column can hold.
        opened: opens a session, so that its messages, its tool calls and all calls in its files are written too.
        prices: gives every model call its cost.
        repeated: calls that sessions hold besides their own; used only without `opened`, which finds them itself.
        files: numbers of files that were used before.
        derived: results of `opened_rows` for some sessions, which are then not opened.

    """
    database = _empty_tables()
    files = files or Files()
    database.execute("BEGIN")
    if opened:
        _write_derived(database, sessions, problems, derived)
        others = [session for session in sessions if derived.get(session.id) is None]
        _write_opened(database, files, others, problems, opened, prices)
    else:
        _write_unopened(database, files, sessions, problems, repeated, prices)
    files.write(database)
    schema.make_indexes(database)
    if opened:
        assign_owners(database)
    schema.note_new_calls(database)
    schema.note_owned(database)
    if prices:
        pricing.note_prices(database, prices)
    dependents.update_all(database)
    database.execute("COMMIT")
    problems += [problem for _, problem in value_problems(database)]
    return database


def _empty_tables() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(database, ":memory:")
    schema.make_tables(database)
    return database


class OpenedRows(NamedTuple):
    """The rows of an open session that do not depend on other sessions."""

    files: list[schema.Row]
    """The result of `fact_rows.files_of`."""
    rows: _SessionRows


class Files:
    """Rows of `files` and `versions` for files on disk."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        """Store the numbers of some paths; other files get the numbers after them."""
        self._numbers = {path: number for number, path in enumerate(dict.fromkeys(paths), 1)}

    def number(self, path: str) -> int:
        """Return the ID of a file, which is also that of its only version."""
        return self._numbers.setdefault(path, len(self._numbers) + 1)

    def write(self, database: sqlite3.Connection) -> None:
        """Write the rows of all files."""
        rows = [(escape_surrogates(path), number) for path, number in self._numbers.items()]
        database.executemany(_INSERT_FILE, rows)
        database.executemany(_INSERT_VERSION, rows)


_INSERT_FILE = """
    INSERT INTO files (path, id, version_id, machine, home, size, mtime_ns, inode, first_us, last_us)
    VALUES (?1, ?2, ?2, '', '', 0, 0, 0, 0, 0)
"""
_INSERT_VERSION = """
    INSERT INTO versions (file_id, id, number, archived_bytes, head, tail, mtime_ns, first_us)
    VALUES (?2, ?2, 1, 0, '', '', 0, 0)
"""


def _write_unopened(
    database: sqlite3.Connection,
    files: Files,
    sessions: Sequence[Session],
    problems: list[Problem],
    repeated: Iterable[RepeatedCall],
    prices: Prices | None,
) -> None:
    """Write what the sessions themselves hold, without opening them."""
    copies = defaultdict(list)
    for copy in repeated:
        copies[copy.session_id].append(copy)
    rows = []
    for session in sessions:
        with _as_problems(session, problems):
            rows.append((session, _rows(files, session, copies[session.id], prices)))
    _write(database, rows, problems)


def _write_opened(
    database: sqlite3.Connection,
    files: Files,
    sessions: Sequence[Session],
    problems: list[Problem],
    opened: Callable[[Session], OpenSession],
    prices: Prices | None,
) -> None:
    """Write all facts of sessions; several processes open them if there are many."""
    for session in sessions:
        for ref in session.files:
            files.number(str(ref.path))
    work = partial(_session_rows, files, opened, prices)
    pieces = [sessions[start : start + _PIECE] for start in range(0, len(sessions), _PIECE)]
    results = map_in_processes(work, pieces, is_worth_it=len(pieces) > _WORTH_PROCESSES)
    for piece, (rows, new_problems) in zip(pieces, results, strict=True):
        problems += new_problems
        _write(database, [(session, rows[session.id]) for session in piece if session.id in rows], problems)


def _write_derived(
    database: sqlite3.Connection,
    sessions: Sequence[Session],
    problems: list[Problem],
    derived: Mapping[str, OpenedRows | None],
) -> None:
    """Write the facts of sessions whose rows were derived while they were read."""
    rows = []
    for session in sessions:
        if opened := derived.get(session.id):
            with _as_problems(session, problems):
                rows.append((session, _all_rows(session, opened)))
    _write(database, rows, problems)


def _write(database: sqlite3.Connection, rows: Sequence[tuple[Session, _SessionRows]], problems: list[Problem]) -> None:
    """Write the rows of sessions.

    One insert for all is fast. If SQLite refuses a value, each session is written separately and only one is missing.
    """
    together: _SessionRows = {}
    for _, own in rows:
        for table, new in own.items():
            together.setdefault(table, []).extend(new)
    try:
        with savepoint(database):
            fact_rows.copy(database, together)
    except Exception as error:
        if concerns_database(error):
            raise
    else:
        return
    for session, own in rows:
        with _as_problems(session, problems), savepoint(database):
            fact_rows.copy(database, own)


def _rows(files: Files, session: Session, copies: Iterable[RepeatedCall], prices: Prices | None) -> _SessionRows:
    n_problems = Counter(problem.file for problem in session.problems) if session.problems else {}
    of_files = []
    for ref in session.files:
        path = str(ref.path)
        of_files.append((files.number(path), ref.role, ref.format, n_problems.get(path, 0)))
    calls = _call_rows(files, session.id, [(call, None) for call in session.calls], prices)
    calls += _call_rows(files, session.id, [(copy.call, copy.owner_id) for copy in copies], prices)
    return {**fact_rows.session_rows(session, of_files, ""), "model_calls": calls}


def _call_rows(
    files: Files, session_id: str, calls: Iterable[tuple[ModelCall, str | None]], prices: Prices | None
) -> list[schema.Row]:
    """Return the rows of model calls, each given with the session that counts it, if that is another one."""
    rows = []
    for call, owner in calls:
        price = pricing.priced(prices, call.model, call.at, call.tokens) if prices else (None, None)
        version_id = files.number(str(call.file))
        rows.append(fact_rows.row_of_call(session_id, call, version_id, price=price, owner=owner))
    return rows


def _session_rows(
    files: Files, opened: Callable[[Session], OpenSession], prices: Prices | None, sessions: Sequence[Session]
) -> tuple[dict[str, _SessionRows], list[Problem]]:
    """Return the rows of all facts of some sessions by session, and their problems."""
    problems: list[Problem] = []
    rows: dict[str, _SessionRows] = {}
    for session in sessions:
        with _as_problems(session, problems):
            rows[session.id] = _all_rows(session, _rows_of_open(files, prices, opened(session)))
    return rows, problems


def opened_rows(files: Files, prices: Prices | None, group: OpenSession) -> OpenedRows | None:
    """Return the rows of an open session; None if they cannot be derived, which opening it again reports."""
    try:
        return _rows_of_open(files, prices, group)
    except Exception:  # noqa: BLE001  as above
        return None


def _rows_of_open(files: Files, prices: Prices | None, group: OpenSession) -> OpenedRows:
    """Return the rows without the arguments of tool calls: they may be whole files, and no report needs them."""
    for placed in group.files:
        placed.version_id = files.number(str(placed.reading.path))
    own = fact_rows.rows_of_messages(group)
    own["tool_calls"] = [(*row[:_ARGS], "", *row[_ARGS + 1 :]) for row in own["tool_calls"]]
    own["model_calls"] = _call_rows(files, group.id, [(call, None) for call in group.usage()], prices)
    return OpenedRows(fact_rows.files_of(group), own)


def _all_rows(session: Session, opened: OpenedRows) -> _SessionRows:
    return {**fact_rows.session_rows(session, opened.files, ""), **opened.rows}


@contextmanager
def _as_problems(session: Session, problems: list[Problem]) -> Iterator[None]:
    """Turn an exception into a problem of the session, unless it concerns the whole database."""
    try:
        yield
    except UnreadableFileError as error:  # deleted since it was listed
        problems.append(Problem("unreadable-file", str(error)))
    except Exception as error:
        if concerns_database(error):
            raise
        from pollux.sessions.replay.reading import cannot_derive, reason_of  # noqa: PLC0415  slow to load

        problems += [cannot_derive(ref.path, reason_of(error)) for ref in session.files]
