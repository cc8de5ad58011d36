"""Count the model calls of some homes without an archive: by a quick scan, or by a full reading where that is needed.

Both return the same calls in every field.

The process that reads some of the files also sums their calls. Only if two processes may have read the same call, or
parts of the same session, are the calls themselves compared afterwards.
"""

from __future__ import annotations

import pickle
import sqlite3
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from functools import partial
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from pollux.archive.schema import TABLES, Row, call_row
from pollux.formats.quick_scan import Scanned, scanned
from pollux.formats.records import Wire
from pollux.formats.records import counts as recorded_counts
from pollux.model import ModelCall, Problem, Session, Tokens
from pollux.reports.usage_sql import QuarterSum, quarter_sums
from pollux.sessions import locate
from pollux.sessions.family import Holder, find_owners, holder, session_holder
from pollux.sessions.homes import Home
from pollux.sessions.locate import SessionFile
from pollux.sessions.reader import Progress, SessionReader, claims_on_disk, in_chunks
from pollux.sessions.replay.reading import cannot_derive, reason_of
from pollux.text.times import microseconds, parse_time

_Sum = TypeVar("_Sum")
Price: TypeAlias = Callable[[str | None, datetime | None, Tokens], tuple[int | None, str]]
"""Returns the cost of a call in nano-dollars, and the ID of its price."""


class CountedSession(NamedTuple):
    """A session and its calls, as plain values that can be sent between processes."""

    id: str
    holder: Holder
    calls: list[Row]
    places: tuple[str, ...] = ()
    """The paths of its files."""
    problems: tuple[Problem, ...] = ()


class UsageCounts(NamedTuple, Generic[_Sum]):
    """The sums of all calls of some homes."""

    sums: list[_Sum]
    problems: list[Problem]


class _Part(NamedTuple, Generic[_Sum]):
    """The calls of some of the sessions."""

    sums: list[_Sum]
    marks: bytes
    """A hash of each session and each call: without duplicates among them, no call was counted twice."""
    sessions: bytes
    """Pickled, because they are rarely needed."""
    problems: list[Problem]


def counts(
    homes: Iterable[Home],
    price: Price,
    add_up: Callable[[Iterable[CountedSession]], list[_Sum]],
    *,
    memory: Mapping[str, str] | None = None,
    progress: Progress = lambda _done, _all: None,
) -> UsageCounts[_Sum]:
    """Return the sums of the calls of some homes, each call counted once; several sums may have the same key."""
    located = locate.locate(homes)
    problems = [*located.problems]
    for home in located.homes:
        problems += claims_on_disk(home).problems
    sums: list[_Sum] = []
    packed: list[bytes] = []
    marks = array("q")
    for part in in_chunks(located, partial(_part, SessionReader(memory or {}), price, add_up), progress):
        sums += part.sums
        packed.append(part.sessions)
        marks.frombytes(part.marks)
        problems += part.problems
    if len(set(marks)) != len(marks):
        sessions = [session for each in packed for session in pickle.loads(each)]  # noqa: S301  from our own processes
        sums = add_up(_with_own_calls(_merged(located, sessions, SessionReader(memory or {}), price)))
    return UsageCounts(sums, list(dict.fromkeys(problems)))


