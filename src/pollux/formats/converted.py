"""Secondary shapes, converted into the client's own words for a session: a header and messages.

What is not a session file (saved histories, logged prompts, captured output) is brought into the shape that the client
itself records, so that one replay and one reading of messages serve all. What had to be made up for that is said.
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
from pollux.text.times import instant, stamp

Wire: TypeAlias = dict[str, Json]
"""A header, message or tool call in the client's own words."""


class Converted(msgspec.Struct, frozen=True):
    """One session in the client's own words."""

    header: Wire
    messages: tuple[Wire, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Without a file: only the caller knows where the bytes came from."""
    synthesised: frozenset[str] = frozenset()
    """Which facts are made up: `id` and `timestamp` (of messages), `session_id`."""


class Salvage(NamedTuple):
    """What could be read of a JSON text."""

    value: Json
    end: int
    fault: json.JSONDecodeError | None


class Key(NamedTuple):
    """A key of a JSON text."""

    depth: int
    """1 for a key of the outermost object."""
    name: str
    opening: str
    """The first character of its value."""


_SPACE = " \t\n\r"
_TOKEN = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")(?:\s*:\s*(?=(\S?)))?|[\[{]|[\]}]|"', re.DOTALL)
_INTEGER = 19  # digits that every JSON library takes for an integer
_OPERATORS = frozenset({"id", "messages", "sessionId"})
"""Keys that make a record of a session file what it is, besides those with a dollar sign."""


def decode(data: bytes) -> tuple[Json, tuple[Problem, ...]]:
    """Decode a whole file; of a broken one, the values that are complete up to the break."""
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
    return value, (
        Problem("torn-json", f"not JSON from here on ({fault.msg}); what stands before is kept", line=fault.lineno),
    )


def salvage(text: str, start: int = 0) -> Salvage:
    """Read the JSON value at a place as far as it goes.

    Of a broken object or list the complete leading values are kept, also those of a list directly in an object.
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
    """Return the text of a file as sound UTF-8 without mark, whatever a shell has made of it on redirection."""
    encoding = json.detect_encoding(data)
    if not encoding.startswith("utf-8"):
        data = data.decode(encoding, "replace").encode()
    return lenient.mask(data.removeprefix(lenient.BOM))


def head_text(head: bytes) -> str:
    """Return the first bytes of a file as text to recognise it by: fast, and not to be read from."""
    return head.decode(json.detect_encoding(head), "replace").lstrip()


def keys(text: str) -> Iterator[Key]:
    """Yield each key of a JSON text, down to its end or to where it is cut."""
    depth = 0
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in "[{":
            depth += 1
        elif first in "]}":
            depth -= 1
            if depth <= 0:
                return
        elif token[1] is None:  # a string that is cut
            return
        elif token[2] is not None:
            yield Key(depth, token[1][1:-1], token[2])


def extras(fields: Wire) -> Wire:
    """Keep what else a file says about a session, apart from what the replay would take for an instruction."""
    clashing = {key: value for key, value in fields.items() if key in _OPERATORS or key.startswith("$")}
    rest = {key: value for key, value in fields.items() if key not in clashing}
    return rest | {"other": clashing} if clashing else rest


def stem(name: str) -> str:
    """Return what a file is called, without its last suffix."""
    return PurePosixPath(name).stem or "unknown"


def stamp_after(at: datetime, *, seconds: int = 0, milliseconds: int = 0) -> str:
    """Write as the client does the time so much after another one."""
    with suppress(OverflowError):  # a clock at the end of time: order is lost, the conversation is not
        at += timedelta(seconds=seconds, milliseconds=milliseconds)
    return stamp(at)


def time_from(value: Json) -> datetime | None:
    """Read a time as the client writes it; one beyond the calendar is none."""
    with suppress(OverflowError):
        return instant(value)
    return None


def _fill_object(fields: Wire, text: str, at: int) -> int:
    at = _skip(text, at + 1)
    while not text.startswith("}", at):
        at = _pass(",", text, at) if fields else at
        key, at = _value(text, at)
        at = _pass(":", text, _skip(text, at))
        if not isinstance(key, str):
            raise json.JSONDecodeError("A key that is no string", text, at)
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
        raise json.JSONDecodeError("A number that may be cut", text, at)
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
    return value if isfinite(value := float(digits)) else digits


# What no JSON library could write again is kept as it stands.
_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=str)
