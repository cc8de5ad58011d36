"""Measure the cost of comparing archived bytes with their SHA-256 whenever they are unpacked."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from unittest import mock

from rich.console import Console
from scripts.bench.peers import POLLUX
from scripts.bench.trees import Tree

from pollux import homes
from pollux.archive import open_session, raw, store
from pollux.archive.refresh import refresh
from pollux.library.config import utc_now
from pollux.model import Session
from pollux.render.terminal.transcript import render_transcript
from pollux.reports.usage_sql import quarter_sums
from pollux.views.transcript import TranscriptOptions, blocks

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Hashing:
    """CPU seconds with and without the comparison."""

    compared: float
    not_compared: float
    unpacked_by_usage: int
    """Number of segments that `usage` unpacks when nothing has changed."""


class _Anything:
    """Equal to every digest."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__


def _digest_of_anything(_data: bytes) -> _Anything:
    return _Anything()


def hashing(tree: Tree, rounds: int) -> Hashing:
    """Return the CPU time of `show` for the largest sessions of an archive, with and without the comparison."""
    home = tree.home_of("pollux")
    compared: list[float] = []
    not_compared: list[float] = []
    with store.open_archive(home / POLLUX.cache / "archive.db") as archive:
        located = refresh(archive, homes(home), clock=utc_now).located
        n_unpacked = _unpacked_by_usage(archive)
        sessions = open_session.history(archive.database, located).sessions
        largest = sorted(sessions, key=lambda session: sum(session.counts.values()), reverse=True)[:_SHOWN]
        for _ in range(rounds):
            compared.append(_seconds(archive, largest))
            with mock.patch.object(raw, "_digest", _digest_of_anything):
                not_compared.append(_seconds(archive, largest))
    return Hashing(min(compared), min(not_compared), n_unpacked)


def _seconds(archive: store.Archive, sessions: list[Session]) -> float:
    """Return the CPU time that `show` takes for some sessions, without output."""
    start = time.process_time()
    with open(os.devnull, "w", encoding="utf-8") as null:  # noqa: PTH123
        console = Console(file=null, width=80)
        for session in sessions:
            messages = open_session.open_session(archive.database, session).messages(shortened=True)
            for renderable in render_transcript(blocks(messages, TranscriptOptions()), encoding="utf-8"):
                console.print(renderable)
    return time.process_time() - start


def _unpacked_by_usage(archive: store.Archive) -> int:
    with mock.patch.object(raw, "content", side_effect=raw.content) as unpacked:
        quarter_sums(archive.database, None, None)
    return unpacked.call_count
