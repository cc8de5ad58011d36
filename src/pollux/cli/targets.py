"""Where `--output` leads to: standard output, a file or a folder."""
# ruff: noqa: PLC0415  imported when a command writes

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pollux.cli import output

if TYPE_CHECKING:
    from pollux.cli.scope import Scope
    from pollux.library.sinks import FileSink, Sink, StreamSink


def export_sink(target: str) -> Sink:
    """Return where an export goes: `-` is standard output, a name with a slash at its end a folder."""
    from pollux.library.sinks import FolderSink, PathSink, StreamSink

    if target == "-":
        return StreamSink(output.write)
    return FolderSink(Path(target)) if target.endswith(("/", os.sep)) else PathSink(Path(target))


def file_sink(target: str) -> StreamSink | FileSink:
    """Return standard output for `-`, or else a file."""
    from pollux.library.sinks import FileSink, StreamSink

    return StreamSink(output.write) if target == "-" else FileSink(Path(target))


def write_data(scope: Scope, target: str, data: bytes, advice: str = "give another with -o") -> None:
    """Write to standard output, or into a file and print its size."""
    from pollux.library.sinks import write_output

    write_output(scope.library.outputs, file_sink(target), [data], advice)
    if target != "-":
        output.words(f"{target}: {len(data)} bytes.")
