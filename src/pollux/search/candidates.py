"""Propose the sessions that may match a query, in order, from the index and the facts; their texts are not read.

The newest matching rows of the index are scored and grouped by session. All other sessions follow, visited one by one,
newest first: those with older rows, and those whose words are in several messages. Where a filter leaves few sessions,
or another order than by relevance is wanted, all sessions are visited in that order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import groupby, islice
from typing import NamedTuple, TypeAlias

from pollux.search import rank
from pollux.search.corpus import NEWEST, RELEVANCE, Corpus, Request, SearchScope, SessionKey
from pollux.search.cursor import FIRST, REST, Position
from pollux.search.fact_tests import NO_TESTS, Admitted, has_message_tests, is_about_sessions
from pollux.search.hits import Candidate
from pollux.search.index import KINDS, PREFIX, NewestRows, Place
from pollux.search.parts import PartKind
from pollux.search.plan import EVERY_KIND, Clause, conditions, is_one_token, match_expression
from pollux.search.scan import ScannedSession
from pollux.search.terms import AllOf, AnyOf, FieldTest, Node, Not, Word
from pollux.search.titles import sessions_with_title
from pollux.search.values import MESSAGE_SCOPE, SESSION_SCOPE, TITLE_SCOPE

WORD_ROWS, OUTPUT_ROWS = 2000, 500
"""Newest rows that are ranked: of output fewer, because it says least about what a session was about."""
_WINDOW = 100
"""Sessions that are visited and ranked together, and whose facts are looked up together."""
_SMALL_WINDOW = 25
"""The same for and after the newest rows, where no order depends on it."""
_MOST_COUNTED = 1000
"""Matching parts of a session up to which they are counted."""
_MOST_COLLECTED = 20_000
_START_OF_REST = Position(REST, None, None)
_ROWS_OF_SESSION = 200
_ROWS_OF_CONDITION, _SHOWN_OF_CONDITION = 20, 2
_HIGHLIGHTED = frozenset({"file", "cmd", "tool"})
"""Fields whose values are highlighted in tool calls."""
_NO_KEY = (0.0, 0.0, "")
_WEIGHTS = tuple(rank.WEIGHTS[kind] for kind in PartKind)
_RankedRow: TypeAlias = tuple[int, int, int]
"""A row of the index, the position of its message in the timeline, and the number of the clause that it matches."""


class Entry(NamedTuple):
    """A session in the order of a search, before its texts are read."""

    session_id: str
    position: Position
    scope: str
    candidates: Sequence[Candidate] = ()
    scanned: ScannedSession | None = None
    """What matches, if the session was scanned."""


class Proposals:
    """The sessions that may match a query."""

    def __init__(
        self,
        corpus: Corpus,
        request: Request,
        clauses: Sequence[Clause],
        scope: SearchScope,
        scanned: Mapping[str, ScannedSession | None],
        top: int | None = None,
    ) -> None:
        """Prepare.

        Args:
            corpus: what to search.
            request: what to search for.
            clauses: of its query.
            scope: the sessions that may be returned.
            scanned: sessions that were scanned because they are not indexed.
            top: ignore rows of the index from this one on; None for none.

        """
        self._database, self._index, self._facts, self._request = corpus.database, corpus.index, corpus.facts, request
        self._clauses, self._scope, self._scanned = clauses, scope, scanned
        self.top = top
        """After the newest rows were read: the row after the newest."""
        self._collected: dict[str, tuple[dict[str, list[Place]], bool]] = {}
        """For expressions with a prefix: the parts that match by session, and whether these are all."""
        self._is_complete = True
        """Whether all matching rows were read, so that the candidates of a session are all that it has."""
        self._newest: NewestRows | None = None
        """The newest rows of the last clause."""
        self.n_parts: int | None = None
        """The number of parts that match, if the newest rows are all rows."""

    def entries(self, after: Position) -> Iterator[Entry]:
        """Yield the sessions after a position that may match, in order."""
        if not self._is_ranked:
            yield from self._visits(self.ordered(), after, _WINDOW)
            return
        window, is_complete = self._newest_rows()
        if after.tier == FIRST:
            yield from self._ranked(window, after)
        if is_complete and not any(clause.may_be_spread for clause in self._clauses):
            return
        seen = self._scanned.keys() | self.titled
        if not any(has_message_tests(clause) for clause in self._clauses):
            seen |= window.keys()
        others = self.ordered(seen)
        for entry in self._visits(others, after if after.tier == REST else _START_OF_REST, _SMALL_WINDOW):
            ranked = self._candidates(window.get(entry.session_id, ()))
            if entry.scope != MESSAGE_SCOPE or not set(entry.candidates) & set(ranked):
                yield entry

    @cached_property
    def _is_ranked(self) -> bool:
        """Whether to start with the newest rows of the index."""
        if self._request.sort != RELEVANCE or self._index is None:
            return False
        if not all(match_expression(clause.texts) for clause in self._clauses):
            return False
        if not all(self._scope.are_few(number) for number in range(len(self._clauses))):
            return True
        return len(self.sessions) > _WINDOW

    # The newest rows

    def _newest_rows(self) -> tuple[dict[str, list[_RankedRow]], bool]:
        """Return the newest rows by session, and whether there are no older rows."""
        assert self._index is not None
        window: dict[str, list[_RankedRow]] = {}
        is_complete, newest_row = True, -1
        for number, clause in enumerate(self._clauses):
            expression = match_expression(clause.texts)
            assert expression is not None
            if clause.kinds == EVERY_KIND:
                newest = self._index.newest_rows(expression, self.top, WORD_ROWS, OUTPUT_ROWS)
            else:
                rows = self._index.rows(expression, kinds=clause.kinds, below=self.top, limit=WORD_ROWS)
                newest = NewestRows(rows, len(rows) < WORD_ROWS, self.top, rows[::-1])
            is_complete = is_complete and newest.is_complete
            newest_row = max(newest_row, max(newest.rows, default=-1))
            by_session = self._index.rows_by_session(newest.rows)
            for session_id in self._scope.allowed_among(number, by_session):
                window.setdefault(session_id, []).extend([(row, seq, number) for row, seq in by_session[session_id]])
            self._newest = newest
        if self.top is None:
            self.top = newest_row + 1
        self._is_complete = is_complete
        self.n_parts = sum(map(len, window.values())) if is_complete else None
        return window, is_complete

    def _candidates(self, rows: Iterable[_RankedRow]) -> list[Candidate]:
        return [Candidate(seq, PartKind(row % KINDS), self._clauses[number].texts, number) for row, seq, number in rows]

    def counts_in(self, entries: Sequence[Entry]) -> dict[str, int]:
        """Return the number of parts of some sessions that may match, also behind the newest rows."""
        if self._is_complete or self._index is None or self._newest is None or len(self._clauses) > 1:
            return {}
        (clause,) = self._clauses
        expression = match_expression(clause.texts)
        ids = [entry.session_id for entry in entries if entry.candidates and entry.position.tier != REST]
        if not ids or expression is None or PREFIX in expression or has_message_tests(clause):
            return {}
        counts = self._index.counts_within(self._newest, ids)
        for session_id in ids:
            if session_id not in counts:
                rows = self._index.rows_within(expression, session_id, _MOST_COUNTED)
                counts[session_id] = sum(row % KINDS in clause.kinds for row in rows)
        return {session_id: min(number, _MOST_COUNTED) for session_id, number in counts.items()}

    def _ranked(self, window: Mapping[str, list[_RankedRow]], after: Position) -> Iterator[Entry]:
        """Yield the sessions of the newest rows and those that were scanned, best first."""
        others: dict[str, Entry] = {}
        for session_id, result in self._scanned.items():
            if result:
                others[session_id] = self._scanned_entry(session_id, result, FIRST)
        for session_id in self.titled - window.keys() - others.keys():
            others[session_id] = self._titled_entry(session_id, FIRST)
        yield from self._with_facts(self._ranked_entries(window, others, after))

    def _ranked_entries(
        self, window: Mapping[str, list[_RankedRow]], others: Mapping[str, Entry], after: Position
    ) -> Iterator[Entry]:
        for key in self._ranked_keys(window, others):
            session_id = key[2]
            if after.key is not None and key <= after.key:
                continue
            if session_id in others:
                yield others[session_id]
            else:
                candidates = self._candidates(window[session_id])
                yield Entry(session_id, Position(FIRST, None, key), MESSAGE_SCOPE, candidates)

    def _ranked_keys(
        self, window: Mapping[str, list[_RankedRow]], others: Mapping[str, Entry]
    ) -> Iterator[tuple[float, float, str]]:
        """Yield the sort keys of sessions in order.

        No score is higher than that of the same parts in the newest session. So when the sessions were last used is
        looked up only for those that may be next.
        """
        bounds = []
        for session_id, rows in window.items():
            if session_id not in others:
                bounds.append((rank.session_score(_weights(rows)), session_id))
        bounds.sort(reverse=True)
        keys = [entry.position.key or _NO_KEY for entry in others.values()]
        heapify(keys)
        start = 0
        while keys or start < len(bounds):
            while start < len(bounds) and (not keys or -keys[0][0] <= bounds[start][0]):
                group = bounds[start : start + _WINDOW]
                self._scope.load([session_id for _, session_id in group])
                for bound, session_id in group:
                    heappush(keys, self._scope.scored_key(session_id, bound, MESSAGE_SCOPE))
                start += _WINDOW
            yield heappop(keys)

    def _with_facts(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        """Yield entries without the candidates whose messages do not pass the tests of their clause."""
        if not any(has_message_tests(clause) for clause in self._clauses):
            yield from entries
            return
        for entry in entries:
            candidates: list[Candidate] = []
            for number, group in groupby(entry.candidates, key=lambda candidate: candidate.clause):
                proposed = list(group)
                positions = {candidate.seq for candidate in proposed}
                passing = self._facts.passing(self._clauses[number], entry.session_id, positions)
                candidates += [candidate for candidate in proposed if candidate.seq in passing]
            if candidates or entry.scanned or entry.scope == TITLE_SCOPE:
                yield entry._replace(candidates=candidates)

    def _admitted(self, ids: Collection[str]) -> list[Admitted]:
        return [self._facts.admitted(clause, ids) for clause in self._clauses]

    def _scanned_entry(self, session_id: str, result: ScannedSession, tier: int) -> Entry:
        key = self._scope.key(session_id, [match.kind for match in result.matches], result.scope)
        return Entry(session_id, Position(tier, None, key), result.scope, scanned=result)

    def _titled_entry(self, session_id: str, tier: int) -> Entry:
        """Return a session that is found by its title, which is ranked like a prompt."""
        key = self._scope.key(session_id, [PartKind.PROMPT], TITLE_SCOPE)
        return Entry(session_id, Position(tier, None, key), TITLE_SCOPE)

    # Sessions one by one

    @cached_property
    def titled(self) -> set[str]:
        """The sessions whose titles contain all words."""
        ids: set[str] = set()
        for number, clause in enumerate(self._clauses):
            with_title = sessions_with_title(self._database, clause)
            if with_title:
                ids |= self._scope.allowed_among(number, with_title)
        return ids

    @property
    def has_sessions(self) -> bool:
        """Whether `sessions` was computed already, or need not be."""
        return "sessions" in self.__dict__ or self.common_word is not None

    @cached_property
    def common_word(self) -> str | None:
        """The expression of the only condition if it is a word of so many sessions that only the newest are named."""
        if self._index is None or len(self._clauses) > 1 or self._scope.is_limited or not self._scope.can_be_walked:
            return None
        match conditions(self._clauses[0]):
            case [Word() as word] if is_one_token(word):
                expression = match_expression([word])
                return expression if expression and self._index.is_common(expression) else None
        return None

    def ordered(self, seen: AbstractSet[str] = frozenset()) -> Iterator[SessionKey]:
        """Yield `sessions` in the order of the request, without some of them; they are named only if that is quick."""
        if self.common_word is None:
            return self._scope.ordered(self.sessions - seen)
        return self._scope.walked(lambda ids: self._common_among(ids) - seen)

    def newest_first(self) -> Iterator[SessionKey]:
        """Yield `sessions` newest first, for a common word."""
        return self._scope.walked(self._common_among, sort=NEWEST)

    def _common_among(self, ids: Collection[str]) -> set[str]:
        """Return those of some sessions that are in `sessions`, for a common word."""
        assert self._index is not None
        assert self.common_word is not None
        others = self.titled | {session_id for session_id, result in self._scanned.items() if result}
        return self._index.sessions_among(self.common_word, ids) | others.intersection(ids)

    @cached_property
    def sessions(self) -> set[str]:
        """The sessions that contain all words somewhere, and that may satisfy the fields."""
        ids = set(self.titled)
        for number, clause in enumerate(self._clauses):
            with_words = self._with_all(conditions(clause)) if self._index else None
            if with_words is None:
                allowed = self._scope.allowed[number]
                ids |= self._scope.everything() if allowed is None else allowed
            else:
                ids |= self._scope.allowed_among(number, with_words)
        ids.update(session_id for session_id, result in self._scanned.items() if result)
        return ids

    def _with_all(self, nodes: Iterable[Node]) -> set[str] | None:
        """Return the sessions that contain what all nodes require, in any of their messages; None for all."""
        common: set[str] | None = None
        for node in nodes:
            ids = self._with(node)
            if ids is not None:
                common = ids if common is None else common & ids
        return common

    def _with(self, node: Node) -> set[str] | None:
        assert self._index is not None
        if isinstance(node, Not):
            return None
        if isinstance(node, AllOf):
            return self._with_all(node.nodes)
        if isinstance(node, AnyOf):
            union: set[str] = set()
            for child in node.nodes:
                ids = self._with(child)
                if ids is None:
                    return None
                union |= ids
            return union
        expression = match_expression([node])
        return self._index.sessions_with(expression) if expression else None

    def _visits(self, ordered: Iterator[SessionKey], after: Position, size: int) -> Iterator[Entry]:
        """Yield those of some sessions that match, window by window; those of a window are ranked together."""
        before, key = after.window, after.key
        if before is not None:
            last_window = before
            ordered = (session_key for session_key in ordered if session_key > last_window)
        while window := list(islice(ordered, size)):
            tests = self._admitted([session_id for _, session_id in window])
            entries = []
            for session_key in window:
                entry = self._visit(session_key.session_id, tests) or self._visit_spread(session_key.session_id)
                if entry:
                    entries.append(self._placed(entry, session_key, before))
            yield from _after(entries, key)
            before, key = window[-1], None

    def _placed(self, entry: Entry, session_key: SessionKey, before: tuple[float, str] | None) -> Entry:
        key = entry.position.key
        if self._request.sort != RELEVANCE:
            key = (session_key.number, 0.0, session_key.session_id)
        return entry._replace(position=Position(REST, before, key))

    def _visit(self, session_id: str, tests: Sequence[Admitted]) -> Entry | None:
        """Return the candidates of a session; None if it cannot match."""
        result = self._scanned.get(session_id)
        if result:
            return self._scanned_entry(session_id, result, REST)
        candidates: list[Candidate] = []
        is_listed = False
        for number, clause in enumerate(self._clauses):
            if not self._scope.is_allowed(number, session_id):
                continue
            if clause.positive:
                n_rows = max(_ROWS_OF_SESSION, self._request.hits_per_session)
                candidates += self._rows_of(session_id, number, clause.texts, tests[number], n_rows)
            elif is_about_sessions(clause):
                is_listed = is_listed or not self._contains_any(session_id, number, clause)
            else:
                candidates += _messages_of(session_id, number, clause, tests[number])
        if not candidates and not is_listed:
            return self._titled_entry(session_id, REST) if session_id in self.titled else None
        scope = MESSAGE_SCOPE if candidates else SESSION_SCOPE
        key = self._scope.key(session_id, kinds_of(candidates), scope)
        return Entry(session_id, Position(REST, None, key), scope, candidates)

    def _contains_any(self, session_id: str, number: int, clause: Clause) -> bool:
        """Return whether a part of a session has a text that a clause excludes."""
        unwanted = [node.node for node in clause.negative if isinstance(node, Not)]
        return any(self._rows_of(session_id, number, (node,), NO_TESTS, _ROWS_OF_CONDITION) for node in unwanted)

    def _rows_of(
        self, session_id: str, number: int, texts: tuple[Node, ...], tests: Admitted, most: int
    ) -> list[Candidate]:
        """Return the parts of a session that may satisfy some conditions of a clause."""
        assert self._index is not None
        expression = match_expression(texts)
        if expression is None:
            return []
        return [
            Candidate(place.seq, place.kind, texts, number)
            for place in self._places_within(expression, session_id, most)
            if place.kind in self._clauses[number].kinds and tests.has(session_id, place.seq)
        ]

    def _places_within(self, expression: str, session_id: str, most: int) -> list[Place]:
        """Return the parts of a session that match an expression.

        SQLite collects all rows of a prefix before it returns the first, so that one statement for all sessions takes
        less time than one for each.
        """
        assert self._index is not None
        if PREFIX in expression:
            if expression not in self._collected:
                rows = self._index.rows(expression, limit=_MOST_COLLECTED)
                by_session: dict[str, list[Place]] = {}
                for place in self._index.places(rows).values():
                    by_session.setdefault(place.session_id, []).append(place)
                self._collected[expression] = by_session, len(rows) < _MOST_COLLECTED
            by_session, is_complete = self._collected[expression]
            if is_complete or session_id in by_session:
                return by_session.get(session_id, [])[:most]
        return list(self._index.places(self._index.rows_within(expression, session_id, most)).values())

    def _visit_spread(self, session_id: str) -> Entry | None:
        """Return parts of a session that satisfy a clause together; None if there are none."""
        for number, clause in enumerate(self._clauses):
            if clause.may_be_spread and self._scope.is_allowed(number, session_id):
                candidates = self._spread_over(session_id, number, clause)
                if candidates:
                    key = self._scope.key(session_id, kinds_of(candidates), SESSION_SCOPE)
                    return Entry(session_id, Position(REST, None, key), SESSION_SCOPE, candidates)
        return None

    def _spread_over(self, session_id: str, number: int, clause: Clause) -> list[Candidate]:
        """Return some parts for each condition of a clause, and for what was done; none if one has no part."""
        candidates: list[Candidate] = []
        tests = self._facts.admitted(clause.without_events, [session_id])
        for condition in conditions(clause):
            texts = (condition, *clause.negative)
            parts = self._rows_of(session_id, number, texts, tests, _ROWS_OF_CONDITION)
            if not parts:
                return []
            candidates += sorted(parts, key=lambda part: -part.weight)[:_SHOWN_OF_CONDITION]
        for test in clause.events:
            done = Clause(facts=(test,))
            messages = _messages_of(session_id, number, done, self._facts.admitted(done, [session_id]))
            if not messages:
                return []
            candidates += messages[:_SHOWN_OF_CONDITION]
        return candidates


def _weights(rows: Sequence[_RankedRow]) -> list[float]:
    """Return the weight of each row, once for a row that several clauses propose."""
    return [_WEIGHTS[row % KINDS] for row in {row for row, _, _ in rows}]


def kinds_of(candidates: Iterable[Candidate]) -> list[PartKind]:
    """Return the kind of each part, once for a part that several clauses propose."""
    parts = {(candidate.seq, candidate.kind) for candidate in candidates}
    return [PartKind.ARGS if kind is None else kind for _, kind in parts]


def _after(entries: Iterable[Entry], key: tuple[float, float, str] | None) -> list[Entry]:
    """Return entries in order, without those up to a key."""
    ordered = sorted((entry.position.key or _NO_KEY, entry) for entry in entries)
    return [entry for entry_key, entry in ordered if key is None or entry_key > key]


def _messages_of(session_id: str, number: int, clause: Clause, tests: Admitted) -> list[Candidate]:
    """Return the messages of a session whose facts satisfy a clause without words."""
    values: list[str] = []
    for test in clause.facts:
        if isinstance(test, FieldTest) and test.name in _HIGHLIGHTED:
            values += [value.strip("*") for value in test.values if value.strip("*")]
    seqs = sorted(tests.messages(session_id) or ())
    return [Candidate(seq, None, clause.texts, number, clause.kinds, tuple(values)) for seq in seqs]
