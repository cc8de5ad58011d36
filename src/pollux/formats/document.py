"""The document generation (0.4–0.38): one JSON object holds the whole session, rewritten at every change.

A sound file of ordinary size is decoded at once. One that is broken or huge is read by its layout: the client indents
by two, and JSON keeps line ends out of strings, so a line of four blanks and a brace begins or ends a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from pollux.formats import lenient
from pollux.formats.operations import Document, Operation, Record
from pollux.formats.records import elements, fields, metadata, record, wire
from pollux.formats.source import Line, Source, Span
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
    if source.size <= AT_ONCE:
        try:
            document, problems = sound(source.whole())
        except ValueError:
            pass
        else:
            yield document
            yield from (msgspec.structs.replace(problem, file=str(source.path)) for problem in problems)
            return
    yield from _by_layout(source)


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
    position, number, has_null = 0, 1, False
    spans, records, problems = [], [], []
    for span, element in elements(array, data) if array[:1] == b"[" else ():
        number += data.count(b"\n", position, span.start)
        position = span.start
        spans.append(span)
        found, problem = _message(element, span, number)
        records += found
        problems += problem
        has_null = has_null or element == b"null"
    found_fields = metadata(raw) | ({"messages": None} if array == b"null" else {})
    refusals = list(_refusals(found_fields, array, has_null=has_null))
    document = Document(found_fields, tuple(records), tuple(spans), bool(refusals), has_list=array[:1] == b"[")
    return document, [*refusals, *problems]


def _refusals(found: Mapping[str, Json], array: bytes, *, has_null: bool) -> Iterator[Problem]:
    """Say why the client would not read this document, though it is JSON."""
    if "sessionId" not in found:
        yield Problem("no-session-id", "no session id: the client takes this file for corrupt", line=1)
    if array and array != b"null" and array[:1] != b"[":
        yield Problem("no-message", "the messages are no list: the client takes this file for corrupt", line=1)
    elif has_null:
        yield Problem("no-message", "a message is null: the client takes this file for corrupt", line=1)


def _message(data: bytes, span: Span, line: int, *, salvaged: bool = False) -> tuple[list[Record], list[Problem]]:
    """Make the record of one element of the list; an element without an id gets one by its place."""
    decoded, bad = wire(data)
    if salvaged and not decoded.is_message:
        return [], []  # a piece of one that is broken
    problems = [Problem("bad-value", f"values of an unexpected type were left out: {bad}", line=line)] if bad else []
    if decoded.id is msgspec.UNSET:
        problems.append(Problem("no-message", "an element of the list of messages has no id", line=line))
        if decoded.type is None:
            return [], problems
        decoded.id = f"line-{line}"
    return [record(decoded, data, span, line)], problems


class _Layout(msgspec.Struct):
    """What has been found so far in a file that is read line by line."""

    outside: list[Line] = msgspec.field(default_factory=list)
    """The lines around the list of messages."""
    inside: list[Line] = msgspec.field(default_factory=list)
    """The lines of the message at hand."""
    in_list: bool = False
    records: list[Record] = msgspec.field(default_factory=list)
    spans: list[Span] = msgspec.field(default_factory=list)
    problems: list[Problem] = msgspec.field(default_factory=list)


def _by_layout(source: Source) -> Iterator[Operation]:
    layout = _Layout()
    last = 1
    for line in source.lines():
        last = line.number
        _take_line(layout, line)
    _end_message(layout)
    found, is_whole = _fields_outside([line.data for line in layout.outside])
    if not is_whole:
        _take_outside(layout)
        text = "the file is cut short" if layout.outside or layout.records else "the file holds no session"
        layout.problems.append(Problem("torn-document", f"{text}; {len(layout.records)} message(s) saved", line=last))
    salvaged = not is_whole or bool(layout.problems)
    if found or layout.records:
        yield Document(found, tuple(layout.records), tuple(layout.spans), salvaged)
    yield from (msgspec.structs.replace(problem, file=str(source.path)) for problem in layout.problems)


def _take_line(layout: _Layout, line: Line) -> None:
    data = line.data
    if not data:
        return
    if not layout.in_list:
        if data.startswith(lenient.BOM):
            line = Line(line.number, line.start + len(lenient.BOM), data.removeprefix(lenient.BOM))
            layout.problems.append(lenient.BOM_PROBLEM)
        layout.outside.append(line)
        layout.in_list = data == _LIST
    elif not layout.inside and data in _LIST_ENDS:
        layout.outside.append(line)
        layout.in_list = False
    else:
        if data == _MESSAGE and layout.inside:
            _end_message(layout)
        layout.inside.append(line)
        if data in _MESSAGE_ENDS:
            _end_message(layout)


def _end_message(layout: _Layout) -> None:
    """Read the lines of one message, or what whole records are in them."""
    lines, layout.inside = layout.inside, []
    if not lines:
        return
    first = lines[0]
    data = _joined(lines).removesuffix(b",")
    blanks = len(data) - len(data.lstrip())
    span = Span(first.start + blanks, lines[-1].start + len(lines[-1].data.removesuffix(b",")))
    try:
        records, problems = _message(lenient.mask(data.strip()), span, first.number)
    except ValueError as error:
        records, problems = _fragments(data, first)
        text = f"a message that is not JSON ({error}); {len(records)} saved from it"
        problems.append(Problem("torn-message", text, line=first.number))
    else:
        layout.spans.append(span)
    layout.records += records
    layout.problems += problems


def _take_outside(layout: _Layout) -> None:
    """Look for messages where none should be: the line that begins or ends their list may be broken."""
    runs: list[list[Line]] = []
    for line in layout.outside:
        if not runs or line.number > runs[-1][-1].number + 1:
            runs.append([])
        runs[-1].append(line)
    for run in runs:
        records, problems = _fragments(_joined(run), run[0])
        layout.records += records
        layout.problems += problems
    layout.records.sort(key=lambda record: record.span)


def _joined(lines: list[Line]) -> bytes:
    """Put lines together again, each at its own distance from the first."""
    ends = (line.start for line in lines[1:])
    return b"".join(line.data.ljust(end - line.start, b"\n") for line, end in zip(lines, ends, strict=False)) + (
        lines[-1].data
    )


def _fragments(data: bytes, first: Line) -> tuple[list[Record], list[Problem]]:
    records: list[Record] = []
    problems: list[Problem] = []
    data = lenient.mask(data)
    for found in lenient.fragments(data):
        number = first.number + data.count(b"\n", 0, found.start)
        span = Span(first.start + found.start, first.start + found.end)
        try:
            more, new = _message(data[found.start : found.end], span, number, salvaged=True)
        except ValueError:
            continue  # nested almost too deeply
        records += more
        problems += new
    return records, problems


def _fields_outside(lines: list[bytes]) -> tuple[dict[str, Json], bool]:
    """Decode the metadata around the messages, as far as it goes; say whether it was whole."""
    text = lenient.mask(b"\n".join(lines))
    try:
        return metadata(fields(text)), True
    except ValueError:
        pass
    found: dict[str, Json] = {}
    for line in lines:  # every value that stands in one line
        try:
            found |= metadata(fields(b"{" + lenient.mask(line).strip().rstrip(b",") + b"}"))
        except ValueError:
            continue
    return found, False
