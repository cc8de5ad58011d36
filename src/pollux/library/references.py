"""Open the session that a reference names: an ID, `latest`, an archived file, or a file on the disk."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.archive.load_sessions import damaged_rows
from pollux.errors import AmbiguousMessageError, MessageNotFoundError, PolluxError, SessionNotFoundError
from pollux.library.config import UsageError
from pollux.library.select import LATEST, find_session
from pollux.reports.filters import ALL, Filter
from pollux.reports.sessions import families, roots
from pollux.sessions.grouping import OpenSession
from pollux.sessions.reader import from_file, saved, short_id_of
from pollux.text.numbers import parse_integer
from pollux.text.shell import quoted

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.model import Problem, Session

Ref = str | Path
"""A string is looked up among the sessions; a path is read directly."""
_NOT_REASONS = ("no-session", "no-session-id")
"""Problems that only say that a file contains no session."""
_UNREAD = ("unreadable-file", "cannot-derive")


class NoSessionInFileError(PolluxError):
    """A file that the user named contains no session."""

    def __init__(self, path: Path, reason: str, name: str | None = None) -> None:
        """Build the message from the file, the reason and the name to show for the file."""
        self.path, self.reason = path, reason
        super().__init__(f"{name or path} contains no session{reason}. Run `pollux ls` to list sessions.")


def open_file(path: Path) -> tuple[Session, OpenSession]:
    """Open the session in a file."""
    if not os.path.lexists(path):
        raise PolluxError(f"There is no file {path}. Run `pollux ls` to list sessions.")
    session, group = from_file(path)
    if group.timeline or group.main.reading.id:
        return session, group
    if group.main.reading.format == "prompts":
        raise PolluxError(f"{path} is the client's log of prompts; the sessions are in the `chats` folder next to it.")
    reasons = [f": {problem.message}" for problem in session.problems if problem.code not in _NOT_REASONS]
    raise NoSessionInFileError(path, reasons[0] if reasons else "")


def load_session(snapshot: Snapshot, reference: str, wanted: Filter = ALL, *, with_calls: bool = True) -> Session:
    """Return the session that a reference names. Raises the errors of `find_session`, and `UsageError` for a folder."""
    try:
        session_id = find_session(snapshot, reference, wanted)
    except SessionNotFoundError:
        if os.path.isdir(reference):  # noqa: PTH112  Path.is_dir() may raise
            raise folder_error(reference) from None
        raise
    loaded = snapshot.with_learned_paths(snapshot.sessions.load([session_id], with_calls=with_calls))
    if not loaded:
        raise PolluxError(f"{damaged_rows(session_id).message}.")
    return loaded[0]


def open_named(snapshot: Snapshot, reference: str, wanted: Filter = ALL) -> tuple[Session, OpenSession]:
    """Open the session or the saved conversation that a reference names."""
    try:
        session = load_session(snapshot, reference, wanted)
    except PolluxError:
        path = _saved_file(snapshot, reference)
        if path is None:
            raise
        return open_file(path)
    session = _with_unread(session, [*snapshot.freshness.problems, *snapshot.sessions.problems()])
    return session, snapshot.sessions.open(session)


def open_session(
    snapshot: Snapshot, reference: str, wanted: Filter = ALL
) -> tuple[Session, OpenSession, dict[str, Session]]:
    """Open the session or the saved conversation that a reference names; also return its family by ID."""
    session, group = open_named(snapshot, reference, wanted)
    return session, group, load_families(snapshot, [session.id], [session])


def open_reference(
    snapshot: Snapshot | None, reference: Ref, wanted: Filter = ALL
) -> tuple[Session, OpenSession, dict[str, Session]]:
    """Open the session that a reference names, and return it with its family by ID; a path needs no snapshot."""
    if isinstance(reference, Path):
        session, group = open_file(reference)
        return session, group, {session.id: session}
    assert snapshot is not None
    return open_session(snapshot, reference, wanted)


def split_message(reference: Ref) -> tuple[Ref, str | None]:
    """Return the session and the message that `SESSION#MESSAGE` names. An existing file may have a `#` in its name."""
    if isinstance(reference, str):
        session, separator, message = reference.rpartition("#")
        return (session or LATEST, message) if separator else (reference, None)
    name, separator, message = reference.name.rpartition("#")
    if not separator or not name or os.path.lexists(reference):
        return reference, None
    return reference.with_name(name), message


def find_message(group: OpenSession, reference: str) -> int:
    """Return the place in the timeline of the message with an ID, with a number from 1, or whose ID begins so.

    Raises `MessageNotFoundError` and `AmbiguousMessageError`.
    """
    ids = [entry.id for _, entry in group.timeline]
    if reference in ids:
        return ids.index(reference)
    digits = reference.removeprefix("m")  # the anchors of HTML pages are `m1`, `m2` …
    number = parse_integer(digits) if digits.isdecimal() else None
    if number is not None and 1 <= number <= len(ids):
        return number - 1
    places = [place for place, id_ in enumerate(ids) if reference and id_.lower().startswith(reference.lower())]
    if len(places) == 1:
        return places[0]
    session = short_id_of(group.id)
    if places:
        raise AmbiguousMessageError(session, reference, [ids[place] for place in places])
    raise MessageNotFoundError(session, reference, len(ids))


def load_families(snapshot: Snapshot, ids: Collection[str], loaded: Collection[Session] = ()) -> dict[str, Session]:
    """Return some sessions with their parents and subagents, by ID.

    Args:
        snapshot: to load from.
        ids: the sessions.
        loaded: members of these families that are already loaded.

    """
    by_id = {session.id: session for session in loaded}
    members: dict[str, None] = dict.fromkeys(ids)
    for family in families(snapshot.database, roots(snapshot.database, ids)).values():
        members.update(dict.fromkeys(family))
    missing = [member for member in members if member not in by_id and (snapshot.ids is None or member in snapshot.ids)]
    for session in snapshot.with_learned_paths(snapshot.sessions.load(missing)):
        by_id[session.id] = session
    return by_id


def folder_error(reference: str) -> UsageError:
    """Return the error for a folder that the user named instead of a session."""
    return UsageError(
        f"{reference} is a folder, not a session. Run `pollux ls --home {quoted(reference)}` to list its sessions."
    )


def _saved_file(snapshot: Snapshot, tag: str) -> Path | None:
    """Return the file of the conversation that was saved with a tag; None if several have it."""
    matching = [session for session in saved(snapshot.located).sessions if session.tag == tag]
    return matching[0].files[0].path if len(matching) == 1 else None


def _with_unread(session: Session, problems: Sequence[Problem]) -> Session:
    """Add the problems of unreadable files whose names contain the session's ID."""
    ending = f"-{session.id[:8]}."
    unread = [problem for problem in problems if problem.code in _UNREAD and problem.file and ending in problem.file]
    return msgspec.structs.replace(session, problems=(*session.problems, *unread)) if unread else session
