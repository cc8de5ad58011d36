"""The model calls of some homes, added up: by a scan where that is enough, by a whole reading where it is not.

Both give the same calls, to the last field.

Whoever reads a part of the files also adds it up. Only where two parts may hold the same call, or the same session, are
the calls themselves looked at once more.
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
from pollux.reports.usage_sql import TimePart, time_parts
from pollux.sessions import locate
from pollux.sessions.homes import Home
from pollux.sessions.locate import SessionFile
from pollux.sessions.ownership import Holder, find_owners, holder, session_holder
from pollux.sessions.reader import Progress, Reader, claims_on_disk, in_chunks
from pollux.sessions.replay.reading import cannot_derive, reason_of
from pollux.text.times import instant, microseconds

_Sum = TypeVar("_Sum")
Price: TypeAlias = Callable[[str | None, datetime | None, Tokens], tuple[int | None, str]]
"""Says what a call costs, in nano-dollars, and by which price."""


class Counted(NamedTuple):
    """A session and its calls; plain values, since they come from another process."""

    id: str
    holder: Holder
    calls: list[Row]
    places: tuple[str, ...] = ()
    """The files that it was read from."""
    problems: tuple[Problem, ...] = ()


class Counts(NamedTuple, Generic[_Sum]):
    """All calls of some homes, added up."""

    sums: list[_Sum]
    problems: list[Problem]


class _Part(NamedTuple, Generic[_Sum]):
    """Some sessions of some homes."""

    sums: list[_Sum]
    marks: bytes
    """A number for each session and each call: what is nowhere twice cannot be counted twice."""
    sessions: bytes
    """Packed: seldom looked at."""
    problems: list[Problem]


def counts(
    homes: Iterable[Home],
    price: Price,
    add_up: Callable[[Iterable[Counted]], list[_Sum]],
    *,
    memory: Mapping[str, str] | None = None,
    progress: Progress = lambda _done, _all: None,
) -> Counts[_Sum]:
    """Count the calls of some homes, each once; sums may come in several pieces."""
    located = locate.locate(homes)
    problems = [*located.problems, *(one for home in located.homes for one in claims_on_disk(home).problems)]
    sums: list[_Sum] = []
    packed: list[bytes] = []
    marks = array("q")
    for part in in_chunks(located, partial(_part, Reader(memory or {}), price, add_up), progress):
        sums += part.sums
        packed.append(part.sessions)
        marks.frombytes(part.marks)
        problems += part.problems
    if len(set(marks)) != len(marks):
        sessions = [session for each in packed for session in pickle.loads(each)]  # noqa: S301  of our own copies
        sums = add_up(_with_own_calls(_reunited(located, sessions, Reader(memory or {}), price)))
    return Counts(sums, list(dict.fromkeys(problems)))


def sum_by_time(
    sessions: Iterable[Counted], since: datetime | None = None, until: datetime | None = None
) -> list[TimePart]:
    """Run the report that asks for no session on calls that are in no archive."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        database.execute(f"CREATE TABLE model_calls ({', '.join(TABLES['model_calls'].names)})")  # no key: it is faster
        database.execute("BEGIN")
        database.executemany(TABLES["model_calls"].insert, (call for session in sessions for call in session.calls))
        return time_parts(database, since, until)


def _reunited(located: locate.Located, sessions: list[Counted], reader: Reader, price: Price) -> list[Counted]:
    """Read the files again, together, that say they are one session though they are in different bundles."""
    numbers = Counter(session.id for session in sessions)
    places = {place for session in sessions if numbers[session.id] > 1 for place in session.places}
    if not places:
        return sessions
    together = [file for file in located.files if file.place in places]
    again = {session.id: session for session in reader.sessions(together) if numbers[session.id] > 1}
    alone = [session for session in sessions if session.id not in again]
    return [*alone, *(_summed_up(session, price) for session in again.values())]


