"""Count the sessions that match a query by project, model, month, tool, fate and part, for links that narrow it.

Each number is what a search with that link finds, or it is absent. Numbers of parts and fates need a search each, which
is made only where the index alone can answer it. With very many sessions, the newest are counted, and the result says
so.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import tzinfo

import msgspec

from pollux.archive.load_sessions import AMONG, ids_as_json, project_of
from pollux.formats.tools import TOOLS
from pollux.model import Fate, Project
from pollux.search.corpus import NewestSessions
from pollux.search.facts import is_tool_named
from pollux.search.fields import PARTS
from pollux.search.plan import clauses, conditions
from pollux.search.terms import AllOf, FieldTest, Node, Query
from pollux.search.values import Facets, FacetValue
from pollux.text.times import from_microseconds

MOST_SESSIONS = 1000
"""With more sessions, the newest of them are counted."""
MOST_SEARCHED = 100
"""With more sessions, parts, tools and fates have no numbers."""
_MOST_VALUES = 10
_MOST_MONTHS = 1200
_DAY = 86_400_000_000
"""Microseconds of a day."""
_FIRST_SAFE_DAY, _LAST_SAFE_DAY = 2, 27
"""Days of a month that are in the same month in every time zone."""
_TOOLS_OF_SESSIONS = f"""
    WITH RECURSIVE names(name) AS (
        SELECT min(raw_name) FROM tool_calls
        UNION ALL SELECT (SELECT min(raw_name) FROM tool_calls WHERE raw_name > name) FROM names WHERE name IS NOT NULL
    ),
    chosen(id) AS MATERIALIZED (SELECT session_id FROM sessions WHERE {AMONG})
    SELECT name, id FROM names, chosen
    WHERE EXISTS (SELECT 1 FROM tool_calls WHERE raw_name = name AND session_id = chosen.id)
