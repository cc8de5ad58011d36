"""Normalised events of a session, one JSON object a line: what was asked, which tools were used, how they ended.

The types, the canonical names and the rules for errors are those of session-signals, a detector of friction. Ids and
times are the file's own where it has them; what had to be made up is marked. What that detector does not know (words,
thoughts, tokens, notices, fates) comes only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from pollux.exports.events.sequencer import INCLUDABLE, Event, Teller
from pollux.exports.source import Subject
from pollux.sessions.changes import Memory
from pollux.sessions.grouping import Group
from pollux.text.encode import encode

__all__ = ["INCLUDABLE", "Follower", "render"]


def render(subject: Subject) -> Iterator[bytes]:
    """Write the events of one session, from its beginning to its end."""
    teller = Teller(subject)
    yield _line(teller.start(subject))
    for index, ((placed, _), message) in enumerate(zip(subject.group.timeline, subject.messages(), strict=True)):
        yield from map(_line, teller.told(subject, index, placed, message))
    yield _line(teller.end(subject))


class Follower:
    """Tells what is new in a session each time it is looked at: every event once."""

    def __init__(self, subject: Subject) -> None:
        """Begin before the first event."""
        self._teller = Teller(subject)
        self._memory = Memory()
        self._has_begun = False

    def is_in_doubt(self, group: Group) -> bool:
        """Tell whether it is better to look again in a moment: the client may be writing its history anew."""
        return self._memory.is_in_doubt(group.timeline)

    def lines(self, subject: Subject) -> Iterator[bytes]:
        """Write the events that were not told yet."""
        if not self._has_begun:
            self._has_begun = True
            yield _line(self._teller.start(subject))
        changes = self._memory.changes(subject.group.timeline)
        group = msgspec.structs.replace(subject.group, timeline=[(one.placed, one.entry) for one in changes])
        for change, message in zip(changes, replace(subject, group=group).messages(), strict=True):
            yield from map(_line, self._teller.told(subject, change.number, change.placed, message))
            yield from map(_line, self._teller.fate(subject, change))


def _line(event: Event) -> bytes:
    return encode(event) + b"\n"
