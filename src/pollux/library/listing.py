"""List sessions, saved conversations and problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pollux.errors import InvalidCursorError
from pollux.reports.sessions import Page, SavedPage, SessionPage
from pollux.text.numbers import parse_integer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pollux.library.filters import Announce
    from pollux.library.search import MatchingSessions
    from pollux.library.snapshot import Snapshot
    from pollux.model import Problem, Project, Session
    from pollux.reports.filters import Filter
    from pollux.reports.sessions import SessionQuery, SessionRow


def check_order(name: str) -> None:
    """Raise `UsageError` for a name that is none of `session_orders.ORDERS`."""
    from pollux.library.config import UsageError  # noqa: PLC0415
    from pollux.reports.session_orders import ORDERS  # noqa: PLC0415

    if name not in ORDERS:
        raise UsageError(f"There is no order '{name}'. Use {', '.join(ORDERS[:-1])} or {ORDERS[-1]}.")


def session_page(
    snapshot: Snapshot,
    wanted: Filter,
    page: Page,
    announce: Announce,
    matching: MatchingSessions | None = None,
    order: str | None = None,
) -> SessionPage:
    """Return a page of the sessions that match a filter and, if there is one, a query; last used first by default."""
    from pollux.library import select  # noqa: PLC0415  not needed to parse arguments
    from pollux.reports import sessions  # noqa: PLC0415

    query = select.session_query(snapshot, wanted, announce)
    if matching is not None:
        ids_in_both = matching.ids if query.ids is None else matching.ids.intersection(query.ids)
        query = msgspec.structs.replace(query, ids=ids_in_both)
    database = snapshot.database

    plain = sessions.SessionQuery(snapshot.ids)
    listed = snapshot.once("listed", lambda: sessions.count(database, plain))

    def count_all() -> int:
        return listed if query == plain else sessions.count(database, query)

    offset = page_offset(page)
    ids = _page_ids(snapshot, query, page.limit, offset, order)
    total = count_all() if matching else snapshot.once(("total", wanted), count_all)
    loaded = snapshot.sessions.load(ids, with_calls=False)
    unreadable_ids = snapshot.once("unreadable", lambda: tuple(sessions.unreadable(database, snapshot.ids)))
    unreadable = snapshot.sessions.load(unreadable_ids, with_calls=False)
    end = offset + len(ids)
    hint = ""
    if not ids:
        hint = select.NOTHING_FITS if listed else select.nothing_here(snapshot)
    return SessionPage(
        sessions.rows(database, snapshot.with_learned_paths(loaded), snapshot.ids),
        str(end) if end < total else None,
        total,
        listed,
        _problems(snapshot, [*loaded, *unreadable]),
        snapshot.freshness,
        hint,
        matching.notes if matching else (),
    )


def _page_ids(snapshot: Snapshot, query: SessionQuery, limit: int | None, offset: int, order: str | None) -> list[str]:
    """Return the IDs of a page; None is the usual order."""
    from pollux.reports import session_orders, sessions  # noqa: PLC0415

    database = snapshot.database
    if order is None:
        return sessions.page(database, query, limit=limit, offset=offset)
    if not session_orders.is_sum(order):
        return session_orders.page_in_order(database, query, order, limit=limit, offset=offset)
    families = snapshot.once(("families", order), lambda: session_orders.family_sums(database, order, snapshot.ids))
    return session_orders.page_by_sum(database, query, order, families, limit=limit, offset=offset)


def saved_page(snapshot: Snapshot, wanted: Filter, limit: int | None) -> SavedPage:
    """Return the conversations that `/chat save` stored and that match a filter."""
    from pollux.library import project_memory  # noqa: PLC0415
    from pollux.reports.filters import filter_sessions  # noqa: PLC0415
    from pollux.sessions.reader import saved  # noqa: PLC0415

    config = snapshot.config
    history = saved(snapshot.located, memory=project_memory.with_current_folder(config))
    rows = filter_sessions(history.sessions, wanted, cwd=config.cwd, user_home=config.user_home)[:limit]
    problems = [*history.problems]
    for session in (*rows, *history.unreadable):
        problems += session.problems
    return SavedPage(rows, tuple(dict.fromkeys(problems)))


def session_row(snapshot: Snapshot, reference: str, wanted: Filter) -> SessionRow:
    """Return the row of the session that a reference names."""
    from pollux.library import select  # noqa: PLC0415
    from pollux.reports import sessions  # noqa: PLC0415

    loaded = snapshot.sessions.load([select.find_session(snapshot, reference, wanted)], with_calls=False)
    return sessions.rows(snapshot.database, snapshot.with_learned_paths(loaded), snapshot.ids)[0]


def rows_like(snapshot: Snapshot, reference: str, limit: int) -> tuple[SessionRow, ...]:
    """Return the rows of the sessions that share the longest beginning of their ID with a reference."""
    from pollux.library import select  # noqa: PLC0415
    from pollux.reports import sessions  # noqa: PLC0415

    loaded = snapshot.sessions.load(select.similar_sessions(snapshot, reference)[:limit], with_calls=False)
    return sessions.rows(snapshot.database, snapshot.with_learned_paths(loaded), snapshot.ids)


def neighbour_rows(snapshot: Snapshot, session_id: str) -> tuple[SessionRow | None, SessionRow | None]:
    """Return the rows of the sessions of the same project that were used before and after a session."""
    from pollux.reports import sessions  # noqa: PLC0415

    ids = sessions.neighbours(snapshot.database, session_id, snapshot.ids)
    loaded = snapshot.sessions.load([neighbour for neighbour in ids if neighbour is not None], with_calls=False)
    rows = {row.id: row for row in sessions.rows(snapshot.database, loaded, snapshot.ids)}
    before, after = (rows.get(neighbour) if neighbour else None for neighbour in ids)
    return before, after


def project_names(snapshot: Snapshot, like: Iterable[Project] | None = None) -> dict[str, str]:
    """Return the name of each project of the listed sessions by its key; optionally only those named like some."""
    from pollux.archive.load_sessions import with_known_path  # noqa: PLC0415
    from pollux.reports import sessions  # noqa: PLC0415

    names_by_key: dict[str, str] = {}
    names = hashes = None
    if like is not None:  # a hash in the memory may have one of the names, too
        shown = list(like)
        names_by_key = {project.key: project.name for project in shown}
        names = {*names_by_key.values()}
        hashes = {*sessions.others_with_name(snapshot.database, shown), *snapshot.memory}
    query = sessions.SessionQuery(snapshot.ids)
    key = ("projects", None if hashes is None else frozenset(hashes))
    for recorded in snapshot.once(key, lambda: sessions.projects(snapshot.database, query, hashes)):
        project = with_known_path(recorded, snapshot.memory)
        if names is None or project.name in names:
            names_by_key[project.key] = project.name
    return names_by_key


def problems(snapshot: Snapshot, wanted: Filter) -> tuple[Problem, ...]:
    """Return the problems of the sessions that match a filter, and those that belong to no session."""
    from pollux.library import select  # noqa: PLC0415
    from pollux.reports import sessions  # noqa: PLC0415

    query = select.session_query(snapshot, msgspec.structs.replace(wanted, subagents=True, empty=True))
    ids = sessions.page(snapshot.database, query)
    return tuple(snapshot.problems(ids))


def _problems(snapshot: Snapshot, sessions: Iterable[Session]) -> tuple[Problem, ...]:
    """Return the problems of some sessions, and those that belong to no session, without duplicates."""
    problems = [*snapshot.freshness.problems, *snapshot.sessions.problems()]
    for session in {session.id: session for session in sessions}.values():
        problems += session.problems
    return tuple(dict.fromkeys(problems))


def page_offset(page: Page) -> int:
    """Return the number of rows before a page. Raises `InvalidCursorError` for a cursor that is none."""
    if page.after is None:
        return 0
    offset = parse_integer(page.after) if page.after.isdecimal() else None
    if offset is None:
        raise InvalidCursorError("is not valid")
    return offset
