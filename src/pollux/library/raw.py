"""Read the files of a session byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.errors import FailedSessionError, PolluxError, UnreadableFileError
from pollux.formats.source import LongLine, Source
from pollux.library.config import UsageError
from pollux.library.references import Ref, open_file, open_named
from pollux.model import FileRef, Role

if TYPE_CHECKING:
    from pollux.library.library import Library
    from pollux.library.snapshot import Snapshot
    from pollux.reports.filters import Filter


@contextmanager
def open_raw(library: Library, reference: Ref, number: int | None, wanted: Filter) -> Iterator[Source]:
    """Open file `number` of a session, or the one that the client would load, from the disk or from the archive.

    A path is opened regardless of its content; if the file is deleted, its newest archived version is opened.
    """
    if isinstance(reference, Path) and os.path.lexists(reference):
        source = _open(reference)
        yield _chosen([source], source, number)
        return
    with library.snapshot() as snapshot:
        if isinstance(reference, Path):
            main = _archived(snapshot, reference)
            sources = [main]
        else:
            sources, main = _sources(snapshot, reference, wanted)
        yield _chosen(sources, main, number)


def files_of(snapshot: Snapshot | None, reference: Ref, wanted: Filter) -> tuple[FileRef, ...]:
    """Return the files of a session, even if Pollux cannot read them."""
    if isinstance(reference, Path):
        return open_file(reference)[0].files
    assert snapshot is not None
    try:
        return open_named(snapshot, reference, wanted)[0].files
    except FailedSessionError as error:
        return tuple(FileRef(path, Role.UNREADABLE, "unreadable") for path in error.files)


def line_of(source: Source, number: int) -> Iterator[bytes]:
    """Yield the bytes of one line, with a line feed. Raises `PolluxError` if the file has fewer lines."""
    for line in source.lines():
        if line.number == number:
            if isinstance(line, LongLine):
                yield from line.source.blocks(*line.span)
            else:
                yield line.data
            yield b"\n"
            return
    raise PolluxError(f"{source.path} has no line {number}.")


def _sources(snapshot: Snapshot, reference: str, wanted: Filter) -> tuple[list[Source], Source]:
    """Return the files of a session, and among them the one that the client would load."""
    try:
        group = open_named(snapshot, reference, wanted)[1]
    except FailedSessionError as error:
        sources = [_open(path) if os.path.lexists(path) else _archived(snapshot, path) for path in error.files]
        return sources, sources[0]
    return [placed.reading.original for placed in group.files], group.main.reading.original


def _chosen(sources: list[Source], main: Source, number: int | None) -> Source:
    if number is None:
        return main
    if number > len(sources):
        raise UsageError(f"--file {number}: the session has only {len(sources)} files; `pollux raw --path` lists them.")
    return sources[number - 1]


def _archived(snapshot: Snapshot, path: Path) -> Source:
    """Open the newest version of a file that is in the archive only."""
    from pollux.archive.load_sessions import file_at  # noqa: PLC0415  only for deleted files
    from pollux.archive.readings import source_of  # noqa: PLC0415

    file = file_at(snapshot.database, path.absolute()) if snapshot.is_archived else None
    return source_of(snapshot.database, file.version_id) if file else _open(path)


def _open(path: Path) -> Source:
    try:
        return Source(path)
    except OSError as error:
        raise UnreadableFileError(path, error.strerror) from None
