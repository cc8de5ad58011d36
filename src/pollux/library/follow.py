"""Follow a running session: yield its end, and then every change, until the caller stops."""
# ruff: noqa: PLC0415  imported when a session is followed

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import msgspec

from pollux.errors import ProjectNotFoundError
from pollux.library import project_memory
from pollux.library.feeds import BlockFeed, MessageFeed
from pollux.library.references import Ref, load_session, open_file
from pollux.library.select import LATEST, session_query
from pollux.model import Fate, Kind, Session
from pollux.reports import sessions
from pollux.sessions.grouping import OpenSession, bundle_key
from pollux.sessions.live import ChangeTracker, LiveMember, LiveSession
from pollux.sessions.locate import SessionFile, locate
from pollux.sessions.reader import short_id
from pollux.text.shell import quoted
from pollux.views.contracts.sessions import MessageDocument
from pollux.views.excerpts import Excerpt
from pollux.views.transcript import Block, NoticeBlock, TranscriptOptions

if TYPE_CHECKING:
    from pollux.exports.source import ExportOptions
    from pollux.library.filters import Announce
    from pollux.library.library import Library
    from pollux.reports.filters import Filter

_Item = TypeVar("_Item")
_PAUSE = 0.5
"""Seconds to wait for a client that is in the middle of writing."""
_PATIENCE = 10
"""How many times to wait while the client keeps writing."""
_STEP = 0.25
"""Seconds between two reads of a named file."""


class LiveUpdate(NamedTuple):
    """A change in the files of a session."""

    members: list[LiveMember]
    """The followed session and its subagents; empty if they have not changed."""
    others: dict[str, str]
    """Other sessions that the client is writing: short ID and folder, each reported once."""


class Feed(Protocol[_Item]):
    """Finds what is new in one session."""

    def is_in_doubt(self, group: OpenSession) -> bool:
        """Return whether the client may be in the middle of writing, so that the files should be read again."""

    def first(self, group: OpenSession, count: int) -> list[_Item]:
        """Return the last items of the session."""

    def next(self, group: OpenSession) -> list[_Item]:
        """Return what is new."""


class FollowedSession(msgspec.Struct, frozen=True):
    """A session that is being followed."""

    library: Library
    session: Session
    path: Path | None
    """The file, if the user named one."""
    everywhere: bool
    """Also report running sessions of other projects."""
    tell: Announce

    @property
    def short_id(self) -> str:
        """The eight characters that name the session on screens."""
        return short_id(self.session)

    def blocks(self, options: TranscriptOptions, count: int) -> Iterator[Block]:
        """Yield the last blocks of the session, then new ones, forever; a heading marks a change to a subagent."""
        main = speaking = self.session.id
        options = msgspec.structs.replace(options, root=self.session.project.path)
        for session, items in self._updates(count, lambda: BlockFeed(options)):
            if session.id != speaking:
                yield _heading(session, is_main=session.id == main)
                speaking = session.id
            yield from items

    def messages(self, count: int) -> Iterator[MessageDocument]:
        """Yield the last messages of the session, then new and changed ones, forever."""
        for _, items in self._updates(count, MessageFeed):
            yield from items

    def events(self, wanted: ExportOptions) -> Iterator[bytes]:
        """Yield the lines of an export of events, then a line for each new event, forever."""
        from pollux.exports.events import Follower
        from pollux.exports.source import export_source

        followers: dict[str, Follower] = {}
        by_id: dict[str, Session] = {}
        groups: dict[str, OpenSession] = {}

        def is_in_doubt(group: OpenSession) -> bool:
            if group.id in followers:
                return followers[group.id].is_in_doubt(group)
            return ChangeTracker().is_in_doubt(group.timeline)  # the client may be writing during the first read

        for members, _ in self._looks(is_in_doubt):
            for session, group in members:
                by_id[session.id], groups[session.id] = session, group
            for session, group in members:
                opened = (by_id, lambda child: groups[child.id], self.library.prices)
                source = export_source(session, group, *opened, options=wanted)
                if session.id not in followers:
                    followers[session.id] = Follower(source)
                yield from followers[session.id].lines(source)

    def _updates(self, count: int, begin: Callable[[], Feed[_Item]]) -> Iterator[tuple[Session, list[_Item]]]:
        """Yield the end of the session, then everything new in it and its subagents."""
        feeds: dict[str, Feed[_Item]] = {}
        is_first = True
        for members, others in self._looks(lambda group: group.id in feeds and feeds[group.id].is_in_doubt(group)):
            for id8, folder in others.items():
                self.tell(f"Session {id8} in {folder} is running, too. Run `pollux tail {quoted(id8)}` to follow it.")
            for session, group in members:
                feed = feeds.setdefault(session.id, begin())
                n_last = count if session.id == self.session.id else 0
                items = feed.first(group, n_last) if is_first else feed.next(group)
                if items:
                    yield session, items
            is_first = is_first and not members

    def _looks(self, is_in_doubt: Callable[[OpenSession], bool]) -> Iterator[LiveUpdate]:
        """Yield the current state, then every change, forever; wait while the client is in the middle of writing."""
        from pollux.archive.watch import changes

        config = self.library.config
        if self.session.deleted:  # it is only in the archive
            with self.library.snapshot() as snapshot:
                yield LiveUpdate([LiveMember(self.session, snapshot.sessions.open(self.session))], {})
        look = self._look_with(LiveSession(self.session, project_memory.load(config), clock=config.clock))
        for _ in _steps() if self.path else changes(config.current_homes, tell=self.tell):
            seen, n_pauses = look(), 0
            while n_pauses < _PATIENCE and any(is_in_doubt(member.group) for member in seen.members):
                time.sleep(_PAUSE)
                again = look()
                n_pauses = n_pauses + 1 if again.members else _PATIENCE
                seen = LiveUpdate(again.members or seen.members, seen.others | again.others)
            if any(seen):
                yield seen

    def _look_with(self, growing: LiveSession) -> Callable[[], LiveUpdate]:
        if self.path:
            path = self.path
            return lambda: LiveUpdate(growing.look_at(path), {})
        homes, others = self.library.config.current_homes, _OtherSessions(self)

        def look() -> LiveUpdate:
            files = list(locate(homes()).files)
            return LiveUpdate(growing.look(files), others.new(files))

        return look


