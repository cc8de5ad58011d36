"""Read session files into operations: one module per generation, chosen by content and not by suffix."""

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
    """A format of session files; the first whose `sniff` matches is used."""

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
    """A file, its generation, and an iterator of its operations."""

    source: Source
    format: str
    operations: Iterator[Operation]


def opened(source: Source) -> Opened:
    """Determine the generation of a file and return its operations."""
    head = source.head()
    generation = next((candidate for candidate in GENERATIONS if candidate.sniff(head)), None)
    if generation is None:
        return Opened(source, "unreadable", iter([_empty(source)]))
    if generation.name == "log" and _is_document(source, head):
        return Opened(source, "document", document.read(source))
    if generation.convert:
        return _converted(source, generation)
    if generation.read is None:
        text = f"a {generation.name} file contains no session"
        return Opened(source, generation.name, iter([Problem("no-session", text, str(source.path))]))
    return Opened(source, generation.name, generation.read(source))


def _converted(source: Source, generation: Generation) -> Opened:
    """Convert a file of another format to a log in memory, so that all further code handles logs only."""
    assert generation.convert is not None
    converted = generation.convert(source.whole(), name=source.path.name, modified=source.modified)
    lines = [lenient.encode(record) for record in ({**converted.header, "projectHash": ""}, *converted.messages)]
    rewritten = Source(source.path, data=b"\n".join(lines), modified=source.modified)
    problems = [msgspec.structs.replace(problem, file=str(source.path)) for problem in converted.problems]
    return Opened(rewritten, generation.name, iter([*log.read(rewritten), *problems]))


def _is_document(source: Source, head: bytes) -> bool:
    """Return whether a file that starts like a log is one document, which the client tries last."""
    first = head.partition(b"\n")[0]
    try:
        decoded, _ = records.wire(first)
        if not isinstance(decoded.id, msgspec.UnsetType) or decoded.set or (decoded.session_id and decoded.is_header):
            return False
    except ValueError:
        if b'"messages"' not in first:
            return False
    try:
        return source.size <= document.AT_ONCE and "sessionId" in document.parse_document(source.whole())[0].fields
    except ValueError:
        return False


def _empty(source: Source) -> Problem:
    return Problem("empty-file", "the file is empty: the client was stopped while writing it", str(source.path), 1)
