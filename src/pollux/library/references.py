"""Open the sessions that references name: an ID, `latest`, the name of an archived file, or a file on the disk."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pollux.archive.load_sessions import damaged_rows
from pollux.errors import NoSuchSessionError, PolluxError
from pollux.library.config import UsageError
from pollux.library.select import find_session
from pollux.reports.filters import ALL, Filter
from pollux.reports.sessions import families, roots
from pollux.sessions.grouping import Group
from pollux.sessions.reader import from_file, saved, saved_tag
from pollux.text.shell import quoted

if TYPE_CHECKING:
    from pollux.library.snapshot import Snapshot
    from pollux.model import Problem, Session

Ref = str | Path
"""A text is looked up among the sessions; a path is a file to read, wherever it is."""
_NOT_REASONS = ("no-session", "no-session-id")
"""Problems that only repeat that a file contains no session."""
_UNREAD = ("unreadable-file", "cannot-derive")


class NoSessionInFileError(PolluxError):
    """A file that the user named contains no session."""

    def __init__(self, path: Path, reason: str, name: str | None = None) -> None:
        """Take the file, why it contains none, and what to call it."""
        self.path, self.reason = path, reason
        super().__init__(f"{name or path} contains no session{reason}; `pollux ls` lists the sessions there are.")


def open_file(path: Path) -> tuple[Session, Group]:
    """Open the session of a file, wherever it is."""
    if not os.path.lexists(path):
        raise PolluxError(f"There is no file {path}; `pollux ls` lists the sessions there are.")
    session, group = from_file(path)
    if group.timeline or group.main.reading.id:
        return session, group
    if group.main.reading.format == "prompts":
        raise PolluxError(f"{path} is the client's log of what was typed; sessions are in `chats` beside it.")
    reasons = [f": {problem.message}" for problem in session.problems if problem.code not in _NOT_REASONS]
    raise NoSessionInFileError(path, reasons[0] if reasons else "")


def load_session(snapshot: Snapshot, reference: str, wanted: Filter = ALL) -> Session:
    """Return the session that a reference names. Raises the errors of `find_session`, and `UsageError` for a folder."""
    try:
        session_id = find_session(snapshot, reference, wanted)
    except NoSuchSessionError:
        if os.path.isdir(reference):  # noqa: PTH112  which answers no where Path.is_dir() raises
            raise folder_error(reference) from None
        raise
    loaded = snapshot.with_learned_paths(snapshot.sessions.load([session_id]))
    if not loaded:
        raise PolluxError(f"{damaged_rows(session_id).message}.")
    return loaded[0]


def open_named(snapshot: Snapshot, reference: str, wanted: Filter = ALL) -> tuple[Session, Group]:
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


def open_session(snapshot: Snapshot, reference: str, wanted: Filter = ALL) -> tuple[Session, Group, dict[str, Session]]:
    """Open the session or the saved conversation that a reference names; also return its family by ID."""
    session, group = open_named(snapshot, reference, wanted)
    return session, group, load_families(snapshot, [session.id], [session])


def open_reference(
    snapshot: Snapshot | None, reference: Ref, wanted: Filter = ALL
) -> tuple[Session, Group, dict[str, Session]]:
    """Open what a reference names: a file, or with a snapshot a session; also return its family by ID."""
    if isinstance(reference, Path):
        session, group = open_file(reference)
        return session, group, {session.id: session}
    assert snapshot is not None
    return open_session(snapshot, reference, wanted)


def load_families(snapshot: Snapshot, ids: Collection[str], loaded: Collection[Session] = ()) -> dict[str, Session]:
    """Return the sessions of the families that some sessions belong to, by ID: those above and below them.

    Args:
        snapshot: where to look.
        ids: the sessions.
        loaded: sessions of these families that are loaded already.

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
    """Return the error for a folder that was named in place of a session."""
    return UsageError(
        f"{reference} is a folder, not a session; `pollux ls --home {quoted(reference)}` lists what it holds."
    )


def _saved_file(snapshot: Snapshot, tag: str) -> Path | None:
    """Return the file of the one conversation that was saved under a tag."""
    matching = [session for session in saved(snapshot.located).sessions if saved_tag(session) == tag]
    return matching[0].files[0].path if len(matching) == 1 else None


def _with_unread(session: Session, problems: Sequence[Problem]) -> Session:
    """Return a session with the problems of unreadable files that by their names are its own."""
    ending = f"-{session.id[:8]}."
    unread = [problem for problem in problems if problem.code in _UNREAD and problem.file and ending in problem.file]
    return msgspec.structs.replace(session, problems=(*session.problems, *unread)) if unread else session
