"""Session files that grow while a follower reads them, and the events that it reports."""

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
Events = list[dict[str, Any]]


def session_of(data: bytes, name: str) -> Session:
    """Return a session that has only the ID from the first line or the name of its file."""
    ids = (json.loads(line).get("sessionId") for line in data.splitlines()[:1])
    return Session(next(ids, None) or id8_in(name) or name, "main", Project())


def lines_of(pieces: Iterable[bytes]) -> Events:
    return [json.loads(line) for piece in pieces for line in piece.splitlines()]


class Follower:
    """Follows a session of a home as `pollux follow` does, and keeps all events that it reports."""

    def __init__(self, root: Path, session: Session, include: frozenset[str] = frozenset()) -> None:
        self.root = root
        self.growing = LiveSession(session, {}, clock=utc_now)
        self.include = include
        self.followers: dict[str, events.Follower] = {}
        self.reported: Events = []

    def look(self, *, is_patient: bool = True) -> Events:
        """Return the new events of the files as they are now; a patient follower waits when in doubt."""
        members = self.growing.look(locate([builders.home(self.root)]).files)
        if is_patient and any(map(self._is_in_doubt, members)):
            return []
        by_id = {member.session.id: member.session for member in members}
        new: Events = []
        for session, group in members:
            source = export_source(session, group, by_id, opened, PRICES, options=ExportOptions(include=self.include))
            if session.id not in self.followers:
                self.followers[session.id] = events.Follower(source)
            new += lines_of(self.followers[session.id].lines(source))
        self.reported += new
        return new

    def _is_in_doubt(self, member: LiveMember) -> bool:
        group = member.group
        if group.id in self.followers:
            return self.followers[group.id].is_in_doubt(group)
        return ChangeTracker().is_in_doubt(group.timeline)


def grow(root: Path, name: str, data: bytes, cuts: Sequence[int], include: frozenset[str] = frozenset()) -> Events:
    """Write a file up to each cut in turn, and return all events that a follower reports."""
    follower = Follower(root, session_of(data, name), include)
    for cut in sorted({*cuts, len(data)}):
        builders.put(builders.chats(root) / name, data[:cut])
        follower.look(is_patient=cut < len(data))
    return follower.reported


def exported(root: Path, include: frozenset[str] = frozenset()) -> Events:
    """Return the events of all sessions of a home at once."""
    read = history([builders.home(root)])
    by_id = {session.id: session for session in read.sessions}
    return [event for session in read.sessions for event in lines_of(events.render(_subject(session, by_id, include)))]


def _subject(session: Session, by_id: dict[str, Session], include: frozenset[str]) -> ExportSource:
    return export_source(session, opened(session), by_id, opened, PRICES, options=ExportOptions(include=include))
