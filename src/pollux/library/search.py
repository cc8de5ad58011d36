"""Search the sessions of a library: bring the index up to date, find hits, and say how complete the result is."""
# ruff: noqa: PLC0415  imported when something is searched for

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pollux.library.config import UsageError
from pollux.text.numbers import plural

if TYPE_CHECKING:
    from pollux.library.config import Config
    from pollux.library.filters import Announce
    from pollux.library.freshness import Reporter
    from pollux.library.snapshot import Snapshot
    from pollux.model import Problem, Project
    from pollux.reports.filters import Filter
    from pollux.reports.freshness import Freshness
    from pollux.reports.sessions import Page, SessionQuery
    from pollux.search.corpus import NewestSessions
    from pollux.search.cursor import Cursor
    from pollux.search.facts import FactPlace
    from pollux.search.find import Finder, MatchPage, SearchLimits
    from pollux.search.index import SearchIndex
    from pollux.search.terms import Query
    from pollux.search.values import CommandPage, Facets, FilePage, HitPage, IndexCoverage, SessionHits
    from pollux.sessions.grouping import OpenSession
    from pollux.sessions.reader import Progress

_Row = TypeVar("_Row")
SORTS = ("relevance", "newest", "oldest", "cost")
"""The orders of `Library.search`."""
_INDEXED_AT_ONCE = 16 << 20
"""Bytes of new sessions that a search indexes before it answers, which takes a second or two."""
_SLOWEST = 4
_FACET_SECONDS = 0.05
"""For finding all sessions that match, and again for counting those of each part and fate."""
_FOLDER_FIELDS = frozenset({"project", "dir"})
_LISTED_FIELDS = frozenset({"kind", "id"})
"""Fields with which a search without words also finds subagents."""


def work_clock() -> Callable[[], float]:
    """Return a clock that counts the work of this thread.

    On a busy machine it goes slower than the time, down to a quarter, so that the same search gives the same page.
    """
    cpu, wall = time.thread_time(), time.monotonic()
    return lambda: max(time.thread_time() - cpu, (time.monotonic() - wall) / _SLOWEST)


class SearchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to search."""

    sort: str = SORTS[0]
    scan: bool = False
    """Whether to read all texts, also those that are not in the index."""
    count: bool = False
    """Whether to count all hits instead of returning some."""
    hits_per_session: int = 3
    facets: bool = False
    """Whether to count the matching sessions by project, model and more."""
    seconds: Callable[[], float] = msgspec.field(default_factory=work_clock)
    """A clock for time limits."""


def parse(config: Config, query: str, fields: str = "", *, is_typing: bool = False) -> Query:
    """Parse a query, and fields that have to match besides it, also besides an `OR`. Raises `InvalidQueryError`."""
    from pollux.search.facets import narrowed
    from pollux.search.query import parse_query

    now, zone = config.clock(), config.zone()[0]
    parsed = parse_query(query, now=now, zone=zone, is_typing=is_typing)
    if not fields:
        return parsed
    tests = parse_query(fields, now=now, zone=zone).node.nodes
    return msgspec.structs.replace(narrowed(parsed, *tests), text=f"{query} {fields}".strip())


def needs_messages(query: Query) -> bool:
    """Return whether a field of a query needs the facts of messages."""
    from pollux.search import facts
    from pollux.search.terms import FieldTest, leaves

    tests = [leaf for leaf, _ in leaves(query.node) if isinstance(leaf, FieldTest)]
    return any(facts.level(test) == "message" for test in tests)


def search_page(
    snapshot: Snapshot,
    query: Query,
    wanted: Filter,
    page: Page,
    options: SearchOptions,
    report: Reporter,
    announce: Announce,
) -> HitPage:
    """Return a page of the sessions that match a query; a damaged index is deleted and built again."""
    from pollux.search.build import delete_index
    from pollux.search.deadline import interruptible
    from pollux.search.index import DamagedIndexError

    if options.sort not in SORTS:
        raise UsageError(f"There is no order '{options.sort}'. Use {', '.join(SORTS[:-1])} or {SORTS[-1]}.")
    arguments = (snapshot, query, wanted, page, options, report, announce)
    with interruptible():
        try:
            return _search_page(*arguments)
        except DamagedIndexError:
            assert snapshot.archive is not None
            delete_index(snapshot.archive.path)
            return _search_page(*arguments)


def _search_page(
    snapshot: Snapshot,
    query: Query,
    wanted: Filter,
    page: Page,
    options: SearchOptions,
    report: Reporter,
    announce: Announce,
) -> HitPage:
    from pollux.search.corpus import NewestSessions
    from pollux.search.cursor import Cursor, decode_cursor, encode_cursor, search_digest
    from pollux.search.find import MatchPage
    from pollux.search.reading import reading
    from pollux.search.values import HitPage

    scope = _scope(snapshot, query, wanted, announce)
    digest = search_digest(query.text, wanted, options.sort, options.scan)
    cursor = decode_cursor(page.after, digest) if page.after else None
    is_needed = _has_words(query) and not options.scan
    with (
        _index(snapshot, report, is_needed=is_needed, budget=_INDEXED_AT_ONCE) as (index, reason),
        report("searching") as progress,
    ):
        finder = _finder(snapshot, index, query, scope, page, options, progress, cursor)
        matched = MatchPage()
        total: int | None
        n_sessions: int | None
        if options.count:
            total, n_sessions = finder.count()
        else:
            matched = finder.find(*([cursor.position] if cursor else []))
            total, n_sessions = finder.totals(matched, is_first_page=cursor is None)
        is_empty = not matched.matches and not total and cursor is None
        next_ = Cursor(digest, matched.next, finder.times, finder.top) if matched.next else None
        facets = None
        if options.facets and not is_empty:
            is_whole = cursor is None and matched.next is None and not matched.is_stopped and finder.is_exhaustive
            whole = NewestSessions([match.session_id for match in matched.matches], is_complete=True)

            def count() -> Facets | None:
                newest = whole if is_whole else _newest(snapshot, index, query, scope, options, progress, finder)
                return _facets(snapshot, index, query, options, progress, newest)

            facets = _remembered_facets(snapshot, (query, wanted, index.coverage if index else None), count)
        return HitPage(
            query=query.text,
            sessions=_with_rows(snapshot, matched),
            next=encode_cursor(next_) if next_ else None,
            total=total,
            n_sessions=n_sessions,
            suggestions=finder.suggestions() if is_empty else (),
            notes=tuple(_notes(snapshot, query, finder, matched, reason, is_empty=is_empty)),
            coverage=_coverage(snapshot, index),
            problems=tuple(dict.fromkeys([*snapshot.freshness.problems, *finder.problems])),
            freshness=snapshot.freshness,
            facets=facets,
            reading=reading(query),
        )


def _remembered_facets(snapshot: Snapshot, key: Hashable, count: Callable[[], Facets | None]) -> Facets | None:
    """Return facets; those of many sessions are counted once. With few, some numbers may be absent for lack of time."""
    from pollux.search.facets import MOST_SEARCHED

    facets: Facets | None = None

    def count_many() -> Facets | None:
        nonlocal facets
        facets = count()
        return facets if facets and facets.n_counted > MOST_SEARCHED else None

    return snapshot.once(("facets", key), count_many) or facets


def _newest(
    snapshot: Snapshot,
    index: SearchIndex | None,
    query: Query,
    scope: SessionQuery,
    options: SearchOptions,
    progress: Progress,
    finder: Finder,
) -> NewestSessions | None:
    """Return the newest sessions that match, which the finder of a page may know; None if they take too long."""
    from pollux.reports.sessions import Page
    from pollux.search import facets
    from pollux.search.find import SearchLimits

    if not finder.knows_sessions:
        options = msgspec.structs.replace(options, hits_per_session=1)
        limits = SearchLimits(_FACET_SECONDS, _FACET_SECONDS)
        finder = _finder(snapshot, index, query, scope, Page(None), options, progress, limits=limits)
    return finder.newest_sessions(facets.MOST_SESSIONS)


def _facets(
    snapshot: Snapshot,
    index: SearchIndex | None,
    query: Query,
    options: SearchOptions,
    progress: Progress,
    newest: NewestSessions | None,
) -> Facets | None:
    """Return the facets of the newest sessions that match; None without any."""
    from pollux.archive.load_sessions import with_known_path
    from pollux.reports.sessions import Page, SessionQuery
    from pollux.search.deadline import Deadline
    from pollux.search.facets import FacetSource, count_facets
    from pollux.search.find import SearchLimits

    if not newest or not newest.ids:
        return None
    limits = SearchLimits(_FACET_SECONDS, _FACET_SECONDS)
    options = msgspec.structs.replace(options, hits_per_session=1)
    deadline = Deadline(options.seconds, _FACET_SECONDS)
    among = SessionQuery(newest.ids, subagents=True, empty=True)

    def count(narrower: Query) -> int | None:
        if deadline.is_over():
            return None
        finder = _finder(snapshot, index, narrower, among, Page(None), options, progress, limits=limits)
        matching = finder.all_sessions() if finder.is_known_by_index else None
        return None if matching is None else len(matching)

    source = FacetSource(
        snapshot.database, snapshot.config.zone()[0], lambda project: with_known_path(project, snapshot.memory)
    )
    return count_facets(source, query, newest, count)


class MatchingSessions(msgspec.Struct, frozen=True):
    """The sessions that match a query, for a list."""

    ids: frozenset[str]
    """With the main sessions of matching subagents."""
    notes: tuple[str, ...]
    """Sentences for the user."""


def matching_sessions(
    snapshot: Snapshot, query: Query, wanted: Filter, report: Reporter, announce: Announce
) -> MatchingSessions:
    """Return all sessions that match a query, however long it takes."""
    from pollux.reports.sessions import Page, roots
    from pollux.search.find import MatchPage

    scope = _scope(snapshot, query, wanted, announce)
    with (
        _index(snapshot, report, is_needed=_has_words(query), budget=None) as (index, reason),
        report("searching") as progress,
    ):
        finder = _finder(snapshot, index, query, scope, Page(None), SearchOptions(count=True), progress)
        ids = finder.session_ids()
        notes = _notes(snapshot, query, finder, MatchPage(), reason, is_empty=not ids)
    return MatchingSessions(frozenset({*ids, *roots(snapshot.database, ids)}), tuple(notes))


def touched_files(snapshot: Snapshot, query: Query, wanted: Filter, page: Page, announce: Announce) -> FilePage:
    """Return the files that tool calls touched, as far as they match a query; newest first."""
    from pollux.search.lists import touched_files as list_files
    from pollux.search.values import FilePage

    return FilePage(*_list_page(snapshot, query, wanted, page, announce, list_files))


def commands_run(snapshot: Snapshot, query: Query, wanted: Filter, page: Page, announce: Announce) -> CommandPage:
    """Return the commands that tool calls ran, as far as they match a query; newest first."""
    from pollux.search.lists import commands_run as list_commands
    from pollux.search.values import CommandPage

    return CommandPage(*_list_page(snapshot, query, wanted, page, announce, list_commands))


def _list_page(
    snapshot: Snapshot,
    query: Query,
    wanted: Filter,
    page: Page,
    announce: Announce,
    list_rows: Callable[..., tuple[tuple[_Row, ...], int]],
) -> tuple[tuple[_Row, ...], str | None, int, tuple[str, ...], tuple[Problem, ...], Freshness]:
    """Return the fields of a page of files or commands."""
    from pollux.library.listing import page_offset
    from pollux.search.hints import explain_nothing

    offset = page_offset(page)
    place = _place_of(snapshot, snapshot.projects())
    ids = _ids(snapshot, wanted, announce)
    rows, total = list_rows(snapshot.database, query, place, ids=ids, limit=page.limit, offset=offset)
    end = offset + len(rows)
    notes = _left_out(query)
    if not total:
        notes += explain_nothing(snapshot.database, query, place)
    return (
        rows,
        str(end) if end < total else None,
        total,
        tuple(notes),
        tuple(snapshot.freshness.problems),
        snapshot.freshness,
    )


def _ids(snapshot: Snapshot, wanted: Filter, announce: Announce) -> set[str] | None:
    """Return the sessions that match the common filters; None for all."""
    from pollux.library import select
    from pollux.reports import sessions
    from pollux.search.corpus import EVERYTHING

    every = msgspec.structs.replace(wanted, subagents=True, empty=True)
    scope = select.session_query(snapshot, every, announce)
    return None if scope == EVERYTHING else set(sessions.page(snapshot.database, scope))


def _has_words(query: Query) -> bool:
    from pollux.search.terms import FieldTest, leaves

    return any(not isinstance(leaf, FieldTest) for leaf, _ in leaves(query.node))


def _scope(snapshot: Snapshot, query: Query, wanted: Filter, announce: Announce) -> SessionQuery:
    """Return which sessions to search: subagents too, unless a query only describes sessions of a list."""
    from pollux.library import select
    from pollux.search.terms import FieldTest, leaves

    names = {leaf.name for leaf, _ in leaves(query.node) if isinstance(leaf, FieldTest)}
    if _has_words(query) or needs_messages(query) or names & _LISTED_FIELDS:
        wanted = msgspec.structs.replace(wanted, subagents=True, empty=True)
    return select.session_query(snapshot, wanted, announce)


def _place(snapshot: Snapshot, query: Query) -> FactPlace:
    """Return what tests are compared with; the projects of all sessions only if the query needs them."""
    from pollux.search.terms import FieldTest, leaves

    names = {leaf.name for leaf, _ in leaves(query.node) if isinstance(leaf, FieldTest)}
    return _place_of(snapshot, snapshot.projects() if names & _FOLDER_FIELDS else {})


def _place_of(snapshot: Snapshot, projects: Mapping[str, Project]) -> FactPlace:
    from pollux.search.facts import FactPlace

    return FactPlace(projects, snapshot.config.cwd, snapshot.config.user_home)


@contextmanager
def _index(
    snapshot: Snapshot, report: Reporter, *, is_needed: bool, budget: int | None
) -> Iterator[tuple[SearchIndex | None, str]]:
    """Open the index after adding new sessions to it; yield None and the reason if there is none."""
    if snapshot.archive is None or not is_needed:
        yield None, ""
        return
    from pollux.search.build import build_index
    from pollux.search.index import open_index, unusable_reason

    path, database = snapshot.archive.path, snapshot.database
    index = open_index(path, database)
    if index is None or not index.coverage.is_complete:
        if index is not None:
            index.close()
        with report("indexing") as progress:
            result = build_index(path, database, progress, budget=budget)
        index = open_index(path, database)
        if index is None:
            yield None, result.reason or unusable_reason(path, database)
            return
    try:
        yield index, ""
    finally:
        index.close()


def _finder(
    snapshot: Snapshot,
    index: SearchIndex | None,
    query: Query,
    scope: SessionQuery,
    page: Page,
    options: SearchOptions,
    progress: Progress,
    cursor: Cursor | None = None,
    limits: SearchLimits | None = None,
) -> Finder:
    from pollux.search.corpus import Corpus, Request
    from pollux.search.fact_tests import FactTests
    from pollux.search.find import NO_LIMITS, Finder, SearchLimits

    def open_session(session_id: str) -> OpenSession:
        (session,) = snapshot.sessions.load([session_id], with_calls=False)
        return snapshot.sessions.open(session)

    database = snapshot.database
    facts = FactTests(database, _place(snapshot, query))
    limits = limits or (NO_LIMITS if options.count or options.scan else SearchLimits())
    n_sessions = None if options.count else page.limit
    checked = snapshot.archive.checked if snapshot.archive else None
    return Finder(
        Corpus(database, index, open_session, facts, snapshot.is_archived, checked),
        Request(query, scope, options.sort, n_sessions, options.hits_per_session, options.scan),
        options.seconds,
        limits,
        progress,
        times=cursor.times if cursor else None,
        top=cursor.top if cursor else None,
    )


def _with_rows(snapshot: Snapshot, matched: MatchPage) -> tuple[SessionHits, ...]:
    from pollux.reports import sessions
    from pollux.search.values import SessionHits

    loaded = snapshot.sessions.load([match.session_id for match in matched.matches], with_calls=False)
    rows = sessions.rows(snapshot.database, snapshot.with_learned_paths(loaded), snapshot.ids)
    by_id = {row.id: row for row in rows}
    return tuple(
        SessionHits(by_id[match.session_id], match.hits, match.n_hits, match.scope, match.score)
        for match in matched.matches
        if match.session_id in by_id
    )


def _coverage(snapshot: Snapshot, index: SearchIndex | None) -> IndexCoverage:
    from pollux.archive.schema import count_sessions
    from pollux.search.values import IndexCoverage

    return index.coverage if index else IndexCoverage(count_sessions(snapshot.database), 0)


def _left_out(query: Query) -> list[str]:
    if not query.left_out:
        return []
    return [f"Left out of the query: {' '.join(query.left_out)}."]


def _notes(
    snapshot: Snapshot, query: Query, finder: Finder, matched: MatchPage, reason: str, *, is_empty: bool
) -> Iterator[str]:
    """Yield what the user should know about a result."""
    from pollux.search.hints import explain_nothing

    yield from _left_out(query)
    if is_empty:
        yield from explain_nothing(snapshot.database, query, _place(snapshot, query))
    if not _has_words(query):
        return
    index = finder.index
    if not snapshot.is_archived:
        yield "Without an archive there is no search index; the session files were read directly."
    elif reason:
        yield f"The search index cannot be used ({reason}); the sessions were read directly."
    if matched.is_stopped and finder.must_scan:
        n_scanned = f"{matched.n_scanned:,} of {plural(matched.n_to_scan, 'session')}"
        yield f"Stopped after {finder.limits.whole:g} s of work with {n_scanned} read; --scan reads all of them."
    elif matched.is_stopped:
        yield "Stopped after the time for one search; narrow the query to see all hits."
    if finder.n_left_out:
        verb = "was" if finder.n_left_out == 1 else "were"
        yield f"{plural(finder.n_left_out, 'text')} {verb} left out: the regular expression takes too long for it."
    if index is None or finder.must_scan:
        return
    if index.coverage.missing:
        yield _progress_note(finder, index)
    n_cut = index.coverage.n_cut_parts
    if n_cut and matched.next is None:
        verb = "is" if n_cut == 1 else "are"
        yield f"{plural(n_cut, 'long tool call')} {verb} indexed in part; --scan reads all of them."


def _progress_note(finder: Finder, index: SearchIndex) -> str:
    coverage = index.coverage
    n_read = len(finder.scanned)
    indexed = f"{coverage.n_indexed:,} of {plural(coverage.n_sessions, 'session')} are indexed"
    if n_read == len(coverage.missing):
        return f"{indexed}; the others were read directly. Run `pollux sync` to index them."
    read = f"; {n_read:,} of the others were read directly" if n_read else ""
    return f"{indexed}{read}. Run `pollux sync` to index the rest, or use --scan."
