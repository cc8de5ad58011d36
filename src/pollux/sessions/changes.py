"""A session that goes on: which messages are new, or have changed, since somebody last looked at it.

A look is cheap: it compares where the recordings of a message stand, and nobody needs to read what has not changed.
Files may be rewound, rewritten, replaced or joined by others meanwhile; a message is known by its id through all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pollux.formats.operations import Record
from pollux.model import Fate, Origin
from pollux.sessions.grouping import Placed
from pollux.sessions.replay.entries import Entry

_TYPED = frozenset({Origin.HUMAN, Origin.LOADED})


class Change(NamedTuple):
    """A message that is new or no longer what it was."""

    number: int
    """How many messages were met before it."""
    placed: Placed
    entry: Entry
    was: Fate | None
    """What had become of it by the last look; nothing for a new one."""

    @property
    def is_dropped(self) -> bool:
        """Whether it was part of the conversation, and is no longer."""
        return self.was is Fate.ACTIVE and self.entry.fate is not Fate.ACTIVE


class _Seen(NamedTuple):
    number: int
    fate: Fate
    recordings: tuple[object, ...]


class Memory:
    """What has been seen of a session so far."""

    def __init__(self) -> None:
        """Begin without having seen anything."""
        self._seen: dict[str, _Seen] = {}

    def changes(self, timeline: Iterable[tuple[Placed, Entry]]) -> list[Change]:
        """Look at a session again: give what is new or changed, in its order, and remember it."""
        timeline = list(timeline)
        n_responses = sum(len(entry.content.responses) for _, entry in timeline)
        found = []
        for placed, entry in timeline:
            before = self._seen.get(entry.id)
            number = before.number if before else len(self._seen)
            now = _Seen(number, entry.fate, _recordings(placed, entry, n_responses))
            if now != before:
                self._seen[entry.id] = now
                found.append(Change(number, placed, entry, before.fate if before else None))
        return found

    def is_in_doubt(self, timeline: Iterable[tuple[Placed, Entry]]) -> bool:
        """Tell whether the end of a session may be the client writing its history again: the next lines will tell."""
        said: set[str] = set()
        in_doubt = False
        for _, entry in timeline:
            if entry.origin in _TYPED:
                in_doubt = in_doubt or (entry.id not in self._seen and entry.prompt in said)
                said.add(entry.prompt)
            elif entry.tokens is not None:
                in_doubt = False
        return in_doubt


def _recordings(placed: Placed, entry: Entry, n_responses: int) -> tuple[object, ...]:
    """Tell where all that a message consists of stands."""
    file = str(placed.reading.path)
    spans = (_span(entry.content), _span(entry.calls_from), _span(entry.thoughts_from))
    elsewhere = n_responses if entry.content.asked and not entry.calls else 0  # its results are in other messages
    return (file, *spans, entry.origin, entry.tokens, entry.model, elsewhere)


def _span(record: Record | None) -> Sequence[int] | None:
    return record.span if record else None
