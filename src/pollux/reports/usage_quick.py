"""The model calls of some homes, added up: by a scan where that is enough, by a whole reading where it is not.

Both give the same calls, to the last field.

Whoever reads a part of the files also adds it up. Only where two parts may hold the same call, or the same session, are
the calls themselves looked at once more.
"""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from pollux.formats.quick_scan import Scanned, scanned
from pollux.formats.records import Wire
from pollux.formats.records import counts as recorded_counts
from pollux.model import ModelCall, Problem, Role, Session, Tokens
from pollux.sessions import locate
from pollux.sessions.homes import Home
from pollux.sessions.locate import SessionFile
from pollux.sessions.reader import Progress, Reader, claims_on_disk, in_chunks
from pollux.sessions.replay.reading import cannot_derive, reason_of
from pollux.text.times import instant, microseconds

_NEVER = 1 << 62
_Sum = TypeVar("_Sum")
Price: TypeAlias = Callable[[str | None, datetime | None, Tokens], tuple[int | None, str]]
"""Says what a call costs, in nano-dollars, and by which price."""
Row: TypeAlias = tuple[object, ...]
"""A call as a row of `model_calls`: its session, its id, when, model, fate, seven counts, cost and price."""


class Counted(NamedTuple):
    """A session and its calls; plain values, since they come from another process."""

    id: str
    rank: tuple[bool, int, str]
    """Which session a call belongs to that several have: the least."""
    calls: list[Row]
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
        sums = add_up(_once([one for each in packed for one in pickle.loads(each)]))  # noqa: S301  of our own copies
    return Counts(sums, list(dict.fromkeys(problems)))


def _once(sessions: list[Counted]) -> list[Counted]:
    """Leave each call to one session: an imported session repeats the messages of another, tokens and all.

    A session that comes twice is one.
    """
    owners: dict[Row, str] = {}
    seen: set[Row] = set()
    found = []
    for one in sorted(sessions, key=lambda one: one.rank):
        own = [call for call in one.calls if call[:2] not in seen]
        own = [call for call in own if owners.setdefault(_what(call), one.id) == one.id]
        seen.update(call[:2] for call in own)
        found.append(one._replace(calls=own))
    return found


def _what(call: Row) -> Row:
    """Tell what makes a call the same as another: its message and its counts."""
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
    is_import = not any(ref.role == Role.MAIN for ref in session.files)
    return Counted(
        session.id,
        _rank(session.id, session.started, is_import=is_import),
        [_row(call, price) for call in session.calls],
        session.problems,
    )


def _rank(id_: str, started: datetime | None, *, is_import: bool = False) -> tuple[bool, int, str]:
    began = microseconds(started)
    return is_import, _NEVER if began is None else began, id_


def _row(call: ModelCall, price: Price) -> Row:
    start = (call.session_id, call.message_id, microseconds(call.at), call.model, str(call.fate))
    return *start, *_numbers(call.tokens), *price(call.model, call.at, call.tokens)


def _numbers(one: Tokens) -> Row:
    return one.input, one.cached, one.output, one.thoughts, one.tool, one.total, one.is_consistent


def quick_sessions(bundle: Sequence[SessionFile], price: Price) -> list[Counted] | None:
    """Return the sessions of a bundle with their calls, or nothing where that takes a replay."""
    sessions: dict[str, Counted] = {}
    for file in bundle:
        found = scanned(file)
        if found is None or found.id in sessions:  # two files of one session: who of them the client loads decides
            return None
        rows = [_wire_row(found, one, price) for one in found.calls]
        sessions[found.id] = Counted(found.id, _rank(found.id, found.started), rows)
    return list(sessions.values())


def _wire_row(found: Scanned, wire: Wire, price: Price) -> Row:
    """Write the same row of a recording, without the steps between."""
    assert wire.tokens is not None
    tokens = recorded_counts(wire.tokens)
    id_, at = str(wire.id), instant(wire.timestamp)
    fate = "active" if id_ in found.alive else "rewound"
    return found.id, id_, microseconds(at), wire.model, fate, *_numbers(tokens), *price(wire.model, at, tokens)
