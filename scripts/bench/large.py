"""Measure commands on an archive of 30,000 sessions in which nothing has changed.

    python -m scripts.bench.large

measures only this and puts the section into BENCHMARKS.md; `make bench` measures it with everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scripts.bench import tables, trees, works
from scripts.bench.measure import Measured, measured, timed
from scripts.bench.sections import write_section

_SESSIONS, _MEGABYTES = "30000", "300"
_LIMIT = 0.4
_HEADING = "## An archive of 30,000 sessions"
_ROUNDS = 7


def measure(rounds: int) -> dict[str, Measured]:
    """Return the times of commands on the archive, which is written first if it does not exist."""
    tree = trees.generated(f"home-{_SESSIONS}-{_MEGABYTES}", "--sessions", _SESSIONS, "--mb", _MEGABYTES)
    commands = works.large_archive(tree)
    timed(works.sync(tree))
    for command in commands:
        timed(command)  # stores what the archive keeps between two starts
    return measured(commands, rounds, lambda: None)


def section(results: Mapping[str, Measured]) -> Iterator[str]:
    """Yield the lines of the section."""
    yield _HEADING
    yield ""
    yield f"Nothing has changed since the last start. The limit is {_LIMIT} s for the whole command."
    yield ""
    rows = []
    for result in results.values():
        verdict = "met" if result.best <= _LIMIT and not result.is_failed else "**missed**"
        rows.append([result.work.name, f"{result.best:.2f}", f"{result.median:.2f}", f"{result.cpu:.2f}", verdict])
    yield from tables.table(("", "best s", "median s", "CPU s", ""), rows)


if __name__ == "__main__":
    write_section(section(measure(_ROUNDS)))
