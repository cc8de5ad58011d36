"""The page: what was found out, in the order in which somebody wants to know it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from scripts.bench import large, tables
from scripts.bench.bars import Results, bars
from scripts.bench.correctness import Answers
from scripts.bench.hashing import Hashing
from scripts.bench.inside import Refreshed
from scripts.bench.measure import Measured
from scripts.bench.peers import AGENTSVIEW, OTHERS, offline
from scripts.bench.search_page import section
from scripts.bench.trees import MB, Tree

from pollux import __version__


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done."""

    sessions: int
    megabytes: int
    one_session_mb: int
    rounds: int
    is_quick: bool


@dataclass(frozen=True, slots=True)
class Done:
    """All that was found out."""

    plan: Plan
    many: Tree
    one: Tree
    first: dict[str, Measured]
    second: dict[str, Measured]
    long: dict[str, Measured]
    inside: dict[str, Refreshed]
    results: Results
    answers: Sequence[Answers]
    cases: Sequence[Answers]
    left_out: dict[str, str]
    """Peers, and why they are not there."""
    load: tuple[float, float]
    """How many processes wanted to run at once, before and after: more than there are cores makes all of this worse."""
    hashing: Hashing
    large: dict[str, Measured]


def page(done: Done) -> Iterator[str]:
    """Write it, line by line."""
    yield "# Benchmarks"
    yield ""
    yield "Written by `make bench`, never by hand."
    yield (
        f"{datetime.now(UTC):%Y-%m-%d}, Pollux {__version__}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}; load {done.load[0]:.1f} before and {done.load[1]:.1f} after."
    )
    yield (
        f"Every command is run once in each of {done.plan.rounds} rounds, so that all meet the same noise"
        f"{'; none has a network' if offline() else ''}. "
        "Ratios are of the best times. "
        "Files are in the page cache; before a first look, what a program remembers is removed."
    )
    yield "Memory is taken in a round of its own: the most that the largest process had, and all of them together."
    yield ""
    yield "## Bars"
    yield ""
    yield from tables.bar_table(bars(done.results))
    cat = done.first["cat"]
    yield f"## First look: {done.many.facts}"
    yield ""
    yield from tables.time_table(done.first.values(), cat)
    yield "## Second look, and a session that grows"
    yield ""
    yield from tables.time_table(done.second.values(), cat)
    kept = done.results.archive_bytes
    yield f"The archive takes {kept / MB:.0f} MB, 1/{done.results.files_bytes / kept:.2f} of the session files."
    yield _inside(done.inside["many"], "of that archive")
    yield _hashing(done.hashing)
    yield ""
    yield f"## One session: {done.one.facts}"
    yield ""
    yield from tables.time_table(done.long.values(), done.long["big cat"])
    yield _inside(done.inside["one"], "of its archive")
    yield ""
    if done.large:
        yield from large.section(done.large)
    if done.results.search:
        yield from section(done.results.search)
    yield from _numbers(done)
    yield from _peers(done.left_out)


def _inside(found: Refreshed, whose: str) -> str:
    return (
        f"A refresh {whose}, inside the process: nothing changed {found.idle:.3f} s, "
        f"its largest session ({found.log_bytes / MB:.0f} MB) grew by a turn {found.grown:.3f} s."
    )


def _hashing(found: Hashing) -> str:
    cost = found.compared / found.not_compared - 1
    return (
        "Comparing archived bytes with their SHA-256 whenever they are unpacked costs "
        f"{cost:.1%} of the time that `show` takes for the 20 largest sessions "
        f"({found.compared:.3f} s of CPU against {found.not_compared:.3f} s); "
        f"`usage` unpacks {found.unpacked_by_usage} segments when nothing changed."
    )


def _numbers(done: Done) -> Iterator[str]:
    yield "## Numbers"
    yield ""
    yield (
        "What was billed: tokens as the generator wrote them, dollars as genai-prices makes of each call. "
        "**Bold** is wrong, – is not told."
    )
    yield "Fresh input is input − cached + tool."
    yield ""
    for one in done.answers:
        yield f"### {one.home}"
        yield ""
        yield from tables.number_table(one)
    yield "### Small homes, each with one odd thing: dollars"
    yield ""
    yield from tables.case_table(done.cases, ["dollars"])
    yield "### The same: fresh input / cached / output + thoughts"
    yield ""
    yield from tables.case_table(done.cases, ["fresh input", "cached", "output + thoughts"])


def _peers(left_out: dict[str, str]) -> Iterator[str]:
    yield "## Peers"
    yield ""
    rows = [[f"{one.name} {one.version}", f"`{one.shown()}`", left_out.get(one.name, "ran")] for one in OTHERS]
    yield from tables.table(("program", "command", ""), rows, left=3)
    yield "tokscale has no prices of its own offline: it was given those of litellm that it would fetch."
    yield f"{AGENTSVIEW.name} takes so long that it is run once."
