"""Find new blocks and messages in a running session.

Each block is shown once, and a tool call again when its result arrives. Output is never retracted: a line says which
messages a rewind, a rollback or a compression has dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pollux.model import Fate, Message
from pollux.sessions.grouping import OpenSession
from pollux.sessions.live import ChangeTracker, MessageChange
from pollux.sessions.replay.reading import build_message
from pollux.views.contracts.sessions import MessageDocument
from pollux.views.transcript import Block, Branches, HiddenBlock, ToolBlock, TranscriptOptions, blocks

_DONE = frozenset({"success", "error", "cancelled"})


class BlockFeed:
    """Yields each block of a session once."""

    def __init__(self, options: TranscriptOptions) -> None:
        """Start with no block shown."""
        self._options = options
        self._memory = ChangeTracker()
        self._shown: dict[tuple[str, str, str], bool] = {}
        """By message, kind and number of a block: whether it is incomplete."""
        self._passed_over: set[str] = set()

    def is_in_doubt(self, group: OpenSession) -> bool:
        """Return whether it is better to look again in a moment."""
        return self._memory.is_in_doubt(group.timeline)

    def first(self, group: OpenSession, count: int) -> list[Block]:
        """Return the last blocks of a session; earlier ones count as shown and are not read."""
        changes = self._memory.changes(group.timeline)
        size, shown, last = count, list[Block](), list[MessageChange]()
        while len(last) < len(changes) and (not last or len(shown) < count):
            size = 2 * size + 1
            last = changes[-size:]
            shown = list(blocks(map(_shortened, last), self._options))
        self._passed_over = {change.entry.id for change in changes[: len(changes) - len(last)]}
        self._note_all(shown)
        return shown[-count:] if count else []

    def next(self, group: OpenSession) -> list[Block]:
        """Return the blocks that are new since the last call."""
        changes = self._memory.changes(group.timeline)
        dropped = map(_shortened, (change for change in changes if change.is_dropped))
        others = map(_shortened, filter(self._may_be_news, changes))
        lines = [block for block in blocks(dropped) if isinstance(block, HiddenBlock)]
        return [*lines, *self._note_all(blocks(others, self._options))]

    def _may_be_news(self, change: MessageChange) -> bool:
        if change.is_dropped or change.entry.id in self._passed_over:
            return False
        is_active = change.entry.fate is Fate.ACTIVE
        return is_active or change.was is None or self._options.branches is Branches.ALL

    def _note_all(self, shown: Iterable[Block]) -> list[Block]:
        """Mark blocks as shown; return those that are new or have been completed."""
        numbers: Counter[tuple[str, str]] = Counter()
        return [block for block in shown if isinstance(block, HiddenBlock) or self._note(block, numbers)]

    def _note(self, block: Block, numbers: Counter[tuple[str, str]]) -> bool:
        assert not isinstance(block, HiddenBlock)
        kind = type(block).__name__
        numbers[block.message_id, kind] += 1
        number = str(numbers[block.message_id, kind])
        key = (block.message_id, kind, (block.call_id or number) if isinstance(block, ToolBlock) else number)
        is_open = isinstance(block, ToolBlock) and block.status not in _DONE
        was_open = self._shown.get(key)
        self._shown[key] = is_open
        return was_open is None or (was_open and not is_open)


class MessageFeed:
    """Yields each message of a session once, and again when it changes."""

    def __init__(self) -> None:
        """Start with no message returned."""
        self._memory = ChangeTracker()

    def is_in_doubt(self, group: OpenSession) -> bool:
        """Return whether it is better to look again in a moment."""
        return self._memory.is_in_doubt(group.timeline)

    def first(self, group: OpenSession, count: int) -> list[MessageDocument]:
        """Return the last messages of a session."""
        changes = self._memory.changes(group.timeline)
        return [_document(group, change) for change in changes[max(0, len(changes) - count) :]]

    def next(self, group: OpenSession) -> list[MessageDocument]:
        """Return what is new or has changed since the last look."""
        return [_document(group, change) for change in self._memory.changes(group.timeline)]


def _document(group: OpenSession, change: MessageChange) -> MessageDocument:
    return MessageDocument(group.id, build_message(change.placed.reading, change.entry))


def _shortened(change: MessageChange) -> Message:
    """Return a message for people to read, with very long texts cut."""
    return build_message(change.placed.reading, change.entry, shortened=True)
