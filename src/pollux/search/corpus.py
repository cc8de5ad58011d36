"""What a search reads, and the order of its sessions."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import msgspec

from pollux.archive.load_sessions import AMONG, ids_as_json
from pollux.archive.raw import CheckedSegments
from pollux.reports import sessions
from pollux.reports.sessions import SessionQuery
from pollux.search import rank
from pollux.search.fact_tests import MANY, FactTests, has_session_tests
from pollux.search.index import SearchIndex
from pollux.search.parts import PartKind
from pollux.search.plan import Clause
from pollux.search.rank import TimeRange
from pollux.search.terms import Query
from pollux.search.texts import Opener
from pollux.search.values import SESSION_SCOPE

RELEVANCE, NEWEST, OLDEST, COST = SORTS = ("relevance", "newest", "oldest", "cost")
_weight = rank.WEIGHTS.__getitem__
EVERYTHING = SessionQuery(subagents=True, empty=True)
_LATER = 1e6
"""Added to the sort key of sessions whose words are in several messages: they follow all others."""
_FEW = 2000
"""Up to this many sessions are looked up one by one."""
_FIRST_WALKED = 250
"""Sessions that are read first, in the order of their times."""


class Corpus(msgspec.Struct, frozen=True):
    """What a search reads."""

    database: sqlite3.Connection
    """The facts, of an archive or of session files."""
    index: SearchIndex | None
    """None to scan."""
    open_session: Opener
    facts: FactTests
    has_bytes: bool = True
    """Whether the database contains the bytes of the session files."""
    checked: CheckedSegments | None = None
    """Segments of the archive whose bytes need no check any more."""

    @property
    def connections(self) -> list[sqlite3.Connection]:
        """The connections whose statements a time limit has to stop."""
        return [self.database, *([self.index.database] if self.index else [])]


class Request(msgspec.Struct, frozen=True):
    """What to search for, and how much of it to return."""

    query: Query
    scope: SessionQuery = EVERYTHING
    sort: str = RELEVANCE
    limit: int | None = 20
    """Sessions of a page; None for all."""
    hits_per_session: int = 3
    is_scan: bool = False
    """Whether to test all texts instead of using the index."""


class NewestSessions(NamedTuple):
    """The sessions that were used last."""

    ids: list[str]
    is_complete: bool
    """Whether there are no others."""


class SessionKey(NamedTuple):
    """The place of a session in the order of a list; the smallest comes first."""

    number: float
    session_id: str


class SearchScope:
    """The sessions that a search may return, and their order."""

    def __init__(
        self, corpus: Corpus, request: Request, clauses: Sequence[Clause], times: TimeRange | None = None
    ) -> None:
        """Prepare; `times` is the range of times of the first page, or None for the current one."""
        self._database, self._facts, self._request, self._clauses = (
            corpus.database,
            corpus.facts,
            request,
            clauses,
        )
        self.times = times or time_range(corpus.database)
        self._used: dict[str, int | None] = {}

    @cached_property
    def _in_scope(self) -> set[str] | None:
        return None if self._request.scope == EVERYTHING else self.everything()

    @cached_property
    def allowed(self) -> list[set[str] | None]:
        """For each clause: the sessions in scope that may satisfy its fields; None for all sessions."""
        allowed = []
        for clause in self._clauses:
            ids = self._facts.sessions(clause)
            if ids is not None and self._in_scope is not None:
                ids = ids & self._in_scope
            allowed.append(self._in_scope if ids is None else ids)
        return allowed

    @property
    def is_limited(self) -> bool:
        """Whether fields or filters leave out some sessions."""
        return self._in_scope is not None or any(map(has_session_tests, self._clauses))

    def are_few(self, clause: int) -> bool:
        """Return whether few sessions may satisfy the clause with a number, so that all of them can be visited."""
        is_narrow = self._in_scope is not None and len(self._in_scope) < MANY
        return is_narrow or self._facts.have_few_sessions(self._clauses[clause])

    def allowed_among(self, clause: int, ids: Collection[str]) -> set[str]:
        """Return those of some sessions that are in scope and may satisfy the clause with a number."""
        if "allowed" in self.__dict__ or len(ids) > _FEW:
            allowed = self.allowed[clause]
            return set(ids) if allowed is None else allowed.intersection(ids)
        in_scope = ids if self._in_scope is None else self._in_scope.intersection(ids)
        return self._facts.sessions_among(self._clauses[clause], in_scope)

    def everything(self) -> set[str]:
        """Return all sessions in scope."""
        return set(sessions.page(self._database, self._request.scope))

    def is_allowed(self, clause: int, session_id: str) -> bool:
        """Return whether a session may satisfy the clause with a number."""
        allowed = self.allowed[clause]
        return allowed is None or session_id in allowed

    def place(self, session_id: str) -> float:
        """Return the place of a session in time: 0 for the oldest, 1 for the newest."""
        if session_id not in self._used:
            self.load([session_id])
        return self.times.place(self._used.get(session_id))

    def key(self, session_id: str, kinds: Iterable[PartKind], scope: str) -> tuple[float, float, str]:
        """Return the sort key of a session by relevance, given the kinds of its matching parts."""
        return self.scored_key(session_id, rank.session_score(map(_weight, kinds)), scope)

    def scored_key(self, session_id: str, score: float, scope: str) -> tuple[float, float, str]:
        """Return the sort key of a session by relevance, given the score of its parts in the newest session."""
        later = _LATER if scope == SESSION_SCOPE else 0.0
        factor = rank.time_factor(self.place(session_id))
        return later - score * factor, float(-(self._used.get(session_id) or 0)), session_id

    def score(self, session_id: str, kinds: Iterable[PartKind]) -> float:
        """Return the score of a session, given the kinds of its matching parts."""
        return rank.session_score(map(_weight, kinds)) * rank.time_factor(self.place(session_id))

    def ordered(self, ids: set[str]) -> Iterator[SessionKey]:
        """Yield sessions in the order of the request; by relevance, the newest first."""
        if self._request.sort == COST:
            costs = family_costs(self._database)
            yield from sorted(SessionKey(-costs.get(session_id, 0), session_id) for session_id in ids)
        elif len(ids) > _FEW and self.can_be_walked:
            yield from self.walked(ids.intersection, len(ids))
        else:
            self.load(ids)
            yield from sorted(self._time_key(session_id) for session_id in ids)

    @cached_property
    def can_be_walked(self) -> bool:
        """Whether the index of the archive has the order of the request. Sessions without a time are the oldest."""
        return self._request.sort != COST and time_range(self._database).oldest > 0

    def walked(
        self, among: Callable[[list[str]], AbstractSet[str]], n_missing: float = math.inf, *, sort: str = ""
    ) -> Iterator[SessionKey]:
        """Yield many sessions in the order of their times as the index of the archive has them.

        A page needs only the first of them.

        Args:
            among: returns those of some sessions that are wanted.
            n_missing: the number of all that are wanted, if it is known.
            sort: another order than that of the request.

        """
        direction = "ASC" if (sort or self._request.sort) == OLDEST else "DESC"
        start, limit = 0, _FIRST_WALKED
        while n_missing:
            rows = self._database.execute(
                f"SELECT session_id, last_used_us FROM sessions ORDER BY last_used_us {direction}, session_id "  # noqa: S608  ours
                "LIMIT ? OFFSET ?",
                (limit, start),
            ).fetchall()
            if not rows:
                return
            self._used.update(rows)
            wanted = among([session_id for session_id, _ in rows])
            for session_id, _ in rows:
                if session_id in wanted:
                    n_missing -= 1
                    yield self._time_key(session_id)
            start, limit = start + limit, limit * 2

    def _time_key(self, session_id: str) -> SessionKey:
        sign = 1 if self._request.sort == OLDEST else -1
        return SessionKey(sign * (self._used.get(session_id) or 0), session_id)

    def load(self, ids: Collection[str]) -> None:
        """Read when some sessions were last used, with one statement."""
        missing = [session_id for session_id in ids if session_id not in self._used]
        if not missing:
            return
        if len(missing) > _FEW:
            rows = self._database.execute("SELECT session_id, last_used_us FROM sessions")
        else:
            rows = self._database.execute(
                f"SELECT session_id, last_used_us FROM sessions WHERE {AMONG}",  # noqa: S608  ours
                (ids_as_json(missing),),
            )
        self._used.update(rows.fetchall())


def newest_of(database: sqlite3.Connection, ids: Collection[str], most: int) -> NewestSessions:
    """Return those of some sessions that were used last."""
    if len(ids) <= most:
        return NewestSessions(list(ids), is_complete=True)
    rows = database.execute("SELECT session_id FROM sessions ORDER BY last_used_us DESC, session_id")
    newest = (session_id for (session_id,) in rows if session_id in ids)
    return NewestSessions(list(islice(newest, most)), is_complete=False)


def time_range(database: sqlite3.Connection) -> TimeRange:
    """Return when the oldest and the newest session were last used."""
    (oldest,) = database.execute("SELECT min(last_used_us) FROM sessions").fetchone()
    (newest,) = database.execute("SELECT max(last_used_us) FROM sessions").fetchone()
    return TimeRange(oldest or 0, newest or 0)


def family_costs(database: sqlite3.Connection) -> dict[str, int]:
    """Return the cost of each session in nano-dollars, of a main session with that of its subagents."""
    costs: dict[str, int] = {}
    rows = database.execute(
        "SELECT session_id, root_session_id, sum(cost_nanousd) FROM session_usage JOIN sessions USING (session_id) "
        "GROUP BY session_id"
    )
    for session_id, root_id, nanousd in rows:
        for member in {session_id, root_id}:
            costs[member] = costs.get(member, 0) + (nanousd or 0)
    return costs
