"""Convert values so that a record can hold them, equally in JSON and in CBOR.

Texts have no unpaired surrogates, numbers can be written by RFC 8785, and nesting is limited. Every change is counted
as a loss; the digests of the sources identify the original bytes.
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

RecordEntry: TypeAlias = dict[str, Any]
"""An entry of a record: JSON, perhaps with `LazyEntries` in it."""

MAX_DEPTH = 64
"""Nesting of a value from a file; deeper values become text."""
MAX_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader preserves."""


@dataclass(frozen=True, slots=True)
class LazyEntries:
    """Entries that are made while they are written; CBOR needs their number in advance."""

    count: int
    each: Callable[[], Iterator[RecordEntry]]


class LazyMap(dict[str, Any]):
    """A map that contains `LazyEntries`, directly or in another `LazyMap`."""


def time_text(at: datetime | None) -> str | None:
    """Return a time as RFC 3339 in UTC, with its own precision."""
    if at is None:
        return None
    precision = "microseconds" if at.microsecond % 1000 else "milliseconds"
    return at.isoformat(timespec=precision).replace("+00:00", "Z")


def members(**values: Json) -> dict[str, Json]:
    """Return a map of the values that are not None; underscores in names become hyphens."""
    return {name.replace("_", "-"): value for name, value in values.items() if value is not None}


def representable(value: Any, losses: Counter[str], depth_left: int = MAX_DEPTH) -> Any:  # noqa: ANN401  any JSON, and `LazyEntries`
    """Return a value in a form that a record can hold, and count changes as losses."""
    match value:
        case str():
            return _text(value, losses)
        case bool() | None | LazyEntries():
            return value
        case int():
            return _integer(value, losses)
        case float():
            return int(value) if value.is_integer() and abs(value) <= MAX_INTEGER else value
        case Mapping() | list() | tuple() if value and not depth_left:
            losses["value nested too deeply, written as text"] += 1
            return _text(_json(value), losses)
        case Mapping():
            kind = LazyMap if isinstance(value, LazyMap) else dict
            return kind(
                (_text(key, losses), representable(item, losses, depth_left - 1)) for key, item in value.items()
            )
        case list() | tuple():
            return [representable(item, losses, depth_left - 1) for item in value]
        case _:
            raise TypeError(f"{type(value).__name__} cannot be part of a record")


def _text(text: str, losses: Counter[str]) -> str:
    if text.isascii():
        return str(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        losses["text with an unpaired surrogate, replaced"] += 1
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return str(text)


def _integer(value: int, losses: Counter[str]) -> Json:
    if -MAX_INTEGER <= value <= MAX_INTEGER:
        return value
    number = float(value) if abs(value) <= sys.float_info.max else 0.0
    if canonical.json_bytes(number) == str(value).encode():
        return value  # JavaScript writes these digits for a double, so every reader gets the same number
    if number == value:
        return number
    losses["integer beyond 2^53, written as text"] += 1
    return str(value)


def _json(value: object) -> str:
    try:
        return encode(value).decode("utf-8", "replace")
    except RecursionError:
        return "[nested too deeply]"
