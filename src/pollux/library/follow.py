"""A running session: what it is now, and again at every change, until the caller stops."""
# ruff: noqa: PLC0415  imported when a session is followed

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import msgspec

from pollux.errors import NoSuchProjectError
from pollux.library import project_memory
from pollux.library.news import News, Rows
from pollux.library.references import Ref, load_session, open_file
from pollux.library.select import LATEST, session_query
from pollux.model import Fate, Kind, Session
from pollux.reports import sessions
from pollux.sessions.changes import Memory
from pollux.sessions.grouping import Group, bundle_of
from pollux.sessions.live import Growing, Member
from pollux.sessions.locate import SessionFile, locate
from pollux.sessions.reader import short_id
from pollux.text.shell import quoted
from pollux.views.contracts.sessions import MessageDocument
from pollux.views.excerpts import Excerpt
from pollux.views.transcript import Block, Notice, Options

if TYPE_CHECKING:
    from pollux.exports.source import Wanted
    from pollux.library.filters import Announce
    from pollux.library.library import Library
    from pollux.reports.filters import Filter

_Item = TypeVar("_Item")
_PAUSE = 0.5
"""Seconds within which a client that is in the middle of something goes on with it."""
_PATIENCE = 10
"""How often that is waited for, as long as it does go on."""
_STEP = 0.25
"""Seconds between two looks at a file that was named."""


class Look(NamedTuple):
    """What the files of a session contain at some moment."""

    members: list[Member]
    """The session that is followed and its subagents; none if nothing has changed there."""
    others: dict[str, str]
    """Other sessions that are written to, each reported once: the beginning of its ID, and its folder."""


class Teller(Protocol[_Item]):
    """What has been shown of one session so far."""

    def is_in_doubt(self, group: Group) -> bool:
        """Return whether it is better to look again in a moment."""

    def first(self, group: Group, count: int) -> list[_Item]:
        """Return the last items of the session."""

    def next(self, group: Group) -> list[_Item]:
        """Return what is new."""


class Following(msgspec.Struct, frozen=True):
    """A session that is being followed."""

    library: Library
    session: Session
    path: Path | None
    """The one file that was named, wherever it is."""
    everywhere: bool
    """Whether sessions of other projects are reported that are written to."""
    tell: Announce

    @property
    def short_id(self) -> str:
        """The eight characters that name the session on screens."""
        return short_id(self.session)

    def blocks(self, options: Options, count: int) -> Iterator[Block]:
        """Yield the last blocks of the session, and then new ones, with a line where a subagent goes on; endless."""
        main = speaking = self.session.id
        options = msgspec.structs.replace(options, root=self.session.project.path)
        for session, items in self._updates(count, lambda: News(options)):
            if session.id != speaking:
                yield _heading(session, is_main=session.id == main)
                speaking = session.id
            yield from items

    def messages(self, count: int) -> Iterator[MessageDocument]:
        """Yield the last messages of the session, and then new ones and those that have changed; endless."""
        for _, items in self._updates(count, Rows):
            yield from items

    def events(self, wanted: Wanted) -> Iterator[bytes]:
        """Yield the lines of an export of events, and then a line for each new event; endless."""
        from pollux.exports.events import Follower
        from pollux.exports.source import subject

        followers: dict[str, Follower] = {}
        by_id: dict[str, Session] = {}
        groups: dict[str, Group] = {}

        def is_in_doubt(group: Group) -> bool:
            if group.id in followers:
                return followers[group.id].is_in_doubt(group)
            return Memory().is_in_doubt(group.timeline)  # the first look may meet the client at it

        for members, _ in self._looks(is_in_doubt):
            for session, group in members:
                by_id[session.id], groups[session.id] = session, group
            for session, group in members:
                opened = (by_id, lambda child: groups[child.id], self.library.prices)
                source = subject(session, group, *opened, wanted=wanted)
                if session.id not in followers:
                    followers[session.id] = Follower(source)
                yield from followers[session.id].lines(source)

    def _updates(self, count: int, begin: Callable[[], Teller[_Item]]) -> Iterator[tuple[Session, list[_Item]]]:
        """Yield the end of the session, and then all that is new in it and in its subagents."""
        tellers: dict[str, Teller[_Item]] = {}
        is_first = True
        for members, others in self._looks(lambda group: group.id in tellers and tellers[group.id].is_in_doubt(group)):
            for id8, folder in others.items():
                self.tell(f"Session {id8} in {folder} is written to as well; `pollux tail {quoted(id8)}` follows it.")
            for session, group in members:
                teller = tellers.setdefault(session.id, begin())
                n_last = count if session.id == self.session.id else 0
                items = teller.first(group, n_last) if is_first else teller.next(group)
                if items:
                    yield session, items
            is_first = is_first and not members

    def _looks(self, is_in_doubt: Callable[[Group], bool]) -> Iterator[Look]:
        """Yield what there is, and what there is at every change, without end; in doubt, a moment later."""
        from pollux.archive.watch import changes

        config = self.library.config
        if self.session.gone:  # only the archive has it
            with self.library.snapshot() as snapshot:
                yield Look([Member(self.session, snapshot.sessions.open(self.session))], {})
        look = self._look_with(Growing(self.session, project_memory.load(config)))
        for _ in _steps() if self.path else changes(config.current_homes, tell=self.tell):
            seen, n_pauses = look(), 0
            while n_pauses < _PATIENCE and any(is_in_doubt(member.group) for member in seen.members):
                time.sleep(_PAUSE)
                again = look()
                n_pauses = n_pauses + 1 if again.members else _PATIENCE
                seen = Look(again.members or seen.members, seen.others | again.others)
            if any(seen):
                yield seen

    def _look_with(self, growing: Growing) -> Callable[[], Look]:
        if self.path:
            path = self.path
            return lambda: Look(growing.look_at(path), {})
        homes, others = self.library.config.current_homes, _OtherSessions(self)

        def look() -> Look:
            files = list(locate(homes()).files)
            return Look(growing.look(files), others.new(files))

        return look


