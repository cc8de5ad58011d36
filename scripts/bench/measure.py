"""Runs commands and takes their time, their processor time and, apart from that, their memory."""

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
"""Seconds between two looks at the memory of processes."""


@dataclass(frozen=True, slots=True)
class Work:
    """Something to measure: commands that are run one after another as one."""

    key: str
    """What it is called in the bars."""
    name: str
    """What it is called on the page."""
    commands: Sequence[Sequence[str]]
    environment: Mapping[str, str]
    before: Callable[[], None] | None = None
    """What has to be there first; takes no part in the time."""
    is_slow: bool = False
    """So much that it is run only once."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run, in seconds."""

    wall: float
    cpu: float
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class Peak:
    """The most memory that a command ever had, in bytes."""

    largest: int
    """Of one process."""
    together: int
    """Of all processes, each at its worst; what they share is counted for each of them."""
    processes: int


@dataclass(slots=True)
class Measured:
    """All that was found out about some work."""

    work: Work
    runs: list[Run] = field(default_factory=list)
    peak: Peak | None = None

    @property
    def best(self) -> float:
        """Return the shortest time: other work on a machine only ever adds to it."""
        return min(run.wall for run in self.runs)

    @property
    def median(self) -> float:
        """Return the time that half of the runs were below."""
        return statistics.median(run.wall for run in self.runs)

    @property
    def cpu(self) -> float:
        """Return the processor time of the middle run."""
        return statistics.median(run.cpu for run in self.runs)

    @property
    def is_failed(self) -> bool:
        """Tell whether a command ended badly."""
        return any(run.is_failed for run in self.runs)


def measured(works: Iterable[Work], rounds: int, after_round: Callable[[], None]) -> dict[str, Measured]:
    """Run all works in every round, so that a noisy minute hurts all alike; then once more for their memory.

    What takes so long that it is run only once is watched at the same time.
    """
    found = {work.key: Measured(work) for work in works}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds} …", file=sys.stderr)
        for one in found.values():
            if not one.work.is_slow:
                one.runs.append(timed(one.work))
        after_round()
    print("memory …", file=sys.stderr)
    for one in found.values():
        run, one.peak = watched(one.work)
        if one.work.is_slow:
            one.runs.append(run)
    after_round()
    return found


def timed(work: Work) -> Run:
    """Run some work once."""
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
    """Run some work once and watch its processes where the system lets us; that takes some time of its own."""
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
    return run, max(peaks, key=lambda one: one.together, default=None)


def _started(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, env=dict(environment))


def _family(pid: int) -> list[int]:
    """Return a process and all that it started and that still run."""
    found = [pid]
    for one in found:
        for thread in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += map(int, thread.read_text("ascii").split())
            except OSError:  # it is over
                continue
    return found


def _high_water(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
