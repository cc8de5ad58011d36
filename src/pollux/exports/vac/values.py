"""Values as a record can hold them, the same in JSON and in CBOR.

Texts are whole characters, numbers are what RFC 8785 can write, nesting has an end. Whatever had to be changed for that
is counted as a loss; the digests of the sources lead back to the truth.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from pollux.model import Json
from pollux.proofs import canonical
from pollux.text.encode import encode

Entry: TypeAlias = dict[str, Any]
"""A map of a record: JSON, and perhaps `Many` entries in it."""

DEEPEST = 64
"""Levels of a value that comes from a file; the rest is kept as text."""
LARGEST = 2**53 - 1
"""The largest integer that every reader of JSON takes for itself."""


@dataclass(frozen=True, slots=True)
class Many:
    """Entries that are made when they are written; CBOR wants to know before how many they are."""

    count: int
    each: Callable[[], Iterator[Entry]]


class Open(dict[str, Any]):
    """A map that has `Many` entries in it, or a map that has them."""


def time(at: datetime | None) -> str | None:
    """Write a time as RFC 3339 in UTC, as precise as it is known."""
    if at is None:
        return None
    precision = "microseconds" if at.microsecond % 1000 else "milliseconds"
    return at.isoformat(timespec=precision).replace("+00:00", "Z")


def told(**members: Json) -> dict[str, Json]:
    """Make a map of what is known: a member that is not must be absent. An underscore stands for a hyphen."""
    return {name.replace("_", "-"): value for name, value in members.items() if value is not None}


def sound(value: Any, losses: Counter[str], room: int = DEEPEST) -> Any:  # noqa: ANN401  any JSON, and `Many`
    """Return a value as a record can hold it."""
    match value:
        case str():
            return _text(value, losses)
        case bool() | None | Many():
            return value
        case int():
            return _integer(value, losses)
        case float():
            return int(value) if value.is_integer() and abs(value) <= LARGEST else value
        case Mapping() | list() | tuple() if value and not room:
            losses["value nested too deeply, kept as text"] += 1
            return _text(_json(value), losses)
        case Mapping():
            kind = Open if isinstance(value, Open) else dict
            return kind((_text(key, losses), sound(one, losses, room - 1)) for key, one in value.items())
        case list() | tuple():
            return [sound(one, losses, room - 1) for one in value]
        case _:
            raise TypeError(f"{type(value).__name__} does not belong into a record")


def _text(text: str, losses: Counter[str]) -> str:
    if text.isascii():
        return str(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        losses["text with half a character, replaced"] += 1
        return whole
    return str(text)


def _integer(value: int, losses: Counter[str]) -> Json:
    if -LARGEST <= value <= LARGEST:
        return value
    number = float(value) if abs(value) <= sys.float_info.max else 0.0
    if canonical.json_bytes(number) == str(value).encode():
        return value  # the client has no other integers as large as this: it writes the digits that lead back to it
    if number == value:
        return number
    losses["integer beyond 2^53, kept as text"] += 1
    return str(value)


def _json(value: object) -> str:
    try:
        return encode(value).decode("utf-8", "replace")
    except RecursionError:
        return "[nested too deeply]"
