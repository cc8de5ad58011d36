"""Find the session that a reference names: an ID, a prefix of one, `latest`, `@2`, or a file name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec

from pollux.errors import AmbiguousSessionError, FailedSessionError, PolluxError, SessionNotFoundError
from pollux.library.filters import Announce, ignore_note, sessions_of_project
from pollux.reports import sessions
from pollux.reports.filters import ALL, Filter
from pollux.reports.sessions import SessionQuery
from pollux.sessions.reader import failed_files, short_id_of
from pollux.text.numbers import parse_integer
from pollux.views.session_text import title

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot

LATEST = "latest"
_N_CANDIDATES = 10
_TITLE_WIDTH = 50
_SHARED_CHARACTERS = 4
"""First characters that an unknown ID has to share with a similar one."""
NOTHING_HERE = "No sessions found. `pollux doctor` lists the homes that were read; `pollux demo` shows invented ones."
NOTHING_FITS = "No session matches these options; `pollux ls` without them lists all sessions."


def session_query(snapshot: Snapshot, wanted: Filter, announce: Announce = ignore_note) -> SessionQuery:
    """Return the query for a filter, limited to the sessions of the snapshot. Raises `ProjectNotFoundError`."""
    ids = sessions_of_project(snapshot, wanted.project, announce)
    return SessionQuery(ids, wanted.since, wanted.until, wanted.model, subagents=wanted.subagents, empty=wanted.empty)


def find_session(snapshot: Snapshot, reference: str, wanted: Filter = ALL) -> str:
    """Return the ID of the session that a reference names among those that match a filter.

    Raises `SessionNotFoundError`, `AmbiguousSessionError`, and `FailedSessionError` for unreadable files.
    """
    query = session_query(snapshot, msgspec.structs.replace(wanted, subagents=True, empty=True))
    database = snapshot.database
    if reference == LATEST or reference.startswith("@"):
        return _numbered(snapshot, reference, query)
    matching = sessions.among(database, [reference, *snapshot.sessions.with_file(reference)], query)
    matching = matching or sessions.with_prefix(database, reference, query)
    if not matching:
        every = sessions.page(database, query)
        matching = [session_id for session_id in every if short_id_of(session_id).lower() == reference.lower()]
    if len(matching) > 1:
        matching = sessions.main_sessions(database, matching) or matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise AmbiguousSessionError(reference, matching, _candidate_lines(snapshot, matching[:_N_CANDIDATES]))
    raise _not_found(snapshot, reference, query)


def similar_sessions(snapshot: Snapshot, reference: str) -> list[str]:
    """Return the IDs that share the longest beginning with a reference, which a wrong character may follow."""
    if len(reference) <= _SHARED_CHARACTERS:
        return []
    query = session_query(snapshot, Filter(subagents=True, empty=True))
    by_length: dict[int, list[str]] = {}
    for session_id in sessions.with_prefix(snapshot.database, reference[:_SHARED_CHARACTERS], query):
        pairs = zip(session_id.lower(), reference.lower(), strict=False)
        n_shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        by_length.setdefault(n_shared, []).append(session_id)
    return by_length[max(by_length)] if by_length else []


def _candidate_lines(snapshot: Snapshot, ids: Sequence[str]) -> list[str]:
    """Return a line per session with as much of its ID as tells it from the others, its date and its title."""
    length = next((n for n in range(8, 64) if len({session_id[:n] for session_id in ids}) == len(ids)), None)
    zone = snapshot.config.zone()[0]
    lines = []
    for session in snapshot.sessions.load(ids):
        day = f"{session.started.astimezone(zone):%Y-%m-%d}" if session.started else " " * 10
        lines.append(f"  {session.id[:length]}  {day}  {title(session, _TITLE_WIDTH)}")
    return lines


def nothing_here(snapshot: Snapshot) -> str:
    """Return the message for homes without sessions, with a hint if the archive has sessions of other homes."""
    return f"{NOTHING_HERE} {_hint(snapshot)}".rstrip()


def _numbered(snapshot: Snapshot, reference: str, query: SessionQuery) -> str:
    listed = SessionQuery(query.ids, query.since, query.until, query.model)
    digits = "1" if reference == LATEST else reference[1:]
    number = parse_integer(digits) if digits.isdecimal() else None
    ids = sessions.page(snapshot.database, listed, limit=1, offset=number - 1) if number else []
    if ids:
        return ids[0]
    raise _not_found(snapshot, reference, query, sessions.count(snapshot.database, listed))


def _not_found(snapshot: Snapshot, reference: str, query: SessionQuery, n_searched: int | None = None) -> PolluxError:
    failed = failed_files(snapshot.problems(), reference)
    if failed:
        return FailedSessionError([*failed], next(iter(failed.values())).message)
    scope = SessionQuery(snapshot.ids, subagents=True, empty=True)
    if not sessions.count(snapshot.database, scope):
        return PolluxError(nothing_here(snapshot))
    n_chosen = sessions.count(snapshot.database, query)
    if not n_chosen:
        return PolluxError(NOTHING_FITS)
    error = SessionNotFoundError(reference, n_chosen if n_searched is None else n_searched)
    if "#" in reference:
        error.args = (f"{error} Only `pollux show` takes a message after `#`.",)
    return PolluxError(f"{error} {_hint(snapshot)}") if snapshot.elsewhere else error


def _hint(snapshot: Snapshot) -> str:
    if not snapshot.elsewhere:
        return ""
    plural = "" if snapshot.elsewhere == 1 else "s"
    return f"The archive has {snapshot.elsewhere} session{plural} of other homes: add --all-homes to include them."
