"""Measure commands on an archive of 30,000 sessions in which nothing has changed.

    python -m scripts.bench.large

measures only this and puts the section into BENCHMARKS.md; `make bench` measures it with everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scripts.bench import tables, trees, works
from scripts.bench.measure import Measured, measured, timed
from scripts.bench.trees import ROOT

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


def section(found: Mapping[str, Measured]) -> Iterator[str]:
    """Write the section of the page."""
    yield _HEADING
    yield ""
    yield f"Nothing has changed since the last start. The limit is {_LIMIT} s for the whole command."
    yield ""
    rows = []
    for one in found.values():
        verdict = "met" if one.best <= _LIMIT and not one.is_failed else "**missed**"
        rows.append([one.work.name, f"{one.best:.2f}", f"{one.median:.2f}", f"{one.cpu:.2f}", verdict])
    yield from tables.table(("", "best s", "median s", "CPU s", ""), rows)


def with_section(page: str, found: Mapping[str, Measured]) -> str:
    """Return a page of `make bench` with these times instead of those of an earlier run."""
    before, _, after = page.partition(f"\n{_HEADING}\n")
    if after:
        after = after[after.index("\n## ") :]
    else:
        before, heading, after = page.partition("\n## Search:")
        after = heading + after
    text = "\n".join(section(found)).rstrip("\n")
    return f"{before}\n{text}\n{after}"


def main() -> None:
    """Measure, and update the page."""
    page = ROOT / "BENCHMARKS.md"
    found = measure(_ROUNDS)
    page.write_text(with_section(page.read_text("utf-8"), found), "utf-8")
    print("\n".join(section(found)))


if __name__ == "__main__":
    main()
