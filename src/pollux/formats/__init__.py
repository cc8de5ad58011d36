"""Bytes → operations: one module a generation, decided by content and not by suffix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from pollux.formats import atif, document, history, lenient, log, prompts, records, shared, stream
from pollux.formats.converted import Converted
from pollux.formats.operations import Operation
from pollux.formats.source import Source
from pollux.model import Problem


class Generation(NamedTuple):
    """A form in which sessions were ever written; the first whose `sniff` fits is taken."""

    name: str
    sniff: Callable[[bytes], bool]
    read: Callable[[Source], Iterator[Operation]] | None = None
    convert: Callable[..., Converted] | None = None


GENERATIONS = (
    Generation("document", document.sniff, read=document.read),
    Generation("log", log.sniff, read=log.read),
    Generation("history", history.sniff, convert=history.convert),
    Generation("stream", stream.sniff, convert=stream.convert),
    Generation("atif", atif.sniff, convert=atif.convert),
    Generation("shared", shared.sniff, convert=shared.convert),
    Generation("prompts", prompts.sniff),
    Generation("document", document.looks_indented, read=document.read),
    Generation("log", lambda head: bool(head.strip()), read=log.read),
)


class Opened(NamedTuple):
    """A file, its generation, and its operations, still to be read."""

    source: Source
    format: str
    operations: Iterator[Operation]


def opened(source: Source) -> Opened:
    """Tell the generation of a file and begin to read it."""
    head = source.head()
    generation = next((one for one in GENERATIONS if one.sniff(head)), None)
    if generation is None:
        return Opened(source, "unreadable", iter([_empty(source)]))
    if generation.name == "log" and _is_document(source, head):
        return Opened(source, "document", document.read(source))
    if generation.convert:
        return _converted(source, generation)
    if generation.read is None:
        text = f"a {generation.name} file holds no session of its own"
        return Opened(source, generation.name, iter([Problem("no-session", text, str(source.path))]))
    return Opened(source, generation.name, generation.read(source))


def _converted(source: Source, generation: Generation) -> Opened:
    """Write a file of another shape anew as a log, in memory, so that everything after this is the same."""
    assert generation.convert is not None
    found = generation.convert(source.whole(), name=source.path.name, modified=source.modified)
    lines = [lenient.encode(one) for one in ({**found.header, "projectHash": ""}, *found.messages)]
    rewritten = Source(source.path, data=b"\n".join(lines), modified=source.modified)
    problems = [msgspec.structs.replace(problem, file=str(source.path)) for problem in found.problems]
    return Opened(rewritten, generation.name, iter([*log.read(rewritten), *problems]))


def _is_document(source: Source, head: bytes) -> bool:
    """Tell whether a file that begins like a log is one document after all: the client's last resort."""
    first = head.partition(b"\n")[0]
    try:
        decoded, _ = records.wire(first)
        if not isinstance(decoded.id, msgspec.UnsetType) or decoded.set or (decoded.session_id and decoded.is_header):
            return False
    except ValueError:
        if b'"messages"' not in first:
            return False
    try:
        return source.size <= document.AT_ONCE and "sessionId" in document.sound(source.whole())[0].fields
    except ValueError:
        return False


def _empty(source: Source) -> Problem:
    return Problem("empty-file", "the file is empty: the client was stopped while it wrote", str(source.path), 1)
