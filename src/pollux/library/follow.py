"""The blocks of a session that goes on: each is shown once, and a tool call again when its result has come.

Nothing that was shown is taken back: what a rewind, a rollback or a compression drops is told in a line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pollux.model import Fate, Json, Message
from pollux.sessions.changes import Change, Memory
from pollux.sessions.grouping import Group
from pollux.sessions.replay.reading import whole
from pollux.views.contracts import message_row
from pollux.views.transcript import Block, Branches, LeftOut, Options, Tool, blocks

MESSAGE = "pollux.message/1"
_DONE = frozenset({"success", "error", "cancelled"})


class News:
    """What has been shown of a session so far."""

    def __init__(self, options: Options) -> None:
        """Begin without having shown anything."""
        self._options = options
        self._memory = Memory()
        self._shown: dict[tuple[str, str, str], bool] = {}
        """Blocks by message, kind and number; whether there is more to come."""
        self._passed_over: set[str] = set()

    def is_in_doubt(self, group: Group) -> bool:
        """Tell whether it is better to look again in a moment."""
        return self._memory.is_in_doubt(group.timeline)

    def first(self, group: Group, count: int) -> list[Block]:
        """Give the last blocks of a session; all before them count as shown, and are not even read."""
        changes = self._memory.changes(group.timeline)
        size, found, last = count, list[Block](), list[Change]()
        while len(last) < len(changes) and (not last or len(found) < count):
            size = 2 * size + 1
            last = changes[-size:]
            found = list(blocks(map(_shown, last), self._options))
        self._passed_over = {one.entry.id for one in changes[: len(changes) - len(last)]}
        self._note_all(found)
        return found[-count:] if count else []

    def next(self, group: Group) -> list[Block]:
        """Give what is new since the last look."""
        changes = self._memory.changes(group.timeline)
        dropped = map(_shown, (one for one in changes if one.is_dropped))
        others = map(_shown, filter(self._may_be_news, changes))
        lines = [one for one in blocks(dropped) if isinstance(one, LeftOut)]
        return [*lines, *self._note_all(blocks(others, self._options))]

    def _may_be_news(self, change: Change) -> bool:
        if change.is_dropped or change.entry.id in self._passed_over:
            return False
        is_active = change.entry.fate is Fate.ACTIVE
        return is_active or change.was is None or self._options.branches is Branches.ALL

    def _note_all(self, found: Iterable[Block]) -> list[Block]:
        """Note blocks as shown; give those that were not, or are more than they were."""
        numbers: Counter[tuple[str, str]] = Counter()
        return [one for one in found if isinstance(one, LeftOut) or self._note(one, numbers)]

    def _note(self, block: Block, numbers: Counter[tuple[str, str]]) -> bool:
        assert not isinstance(block, LeftOut)
        kind = type(block).__name__
        numbers[block.message_id, kind] += 1
        number = str(numbers[block.message_id, kind])
        key = (block.message_id, kind, (block.call_id or number) if isinstance(block, Tool) else number)
        is_open = isinstance(block, Tool) and block.status not in _DONE
        was_open = self._shown.get(key)
        self._shown[key] = is_open
        return was_open is None or (was_open and not is_open)


class Rows:
    """The messages of a session that goes on, in the words of our JSON: one that has changed comes again."""

    def __init__(self) -> None:
        """Begin without having told anything."""
        self._memory = Memory()

    def is_in_doubt(self, group: Group) -> bool:
        """Tell whether it is better to look again in a moment."""
        return self._memory.is_in_doubt(group.timeline)

    def first(self, group: Group, count: int) -> list[dict[str, Json]]:
        """Give the last messages of a session."""
        changes = self._memory.changes(group.timeline)
        return [_row(group, one) for one in changes[max(0, len(changes) - count) :]]

    def next(self, group: Group) -> list[dict[str, Json]]:
        """Give what is new or has changed since the last look."""
        return [_row(group, one) for one in self._memory.changes(group.timeline)]


def _row(group: Group, change: Change) -> dict[str, Json]:
    return {"schema": MESSAGE, "session": group.id, **message_row(_message(change))}


def _message(change: Change) -> Message:
    """Read the whole message that has changed."""
    return whole(change.placed.reading, change.entry)


def _shown(change: Change) -> Message:
    """Read it for people, with very long texts cut."""
    return whole(change.placed.reading, change.entry, shortened=True)