class _OtherSessions:
    """Detects other running sessions."""

    def __init__(self, following: FollowedSession) -> None:
        self._own = {ref.path for ref in following.session.files}
        self._everywhere = following.everywhere
        self._sizes: dict[Path, int] | None = None
        self._reported: set[str] = set()

    def new(self, files: list[SessionFile]) -> dict[str, str]:
        """Return the sessions that have started or grown since the first call, each once."""
        own = [file for file in files if file.path in self._own]
        if self._sizes is None:
            self._sizes = {file.path: file.size for file in files}
            self._reported = {bundle_key(file) for file in own}
        folders = {file.folder for file in own}
        new = {}
        for file in files:
            has_grown = file.what == "session" and file.size > self._sizes.get(file.path, -1)
            if has_grown and (self._everywhere or file.folder in folders):
                name = bundle_key(file)
                if name not in self._reported:
                    new[name] = file.folder
        self._reported |= new.keys()
        return new


def follow(library: Library, reference: Ref, wanted: Filter, tell: Announce, *, wait: bool) -> FollowedSession:
    """Follow the session that a reference names.

    Args:
        library: to look up the session in.
        reference: a name or a path.
        wanted: names are looked up among the sessions that match.
        tell: receives notes for the user.
        wait: if `latest` is wanted and there is no session, wait until one starts.

    """
    path = None
    if isinstance(reference, Path):
        session, path = open_file(reference)[0], reference
    elif wait and reference == LATEST:
        session = next(_awaited(library, wanted, tell))
    else:
        with library.snapshot() as snapshot:
            session = load_session(snapshot, reference, wanted)
    return FollowedSession(library, session, path, wanted.project is None, tell)


def _awaited(library: Library, wanted: Filter, tell: Announce) -> Iterator[Session]:
    """Yield the newest session as soon as one exists."""
    from pollux.archive.watch import changes

    before: object = None
    has_told = False
    homes = library.config.current_homes
    for _ in changes(homes, tell=tell):
        now = [(file.path, file.size, file.mtime_ns) for file in locate(homes()).files]
        if now != before:
            before = now
            library.refresh()
            yield from _newest(library, wanted)
        if not has_told:
            tell("No session yet; waiting for one to start. Press Ctrl-C to stop.")
            has_told = True


def _newest(library: Library, wanted: Filter) -> list[Session]:
    with library.snapshot() as snapshot:
        try:
            ids = sessions.page(snapshot.database, session_query(snapshot, wanted), limit=1)
        except ProjectNotFoundError:
            if os.path.isdir(os.path.expanduser(wanted.project or "")):  # noqa: PTH111, PTH112  never raise
                return []  # no session was started in that folder yet
            raise
        return snapshot.with_learned_paths(snapshot.sessions.load(ids))


def _steps() -> Iterator[None]:
    while True:
        yield
        time.sleep(_STEP)


def _heading(session: Session, *, is_main: bool) -> Block:
    own = session.id.rpartition(":")[2]  # old releases: the name of its file
    words = "back in the session" if is_main else f"in subagent {own if own != session.id else own[:8]}"
    return NoticeBlock("", None, Fate.ACTIVE, Kind.INFO, Excerpt(words))
