"""Find the sessions that match a query, best first, and the texts that show why.

`candidates` proposes sessions in order; here the texts of those that are shown are read, until the page is full or the
time is over. What the index cannot find, regular expressions above all, is scanned: every text is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import msgspec

from pollux.archive.load_sessions import AMONG, ids_as_json
from pollux.errors import PolluxError
from pollux.model import Problem
from pollux.search import typos
from pollux.search.build import ignore_progress
from pollux.search.candidates import Entry, Proposals, kinds_of
from pollux.search.confirm import SlowRegexError
from pollux.search.corpus import RELEVANCE, Corpus, NewestSessions, Request, SearchScope, newest_of
from pollux.search.cursor import REST, START, Position
from pollux.search.deadline import Deadline, InterruptedSearchError, OutOfTimeError, interruptible
from pollux.search.fact_tests import NO_TESTS, has_content_tests, has_message_tests
from pollux.search.hits import best_first, confirm, hits_of
from pollux.search.index import Place
from pollux.search.parts import PartKind
from pollux.search.plan import EVERY_KIND, Clause, clauses, is_exact, is_one_token, match_expression
from pollux.search.rank import TimeRange
from pollux.search.scan import Prefilter, ScannedSession, SessionScan, StoppedScanError, session_sources
from pollux.search.terms import Node, Word
from pollux.search.texts import MessageHead, PartMatch, TextReader
from pollux.search.values import MESSAGE_SCOPE, SESSION_SCOPE, TITLE_SCOPE, Hit
from pollux.sessions.reader import Progress

_COUNTED_AT_ONCE = 20_000
_COUNTING = 0.01
"""Seconds for the number of all hits of a page that does not show all of them; `count` takes its time."""
_AT_ONCE = 50
"""Sessions whose messages are looked up together."""
_MOST_LEFT_OUT = 3
_LOOKED_UP = 8
"""Rows among which to look for one that is not dead."""


class SessionMatch(msgspec.Struct, frozen=True):
    """A session that matches a query."""

    session_id: str
    hits: tuple[Hit, ...]
    n_hits: int
    scope: str
    score: float


class MatchPage(msgspec.Struct):
    """A page of matching sessions, and how the search ended."""

    matches: list[SessionMatch] = []
    next: Position | None = None
    is_stopped: bool = False
    """Whether the time was over before the page was full."""
    n_scanned: int = 0
    n_to_scan: int = 0
    """Sessions to scan for this and all later pages."""


class SearchLimits(NamedTuple):
    """How many seconds the steps of a search may take; None for any time."""

    statements: float | None = 0.4
    """Statements on the index and the facts, together."""
    whole: float | None = 0.8
    """The whole search: statements, the texts of the page, and sessions that have to be scanned."""


class _Prepared(NamedTuple):
    """What was looked up for several sessions."""

    titles: Mapping[str, str]
    n_parts: Mapping[str, int]
    """The number of parts that may match, of sessions for which that is known."""


NO_LIMITS = SearchLimits(None, None)


class Finder:
    """One search: what its steps share."""

    def __init__(
        self,
        corpus: Corpus,
        request: Request,
        clock: Callable[[], float],
        limits: SearchLimits,
        progress: Progress = ignore_progress,
        *,
        times: TimeRange | None = None,
        top: int | None = None,
    ) -> None:
        """Prepare a search.

        Args:
            corpus: what to search.
            request: what to search for.
            clock: the current time in seconds.
            limits: when to stop.
            progress: called with the numbers of sessions that were scanned, and of all that are to be scanned.
            times: the range of times of the first page; None for the current one.
            top: ignore rows of the index from this one on; None for none.

        """
        self.index, self.limits = corpus.index, limits
        self.clauses = clauses(request.query)
        self.n_left_out = 0
        """Texts for which a regular expression takes too long."""
        self.problems: list[Problem] = []
        """Sessions that could not be read."""
        self.scanned: dict[str, ScannedSession | None] = {}
        """The sessions that were scanned because they are not indexed."""
        self.reader = TextReader(
            corpus.database,
            corpus.open_session,
            has_bytes=corpus.has_bytes,
            checked=corpus.checked,
            digests=self.index.digests if self.index else None,
        )
        self._corpus, self._request, self._clock = corpus, request, clock
        self._progress = progress
        self._scope = SearchScope(corpus, request, self.clauses, times)
        self._proposals = Proposals(corpus, request, self.clauses, self._scope, self.scanned, top)

    @property
    def times(self) -> TimeRange:
        """The range of times from which scores are computed."""
        return self._scope.times

    @property
    def top(self) -> int | None:
        """The row of the index after the newest one that was used."""
        return self._proposals.top

    def find(self, after: Position = START) -> MatchPage:
        """Return the sessions after a position. Raises `SlowRegexError` and `InterruptedSearchError`."""
        deadline = Deadline(self._clock, self.limits.whole)
        with interruptible():
            return self._scan_page(after, deadline) if self.must_scan else self._indexed_page(after, deadline)

    def _indexed_page(self, after: Position, deadline: Deadline) -> MatchPage:
        self._scan_missing()
        page = MatchPage()
        try:
            self._fill(page, self._limited(self._proposals.entries(after)), deadline)
        except OutOfTimeError:
            page.is_stopped = True
        if self._request.sort == RELEVANCE:
            page.matches.sort(key=lambda match: (match.scope == SESSION_SCOPE, -match.score))
        return page

    @cached_property
    def must_scan(self) -> bool:
        """Whether the texts themselves have to be searched."""
        if any(has_content_tests(clause) for clause in self.clauses):
            return True
        with_texts = [clause for clause in self.clauses if clause.texts]
        if not with_texts:
            return False
        if self.index is None or self._request.is_scan:
            return True
        return any(
            clause.has_regex or (clause.positive and not match_expression(clause.texts)) for clause in with_texts
        )

    def _limited(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        """Yield entries, and stop the statements that find them when their time is over."""
        seconds = self.limits.statements
        while True:
            start = self._clock()
            with Deadline(self._clock, seconds).limits(*self._corpus.connections):
                entry = next(entries, None)
            if entry is None:
                return
            if seconds is not None:
                seconds -= self._clock() - start
            yield entry

    def _fill(self, page: MatchPage, entries: Iterator[Entry], deadline: Deadline) -> None:
        """Read the texts of entries until the page is full; those that it needs at least are looked up together."""
        limit = self._request.limit
        while limit is None or len(page.matches) < limit:
            n_missing = _AT_ONCE if limit is None else min(_AT_ONCE, limit - len(page.matches))
            group, is_over = _taken(entries, n_missing, deadline)
            prepared = self._prepared(group)
            for entry in group:
                if page.next and deadline.is_over():
                    raise OutOfTimeError
                match = self._match(entry, deadline, prepared)
                if match:
                    page.matches.append(match)
                page.next = entry.position
            if is_over:
                raise OutOfTimeError
            if len(group) < n_missing:
                page.next = None
                return
        if next(entries, None) is None:
            page.next = None

    def _prepared(self, entries: Sequence[Entry]) -> _Prepared:
        """Return what is needed to read the best parts of several sessions, looked up together."""
        wanted: dict[str, set[int]] = {}
        for entry in entries:
            if entry.candidates and not (entry.scanned and entry.scanned.matches):
                best = best_first(entry.candidates)[: self._n_wanted(entry)]
                wanted.setdefault(entry.session_id, set()).update(candidate.seq for candidate in best)
        ids = ids_as_json([entry.session_id for entry in entries])
        self.reader.prepare(wanted)
        titles = self._corpus.database.execute(f"SELECT session_id, title FROM sessions WHERE {AMONG}", (ids,))  # noqa: S608
        return _Prepared(dict(titles.fetchall()), self._proposals.counts_in(entries))

    def _n_wanted(self, entry: Entry) -> int:
        return self._request.hits_per_session if entry.scope == MESSAGE_SCOPE else len(entry.candidates)

    def _match(self, entry: Entry, deadline: Deadline, prepared: _Prepared) -> SessionMatch | None:
        """Read the texts of a session; None if the index was wrong about all of them, or if it cannot be read."""
        session_id, most = entry.session_id, self._request.hits_per_session
        if entry.scanned and entry.scanned.matches:
            matches, n_hits = entry.scanned.matches, len(entry.scanned.matches)
        elif entry.candidates:
            try:
                matches, n_hits = confirm(
                    self.reader,
                    session_id,
                    entry.candidates,
                    self._n_wanted(entry),
                    deadline.is_over,
                    are_apart=entry.scope == SESSION_SCOPE,
                )
            except PolluxError as error:
                self.problems.append(_unreadable(error))
                return None
            n_hits = max(n_hits, prepared.n_parts.get(session_id, 0)) if matches else 0
        else:
            score = self._scope.score(session_id, [PartKind.PROMPT]) if entry.scope == TITLE_SCOPE else 0.0
            return SessionMatch(session_id, (), 0, entry.scope, round(score, 4))
        if entry.scope == SESSION_SCOPE:
            matches = one_of_each(matches, {candidate.conditions for candidate in entry.candidates})
        if not matches:
            return None
        hits = hits_of(session_id, prepared.titles.get(session_id, ""), self._scope.place(session_id), matches)
        kinds = kinds_of(entry.candidates) if entry.candidates else [match.kind for match in matches]
        score = self._scope.score(session_id, kinds) * max(hit.factor for hit in hits)
        return SessionMatch(session_id, tuple(hit.hit for hit in hits[:most]), n_hits, entry.scope, round(score, 4))

    # Scanning

    def _scan_missing(self) -> None:
        """Scan the newest sessions that are not indexed, for half of the time at most."""
        if self.index is None or not any(clause.texts for clause in self.clauses):
            return
        seconds = self.limits.whole
        deadline = Deadline(self._clock, None if seconds is None else seconds / 2)
        prefilter = Prefilter(self.clauses)
        for session_id in self.index.coverage.missing:
            if any(self._scope.is_allowed(number, session_id) for number in range(len(self.clauses))):
                try:
                    self.scanned[session_id] = self._scan(session_id, prefilter, deadline)
                except StoppedScanError:
                    return

    def _scan_page(self, after: Position, deadline: Deadline) -> MatchPage:
        """Scan sessions in order until the page is full or the time is over."""
        ordered = list(self._scope.ordered(self._sessions_to_scan()))
        if after.window is not None:
            ordered = [key for key in ordered if key > after.window]
        prefilter = Prefilter(self.clauses)
        page = MatchPage(n_to_scan=len(ordered))
        for key in ordered:
            if len(page.matches) == self._request.limit:
                return page
            try:
                result = self._scan(key.session_id, prefilter, deadline)
            except StoppedScanError as stopped:
                page.is_stopped = True
                if page.n_scanned:
                    return page  # the next page starts with this session
                result = stopped.result
            page.next = Position(REST, key, None)
            page.n_scanned += 1
            self._progress(page.n_scanned, page.n_to_scan)
            scope = result.scope if result else TITLE_SCOPE
            if result or key.session_id in self._proposals.titled:
                entry = Entry(key.session_id, page.next, scope, scanned=result)
                match = self._match(entry, deadline, self._prepared([entry]))
                if match:
                    page.matches.append(match)
            if page.is_stopped:
                return page
        page.next = None
        return page

    def _sessions_to_scan(self) -> set[str]:
        ids: set[str] = set()
        for allowed in self._scope.allowed:
            ids |= self._scope.everything() if allowed is None else allowed
        return ids

    def _scan(self, session_id: str, prefilter: Prefilter, deadline: Deadline) -> ScannedSession | None:
        """Return the parts of a session that match, read from its files; an unreadable session becomes a problem.

        Raises `StoppedScanError` if the time is over before all of its messages are read.
        """
        try:
            return self._scan_files(session_id, prefilter, deadline)
        except (SlowRegexError, InterruptedSearchError):
            raise
        except PolluxError as error:
            self.problems.append(_unreadable(error))
            return None

    def _scan_files(self, session_id: str, prefilter: Prefilter, deadline: Deadline) -> ScannedSession | None:
        corpus = self._corpus
        if deadline.is_over():
            raise StoppedScanError(None)
        if corpus.has_bytes and not prefilter.may_match(session_sources(corpus.database, session_id)):
            return None
        clauses = [clause for number, clause in enumerate(self.clauses) if self._scope.is_allowed(number, session_id)]
        with_loose = [*clauses, *(clause.without_events for clause in clauses if clause.may_be_spread)]
        tests = {clause: corpus.facts.admitted(clause, [session_id]) for clause in with_loose}
        group = corpus.open_session(session_id)
        scan = SessionScan(
            clauses,
            lambda clause, seq: tests[clause].has(session_id, seq),
            self._leave_out,
            is_shortened=not self._request.is_scan,
        )
        return scan.run(group, deadline.is_over)

    def _leave_out(self, error: SlowRegexError) -> None:
        """Count a text that was left out; the third one ends the search."""
        self.n_left_out += 1
        if self.n_left_out == _MOST_LEFT_OUT:
            raise error

    # Numbers

    def count(self) -> tuple[int, int]:
        """Return the number of all parts that match, and of all sessions in which several messages may match together.

        The page must have no limit.
        """
        if self.must_scan or not all(clause.positive and is_exact(clause.texts) for clause in self.clauses):
            page = self.find()
            return sum(match.n_hits for match in page.matches), len(page.matches)
        self._scan_missing()
        parts: set[tuple[str, int, PartKind]] = set()
        for number, clause in enumerate(self.clauses):
            parts.update(self._all_places(number, clause))
        for session_id, result in self.scanned.items():
            if result and result.scope == MESSAGE_SCOPE:
                parts.update((session_id, match.head.seq, match.kind) for match in result.matches)
        ids = {session_id for session_id, _, _ in parts} | self._proposals.titled
        if any(clause.may_be_spread for clause in self.clauses):
            ids.update(entry.session_id for entry in self._proposals.entries(START))
        return len(parts), len(ids)

    def _all_places(self, number: int, clause: Clause) -> Iterator[Place]:
        """Yield the parts in the index that satisfy a clause."""
        assert self.index is not None
        expression = match_expression(clause.texts)
        assert expression is not None
        rows = self.index.rows(expression, kinds=clause.kinds, limit=-1)
        has_tests = has_message_tests(clause)
        for start in range(0, len(rows), _COUNTED_AT_ONCE):
            places = self.index.places(rows[start : start + _COUNTED_AT_ONCE]).values()
            allowed = [place for place in places if self._scope.is_allowed(number, place.session_id)]
            ids = {place.session_id for place in allowed}
            tests = self._corpus.facts.admitted(clause, ids) if has_tests else NO_TESTS
            yield from (place for place in allowed if tests.has(place.session_id, place.seq))

    def totals(self, page: MatchPage, *, is_first_page: bool) -> tuple[int | None, int | None]:
        """Return the number of all parts and sessions that match, as far as they are known without visiting them."""
        if is_first_page and page.next is None and not page.is_stopped:
            return sum(match.n_hits for match in page.matches), len(page.matches)
        if self.must_scan or self.index is None or len(self.clauses) != 1 or self._scope.is_limited:
            return None, None
        (clause,) = self.clauses
        expression = match_expression(clause.texts)
        if expression is None or not is_exact(clause.texts) or has_message_tests(clause):
            return None, None
        n_scanned = sum(len(result.matches) for result in self.scanned.values() if result)
        if is_first_page and self._proposals.n_parts is not None:
            return self._proposals.n_parts + n_scanned, None
        if " " in expression or "*" in expression:
            return None, None  # to count a phrase, a prefix or several words takes as long as to find them
        try:
            with Deadline(self._clock, _COUNTING).limits(self.index.database):
                return self.index.count(expression, clause.kinds) + n_scanned, None
        except OutOfTimeError:
            return None, None

    def session_ids(self) -> set[str]:
        """Return all sessions that match; the page must have no limit."""
        if not self.must_scan and all(_is_known_by_sessions(clause) for clause in self.clauses):
            self._scan_missing()
            return set(self._proposals.sessions)
        return {match.session_id for match in self.find().matches}

    def all_sessions(self) -> set[str] | None:
        """Return all sessions that match; None if the time is over before they are known. The page has no limit."""
        if not self.is_known_by_index:
            page = self.find()
            is_complete = page.next is None and not page.is_stopped and self.is_exhaustive
            return {match.session_id for match in page.matches} if is_complete else None
        self._scan_missing()
        try:
            if all(_is_known_by_sessions(clause) for clause in self.clauses):
                with Deadline(self._clock, self.limits.statements).limits(*self._corpus.connections):
                    ids = set(self._proposals.sessions)
            else:
                ids = {entry.session_id for entry in self._limited(self._proposals.entries(START))}
        except OutOfTimeError:
            return None
        return ids if self.is_exhaustive else None

    def newest_sessions(self, most: int) -> NewestSessions | None:
        """Return the newest sessions that match; None if the time is over before they are known."""
        if not self._are_known_by_sessions or self._proposals.common_word is None:
            ids = self.all_sessions()
            return None if ids is None else newest_of(self._corpus.database, ids, most)
        self._scan_missing()
        try:
            with Deadline(self._clock, self.limits.statements).limits(*self._corpus.connections):
                newest = [key.session_id for key in islice(self._proposals.newest_first(), most + 1)]
        except OutOfTimeError:
            return None
        return NewestSessions(newest[:most], len(newest) <= most) if self.is_exhaustive else None

    @property
    def knows_sessions(self) -> bool:
        """Whether the page had to find all sessions that match anyway, or need not."""
        return self._are_known_by_sessions and self._proposals.has_sessions

    @property
    def _are_known_by_sessions(self) -> bool:
        return self.is_known_by_index and all(_is_known_by_sessions(clause) for clause in self.clauses)

    @property
    def is_known_by_index(self) -> bool:
        """Whether the index alone decides which sessions match, so that no text has to be read."""
        return not self.must_scan and all(clause.positive and is_exact(clause.texts) for clause in self.clauses)

    @property
    def is_exhaustive(self) -> bool:
        """Whether every session that is not indexed was read, and no text was left out."""
        missing = self.index.coverage.missing if self.index and not self.must_scan else ()
        return not self.n_left_out and self.scanned.keys() >= {
            session_id
            for session_id in missing
            if any(self._scope.is_allowed(number, session_id) for number in range(len(self.clauses)))
        }

    def suggestions(self) -> tuple[str, ...]:
        """Return queries with another word in place of one that is in no text."""
        index = self.index
        if index is None or self.must_scan:
            return ()

        def count_rows(expression: str, most: int) -> int:
            rows = index.rows(expression, limit=max(most, _LOOKED_UP))
            return min(most, len(index.places(rows))) if rows else 0

        try:
            with Deadline(self._clock, self.limits.statements).limits(index.database):
                return typos.suggestions(self._request.query, count_rows)
        except OutOfTimeError:
            return ()


def _taken(entries: Iterator[Entry], most: int, deadline: Deadline) -> tuple[list[Entry], bool]:
    """Return the next entries, and whether the time was over before there were enough of them."""
    group: list[Entry] = []
    try:
        for entry in islice(entries, most):
            group.append(entry)
            if deadline.is_over():
                return group, True
    except OutOfTimeError:
        return group, True
    return group, False


def one_of_each(matches: Sequence[PartMatch], conditions: Collection[tuple[Node, ...]]) -> list[PartMatch]:
    """Return matches with the best one for each of several conditions first; none if a condition has no match."""
    first: dict[tuple[Node, ...], PartMatch] = {}
    for match in matches:
        first.setdefault(match.conditions, match)
    if any(texts not in first for texts in conditions):
        return []
    others = [match for match in matches if match is not first[match.conditions]]
    parts: dict[tuple[MessageHead, PartKind], PartMatch] = {}
    for match in (*first.values(), *others):
        parts.setdefault((match.head, match.kind), match)
    return [*parts.values()]


def _is_known_by_sessions(clause: Clause) -> bool:
    """Return whether the words of whole sessions decide about a clause."""
    if has_message_tests(clause) or clause.negative or clause.kinds != EVERY_KIND:
        return False
    return all(isinstance(node, Word) and is_one_token(node) for node in clause.positive)


def _unreadable(error: PolluxError) -> Problem:
    return Problem("unreadable-session", str(error))
