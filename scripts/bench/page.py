"""The text of BENCHMARKS.md."""

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
    """The sizes of homes and the number of rounds."""

    sessions: int
    megabytes: int
    one_session_mb: int
    rounds: int
    is_quick: bool


@dataclass(frozen=True, slots=True)
class Done:
    """The results of a run."""

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
    """Peers that were not measured, and why."""
    load: tuple[float, float]
    """The load average before and after; above the number of cores, all times are longer."""
    hashing: Hashing
    large: dict[str, Measured]


def page(done: Done) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Benchmarks"
    yield ""
    yield "Written by `make bench`, never by hand."
    yield (
        f"{datetime.now(UTC):%Y-%m-%d}, Pollux {__version__}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}; load {done.load[0]:.1f} before and {done.load[1]:.1f} after."
    )
    yield (
        f"Every command runs once in each of {done.plan.rounds} rounds, so that noise affects all of them"
        f"{', and without a network' if offline() else ''}. "
        "Ratios are of the best times. "
        "Files are in the page cache; before a first look, the cache of a program is deleted."
    )
    yield "Memory is measured in a separate round: the peak of the largest process, and the sum of the peaks of all."
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
    size = done.results.archive_bytes
    yield f"The archive takes {size / MB:.0f} MB, 1/{done.results.files_bytes / size:.2f} of the session files."
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


def _inside(result: Refreshed, archive: str) -> str:
    return (
        f"A refresh {archive} without the start of a process takes {result.idle:.3f} s if nothing has changed, and "
        f"{result.grown:.3f} s if its largest session ({result.log_bytes / MB:.0f} MB) has grown by a turn."
    )


def _hashing(result: Hashing) -> str:
    cost = result.compared / result.not_compared - 1
    return (
        "Comparing archived bytes with their SHA-256 whenever they are unpacked costs "
        f"{cost:.1%} of the time that `show` takes for the 20 largest sessions "
        f"({result.compared:.3f} s of CPU against {result.not_compared:.3f} s); "
        f"`usage` unpacks {result.unpacked_by_usage} segments if nothing has changed."
    )


def _numbers(done: Done) -> Iterator[str]:
    yield "## Numbers"
    yield ""
    yield (
        "The truth is the tokens that the generator wrote and the price that genai-prices has for each call. "
        "**Bold** numbers are wrong; – means that the program does not report the number."
    )
    yield "Fresh input is input − cached + tool."
    yield ""
    for answers in done.answers:
        yield f"### {answers.home}"
        yield ""
        yield from tables.number_table(answers)
    yield "### Small homes, each with one unusual thing: dollars"
    yield ""
    yield from tables.case_table(done.cases, ["dollars"])
    yield "### The same: fresh input / cached / output + thoughts"
    yield ""
    yield from tables.case_table(done.cases, ["fresh input", "cached", "output + thoughts"])


def _peers(left_out: dict[str, str]) -> Iterator[str]:
    yield "## Peers"
    yield ""
    rows = [[f"{peer.name} {peer.version}", f"`{peer.shown()}`", left_out.get(peer.name, "ran")] for peer in OTHERS]
    yield from tables.table(("program", "command", ""), rows, left=3)
    yield "tokscale has no prices without a network, so it was given the table of litellm that it would fetch."
    yield f"{AGENTSVIEW.name} runs only once, because it takes so long."
