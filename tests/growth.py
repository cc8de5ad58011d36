"""Session files that grow before the eyes of whoever follows them, and what they are told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests import builders
from tests.builders import PRICES

from pollux.exports import events
from pollux.exports.source import ExportOptions, ExportSource, export_source
from pollux.library.config import utc_now
from pollux.model import Project, Session
from pollux.sessions.live import ChangeTracker, LiveMember, LiveSession
from pollux.sessions.locate import id8_in, locate
from pollux.sessions.reader import history, opened

EVERYTHING = frozenset(events.INCLUDABLE)
Told = list[dict[str, Any]]


def session_of(data: bytes, name: str) -> Session:
    """Return what is known of a session before its file is there: its id."""
    ids = (json.loads(line).get("sessionId") for line in data.splitlines()[:1])
    return Session(next(ids, None) or id8_in(name) or name, "main", Project())


def lines_of(pieces: Iterable[bytes]) -> Told:
    return [json.loads(line) for piece in pieces for line in piece.splitlines()]


class Follower:
    """Follows a session of a home as the command does, and keeps what it is told."""

    def __init__(self, root: Path, session: Session, include: frozenset[str] = frozenset()) -> None:
        self.root = root
        self.growing = LiveSession(session, {}, clock=utc_now)
        self.include = include
        self.followers: dict[str, events.Follower] = {}
        self.told: Told = []

    def look(self, *, is_patient: bool = True) -> Told:
        """Look at the files as they are now; who is patient waits when in doubt."""
        members = self.growing.look(locate([builders.home(self.root)]).files)
        if is_patient and any(map(self._is_in_doubt, members)):
            return []
        by_id = {one.session.id: one.session for one in members}
        found: Told = []
        for session, group in members:
            made = export_source(session, group, by_id, opened, PRICES, options=ExportOptions(include=self.include))
            if session.id not in self.followers:
                self.followers[session.id] = events.Follower(made)
            found += lines_of(self.followers[session.id].lines(made))
        self.told += found
        return found

    def _is_in_doubt(self, member: LiveMember) -> bool:
        group = member.group
        if group.id in self.followers:
            return self.followers[group.id].is_in_doubt(group)
        return ChangeTracker().is_in_doubt(group.timeline)


def grow(root: Path, name: str, data: bytes, cuts: Sequence[int], include: frozenset[str] = frozenset()) -> Told:
    """Let a file grow from cut to cut, and give all events that a follower is told."""
    follower = Follower(root, session_of(data, name), include)
    for cut in sorted({*cuts, len(data)}):
        builders.put(builders.chats(root) / name, data[:cut])
        follower.look(is_patient=cut < len(data))
    return follower.told


def exported(root: Path, include: frozenset[str] = frozenset()) -> Told:
    """Return the events of all sessions of a home at once."""
    found = history([builders.home(root)])
    by_id = {one.id: one for one in found.sessions}
    return [event for one in found.sessions for event in lines_of(events.render(_subject(one, by_id, include)))]


def _subject(session: Session, by_id: dict[str, Session], include: frozenset[str]) -> ExportSource:
    return export_source(session, opened(session), by_id, opened, PRICES, options=ExportOptions(include=include))
