"""Read the document generation (0.4–0.38): one JSON object contains the whole session, rewritten at every change.

A valid file of ordinary size is decoded at once, a huge one message by message. A broken file is read by its layout:
the client indents by two spaces, and JSON strings contain no line ends, so a line of four spaces and a brace starts or
ends a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from pollux.formats import lenient
from pollux.formats.operations import Document, Operation, Record
from pollux.formats.records import elements, fields, metadata, record, wire
from pollux.formats.short import InexactError, Short, has_mark, shorten, value_at
from pollux.formats.source import LONG, Line, LongLine, Source, Span
from pollux.model import Json, Problem

_BEGINNING = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*\{[ \t]*[\r\n]\s*"
    rb'"(?:sessionId|projectHash|startTime|lastUpdated|messages|summary|directories|kind)"\s*:'
)
_INDENTED = re.compile(rb'[\r\n] +(?:"\w+": |\{[\r\n])')
AT_ONCE = 32 << 20
_LIST = b'  "messages": ['
_LIST_ENDS = (b"  ]", b"  ],")
_MESSAGE = b"    {"
_MESSAGE_ENDS = (b"    }", b"    },")


def sniff(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is an indented object with the client's first keys."""
    return bool(_BEGINNING.match(head))


def looks_indented(head: bytes) -> bool:
    """Return whether a file with other first keys may still be of this generation."""
    return bool(_INDENTED.search(head))


def read(source: Source) -> Iterator[Operation]:
    """Yield the operations of one file; an invalid message becomes a problem."""
    try:
        document, problems = parse_document(source.whole()) if source.size <= AT_ONCE else _one_by_one(source)
    except (ValueError, InexactError):
        yield from _by_layout(source)
        return
    yield document
    yield from (msgspec.structs.replace(problem, file=str(source.path)) for problem in problems)


def parse_document(data: bytes) -> tuple[Document, list[Problem]]:
    """Parse a complete document. Raises `ValueError` if it is not one."""
    try:
        return _parse(data)
    except ValueError:
        document, problems = _parse(lenient.mask(data))
    exact = lenient.decode(data)  # masking replaced characters in the metadata
    exact_fields = {key: value for key, value in exact.items() if key != "messages" or value is None}
    return msgspec.structs.replace(document, fields=exact_fields), problems


def _parse(data: bytes) -> tuple[Document, list[Problem]]:
    raw = fields(data)
    array = raw.get("messages", b"")
    return _document(metadata(raw), array, _elements(array, data) if array[:1] == b"[" else iter(()))


class _Element(NamedTuple):
    data: bytes
    span: Span
    line: int
    short: Short | None = None


def _elements(array: bytes, data: bytes) -> Iterator[_Element]:
    position, number = 0, 1
    for span, element in elements(array, data):
        number += data.count(b"\n", position, span.start)
        position = span.start
        yield _Element(element, span, number)


def _one_by_one(source: Source) -> tuple[Document, list[Problem]]:
    """Read a huge document message by message.

    Raises `ValueError` if it is not a document, and `InexactError` if its list contains anything but objects.
    """
    short = shorten(source, Span(0, source.size), has_lists=True, exactly=True)
    if short is None:
        raise InexactError
    try:
        raw = fields(short.text)
        header = metadata(raw)
    except ValueError:
        raw = fields(lenient.mask(short.text))
        header = {key: value for key, value in lenient.decode(short.text).items() if key != "messages"}
    array = raw.get("messages", b"")
    positions = short.messages(array) if array[:1] == b"[" else ()
    messages = (_element(source, position.span, 1 + position.n_lines) for position in positions)
    return _document(header, array, messages, source)


def _element(source: Source, span: Span, number: int) -> _Element:
    data, short = value_at(source, span)
    return _Element(data, span, number, short)


def _document(
    header: dict[str, Json], array: bytes, messages: Iterable[_Element], source: Source | None = None
) -> tuple[Document, list[Problem]]:
    has_null = False
    spans, records, problems = [], [], []
    for element in messages:
        spans.append(element.span)
        new_records, new_problems = _readable_message(element, source)
        records += new_records
        problems += new_problems
        has_null = has_null or element.data == b"null"
    if array == b"null":
        header = {**header, "messages": None}
    refusals = list(_refusals(header, array, has_null=has_null))
    document = Document(header, tuple(records), tuple(spans), bool(refusals), has_list=array[:1] == b"[")
    return document, [*refusals, *problems]


def _readable_message(element: _Element, source: Source | None) -> tuple[list[Record], list[Problem]]:
    try:
        return _message(element, source)
    except ValueError:
        return _message(element._replace(data=lenient.mask(element.data)), source)


def _refusals(header: Mapping[str, Json], array: bytes, *, has_null: bool) -> Iterator[Problem]:
    """Yield the reasons why the client would not read this document, though it is JSON."""
    if "sessionId" not in header:
        yield Problem("no-session-id", "no session ID: the client considers this file corrupt", line=1)
    if array and array != b"null" and array[:1] != b"[":
        yield Problem("no-message", "the messages are not a list: the client considers this file corrupt", line=1)
    elif has_null:
        yield Problem("no-message", "a message is null: the client considers this file corrupt", line=1)


def _message(
    element: _Element, source: Source | None = None, *, salvaged: bool = False
) -> tuple[list[Record], list[Problem]]:
    """Return the record of one element of the list; an element without an ID gets one from its line number."""
    data, span, line, short = element
    decoded, bad = wire(data)
    if salvaged and not decoded.is_message:
        return [], []  # part of a broken message
    problems = [Problem("bad-value", f"values of an unexpected type are ignored: {bad}", line=line)] if bad else []
    if decoded.id is msgspec.UNSET:
        problems.append(Problem("no-message", "an element of the list of messages has no ID", line=line))
        if decoded.type is None:
            return [], problems
        decoded.id = f"line-{line}"
    message = record(decoded, data, span, line, short)
    if source and has_mark(message):  # an ID must never be cut
        return _message(_Element(lenient.mask(source.slice(span)), span, line), salvaged=salvaged)
    return [message], problems


