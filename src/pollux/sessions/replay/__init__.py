"""Replay the operations of one file into its state, timeline and model calls."""

from __future__ import annotations

import msgspec

from pollux.formats.operations import CallHead, Record
from pollux.model import Fate, Origin, Tokens

IMPORTED = "import-"
"""Start of the ID of the notice that `--session-file` records before the messages of another session."""


class TimelineEntry(msgspec.Struct, eq=False, array_like=True):
    """One original message, with all its recordings folded together."""

    id: str
    kind: str
    at: str | None
    line: int
    origin: Origin
    prompt: str
    content: Record
    """The recording with the text; `calls_from` and `thoughts_from` are those with the calls and the thoughts."""
    fate: Fate = Fate.ACTIVE
    model: str | None = None
    tokens: Tokens | None = None
    calls: tuple[CallHead, ...] = ()
    calls_from: Record | None = None
    thoughts_from: Record | None = None
    moved: tuple[str, ...] = ()
    """IDs of calls that are recorded here but were made by other messages."""
    is_own: bool = True
    """Whether it was written in this session, and not imported or loaded with a saved conversation."""

    @property
    def tool_calls(self) -> tuple[CallHead, ...]:
        """The recorded calls, else those that the message asks for, unless it was only loaded."""
        return self.calls or (self.content.asked if self.is_own else ())

    @property
    def own_calls(self) -> tuple[CallHead, ...]:
        """The calls that were made in this session."""
        return self.tool_calls if self.is_own else ()


class RecordedCall(msgspec.Struct, frozen=True, eq=False):
    """The token counts of one model call, as recorded under one message ID."""

    id: str
    entry: TimelineEntry
    model: str | None
    tokens: Tokens
    line: int
