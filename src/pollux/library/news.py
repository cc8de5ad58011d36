"""What is new in a session that goes on.

Each block is shown once, and a tool call again when its result has come. Nothing that was shown is taken back: a line
says what a rewind, a rollback or a compression drops.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pollux.model import Fate, Message
from pollux.sessions.changes import Change, Memory
from pollux.sessions.grouping import Group
from pollux.sessions.replay.reading import whole
from pollux.views.contracts.sessions import MessageDocument
from pollux.views.transcript import Block, Branches, LeftOut, Options, Tool, blocks

_DONE = frozenset({"success", "error", "cancelled"})


class News:
    """The blocks of a session that were shown so far."""

    def __init__(self, options: Options) -> None:
        """Begin without having shown anything."""
        self._options = options
        self._memory = Memory()
        self._shown: dict[tuple[str, str, str], bool] = {}
        """Blocks by message, kind and number; whether there is more to come."""
        self._passed_over: set[str] = set()

    def is_in_doubt(self, group: Group) -> bool:
        """Return whether it is better to look again in a moment."""
        return self._memory.is_in_doubt(group.timeline)

    def first(self, group: Group, count: int) -> list[Block]:
        """Return the last blocks of a session; all before them count as shown, and are not even read."""
        changes = self._memory.changes(group.timeline)
        size, shown, last = count, list[Block](), list[Change]()
        while len(last) < len(changes) and (not last or len(shown) < count):
            size = 2 * size + 1
            last = changes[-size:]
            shown = list(blocks(map(_shortened, last), self._options))
        self._passed_over = {change.entry.id for change in changes[: len(changes) - len(last)]}
        self._note_all(shown)
        return shown[-count:] if count else []

    def next(self, group: Group) -> list[Block]:
        """Return what is new since the last look."""
        changes = self._memory.changes(group.timeline)
        dropped = map(_shortened, (change for change in changes if change.is_dropped))
        others = map(_shortened, filter(self._may_be_news, changes))
        lines = [block for block in blocks(dropped) if isinstance(block, LeftOut)]
        return [*lines, *self._note_all(blocks(others, self._options))]

    def _may_be_news(self, change: Change) -> bool:
        if change.is_dropped or change.entry.id in self._passed_over:
            return False
        is_active = change.entry.fate is Fate.ACTIVE
        return is_active or change.was is None or self._options.branches is Branches.ALL

    def _note_all(self, shown: Iterable[Block]) -> list[Block]:
        """Note blocks as shown; return those that were not, or are more than they were."""
        numbers: Counter[tuple[str, str]] = Counter()
        return [block for block in shown if isinstance(block, LeftOut) or self._note(block, numbers)]

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
    """The messages of a session that goes on: one that has changed comes again."""

    def __init__(self) -> None:
        """Begin without having returned anything."""
        self._memory = Memory()

    def is_in_doubt(self, group: Group) -> bool:
        """Return whether it is better to look again in a moment."""
        return self._memory.is_in_doubt(group.timeline)

    def first(self, group: Group, count: int) -> list[MessageDocument]:
        """Return the last messages of a session."""
        changes = self._memory.changes(group.timeline)
        return [_document(group, change) for change in changes[max(0, len(changes) - count) :]]

    def next(self, group: Group) -> list[MessageDocument]:
        """Return what is new or has changed since the last look."""
        return [_document(group, change) for change in self._memory.changes(group.timeline)]


def _document(group: Group, change: Change) -> MessageDocument:
    return MessageDocument(group.id, whole(change.placed.reading, change.entry))


def _shortened(change: Change) -> Message:
    """Return a message for people to read, with very long texts cut."""
    return whole(change.placed.reading, change.entry, shortened=True)
