"""Common code for formats that are converted to the client's session records: a header and messages.

Saved histories, captured output and trajectories are converted to the records that the client itself writes, so that
the same replay handles all of them. The result says which IDs and times had to be generated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from math import isfinite
from pathlib import PurePosixPath
from typing import NamedTuple, TypeAlias

import msgspec

from pollux.formats import lenient
from pollux.model import Json, Problem
from pollux.text.times import client_timestamp

Wire: TypeAlias = dict[str, Json]
"""A header, message or tool call as the client records it."""


class Converted(msgspec.Struct, frozen=True):
    """One session as the client would record it."""

    header: Wire
    messages: tuple[Wire, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Without `file`, which only the caller knows."""
    synthesised: frozenset[str] = frozenset()
    """Which fields were generated: `id` and `timestamp` (of messages), `session_id`."""


class Salvage(NamedTuple):
    """The value that could be read from a JSON text, where it ends, and the fault that ended it."""

    value: Json
    end: int
    fault: json.JSONDecodeError | None


class JsonKey(NamedTuple):
    """A key of a JSON text."""

    depth: int
    """1 for a key of the outermost object."""
    name: str
    opening: str
    """The first character of its value."""


_SPACE = " \t\n\r"
_TOKEN = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")(?:\s*:\s*(?=(\S?)))?|[\[{]|[\]}]|"', re.DOTALL)
_INTEGER = 19  # digits that every JSON library reads as an integer
_OPERATORS = frozenset({"id", "messages", "sessionId"})
"""Keys that determine the type of a record in a session file, besides those with a dollar sign."""


def decode(data: bytes) -> tuple[Json, tuple[Problem, ...]]:
    """Decode a file; of a broken one, the complete values before the fault."""
    try:
        return msgspec.json.decode(data.removeprefix(lenient.BOM)), ()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    text = utf8(data).decode()
    value, end, fault = salvage(text)
    end = _skip(text, end)
    if fault is None and end == len(text):
        return value, ()
    fault = fault or json.JSONDecodeError("Extra data", text, end)
    text = f"not JSON from here on ({fault.msg}); the values before are used"
    return value, (Problem("torn-json", text, line=fault.lineno),)


def salvage(text: str, start: int = 0) -> Salvage:
    """Decode the JSON value at an offset as far as possible.

    Of a broken object or list the complete leading values are returned, including those of a list inside an object.
    """
    at = _skip(text, start)
    value: Json = None
    try:
        if text.startswith("{", at):
            value = fields = dict[str, Json]()
            end = _fill_object(fields, text, at)
        elif text.startswith("[", at):
            value = items = list[Json]()
            end = _fill_list(items, text, at)
        else:
            value, end = _value(text, at)
    except json.JSONDecodeError as error:
        return Salvage(value, error.pos, error)
    return Salvage(value, end, None)


def utf8(data: bytes) -> bytes:
    """Return the text of a file as valid UTF-8 without a byte order mark; PowerShell redirects output as UTF-16."""
    encoding = json.detect_encoding(data)
    if not encoding.startswith("utf-8"):
        data = data.decode(encoding, "replace").encode()
    return lenient.mask(data.removeprefix(lenient.BOM))


def head_text(head: bytes) -> str:
    """Return the first bytes of a file as text, good enough to determine its format."""
    return head.decode(json.detect_encoding(head), "replace").lstrip()


def keys(text: str) -> Iterator[JsonKey]:
    """Yield each key of a JSON text, which may be truncated."""
    depth = 0
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in "[{":
            depth += 1
        elif first in "]}":
            depth -= 1
            if depth <= 0:
                return
        elif token[1] is None:  # a truncated string
            return
        elif token[2] is not None:
            yield JsonKey(depth, token[1][1:-1], token[2])


def extras(fields: Wire) -> Wire:
    """Return fields for a session's header; those that the replay would interpret are moved into `other`."""
    clashing = {key: value for key, value in fields.items() if key in _OPERATORS or key.startswith("$")}
    harmless = {key: value for key, value in fields.items() if key not in clashing}
    return harmless | {"other": clashing} if clashing else harmless


def stem(name: str) -> str:
    """Return a file's name without its last suffix."""
    return PurePosixPath(name).stem or "unknown"


def stamp_after(at: datetime, *, seconds: int = 0, milliseconds: int = 0) -> str:
    """Return the client's timestamp for a time after another one."""
    with suppress(OverflowError):  # at the end of the calendar only the order is lost
        at += timedelta(seconds=seconds, milliseconds=milliseconds)
    return client_timestamp(at)


def _fill_object(fields: Wire, text: str, at: int) -> int:
    at = _skip(text, at + 1)
    while not text.startswith("}", at):
        at = _pass(",", text, at) if fields else at
        key, at = _value(text, at)
        at = _pass(":", text, _skip(text, at))
        if not isinstance(key, str):
            raise json.JSONDecodeError("A key that is not a string", text, at)
        if text.startswith("[", at):
            fields[key] = items = list[Json]()
            at = _fill_list(items, text, at)
        else:
            fields[key], at = _value(text, at)
        at = _skip(text, at)
    return at + 1


def _fill_list(items: list[Json], text: str, at: int) -> int:
    at = _skip(text, at + 1)
    while not text.startswith("]", at):
        at = _pass(",", text, at) if items else at
        item, at = _value(text, at)
        items.append(item)
        at = _skip(text, at)
    return at + 1


def _value(text: str, at: int) -> tuple[Json, int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        raise json.JSONDecodeError("Nested too deeply", text, at) from None
    if end == len(text) and isinstance(value, int | float):
        raise json.JSONDecodeError("A number that may be truncated", text, at)
    return value, end


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _pass(mark: str, text: str, at: int) -> int:
    if not text.startswith(mark, at):
        raise json.JSONDecodeError(f"No {mark!r}", text, at)
    return _skip(text, at + 1)


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= _INTEGER else digits


def _float(digits: str) -> float | str:
    value = float(digits)
    return value if isfinite(value) else digits


# Numbers that no JSON library could write again stay text.
_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=str)