class _Place(NamedTuple):
    """The span of some lines, and the number of the first."""

    number: int
    span: Span


class _Layout(msgspec.Struct):
    """The state of reading a broken document line by line, by its indentation."""

    source: Source
    outside: list[_Place] = msgspec.field(default_factory=list)
    """The lines before and after the list of messages."""
    runs: list[_Place] = msgspec.field(default_factory=list)
    """The same, with adjacent lines joined."""
    is_new_run: bool = True
    inside: _Place | None = None
    """The lines of the current message."""
    in_list: bool = False
    records: list[Record] = msgspec.field(default_factory=list)
    spans: list[Span] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)


def _by_layout(source: Source) -> Iterator[Operation]:
    layout = _Layout(source)
    last = 1
    for line in source.lines():
        last = line.number
        _take_line(layout, line)
    _end_message(layout)
    header, is_complete = _fields_outside(layout)
    if not is_complete:
        _save_outside(layout)
        text = "the file is truncated" if layout.outside or layout.records else "the file contains no session"
        text = f"{text}; {len(layout.records)} message(s) recovered"
        layout.problems.append(Problem("torn-document", text, line=last))
    salvaged = not is_complete or bool(layout.problems)
    if header or layout.records:
        yield Document(header, tuple(layout.records), tuple(layout.spans), salvaged)
    yield from (msgspec.structs.replace(problem, file=str(source.path)) for problem in layout.problems)


def _take_line(layout: _Layout, line: Line | LongLine) -> None:
    if isinstance(line, LongLine):
        place, data = _Place(line.number, line.span), layout.source.slice(Span(line.start, line.start + len(_LIST) + 1))
    else:
        place, data = _Place(line.number, Span(line.start, line.start + len(line.data))), line.data
    if not data:
        return
    if not layout.in_list:
        if data.startswith(lenient.BOM):
            place = _Place(line.number, Span(line.start + len(lenient.BOM), place.span.end))
            layout.problems.append(lenient.BOM_PROBLEM)
        _take_outside(layout, place)
        layout.in_list = data == _LIST
    elif not layout.inside and data in _LIST_ENDS:
        _take_outside(layout, place)
        layout.in_list = False
    else:
        if data == _MESSAGE and layout.inside:
            _end_message(layout)
        layout.inside = _joined(layout.inside or place, place)
        layout.is_new_run = True
        if data in _MESSAGE_ENDS:
            _end_message(layout)


def _end_message(layout: _Layout) -> None:
    place, layout.inside = layout.inside, None
    if place is None:
        return
    data, short = value_at(layout.source, place.span)
    value = data.removesuffix(b",")
    blanks = len(value) - len(value.lstrip())
    span = Span(place.span.start + blanks, place.span.end - (len(data) - len(value)))
    element = _Element(lenient.mask(value.strip()), span, place.number, short)
    try:
        records, problems = _message(element, layout.source)
    except ValueError as error:
        records, problems = _fragments(layout.source, place)
        text = f"a message is not JSON ({error}); {len(records)} recovered from it"
        problems.append(Problem("torn-message", text, line=place.number))
    else:
        layout.spans.append(span)
    layout.records += records
    layout.problems += problems


def _take_outside(layout: _Layout, place: _Place) -> None:
    layout.outside.append(place)
    if layout.is_new_run:
        layout.runs.append(place)
    else:
        layout.runs[-1] = _joined(layout.runs[-1], place)
    layout.is_new_run = False


def _save_outside(layout: _Layout) -> None:
    """Recover messages outside the list: the line that starts or ends the list may be broken."""
    for run in layout.runs:
        records, problems = _fragments(layout.source, run)
        layout.records += records
        layout.problems += problems
    layout.records.sort(key=lambda record: record.span)


def _joined(first: _Place, last: _Place) -> _Place:
    return _Place(first.number, Span(first.span.start, last.span.end))


def _fragments(source: Source, place: _Place) -> tuple[list[Record], list[Problem]]:
    records: list[Record] = []
    problems: list[Problem] = []
    data, short = value_at(source, place.span)
    data = lenient.mask(data)
    start = place.span.start
    for fragment in lenient.fragments(data):
        number = place.number + data.count(b"\n", 0, fragment.start)
        span = short.span(*fragment) if short else Span(start + fragment.start, start + fragment.end)
        element = _Element(data[fragment.start : fragment.end], span, number, short)
        try:
            more, new = _message(element, source, salvaged=True)
        except ValueError:
            continue  # nested too deeply for the typed decoder
        records += more
        problems += new
    return records, problems


def _fields_outside(layout: _Layout) -> tuple[dict[str, Json], bool]:
    """Return the metadata around the messages as far as it can be decoded, and whether it is complete."""
    places = [place.span for place in layout.outside if place.span.end - place.span.start <= LONG]
    n_bytes = sum(place.span.end - place.span.start for place in layout.outside)
    if n_bytes <= LONG:
        try:
            return metadata(fields(lenient.mask(b"\n".join(map(layout.source.slice, places))))), True
        except ValueError:
            pass
    header: dict[str, Json] = {}
    for place in places:  # each value on a single line
        try:
            header |= metadata(fields(b"{" + lenient.mask(layout.source.slice(place)).strip().rstrip(b",") + b"}"))
        except ValueError:
            continue
    return header, False
