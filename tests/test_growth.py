"""A session of twice the records takes twice the work, whatever the records are."""

from __future__ import annotations

import gc
import os
import sys
import time
import tracemalloc
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests import builders, shapes

from pollux import formats
from pollux.formats.source import Source
from pollux.reports import usage_quick
from pollux.sessions import reader
from pollux.sessions.grouping import bundles
from pollux.sessions.locate import locate
from pollux.sessions.replay.reading import record_lookups
from pollux.sessions.replay.replay import Replayer

LONG = bool(os.environ.get("POLLUX_LONG"))
AT_MOST = 2.3
"""How much more work twice the records may be."""
AT_MOST_TIME = 3.0
"""The same of processor time, which is never quite the same twice; with the square it is 4."""
WHY_NOT = "set POLLUX_LONG to measure the growth of many more shapes"
each_shape = pytest.mark.parametrize(
    "name", [*shapes.ALL] if LONG else [pytest.param("", marks=pytest.mark.skip(reason=WHY_NOT))]
)


@pytest.mark.parametrize("name", shapes.ORDINARY)
def test_twice_the_records_run_twice_the_lines(tmp_path: Path, name: str) -> None:
    check_lines(tmp_path, shapes.ORDINARY[name])


@pytest.mark.parametrize("name", shapes.ORDINARY)
def test_twice_the_records_copy_twice_the_memory(tmp_path: Path, name: str) -> None:
    check_memory(tmp_path, shapes.ORDINARY[name])


@each_shape
def test_many_shapes(tmp_path: Path, name: str) -> None:
    check_lines(tmp_path, shapes.ALL[name])
    check_memory(tmp_path, shapes.ALL[name])


@each_shape
def test_processor_time(tmp_path: Path, name: str) -> None:
    """Notice the work of single calls into C, which neither runs lines nor takes memory."""
    small, large = (home(tmp_path, shapes.ALL[name], n) for n in (1500, 3000))
    times = [min(seconds(root) for _ in range(3)) for root in (small, large)]
    assert times[1] <= AT_MOST_TIME * max(times[0], 0.02), times


def check_lines(tmp_path: Path, shape: shapes.Shape) -> None:
    small, large = (lines_run(home(tmp_path, shape, n)) for n in (200, 400))
    assert large <= AT_MOST * small


def check_memory(tmp_path: Path, shape: shapes.Shape) -> None:
    """Compare what each operation takes for a moment: a list that is copied as a whole runs no more lines."""
    small, large = (bytes_taken(home(tmp_path, shape, n)) for n in (200, 400))
    assert large <= AT_MOST * small


def home(folder: Path, shape: shapes.Shape, n: int) -> Path:
    root = folder / str(n)
    for name, data in shape(n).items():
        builders.put(builders.chats(root) / name, data)
    return root


def read_all(root: Path) -> None:
    """Read a home as `ls`, `show` and `usage` do."""
    found = reader.history([builders.home(root)])
    for session in found.sessions:
        for _ in reader.opened(session).messages():
            pass
    for bundle in bundles(found.located.files):
        usage_quick.quick_sessions(bundle, lambda _model, _at, _tokens: (None, ""))


def lines_run(root: Path) -> int:
    n_lines = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Any:  # noqa: ANN401  as the interpreter wants it
        nonlocal n_lines
        n_lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        read_all(root)
    finally:
        sys.settrace(before)
    return n_lines


def bytes_taken(root: Path) -> int:
    """Add up the most that each operation of the largest file takes at a time."""
    path = max((file.path for file in locate([builders.home(root)]).files), key=lambda one: one.stat().st_size)
    source = Source(path)
    operations = list(formats.opened(source).operations)
    running = Replayer(*record_lookups(source))
    total = 0
    gc.disable()
    tracemalloc.start()
    try:
        for operation in operations:
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            running.apply(operation)
            total += tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
        gc.enable()
    return total


def seconds(root: Path) -> float:
    start = time.process_time()
    read_all(root)
    return time.process_time() - start