def sum_by_time(
    sessions: Iterable[CountedSession], since: datetime | None = None, until: datetime | None = None
) -> list[QuarterSum]:
    """Return the rows of `usage_sql.TIMES` for calls that are in no archive."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.execute(f"CREATE TABLE model_calls ({', '.join(TABLES['model_calls'].names)})")  # no key: it is faster
        database.execute("BEGIN")
        database.executemany(TABLES["model_calls"].insert, (call for session in sessions for call in session.calls))
        return quarter_sums(database, since, until)


def _merged(
    located: locate.HomeScan, sessions: list[CountedSession], reader: SessionReader, price: Price
) -> list[CountedSession]:
    """Read the files again, together, that have the same session ID but are in different bundles."""
    numbers = Counter(session.id for session in sessions)
    places = {place for session in sessions if numbers[session.id] > 1 for place in session.places}
    if not places:
        return sessions
    together = [file for file in located.files if file.place in places]
    again = {session.id: session for session in reader.sessions(together) if numbers[session.id] > 1}
    alone = [session for session in sessions if session.id not in again]
    return [*alone, *(_counted(session, price) for session in again.values())]


def _with_own_calls(sessions: list[CountedSession]) -> list[CountedSession]:
    """Return the sessions with the calls that each of them owns; several with the same ID are one session."""
    seen: set[Row] = set()
    merged = []
    for session in sorted(sessions, key=lambda session: session.holder):
        calls = [call for call in session.calls if call[:2] not in seen]
        seen.update(call[:2] for call in calls)
        merged.append(session._replace(calls=calls))
    owners = find_owners((session.holder, _identity(call)) for session in merged for call in session.calls)
    owned = []
    for session in merged:
        calls = [call for call in session.calls if owners[_identity(call)].session_id == session.id]
        owned.append(session._replace(calls=calls))
    return owned


def _identity(call: Row) -> Row:
    """Return the identity of a call: its message ID and its six counts."""
    return call[1], call[5:11]


def _part(
    reader: SessionReader,
    price: Price,
    add_up: Callable[[Iterable[CountedSession]], list[_Sum]],
    chunk: Sequence[Sequence[SessionFile]],
) -> _Part[_Sum]:
    sessions, problems = _count_chunk(reader, price, chunk)
    problems += [problem for session in sessions for problem in session.problems]
    marks = array("q", [hash(session.id) for session in sessions])
    marks.extend(hash(_identity(call)) for session in sessions for call in session.calls)
    return _Part(add_up(sessions), marks.tobytes(), pickle.dumps(sessions, pickle.HIGHEST_PROTOCOL), problems)


def _count_chunk(
    reader: SessionReader, price: Price, chunk: Sequence[Sequence[SessionFile]]
) -> tuple[list[CountedSession], list[Problem]]:
    sessions: list[CountedSession] = []
    failed: list[Problem] = []
    for bundle in chunk:
        try:
            sessions += _count_bundle(reader, price, bundle)
        except Exception as error:  # noqa: BLE001  reported; the other bundles must be counted
            failed += [cannot_derive(file.path, reason_of(error)) for file in bundle]
    problems, reader.problems = reader.problems, []
    return sessions, problems + failed


def _count_bundle(reader: SessionReader, price: Price, bundle: Sequence[SessionFile]) -> list[CountedSession]:
    quick = quick_sessions(bundle, price)
    if quick is not None:
        return quick
    return [_counted(session, price) for session in reader.sessions(bundle)]


def _counted(session: Session, price: Price) -> CountedSession:
    calls = [_row(call, price) for call in session.calls]
    places = tuple(str(ref.path) for ref in session.files)
    return CountedSession(session.id, session_holder(session), calls, places, session.problems)


def _row(call: ModelCall, price: Price) -> Row:
    key = (call.session_id, call.message_id)
    return call_row(
        key, call.at, call.model, str(call.fate), call.tokens, price=price(call.model, call.at, call.tokens)
    )


def quick_sessions(bundle: Sequence[SessionFile], price: Price) -> list[CountedSession] | None:
    """Return the sessions of a bundle with their calls, or None if that requires a replay."""
    sessions: dict[str, CountedSession] = {}
    for file in bundle:
        scan = scanned(file.place, file.size, has_parent=bool(file.parent))
        if scan is None or scan.id in sessions:  # which of two files the client would load requires a replay
            return None
        rows = [_wire_row(scan, call, price) for call in scan.calls]
        sessions[scan.id] = CountedSession(scan.id, _holder(scan), rows, (file.place,))
    return list(sessions.values())


def _holder(scan: Scanned) -> Holder:
    return holder(scan.id, microseconds(scan.started), is_loaded=False)  # a loaded session requires a replay


def _wire_row(scan: Scanned, wire: Wire, price: Price) -> Row:
    assert wire.tokens is not None
    tokens = recorded_counts(wire.tokens)
    id_, at = str(wire.id), parse_time(wire.timestamp)
    fate = "active" if id_ in scan.alive else "rewound"
    return call_row((scan.id, id_), at, wire.model, fate, tokens, price=price(wire.model, at, tokens))