def _with_own_calls(sessions: list[Counted]) -> list[Counted]:
    """Return the sessions with the calls that each of them owns; what comes twice under one ID is one session."""
    seen: set[Row] = set()
    merged = []
    for session in sorted(sessions, key=lambda session: session.holder):
        calls = [call for call in session.calls if call[:2] not in seen]
        seen.update(call[:2] for call in calls)
        merged.append(session._replace(calls=calls))
    owners = find_owners((session.holder, _what(call)) for session in merged for call in session.calls)
    owned = []
    for session in merged:
        calls = [call for call in session.calls if owners[_what(call)].session_id == session.id]
        owned.append(session._replace(calls=calls))
    return owned


def _what(call: Row) -> Row:
    """Return what makes a call the same as another: its message ID and its six counts."""
    return call[1], call[5:11]


def _part(
    reader: Reader,
    price: Price,
    add_up: Callable[[Iterable[Counted]], list[_Sum]],
    chunk: Sequence[Sequence[SessionFile]],
) -> _Part[_Sum]:
    found, problems = _count_chunk(reader, price, chunk)
    problems += [problem for one in found for problem in one.problems]
    marks = array("q", [hash(one.id) for one in found])
    marks.extend(hash(_what(call)) for one in found for call in one.calls)
    return _Part(add_up(found), marks.tobytes(), pickle.dumps(found, pickle.HIGHEST_PROTOCOL), problems)


def _count_chunk(
    reader: Reader, price: Price, chunk: Sequence[Sequence[SessionFile]]
) -> tuple[list[Counted], list[Problem]]:
    found: list[Counted] = []
    failed: list[Problem] = []
    for bundle in chunk:
        try:
            found += _count_bundle(reader, price, bundle)
        except Exception as error:  # noqa: BLE001  reported; the other bundles must be counted
            failed += [cannot_derive(file.path, reason_of(error)) for file in bundle]
    problems, reader.problems = reader.problems, []
    return found, problems + failed


def _count_bundle(reader: Reader, price: Price, bundle: Sequence[SessionFile]) -> list[Counted]:
    quick = quick_sessions(bundle, price)
    if quick is not None:
        return quick
    return [_summed_up(one, price) for one in reader.sessions(bundle)]


def _summed_up(session: Session, price: Price) -> Counted:
    """Take of a session that was read as a whole what counting needs."""
    calls = [_row(call, price) for call in session.calls]
    places = tuple(str(ref.path) for ref in session.files)
    return Counted(session.id, session_holder(session), calls, places, session.problems)


def _row(call: ModelCall, price: Price) -> Row:
    key = (call.session_id, call.message_id)
    return call_row(
        key, call.at, call.model, str(call.fate), call.tokens, price=price(call.model, call.at, call.tokens)
    )


def quick_sessions(bundle: Sequence[SessionFile], price: Price) -> list[Counted] | None:
    """Return the sessions of a bundle with their calls, or nothing where that takes a replay."""
    sessions: dict[str, Counted] = {}
    for file in bundle:
        found = scanned(file.place, file.size, has_parent=bool(file.parent))
        if found is None or found.id in sessions:  # two files of one session: who of them the client loads decides
            return None
        rows = [_wire_row(found, one, price) for one in found.calls]
        sessions[found.id] = Counted(found.id, _holder(found), rows, (file.place,))
    return list(sessions.values())


def _holder(found: Scanned) -> Holder:
    return holder(found.id, microseconds(found.started), is_loaded=False)  # a loaded session takes a replay


def _wire_row(found: Scanned, wire: Wire, price: Price) -> Row:
    """Write the same row of a recording, without the steps between."""
    assert wire.tokens is not None
    tokens = recorded_counts(wire.tokens)
    id_, at = str(wire.id), instant(wire.timestamp)
    fate = "active" if id_ in found.alive else "rewound"
    return call_row((found.id, id_), at, wire.model, fate, tokens, price=price(wire.model, at, tokens))
