"""Export normalised events of a session, one JSON object per line: prompts, tool calls, results.

Types, canonical names and the rules for errors are those of session-signals, a detector of friction. IDs and times are
those of the file; those that it does not record are marked as synthesised. What that detector does not know (text,
thoughts, tokens, notices, fates) is left out unless the user includes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from pollux.exports.events.sequencer import INCLUDABLE, Event, EventSequencer
from pollux.exports.source import ExportSource
from pollux.sessions.grouping import OpenSession
from pollux.sessions.live import ChangeTracker
from pollux.text.encode import encode

__all__ = ["INCLUDABLE", "Follower", "render"]


def render(source: ExportSource) -> Iterator[bytes]:
    """Yield the events of one session, from its start to its end."""
    sequencer = EventSequencer(source)
    yield _line(sequencer.start(source))
    for index, ((placed, _), message) in enumerate(zip(source.group.timeline, source.messages(), strict=True)):
        yield from map(_line, sequencer.message_events(source, index, placed, message))
    yield _line(sequencer.end(source))


class Follower:
    """Yields the new events of a growing session, each of them once."""

    def __init__(self, source: ExportSource) -> None:
        """Start before the first event."""
        self._sequencer = EventSequencer(source)
        self._memory = ChangeTracker()
        self._has_started = False

    def is_in_doubt(self, group: OpenSession) -> bool:
        """Return whether to read the session again first, because the client may be rewriting it."""
        return self._memory.is_in_doubt(group.timeline)

    def lines(self, source: ExportSource) -> Iterator[bytes]:
        """Yield the events since the last call."""
        if not self._has_started:
            self._has_started = True
            yield _line(self._sequencer.start(source))
        changes = self._memory.changes(source.group.timeline)
        timeline = [(change.placed, change.entry) for change in changes]
        changed = replace(source, group=msgspec.structs.replace(source.group, timeline=timeline))
        for change, message in zip(changes, changed.messages(), strict=True):
            yield from map(_line, self._sequencer.message_events(source, change.number, change.placed, message))
            yield from map(_line, self._sequencer.fate_events(source, change))


def _line(event: Event) -> bytes:
    return encode(event) + b"\n"