"""  # noqa: S608  ours
"""Each tool that some sessions called with each of these sessions, found by steps in an index."""

CountSessions = Callable[[Query], int | None]
"""Returns how many of the counted sessions match a narrower query; None if that takes too long."""


class FacetSource(msgspec.Struct, frozen=True):
    """Where facets are counted."""

    database: sqlite3.Connection
    zone: tzinfo | None
    known_path: Callable[[Project], Project]
    """Adds the path that was proven for a project since its facts were written."""


def narrowed(query: Query, *fields: Node) -> Query:
    """Return a query with fields that have to match besides everything else, also besides an `OR`."""
    return msgspec.structs.replace(query, node=AllOf((*query.node.nodes, *fields)))


def count_facets(source: FacetSource, query: Query, newest: NewestSessions, count: CountSessions) -> Facets:
    """Return the facets of the newest sessions that match a query."""
    counted, is_complete = newest
    if len(counted) > MOST_SEARCHED or not is_complete:

        def count(_query: Query) -> int | None:
            return None

    rows = source.database.execute(
        f"""
        SELECT project_hash, CASE WHEN project_hash IS NULL THEN extra END, models, started_us, ended_us
        FROM sessions WHERE {AMONG}
        """,  # noqa: S608  ours
        (ids_as_json(counted),),
    ).fetchall()
    return Facets(
        len(counted),
        is_complete,
        tuple(_narrowing(query, "in", {part: part for part in PARTS}, count)),
        _projects(source, [(hash_, extra) for hash_, extra, *_ in rows]),
        _models([models for _, _, models, *_ in rows]),
        _tools(source, counted, has_numbers=_has_words_everywhere(query)),
        tuple(_narrowing(query, "fate", {str(fate): fate.label for fate in Fate}, count)),
        _months([(started, ended) for *_, started, ended in rows], source.zone),
    )


def _narrowing(query: Query, field: str, names: Mapping[str, str], count: CountSessions) -> Iterator[FacetValue]:
    """Yield the values of a field, without those that are known to match nothing."""
    for key, name in names.items():
        n_sessions = count(narrowed(query, FieldTest(field, (key,))))
        if n_sessions != 0:
            yield FacetValue(key, name, n_sessions)


def _projects(source: FacetSource, sessions: Iterable[tuple[str | None, bytes | None]]) -> tuple[FacetValue, ...]:
    counts = Counter(sessions)
    hashes = {hash_ for hash_, _ in counts}
    projects = {}
    for row in source.database.execute("SELECT project_hash, slug, path, source, proven, NULL FROM projects"):
        if row[0] in hashes:
            projects[row[0]] = project_of(*row)
    by_key: Counter[tuple[str, str]] = Counter()
    for (hash_, extra), n_sessions in counts.items():
        recorded = projects.get(hash_) or project_of(hash_, None, None, None, None, extra)
        project = source.known_path(recorded)
        by_key[project.key, project.name] += n_sessions
    return _most_common(by_key)


def _models(sessions: Iterable[str]) -> tuple[FacetValue, ...]:
    lists = Counter(sessions)
    decoded = [(msgspec.json.decode(models, type=list[str]), n_sessions) for models, n_sessions in lists.items()]
    by_name: Counter[tuple[str, str]] = Counter()
    for name in {model for models, _ in decoded for model in models}:
        part = name.lower()  # the filter finds every model whose name contains it
        by_name[name, name] = sum(n for models, n in decoded if any(part in model.lower() for model in models))
    return _most_common(by_name)


def _most_common(counts: Counter[tuple[str, str]]) -> tuple[FacetValue, ...]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(FacetValue(key, name, n_sessions) for (key, name), n_sessions in ordered[:_MOST_VALUES] if key)


def _has_words_everywhere(query: Query) -> bool:
    """Return whether each way to match a query needs a text; a tool may then be called anywhere in the session."""
    return all(conditions(clause) for clause in clauses(query))


def _tools(source: FacetSource, ids: Collection[str], *, has_numbers: bool) -> tuple[FacetValue, ...]:
    sessions: dict[str, set[str]] = defaultdict(set)
    for name, session_id in source.database.execute(_TOOLS_OF_SESSIONS, (ids_as_json(ids),)):
        sessions[name].add(session_id)
    values = []
    for name in sorted(sessions, key=lambda name: (-len(sessions[name]), name))[:_MOST_VALUES]:
        calling: set[str] = set()
        for other, callers in sessions.items():
            if is_tool_named(other, name):  # the field finds every tool whose name contains it
                calling |= callers
        label = TOOLS[name].display if name in TOOLS else name
        values.append(FacetValue(name, label, len(calling) if has_numbers else None))
    return tuple(values)


def _months(sessions: Iterable[tuple[int | None, int | None]], zone: tzinfo | None) -> tuple[FacetValue, ...]:
    """Return the months in which sessions were in use; one that lasted longer counts in each of its months."""
    month_of = _MonthNumbers(zone)
    counts: Counter[int] = Counter()
    for started_us, ended_us in sessions:
        first = month_of(started_us if started_us is not None else ended_us)
        last = month_of(ended_us if ended_us is not None else started_us)
        if first is not None and last is not None:
            for month in range(first, min(last, first + _MOST_MONTHS) + 1):
                counts[month] += 1
    values = []
    for number, n_sessions in sorted(counts.items(), reverse=True)[: 2 * _MOST_VALUES]:
        key = f"{number // 12:04}-{number % 12 + 1:02}"
        values.append(FacetValue(key, key, n_sessions))
    return tuple(values)


class _MonthNumbers:
    """Returns the number of the month of a time; of the many times on a day, most are converted once."""

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone
        self._of_days: dict[int, int] = {}
        """By day since 1970 in UTC, of days on which all zones have the same month."""

    def __call__(self, microseconds: int | None) -> int | None:
        if microseconds is None:
            return None
        day = microseconds // _DAY
        if day in self._of_days:
            return self._of_days[day]
        at = from_microseconds(microseconds)
        if at is None:
            return None
        local = at.astimezone(self._zone)
        number = 12 * local.year + local.month - 1
        if _FIRST_SAFE_DAY <= at.day <= _LAST_SAFE_DAY:
            self._of_days[day] = number
        return number
