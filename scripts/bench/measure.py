"""Run commands and measure their wall time, their CPU time and, in a run of its own, their memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_PAUSE = 0.005
"""Seconds between two readings of the memory of processes."""


@dataclass(frozen=True, slots=True)
class Work:
    """Commands that run one after another and are measured as one."""

    key: str
    """Names the work in `bars`."""
    name: str
    """Names the work on the page."""
    commands: Sequence[Sequence[str]]
    environment: Mapping[str, str]
    before: Callable[[], None] | None = None
    """Prepares a run; not measured."""
    is_slow: bool = False
    """Whether the work is run only once, because it takes so long."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run, in seconds."""

    wall: float
    cpu: float
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak memory of a command, in bytes."""

    largest: int
    """Peak of the largest process."""
    together: int
    """Sum of the peaks of all processes; memory that they share is counted for each."""
    processes: int


@dataclass(slots=True)
class Measured:
    """The runs of a work."""

    work: Work
    runs: list[Run] = field(default_factory=list)
    peak: Peak | None = None

    @property
    def best(self) -> float:
        """Return the shortest time; other programs on the machine can only add to it."""
        return min(run.wall for run in self.runs)

    @property
    def median(self) -> float:
        """Return the median time."""
        return statistics.median(run.wall for run in self.runs)

    @property
    def cpu(self) -> float:
        """Return the median CPU time."""
        return statistics.median(run.cpu for run in self.runs)

    @property
    def is_failed(self) -> bool:
        """Return whether a command ended with another status than 0."""
        return any(run.is_failed for run in self.runs)


def measured(works: Iterable[Work], rounds: int, after_round: Callable[[], None]) -> dict[str, Measured]:
    """Run all works once per round, so that noise affects all of them, and then once more to measure memory.

    Slow works run only once, and their time and memory are measured in that run.
    """
    results = {work.key: Measured(work) for work in works}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds} …", file=sys.stderr)
        for result in results.values():
            if not result.work.is_slow:
                result.runs.append(timed(result.work))
        after_round()
    print("memory …", file=sys.stderr)
    for result in results.values():
        run, result.peak = watched(result.work)
        if result.work.is_slow:
            result.runs.append(run)
    after_round()
    return results


def timed(work: Work) -> Run:
    """Run a work once and return its times."""
    if work.before:
        work.before()
    wall = cpu = 0.0
    is_failed = False
    for command in work.commands:
        start = time.perf_counter()
        process = _started(command, work.environment)
        _, status, usage = os.wait4(process.pid, 0)
        wall += time.perf_counter() - start
        cpu += usage.ru_utime + usage.ru_stime
        process.returncode = os.waitstatus_to_exitcode(status)
        is_failed |= process.returncode != 0
    return Run(wall, cpu, is_failed)


def watched(work: Work) -> tuple[Run, Peak | None]:
    """Run a work once and read the memory of its processes meanwhile, on Linux; reading costs some time."""
    if work.before:
        work.before()
    start, cpu, is_failed = time.perf_counter(), 0.0, False
    peaks = []
    for command in work.commands:
        highest: dict[int, int] = {}
        process = _started(command, work.environment)
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            for pid in _family(process.pid):
                highest[pid] = max(_high_water(pid), highest.get(pid, 0))
            time.sleep(_PAUSE)
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        cpu += ended[2].ru_utime + ended[2].ru_stime
        is_failed |= process.returncode != 0
        if any(highest.values()):
            peaks.append(Peak(max(highest.values()), sum(highest.values()), len(highest)))
    run = Run(time.perf_counter() - start, cpu, is_failed)
    return run, max(peaks, key=lambda peak: peak.together, default=None)


def _started(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, env=dict(environment))


def _family(pid: int) -> list[int]:
    """Return a process and its descendants that are still running."""
    pids = [pid]
    for parent in pids:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                pids += map(int, children.read_text("ascii").split())
            except OSError:  # the thread has ended
                continue
    return pids


def _high_water(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
