"""Simulates a client that writes while a command follows: step by step in this process, or beside a real process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from tests import builders

from pollux.archive import watch

PATIENCE = 30.0
Step = Callable[[], object]
NAME = f"{builders.NAME}.jsonl"


def stepping(monkeypatch: pytest.MonkeyPatch, *steps: Step) -> None:
    """Run the steps one by one while a command follows the home, then stop the command."""

    def changes(homes: watch.Homes, **_: object) -> Iterator[None]:
        assert homes()
        yield
        for step in steps:
            step()
            yield
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "changes", changes)


def appended(path: Path, *records: object) -> Step:
    """Return a step in which the client appends records to a log."""

    def step() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as stream:
            stream.write(builders.log(*records))

    return step


@contextmanager
def program(home: Path, *args: str) -> Iterator[tuple[subprocess.Popen[bytes], list[bytes]]]:
    """Start a command as a process; yield it and the list of lines that it has printed so far."""
    places = ["--home", str(home), "--archive", str(home / "archive.db")]
    words = [sys.executable, "-m", "pollux", *args, *places]
    lines: list[bytes] = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        reader = threading.Thread(target=_read, args=(process.stdout, lines))
        reader.start()
        try:
            yield process, lines
        finally:
            process.kill()
            process.wait()
            reader.join()


def _read(stream: IO[bytes], lines: list[bytes]) -> None:
    lines.extend(iter(stream.readline, b""))


def wait_for(lines: list[bytes], number: int) -> float:
    end = time.monotonic() + PATIENCE
    while len(lines) < number:
        assert time.monotonic() < end, lines
        time.sleep(0.005)
    return time.monotonic()
