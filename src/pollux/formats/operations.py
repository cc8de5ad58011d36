"""Operations: what one record of a session file says, light enough to be kept by the hundred thousand.

The text of a message stays in its file. A record knows its span there, and the few facts that a list, a count or the
replay needs; `formats.messages` builds the whole message from the same bytes when somebody wants to read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

import msgspec

from pollux.formats.source import Span
from pollux.model import Json, Origin, Problem, Tokens

T = TypeVar("T")


class CallHead(msgspec.Struct, frozen=True, rename="camel"):
    """What a list needs to know of a tool call."""

    id: str | None = None
    name: str = ""
    status: str | None = None
    timestamp: str | None = None
    display_name: str | None = None
    agent_id: str | None = None


class Record(msgspec.Struct, frozen=True, array_like=True):
    """One recording of a message; the same message may be recorded many times."""

    id: str
    kind: str
    at: str | None
    model: str | None
    tokens: Tokens | None
    calls: tuple[CallHead, ...]
    has_thoughts: bool
    origin: Origin
    prompt: str
    """What a user message says, for titles and lists; cut at `PROMPT_KEPT` characters. Empty for all others."""
    span: Span
    line: int
    checksum: int = 0
    """Of the whole prompt, where it was cut: two long ones may begin alike."""
    n_chars: int = 0
    """Length of its words."""
    responses: tuple[str, ...] = ()
    """The ids of the calls that a user message answers."""
    is_masked: bool = False
    """Tool output in it was replaced by a note where to find it."""
    is_bare: bool = False
    """An answer without model and tokens, written as the API wants it: the client recorded its history again."""
    sent: str = ""
    """The beginning of what went to the model in place of the prompt, if it is not the prompt: custom commands."""
    asked: tuple[CallHead, ...] = ()
    """The calls that its words ask for, where there are no records of them."""


PROMPT_KEPT = 1000


class Header(msgspec.Struct, frozen=True):
    """Metadata of the session; a compact document carries its messages here too."""

    line: int
    fields: Mapping[str, Json]
    records: tuple[Record, ...] = ()
    salvaged: bool = False


class Put(msgspec.Struct, frozen=True):
    """A message, new or recorded again."""

    record: Record
    salvaged: bool = False
    """Taken out of a line that the client cannot read, and so not part of its state."""


class Update(msgspec.Struct, frozen=True):
    """`$set`: some metadata, and perhaps the whole list of messages anew."""

    line: int
    fields: Mapping[str, Json]
    records: tuple[Record, ...] | None = None
    salvaged: bool = False


class Rewind(msgspec.Struct, frozen=True):
    """`$rewindTo`: this message and all after it are dropped."""

    line: int
    target: str
    salvaged: bool = False


class Document(msgspec.Struct, frozen=True):
    """Metadata and all messages at once, as the client's older releases wrote them."""

    fields: Mapping[str, Json]
    records: tuple[Record, ...]
    spans: tuple[Span, ...]
    """Every element of the list, also those that are no messages."""
    salvaged: bool = False
    """The client cannot read this file."""
    has_list: bool = True
    """Whether there is a list of messages at all."""


Operation: TypeAlias = Header | Put | Update | Rewind | Document | Problem


def drop_from(messages: dict[str, T], target: str) -> list[T]:
    """Remove a message and all after it, or everything if it is not there; return what was removed, the last first."""
    dropped = []
    while messages:
        id_, value = messages.popitem()
        dropped.append(value)
        if id_ == target:
            break
    return dropped
