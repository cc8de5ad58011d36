"""How the cost of a session is computed, in enough detail to recompute it by hand.

For each model call: the counts in its file and where they are, how many tokens have which price, and every other place
where the same call is recorded and was not counted again.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pollux import formats
from pollux.formats import lenient
from pollux.formats.operations import Document, Header, Operation, Put, Record, Update
from pollux.formats.source import Source
from pollux.model import Json, ModelCall, Problem, Role, Session, Tokens
from pollux.prices import Price, Prices, Tier, cost, find, tier_of
from pollux.sessions.grouping import LocatedReading, OpenSession

_ROLES = {
    Role.MAIN: "the file that took over",
    Role.PART: "another file of the session",
    Role.TWIN: "the .json before it was resumed",
    Role.COPY: "a copy of the file in another folder",
    Role.STUB: "a stub",
    Role.SUBAGENT: "a subagent's file",
    Role.IMPORT: "an import",
    Role.UNREADABLE: "a rescue copy",
}


@dataclass(frozen=True, slots=True)
class Bucket:
    """Tokens with the same price."""

    name: str
    tokens: int
    picousd: int
    """The price of one token."""

    @property
    def amount(self) -> int:
        """The exact cost in pico-dollars."""
        return self.tokens * self.picousd


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Another place where the same call is recorded."""

    file: str
    line: int
    reason: str
    tokens: Tokens
    session_id: str | None = None
    """None for the audited session itself."""


@dataclass(frozen=True, slots=True)
class AuditedCall:
    """One model call, and how its cost is computed."""

    call: ModelCall
    recorded: Json
    """The counts exactly as in the file."""
    price: Price | None
    tier: Tier | None
    buckets: tuple[Bucket, ...]
    cost_nanousd: int | None
    """The sum of the buckets, rounded half up; None for a model without a price."""
    duplicates: tuple[Duplicate, ...]
    owner: str | None = None
    """The other session that this call is counted in, or None."""

    @property
    def is_total_computed(self) -> bool:
        """Whether the file has no total, so that it was computed as the sum of the counts."""
        return isinstance(self.recorded, dict) and not isinstance(self.recorded.get("total"), int)


class SessionAudit(NamedTuple):
    """One session and its calls."""

    session: Session
    calls: tuple[AuditedCall, ...]


@dataclass(frozen=True, slots=True)
class AuditReport:
    """How the cost of a session and its subagents is computed."""

    audits: tuple[SessionAudit, ...]
    """The session itself, then its subagents."""
    table: str
    """The name of the price table."""
    date: str
    """Of the price table."""

    @property
    def calls(self) -> list[AuditedCall]:
        """The calls of all sessions."""
        return [call for audit in self.audits for call in audit.calls]

    @property
    def counted(self) -> list[AuditedCall]:
        """The calls that these sessions own."""
        return [call for call in self.calls if call.owner is None]

    @property
    def n_not_counted(self) -> int:
        """The number of records of calls that are counted elsewhere."""
        return sum(len(call.duplicates) + bool(call.owner) for call in self.calls)

    @property
    def n_unpriced(self) -> int:
        """The number of counted calls without a price."""
        return sum(call.cost_nanousd is None for call in self.counted)

    @property
    def cost_nanousd(self) -> int | None:
        """The cost of the calls that have a price, or None if there are calls and none of them has a price."""
        counted = self.counted
        priced = [call.cost_nanousd for call in counted if call.cost_nanousd is not None]
        return sum(priced) if priced or not counted else None

    @property
    def problems(self) -> list[Problem]:
        """The problems of all sessions."""
        return [problem for audit in self.audits for problem in audit.session.problems]


class _Place(NamedTuple):
    """One recording of a call."""

    placed: LocatedReading
    source: Source
    record: Record
    where: str