class _OtherSessions:
    """Notices that other sessions are written to."""

    def __init__(self, following: Following) -> None:
        self._own = {ref.path for ref in following.session.files}
        self._everywhere = following.everywhere
        self._sizes: dict[Path, int] | None = None
        self._reported: set[str] = set()

    def new(self, files: list[SessionFile]) -> dict[str, str]:
        """Return the sessions that have begun or grown since the first look, each once."""
        own = [file for file in files if file.path in self._own]
        if self._sizes is None:
            self._sizes = {file.path: file.size for file in files}
            self._reported = {bundle_of(file) for file in own}
        folders = {file.folder for file in own}
        new = {}
        for file in files:
            has_grown = file.what == "session" and file.size > self._sizes.get(file.path, -1)
            if has_grown and (self._everywhere or file.folder in folders):
                name = bundle_of(file)
                if name not in self._reported:
                    new[name] = file.folder
        self._reported |= new.keys()
        return new


def follow(library: Library, reference: Ref, wanted: Filter, tell: Announce, *, wait: bool) -> Following:
    """Follow the session that a reference names.

    Args:
        library: where to look.
        reference: a name or a path.
        wanted: which sessions a name is looked for among.
        tell: is told what the user should know meanwhile.
        wait: whether to wait for a session to begin if the newest is wanted and there is none.

    """
    path = None
    if isinstance(reference, Path):
        session, path = open_file(reference)[0], reference
    elif wait and reference == LATEST:
        session = next(_awaited(library, wanted, tell))
    else:
        with library.snapshot() as snapshot:
            session = load_session(snapshot, reference, wanted)
    return Following(library, session, path, wanted.project is None, tell)


def _awaited(library: Library, wanted: Filter, tell: Announce) -> Iterator[Session]:
    """Yield the newest session, as soon as there is one."""
    from pollux.archive.watch import changes

    before: object = None
    is_told = False
    homes = library.config.current_homes
    for _ in changes(homes, tell=tell):
        now = [(file.path, file.size, file.mtime_ns) for file in locate(homes()).files]
        if now != before:
            before = now
            library.refresh()
            yield from _newest(library, wanted)
        if not is_told:
            tell("No session here yet; waiting for one to begin. Ctrl-C ends it.")
            is_told = True


def _newest(library: Library, wanted: Filter) -> list[Session]:
    with library.snapshot() as snapshot:
        try:
            ids = sessions.page(snapshot.database, session_query(snapshot, wanted), limit=1)
        except NoSuchProjectError:
            if os.path.isdir(os.path.expanduser(wanted.project or "")):  # noqa: PTH111, PTH112  which never fail
                return []  # nothing was done in that folder yet
            raise
        return snapshot.with_learned_paths(snapshot.sessions.load(ids))


def _steps() -> Iterator[None]:
    while True:
        yield
        time.sleep(_STEP)


def _heading(session: Session, *, is_main: bool) -> Block:
    own = session.id.rpartition(":")[2]  # of old releases, the name of its file
    words = "back in the session" if is_main else f"in subagent {own if own != session.id else own[:8]}"
    return Notice("", None, Fate.ACTIVE, Kind.INFO, Excerpt(words))
