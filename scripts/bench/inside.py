"""Measure a refresh of the archive without the start of an interpreter."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path

from scripts.bench.peers import POLLUX
from scripts.bench.trees import Growing, Tree

from pollux import homes
from pollux.__main__ import GC_THRESHOLDS
from pollux.archive.refresh import refresh
from pollux.archive.store import open_archive
from pollux.library.config import utc_now


@dataclass(frozen=True, slots=True)
class Refreshed:
    """Seconds that a refresh takes, and the size of the log that grew."""

    idle: float
    grown: float
    log_bytes: int


def refreshed(tree: Tree, growing: Growing, rounds: int) -> Refreshed:
    """Return the time of a refresh with nothing changed, and after the largest log has grown by a turn."""
    gc.set_threshold(*GC_THRESHOLDS)  # as a command does
    home = tree.home_of("pollux")
    path = home / POLLUX.cache / "inside.db"  # an archive to which the log has only grown, so that it has one version
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    _seconds(path, home)
    idle = min(_seconds(path, home) for _ in range(rounds))
    grown = []
    for _ in range(rounds):
        growing.grow()
        grown.append(_seconds(path, home))
    growing.restore()
    return Refreshed(idle, min(grown), growing.size)


def archive_bytes(tree: Tree) -> int:
    """Return the size of the archive and of its journal."""
    folder = tree.home_of("pollux") / POLLUX.cache
    return sum(path.stat().st_size for path in folder.glob("archive.db*"))


def _seconds(path: Path, home: Path) -> float:
    with open_archive(path) as archive:
        start = time.perf_counter()
        refresh(archive, homes(home), clock=utc_now)
        return time.perf_counter() - start
