"""The document generation (0.4–0.38): one JSON object holds the whole session, rewritten at every change.

A sound file of ordinary size is decoded at once, and of a huge one each message by itself. A broken file is read by its
layout: the client indents by two, and JSON keeps line ends out of strings, so a line of four blanks and a brace begins
or ends a message.
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
    """Tell from the first bytes of a file whether it is of this generation: an indented object that begins like one."""
    return bool(_BEGINNING.match(head))


def looks_indented(head: bytes) -> bool:
    """Tell whether a file may be of this generation though it does not begin like it."""
    return bool(_INDENTED.search(head))


def read(source: Source) -> Iterator[Operation]:
    """Read one file; a bad message becomes a problem, never a gap."""
    try:
        document, problems = sound(source.whole()) if source.size <= AT_ONCE else _one_by_one(source)
    except (ValueError, InexactError):
        yield from _by_layout(source)
        return
    yield document
    yield from (msgspec.structs.replace(problem, file=str(source.path)) for problem in problems)


def sound(data: bytes) -> tuple[Document, list[Problem]]:
    """Read a whole document; raises `ValueError` if it is not one."""
    try:
        return _whole(data)
    except ValueError:
        document, problems = _whole(lenient.mask(data))
    exact = lenient.decode(data)  # the mask has changed what it says
    found = {key: value for key, value in exact.items() if key != "messages" or value is None}
    return msgspec.structs.replace(document, fields=found), problems


def _whole(data: bytes) -> tuple[Document, list[Problem]]:
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
    """Read a huge document, message by message.

    Raises `ValueError` if it is none, and `InexactError` if something else than objects stands in its list.
    """
    short = shorten(source, Span(0, source.size), has_lists=True, exactly=True)
    if short is None:
        raise InexactError
    try:
        raw = fields(short.text)
        found = metadata(raw)
    except ValueError:
        raw = fields(lenient.mask(short.text))
        found = {key: value for key, value in lenient.decode(short.text).items() if key != "messages"}
    array = raw.get("messages", b"")
    messages = short.messages(array) if array[:1] == b"[" else ()
    return _document(found, array, (_element(source, one.span, 1 + one.n_lines) for one in messages), source)


def _element(source: Source, span: Span, number: int) -> _Element:
    data, short = value_at(source, span)
    return _Element(data, span, number, short)


def _document(
    found_fields: dict[str, Json], array: bytes, messages: Iterable[_Element], source: Source | None = None
) -> tuple[Document, list[Problem]]:
    has_null = False
    spans, records, problems = [], [], []
    for element in messages:
        spans.append(element.span)
        found, problem = _readable_message(element, source)
        records += found
        problems += problem
        has_null = has_null or element.data == b"null"
    if array == b"null":
        found_fields = {**found_fields, "messages": None}
    refusals = list(_refusals(found_fields, array, has_null=has_null))
    document = Document(found_fields, tuple(records), tuple(spans), bool(refusals), has_list=array[:1] == b"[")
    return document, [*refusals, *problems]


def _readable_message(element: _Element, source: Source | None) -> tuple[list[Record], list[Problem]]:
    try:
        return _message(element, source)
    except ValueError:
        return _message(element._replace(data=lenient.mask(element.data)), source)


def _refusals(found: Mapping[str, Json], array: bytes, *, has_null: bool) -> Iterator[Problem]:
    """Say why the client would not read this document, though it is JSON."""
    if "sessionId" not in found:
        yield Problem("no-session-id", "no session id: the client takes this file for corrupt", line=1)
    if array and array != b"null" and array[:1] != b"[":
        yield Problem("no-message", "the messages are no list: the client takes this file for corrupt", line=1)
    elif has_null:
        yield Problem("no-message", "a message is null: the client takes this file for corrupt", line=1)


def _message(
    element: _Element, source: Source | None = None, *, salvaged: bool = False
) -> tuple[list[Record], list[Problem]]:
    """Make the record of one element of the list; an element without an id gets one by its place."""
    data, span, line, short = element
    decoded, bad = wire(data)
    if salvaged and not decoded.is_message:
        return [], []  # a piece of one that is broken
    problems = [Problem("bad-value", f"values of an unexpected type were left out: {bad}", line=line)] if bad else []
    if decoded.id is msgspec.UNSET:
        problems.append(Problem("no-message", "an element of the list of messages has no id", line=line))
        if decoded.type is None:
            return [], problems
        decoded.id = f"line-{line}"
    found = record(decoded, data, span, line, short)
    if source and has_mark(found):  # an id is never cut
        return _message(_Element(lenient.mask(source.slice(span)), span, line), salvaged=salvaged)
    return [found], problems


class _Place(NamedTuple):
    """Where lines stand in the file, and the number of the first."""

    number: int
    span: Span


class _Layout(msgspec.Struct):
    """What has been found so far in a file that is read line by line."""

    source: Source
    outside: list[_Place] = msgspec.field(default_factory=list)
    """The lines around the list of messages."""
    runs: list[_Place] = msgspec.field(default_factory=list)
    """The same, where no message stands between them taken together."""
    is_new_run: bool = True
    inside: _Place | None = None
    """The lines of the message at hand."""
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
    found, is_whole = _fields_outside(layout)
    if not is_whole:
        _save_outside(layout)
        text = "the file is cut short" if layout.outside or layout.records else "the file holds no session"
        layout.problems.append(Problem("torn-document", f"{text}; {len(layout.records)} message(s) saved", line=last))
    salvaged = not is_whole or bool(layout.problems)
    if found or layout.records:
        yield Document(found, tuple(layout.records), tuple(layout.spans), salvaged)
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
    """Read the lines of one message, or what whole records are in them."""
    place, layout.inside = layout.inside, None
    if place is None:
        return
    data, short = value_at(layout.source, place.span)
    text = data.removesuffix(b",")
    blanks = len(text) - len(text.lstrip())
    span = Span(place.span.start + blanks, place.span.end - (len(data) - len(text)))
    element = _Element(lenient.mask(text.strip()), span, place.number, short)
    try:
        records, problems = _message(element, layout.source)
    except ValueError as error:
        records, problems = _fragments(layout.source, place)
        words = f"a message that is not JSON ({error}); {len(records)} saved from it"
        problems.append(Problem("torn-message", words, line=place.number))
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
    """Look for messages where none should be: the line that begins or ends their list may be broken."""
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
    for found in lenient.fragments(data):
        number = place.number + data.count(b"\n", 0, found.start)
        span = short.span(found.start, found.end) if short else Span(start + found.start, start + found.end)
        element = _Element(data[found.start : found.end], span, number, short)
        try:
            more, new = _message(element, source, salvaged=True)
        except ValueError:
            continue  # nested almost too deeply
        records += more
        problems += new
    return records, problems


def _fields_outside(layout: _Layout) -> tuple[dict[str, Json], bool]:
    """Decode the metadata around the messages, as far as it goes; say whether it was whole."""
    places = [place.span for place in layout.outside if place.span.end - place.span.start <= LONG]
    n_bytes = sum(place.span.end - place.span.start for place in layout.outside)
    if n_bytes <= LONG:
        try:
            return metadata(fields(lenient.mask(b"\n".join(map(layout.source.slice, places))))), True
        except ValueError:
            pass
    found: dict[str, Json] = {}
    for place in places:  # every value that stands in one line
        try:
            found |= metadata(fields(b"{" + lenient.mask(layout.source.slice(place)).strip().rstrip(b",") + b"}"))
        except ValueError:
            continue
    return found, False
