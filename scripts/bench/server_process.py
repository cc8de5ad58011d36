"""The processor time and the memory of a running server; on Linux only."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

_IDLE_MS = 10.0
"""Processor time within a second below which a server has nothing left to do."""
_UTIME = 11
"""The place of four times in `/proc/PID/stat` after the name: own, in the kernel, and both of ended children."""


class ServerProcess:
    """A process that answers requests."""

    def __init__(self, pid: int) -> None:
        """Store its number."""
        self._pid = pid

    def processor_ms(self) -> float:
        """Return the processor time of the process so far, in milliseconds."""
        return time.clock_gettime(~self._pid << 3 | 2) * 1000  # the process's own clock, as Linux numbers them

    def processor_s_of_all(self) -> float:
        """Return the processor time of the process and of its children that have ended, in seconds."""
        words = Path(f"/proc/{self._pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return sum(map(int, words[_UTIME : _UTIME + 4])) / os.sysconf("SC_CLK_TCK")

    def settle(self) -> None:
        """Wait until the server has nothing left to do."""
        before = -_IDLE_MS
        while self.processor_ms() - before >= _IDLE_MS:
            before = self.processor_ms()
            time.sleep(1)

    def memory_mb(self, name: str = "VmRSS") -> int:
        """Return the memory that the process has, or with `VmHWM` the most that it had, in MB."""
        match = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{self._pid}/status").read_text("ascii"))
        return int(match[1]) * 1024 // 1_000_000 if match else 0
