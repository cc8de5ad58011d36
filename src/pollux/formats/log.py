"""Read the log generation (since 0.39): one JSON record per line, appended and never changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from pollux.formats import lenient
from pollux.formats.operations import Header, Operation, Put, Record, Rewind, Update
from pollux.formats.records import Wire, elements, fields, metadata, record, wire
from pollux.formats.short import InexactError, Short, has_mark, shorten, value_at
from pollux.formats.source import Line, LongLine, Source, Span
from pollux.model import Kind, Problem

_KINDS = frozenset({Kind.USER, Kind.GEMINI, Kind.INFO, Kind.WARNING, Kind.ERROR})
TOUCH = re.compile(rb'\{"\$set":\{"lastUpdated":"([-0-9T:.Z]{24})"\}\}')
"""A record with nothing but the time of the last update, as every second line is."""
SEPARATORS = ("\u2028".encode(), "\u2029".encode())
"""Characters at which the client's reader splits a line on Node.js 24 and later, but not on Node.js 23 and earlier."""
_SEPARATOR = re.compile(b"|".join(SEPARATORS))
_BEGINNING = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{"(?:sessionId|projectHash|startTime|lastUpdated|kind|id|\$\w+)":')


def sniff(head: bytes) -> bool:
    """Return whether a file that starts with these bytes starts with a record of this generation."""
    return bool(_BEGINNING.match(head))


def read(source: Source) -> Iterator[Operation]:
    """Yield the operations of one file; an invalid line becomes a problem."""
    for line in source.lines():
        yield from operations(line, source.path)


class _ShortLine(NamedTuple):
    """A long line, represented by a short text."""

    number: int
    data: bytes
    short: Short
    line: LongLine
    is_masked: bool = False


def operations(line: Line | LongLine, path: Path) -> list[Operation]:
    """Return the operations of one line: none for a blank line, several if records were recovered from a broken one."""
    if isinstance(line, LongLine):
        return _in_file([*_long_line(line), *_split_by_newer_node(line)], path)
    data = line.data
    if touch := TOUCH.fullmatch(data):
        return [Update(line.number, {"lastUpdated": touch[1].decode()})]
    if not data or data.isspace():
        return []
    result = _line(line)
    if has_separator(data):
        result += _split_by_newer_node(line)
    if len(result) == 1 and type(result[0]) is not Problem:
        return result
    return _in_file(result, path)


def has_separator(data: bytes) -> bool:
    """Return whether some bytes contain a character at which newer releases of Node.js split a line."""
    return not data.isascii() and _SEPARATOR.search(data) is not None


def _split_by_newer_node(line: Line | LongLine) -> list[Operation]:
    """Return a problem for a long line with a separator, and for any other line, in which the caller has found one."""
    if isinstance(line, LongLine) and not any(line.source.contains(separator, line.span) for separator in SEPARATORS):
        return []
    text = "contains U+2028 or U+2029, at which Gemini CLI on Node.js 24 and later splits the line and so loses it"
    return [Problem("split-by-newer-node", text, line=line.number)]


def _in_file(result: list[Operation], path: Path) -> list[Operation]:
    return [
        msgspec.structs.replace(operation, file=str(path)) if isinstance(operation, Problem) else operation
        for operation in result
    ]


def _long_line(line: LongLine) -> list[Operation]:
    """Read a long line through a short text; read the complete line if the short text is not exact enough."""
    for is_exact in (False, True):
        short = shorten(line.source, line.span, has_lists=True, exactly=is_exact)
        if short is None:
            break
        try:
            result = _line(_ShortLine(line.number, short.text, short, line))
        except InexactError:
            continue
        if not any(_has_mark(operation) for operation in result):
            return result
    return _line(Line(line.number, line.start, line.data))


def _has_mark(operation: Operation) -> bool:
    """Return whether an ID or metadata was cut, which must be complete."""
    return has_mark(operation.fields if isinstance(operation, Header | Update) else operation)


def _line(line: Line | _ShortLine) -> list[Operation]:
    try:
        return _parse(line.data, line)
    except ValueError as first:
        masked = _masked(line)
        try:
            return [_exact(operation, line.data) for operation in _parse(masked.data, masked)]
        except ValueError:
            return [*_salvage(_with_lists(masked), str(first))]


def _masked(line: Line | _ShortLine) -> Line | _ShortLine:
    data = lenient.mask(line.data)
    return line._replace(data=data, is_masked=True) if isinstance(line, _ShortLine) else line._replace(data=data)


def _with_lists(line: Line | _ShortLine) -> Line | _ShortLine:
    """Return a line with all its messages, including those whose bytes a short text omits."""
    if isinstance(line, Line) or not line.short.has_lists:
        return line
    long = line.line
    short = shorten(long.source, long.span)
    if short is None:
        return _masked(Line(long.number, long.start, long.data))
    return _masked(_ShortLine(long.number, short.text, short, long))


def _exact(operation: Operation, data: bytes) -> Operation:
    """Return an operation with the exact metadata of the file, which masking changed."""
    if not isinstance(operation, Header | Update) or not operation.fields:
        return operation
    value = lenient.decode(data)
    exact = value["$set"] if isinstance(operation, Update) else value
    return msgspec.structs.replace(operation, fields={key: exact[key] for key in exact if key != "messages"})


def _span(line: Line | _ShortLine, start: int, end: int) -> Span:
    if isinstance(line, Line):
        return Span(line.start + start, line.start + end)
    _refuse_list(line)
    return line.short.span(start, end)


def _refuse_list(line: Line | _ShortLine) -> None:
    """Raise `InexactError` if a short text omits a list of messages and the line is read as another record."""
    if isinstance(line, _ShortLine) and line.short.elements:
        raise InexactError


def _short(line: Line | _ShortLine) -> Short | None:
    return line.short if isinstance(line, _ShortLine) else None


def _parse(data: bytes, line: Line | _ShortLine, *, salvaged: bool = False, start: int = 0) -> list[Operation]:
    """Return the operations of a record. Raises `ValueError` if it is not valid JSON."""
    decoded, bad = wire(data)
    problems = [_bad_value(bad, line)] if bad else []
    if decoded.rewind_to is not msgspec.UNSET:  # the first matching test decides, in the client's order
        _refuse_list(line)
        return [*problems, Rewind(line.number, decoded.rewind_to, salvaged)]
    if decoded.id is not msgspec.UNSET:
        if salvaged and not decoded.is_message:
            return []  # part of a broken message
        message = record(decoded, data, _span(line, start, start + len(data)), line.number, _short(line))
        return [*problems, Put(message, salvaged)]
    if (update := bytes(decoded.set))[:1] in (b"{", b"["):
        raw = fields(update) if update[:1] == b"{" else {}
        records, more = _records(raw.get("messages", b""), line)
        return [*problems, Update(line.number, metadata(raw), records, salvaged), *more]
    if decoded.is_header:
        raw = fields(data)
        records, more = _records(raw.get("messages", b""), line)
        return [*problems, Header(line.number, metadata(raw), records or (), salvaged), *more]
    if decoded.type in _KINDS:
        return [*problems, *_without_id(decoded, data, line, start)]
    _refuse_list(line)
    return [*problems, _unknown(data, line)]


def _without_id(decoded: Wire, data: bytes, line: Line | _ShortLine, start: int) -> list[Operation]:
    """Return a message that the client skips because it has no ID; it still belongs to the timeline."""
    decoded.id = f"line-{line.number}"
    problem = Problem("no-message", "a message without an ID, which the client skips", line=line.number)
    message = record(decoded, data, _span(line, start, start + len(data)), line.number, _short(line))
    return [Put(message, salvaged=True), problem]


def _records(array: bytes, line: Line | _ShortLine) -> tuple[tuple[Record, ...] | None, list[Problem]]:
    """Return the records of a list of messages inside a line; None if the value is not a list."""
    if array[:1] != b"[":
        _refuse_list(line)
        return None, []
    records, problems = [], []
    for span, element, short in _elements(array, line):
        decoded, bad = wire(element)
        if bad:
            problems.append(_bad_value(bad, line))
        if decoded.id is not msgspec.UNSET:
            new = record(decoded, element, span, line.number, short)
            if short and has_mark(new):
                raise InexactError
            records.append(new)
        else:
            problems.append(Problem("no-message", "an element of a list of messages has no ID", line=line.number))
    return tuple(records), problems


def _elements(array: bytes, line: Line | _ShortLine) -> Iterator[tuple[Span, bytes, Short | None]]:
    if isinstance(line, _ShortLine) and line.short.has_lists:
        for element in line.short.messages(array):
            data, short = value_at(line.line.source, element.span)
            yield element.span, lenient.mask(data) if line.is_masked else data, short
        return
    for (start, end), data in elements(array, line.data):
        yield _span(line, start, end), data, _short(line)


def _salvage(line: Line | _ShortLine, reason: str) -> Iterator[Operation]:
    """Yield the complete records in a line that is not JSON, mostly a partial record followed by another one."""
    if line.data.startswith(lenient.BOM):
        yield lenient.BOM_PROBLEM
    n_recovered = 0
    if head := lenient.leading_fields(line.data.removeprefix(lenient.BOM)):
        n_recovered += 1
        yield Header(line.number, head, salvaged=True)
    for span in lenient.fragments(line.data):
        try:
            result = _parse(line.data[span.start : span.end], line, salvaged=True, start=span.start)
        except ValueError:
            continue  # nested too deeply for the typed decoder
        n_recovered += sum(1 for operation in result if not isinstance(operation, Problem))
        yield from result
    recovered = f"{n_recovered} record(s) recovered from it" if n_recovered else "nothing could be recovered from it"
    yield Problem("torn-line", f"not JSON ({reason}); {recovered}", line=line.number)


def _unknown(data: bytes, line: Line | _ShortLine) -> Problem:
    value = lenient.decode(data)
    if not isinstance(value, dict):
        return Problem("unknown-record", f"a record that is not an object: {str(value)[:40]}", line=line.number)
    operators = [key for key in value if key.startswith("$")]
    if operators:
        return Problem("unknown-operator", f"unknown operator {', '.join(operators)}", line=line.number)
    return Problem("unknown-record", f"a record of an unknown type, with keys {sorted(value)[:8]}", line=line.number)


def _bad_value(bad: str, line: Line | _ShortLine) -> Problem:
    return Problem("bad-value", f"values of an unexpected type are ignored: {bad}", line=line.number)
