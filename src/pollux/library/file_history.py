"""List the files that sessions read or changed, and the history of one file with the diff of each change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from pollux.library.listing import page_offset
from pollux.library.select import session_query
from pollux.model import Message, Project
from pollux.reports import sessions
from pollux.reports.file_history import FileTouch, FileUse, file_touches, file_uses
from pollux.search.corpus import EVERYTHING
from pollux.search.texts import TextReader
from pollux.search.values import FilePage, TouchedFile
from pollux.views.diffs import Diff
from pollux.views.excerpts import Limits
from pollux.views.tool_results import result_bodies
from pollux.views.tools import presentation_of

if TYPE_CHECKING:
    from pollux.library.filters import Announce
    from pollux.library.remembered import RememberedResults
    from pollux.library.snapshot import Snapshot
    from pollux.prices import Prices
    from pollux.reports.filters import Filter
    from pollux.reports.sessions import Page
    from pollux.sessions.grouping import OpenSession

_DIFF = Limits(head=40, tail=0, chars=20_000, folds=True)
"""Lines of a diff that are shown at once; the others are in a fold."""


class UsedFile(msgspec.Struct, frozen=True):
    """A file of a project."""

    use: FileUse
    project: Project


class UsedFiles(msgspec.Struct, frozen=True):
    """A page of files."""

    rows: tuple[UsedFile, ...]
    next: str | None
    total: int
    """Number of files on all pages."""


class RecordedTouch(msgspec.Struct, frozen=True):
    """One read or change of a file, with what it changed."""

    file: TouchedFile
    diffs: tuple[Diff, ...]
    """Empty for a read, and for a change whose record has no lines."""


class FileHistory(msgspec.Struct, frozen=True):
    """A page of the history of a file, the newest touch first."""

    path: str
    rows: tuple[RecordedTouch, ...]
    next: str | None
    total: int
    """Number of touches on all pages."""


def used_files(
    snapshot: Snapshot,
    words: str,
    wanted: Filter,
    page: Page,
    prices: Prices,
    remembered: RememberedResults,
    announce: Announce,
) -> UsedFiles:
    """Return the files whose path contains all words, in any case; `*` and `?` in a word stand for other characters."""
    ids = _ids(snapshot, wanted, announce)
    uses = remembered.get(snapshot, prices, ("files", wanted), lambda: file_uses(snapshot.database, ids))
    tests = words.casefold().split()
    if tests:
        uses = tuple(use for use in uses if _matches(use.path.casefold(), tests))
    offset = page_offset(page)
    shown = uses[offset : None if page.limit is None else offset + page.limit]
    projects = snapshot.projects_of([use.session_id for use in shown])
    rows = tuple(UsedFile(use, projects.get(use.session_id, Project())) for use in shown)
    return UsedFiles(rows, _next(offset, len(rows), len(uses)), len(uses))


def file_history(snapshot: Snapshot, path: str, wanted: Filter, page: Page, announce: Announce) -> FileHistory:
    """Return every read and change of a file, with the diffs of changes."""
    touches, total = _touches(snapshot, path, wanted, page, announce)
    messages = _messages(snapshot, [touch for touch in touches if touch.op != "read"])
    rows = []
    for touch, file in zip(touches, _touched_files(snapshot, touches), strict=True):
        rows.append(RecordedTouch(file, _diffs(messages.get((touch.session_id, touch.number)), touch)))
    return FileHistory(path, tuple(rows), _next(page_offset(page), len(rows), total), total)


def touches_of_file(snapshot: Snapshot, path: str, wanted: Filter, page: Page, announce: Announce) -> FilePage:
    """Return every read and change of a file."""
    touches, total = _touches(snapshot, path, wanted, page, announce)
    next_ = _next(page_offset(page), len(touches), total)
    rows = _touched_files(snapshot, touches)
    return FilePage(rows, next_, total, (), tuple(snapshot.freshness.problems), snapshot.freshness)


def _touches(
    snapshot: Snapshot, path: str, wanted: Filter, page: Page, announce: Announce
) -> tuple[tuple[FileTouch, ...], int]:
    ids = _ids(snapshot, wanted, announce)
    return file_touches(snapshot.database, path, ids, limit=page.limit, offset=page_offset(page))


def _touched_files(snapshot: Snapshot, touches: Sequence[FileTouch]) -> tuple[TouchedFile, ...]:
    """Return touches with the titles and projects of their sessions."""
    ids = [*dict.fromkeys(touch.session_id for touch in touches)]
    titles = {session.id: session.title for session in snapshot.sessions.load(ids, with_calls=False)}
    projects = snapshot.projects_of(ids)
    return tuple(
        TouchedFile(
            touch.path,
            touch.op,
            touch.at,
            touch.session_id,
            touch.message_id,
            touch.number,
            projects.get(touch.session_id, Project()),
            titles.get(touch.session_id, ""),
            touch.lines_added,
            touch.lines_removed,
            touch.fate,
        )
        for touch in touches
    )


def _ids(snapshot: Snapshot, wanted: Filter, announce: Announce) -> set[str] | None:
    """Return the sessions that match a filter, subagents included; None for all."""
    query = session_query(snapshot, msgspec.structs.replace(wanted, subagents=True, empty=True), announce)
    return None if query == EVERYTHING else set(sessions.page(snapshot.database, query))


def _matches(path: str, words: Iterable[str]) -> bool:
    for word in words:
        if "*" in word or "?" in word:
            if not fnmatchcase(path, f"*{word}") and not fnmatchcase(path, word):
                return False
        elif word not in path:
            return False
    return True


def _next(offset: int, n_rows: int, total: int) -> str | None:
    return str(offset + n_rows) if n_rows and offset + n_rows < total else None


def _messages(snapshot: Snapshot, touches: Iterable[FileTouch]) -> Mapping[tuple[str, int], Message]:
    """Return the messages of some touches by session and position."""

    def open_session(session_id: str) -> OpenSession:
        (session,) = snapshot.sessions.load([session_id], with_calls=False)
        return snapshot.sessions.open(session)

    reader = TextReader(snapshot.database, open_session, has_bytes=snapshot.is_archived)
    places: dict[str, set[int]] = {}
    for touch in touches:
        places.setdefault(touch.session_id, set()).add(touch.number)
    messages = {}
    for session_id, numbers in places.items():
        for number, message in reader.messages(session_id, numbers).items():
            messages[session_id, number] = message
    return messages


def _diffs(message: Message | None, touch: FileTouch) -> tuple[Diff, ...]:
    if message is None or touch.idx >= len(message.tool_calls):
        return ()
    call = message.tool_calls[touch.idx]
    bodies = result_bodies(call, presentation_of(call), _DIFF, [])
    return tuple(body for body in bodies if isinstance(body, Diff))
