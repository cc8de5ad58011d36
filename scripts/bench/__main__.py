"""Write BENCHMARKS.md: build homes, install peers, measure all programs in one run, and compare their reports."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from scripts.bench import correctness, large, trees, works
from scripts.bench.bars import Results
from scripts.bench.hashing import hashing
from scripts.bench.inside import archive_bytes, refreshed
from scripts.bench.measure import Measured, measured
from scripts.bench.page import Done, Plan, page
from scripts.bench.peers import OTHERS, POLLUX, Peer, install
from scripts.bench.search_numbers import load_numbers
from scripts.bench.sections import PAGE, with_other_sections
from scripts.bench.trees import BUILD, ROOT, Growing, Tree

_MIXED = ("--sessions", "200", "--mb", "40", "--copies", "0.5", "--resumed", "0.3", "--torn", "0.05")


def main() -> None:
    """Measure everything and write the page."""
    plan = _plan()
    left_out = {peer.name: why for peer in OTHERS if (why := _why_not(peer, plan))}
    peers = [peer for peer in OTHERS if peer.name not in left_out]
    text = "".join(f"{line}\n" for line in page(_done(plan, peers, left_out)))
    text = text if plan.is_quick else with_other_sections(text, PAGE.read_text("utf-8"))
    file = BUILD / "quick.md" if plan.is_quick else PAGE
    file.write_text(text, encoding="utf-8")
    print(text, end="")
    print(f"written to {file.relative_to(ROOT)}", file=sys.stderr)


def _plan() -> Plan:
    options = argparse.ArgumentParser(prog="make bench", description=__doc__)
    options.add_argument("--rounds", type=int, help="number of times that each command runs")
    options.add_argument(
        "--quick", action="store_true", help="use small homes and no slow peers; do not change BENCHMARKS.md"
    )
    arguments = options.parse_args()
    if arguments.rounds is not None and arguments.rounds < 1:
        options.error("--rounds must be at least 1")
    if arguments.quick:
        return Plan(150, 40, 50, arguments.rounds or 2, is_quick=True)
    return Plan(3000, 760, 500, arguments.rounds or 5, is_quick=False)


def _why_not(peer: Peer, plan: Plan) -> str:
    return "not part of a quick run" if plan.is_quick and peer.is_slow else install(peer)


def _done(plan: Plan, peers: Sequence[Peer], left_out: dict[str, str]) -> Done:
    many = trees.generated(f"home-{plan.sessions}-{plan.megabytes}", *_size(plan))
    mixed = trees.generated("home-mixed", *_MIXED)
    one = trees.one_session(plan.one_session_mb)
    growing, long_growing = Growing(many), Growing(one)
    load = os.getloadavg()[0]
    first, second, long = _measured(plan, peers, (many, growing), (one, long_growing))
    sizes, loads = (many.bytes, archive_bytes(many)), (load, os.getloadavg()[0])
    inside = {
        name: refreshed(*home, plan.rounds) for name, home in (("many", (many, growing)), ("one", (one, long_growing)))
    }
    turn = inside["one"].grown - inside["one"].idle
    programs = (POLLUX, *peers)
    answers = [
        correctness.of_generated(many, f"Clean: {many.facts}", programs, known=True),
        correctness.of_generated(
            mixed, f"Mixed: {mixed.facts}, with copies, resumed and torn files", programs, known=False
        ),
    ]
    results = Results({**first, **second}, long, *sizes, turn, None if plan.is_quick else load_numbers())
    cases = correctness.of_cases(programs)
    hashed = hashing(many, max(plan.rounds, 5))
    on_large_archive = {} if plan.is_quick else large.measure(plan.rounds)
    return Done(
        plan, many, one, first, second, long, inside, results, answers, cases, left_out, loads, hashed, on_large_archive
    )


def _size(plan: Plan) -> tuple[str, ...]:
    return "--sessions", str(plan.sessions), "--mb", str(plan.megabytes)


def _measured(
    plan: Plan, peers: Sequence[Peer], many: tuple[Tree, Growing], one: tuple[Tree, Growing]
) -> list[dict[str, Measured]]:
    """Return the measurements of all works, taken in the same rounds."""
    lists = (
        works.first_look(many[0], peers),
        [*works.second_look(many[0], peers), *works.growth(many[0], peers, many[1])],
        works.one_session(one[0], peers, one[1]),
    )

    def restore() -> None:
        many[1].restore()
        one[1].restore()

    try:
        results = measured([work for works_ in lists for work in works_], plan.rounds, restore)
    finally:
        restore()
    return [{work.key: results[work.key] for work in works_} for works_ in lists]


if __name__ == "__main__":
    main()
