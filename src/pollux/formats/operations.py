"""Operations: the meaning of one record of a session file, small enough to hold a hundred thousand in memory.

The text of a message stays in its file. A record has its position there and the few facts that lists, counts and the
replay need; `formats.messages` builds the complete message from the same bytes on demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

import msgspec

from pollux.formats.source import Span
from pollux.model import Json, Origin, Problem, Tokens

T = TypeVar("T")


class CallHead(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a tool call that lists need."""

    id: str | None = None
    name: str = ""
    status: str | None = None
    timestamp: str | None = None
    display_name: str | None = None
    agent_id: str | None = None


class Record(msgspec.Struct, frozen=True, array_like=True):
    """One recording of a message, which may be recorded many times."""

    id: str
    kind: str
    at: str | None
    model: str | None
    tokens: Tokens | None
    calls: tuple[CallHead, ...]
    has_thoughts: bool
    origin: Origin
    prompt: str
    """The text of a user message, cut at `PROMPT_LENGTH` characters; empty for all others."""
    span: Span
    line: int
    checksum: int = 0
    """Of the complete prompt, if it was cut: two long prompts may start with the same text."""
    n_chars: int = 0
    """Length of its text."""
    responses: tuple[str, ...] = ()
    """IDs of the calls that a user message answers."""
    is_masked: bool = False
    """Whether tool output was replaced by a note that names a file."""
    is_bare: bool = False
    """Whether it is an answer in the API's form, without model and tokens: the client recorded its history again."""
    sent: str = ""
    """Start of what was sent to the model instead of the prompt, as for custom commands; else empty."""
    asked: tuple[CallHead, ...] = ()
    """Calls that its content requests, if there are no records of them."""


PROMPT_LENGTH = 1000
"""Characters of a prompt in a `Record`."""


class Header(msgspec.Struct, frozen=True):
    """Metadata of the session; in a compact document also its messages."""

    line: int
    fields: Mapping[str, Json]
    records: tuple[Record, ...] = ()
    salvaged: bool = False


class Put(msgspec.Struct, frozen=True):
    """A message, new or recorded again."""

    record: Record
    salvaged: bool = False
    """Whether it comes from a line that the client cannot read, and is not part of the client's state."""


class Update(msgspec.Struct, frozen=True):
    """`$set`: new metadata, and perhaps a new list of all messages (a checkpoint)."""

    line: int
    fields: Mapping[str, Json]
    records: tuple[Record, ...] | None = None
    salvaged: bool = False


class Rewind(msgspec.Struct, frozen=True):
    """`$rewindTo`: drop this message and all after it."""

    line: int
    target: str
    salvaged: bool = False


class Document(msgspec.Struct, frozen=True):
    """Metadata and all messages in one JSON document, as older releases wrote them."""

    fields: Mapping[str, Json]
    records: tuple[Record, ...]
    spans: tuple[Span, ...]
    """Every element of the list, including those that are not messages."""
    salvaged: bool = False
    """Whether the client cannot read this file."""
    has_list: bool = True
    """Whether the document has a list of messages."""


Operation: TypeAlias = Header | Put | Update | Rewind | Document | Problem


def drop_from(messages: dict[str, T], target: str) -> list[T]:
    """Remove a message and all after it, or all messages if it is missing; return those removed, last first."""
    dropped = []
    while messages:
        id_, value = messages.popitem()
        dropped.append(value)
        if id_ == target:
            break
    return dropped