def audited(
    session: Session,
    group: OpenSession,
    prices: Prices,
    *,
    owners: Mapping[str, str],
    others: Iterable[tuple[str, OpenSession]] = (),
) -> Iterator[AuditedCall]:
    """Yield each call of a session, without those of its subagents.

    Args:
        session: with the calls that it owns.
        group: the same session, open.
        prices: the price table.
        owners: by message ID, the other session that a call is counted in.
        others: sessions that may repeat calls of this one.

    """
    places = _places(group.files)
    repeats = [(id_, _places(other.files)) for id_, other in others]
    counted = {call.message_id for call in session.calls}
    for call in group.usage():
        own_places = places[call.message_id]
        first = _counted(own_places, call)
        duplicates = [_duplicate(place, first) for place in own_places if place is not first]
        for id_, other_places in repeats:
            same = [place for place in other_places.get(call.message_id, ()) if place.record.tokens == call.tokens]
            duplicates += [_repeat(place, id_) for place in same]
        owner = None if call.message_id in counted else owners.get(call.message_id)
        yield _audited(call, first, prices, tuple(duplicates), owner)


def call_owners(database: sqlite3.Connection, session_id: str) -> dict[str, str]:
    """Return the owner of each call that a session repeats but does not own, by message ID."""
    return dict(
        database.execute(
            "SELECT message_id, owner_session_id FROM model_calls "
            "WHERE session_id = ? AND owner_session_id IS NOT NULL",
            (session_id,),
        )
    )


def repeating(database: sqlite3.Connection, session_id: str) -> set[str]:
    """Return the sessions that repeat calls of this session."""
    rows = database.execute("SELECT DISTINCT session_id FROM model_calls WHERE owner_session_id = ?", (session_id,))
    return {row[0] for row in rows}


def buckets(tokens: Tokens, tier: Tier) -> tuple[Bucket, ...]:
    """Divide the tokens of a call by price, each token into one bucket."""
    return (
        Bucket("input", max(tokens.input - tokens.cached, 0), tier.input),
        Bucket("tool", tokens.tool, tier.input),
        Bucket("cached", tokens.cached, tier.input if tier.cached is None else tier.cached),
        Bucket("output", tokens.output, tier.output),
        Bucket("thoughts", tokens.thoughts, tier.output),
    )


def _audited(
    call: ModelCall, place: _Place | None, prices: Prices, duplicates: tuple[Duplicate, ...], owner: str | None
) -> AuditedCall:
    price = find(prices, call.model, call.at)
    tier = tier_of(price, call.tokens) if price else None
    return AuditedCall(
        call,
        _recorded(place),
        price,
        tier,
        buckets(call.tokens, tier) if tier else (),
        cost(price, call.tokens) if price else None,
        duplicates,
        owner,
    )


def _places(files: Iterable[LocatedReading]) -> dict[str, list[_Place]]:
    """Return the records of each call in some files, in order."""
    places: dict[str, list[_Place]] = defaultdict(list)
    for placed in files:
        source, _, operations = formats.opened(placed.reading.original)
        for operation in operations:
            for record, where in _records(operation):
                if record.tokens is not None:
                    places[record.id].append(_Place(placed, source, record, where))
    return places


def _records(operation: Operation) -> Iterator[tuple[Record, str]]:
    match operation:
        case Put(record):
            yield record, "recorded again"
        case Update(_, _, records):
            yield from ((record, "repeated by a checkpoint") for record in records or ())
        case Header(_, _, records):
            yield from ((record, "recorded again") for record in records)
        case Document(_, records):
            yield from ((record, "recorded again") for record in records)
        case _:
            pass


def _counted(places: list[_Place], call: ModelCall) -> _Place | None:
    """Return the record that was counted: the last in the first file that has one."""
    in_file = [place for place in places if place.placed is places[0].placed and place.record.line == call.line]
    return in_file[-1] if in_file else None


def _duplicate(place: _Place, first: _Place | None) -> Duplicate:
    path, record = place.placed.reading.path, place.record
    reason = place.where
    if first and place.placed is not first.placed:
        same = path == first.placed.reading.path
        reason = "another version of the file" if same else _ROLES[place.placed.role]
    return Duplicate(str(path), record.line, reason, record.tokens or Tokens())


def _repeat(place: _Place, session_id: str) -> Duplicate:
    path, record = str(place.placed.reading.path), place.record
    return Duplicate(path, record.line, "repeated by another session", record.tokens or Tokens(), session_id)


def _recorded(place: _Place | None) -> Json:
    if place is None:
        return None
    try:
        value = lenient.decode(place.source.slice(place.record.span))
    except ValueError:  # the file has changed since it was read
        return None
    tokens: Json = value.get("tokens") if isinstance(value, dict) else None
    return tokens
