"""What the replay keeps of a message and of a model call: light, and open to change until the file ends."""

from __future__ import annotations

import msgspec

from pollux.formats.operations import CallHead, Record
from pollux.model import Fate, Origin, Tokens

IMPORTED = "import-"
"""How the ID of the notice begins that `--session-file` puts before the messages of another session."""


class Entry(msgspec.Struct, eq=False, array_like=True):
    """One original message, with all its recordings folded together."""

    id: str
    kind: str
    at: str | None
    line: int
    origin: Origin
    prompt: str
    content: Record
    """The recording with the words as first written; the next ones are those with the calls and the thoughts."""
    fate: Fate = Fate.ACTIVE
    model: str | None = None
    tokens: Tokens | None = None
    calls: tuple[CallHead, ...] = ()
    calls_from: Record | None = None
    thoughts_from: Record | None = None
    moved: tuple[str, ...] = ()
    """The IDs of calls that are recorded here, but were made by other messages."""
    is_own: bool = True
    """Whether it was said in this session: not imported from another, and not loaded with a saved conversation."""

    @property
    def tool_calls(self) -> tuple[CallHead, ...]:
        """The calls that are recorded here or that were asked for here; one that was only loaded is in no table."""
        return self.calls or (self.content.asked if self.is_own else ())

    @property
    def own_calls(self) -> tuple[CallHead, ...]:
        """The calls that this session made itself."""
        return self.tool_calls if self.is_own else ()


class Call(msgspec.Struct, frozen=True, eq=False):
    """The counts of one model call, as recorded under one message id."""

    id: str
    entry: Entry
    model: str | None
    tokens: Tokens
    line: int
