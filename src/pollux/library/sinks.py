"""Where an export goes: a stream, a file or a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pollux.errors import PolluxError
from pollux.library.output_guard import OutputGuard

ELSEWHERE = "give another place with `-o`"


class StreamSink(msgspec.Struct, frozen=True):
    """A stream, such as standard output."""

    write: Callable[[Iterable[bytes]], None]


class FileSink(msgspec.Struct, frozen=True):
    """One file, which is replaced at once or not at all."""

    path: Path


class FolderSink(msgspec.Struct, frozen=True):
    """A folder with a file per session."""

    path: Path


class PathSink(msgspec.Struct, frozen=True):
    """A folder if there is one, or if several sessions are exported and the name has no suffix; else a file."""

    path: Path


Sink = StreamSink | FileSink | FolderSink | PathSink


class OutputError(PolluxError):
    """A file or folder that the user named cannot be written."""

    def __init__(self, path: object, error: OSError, advice: str = ELSEWHERE, note: str = "") -> None:
        """Take the system's reason, what to do, and what was written before."""
        sentence = f"{path} cannot be written: {error.strerror or error}; {advice}."
        super().__init__(f"{note}\n{sentence}" if note else sentence)


@contextmanager
def explained_failure(path: Path, advice: str = ELSEWHERE) -> Iterator[None]:
    """Turn an error of the system into an `OutputError`."""
    try:
        yield
    except OSError as error:
        raise OutputError(path, error, advice) from None


def write_output(
    guard: OutputGuard, sink: StreamSink | FileSink, pieces: Iterable[bytes], advice: str = ELSEWHERE
) -> None:
    """Write to a stream or into one file. Raises `OutputError` and `ProtectedOutputError`."""
    if isinstance(sink, StreamSink):
        sink.write(pieces)
        return
    with explained_failure(sink.path, advice):
        guard.write(sink.path, pieces)
